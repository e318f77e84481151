//! One request that runs, for as long as anything of it does: its answer's body, or the tunnel that it became.

use std::sync::Arc;

use super::framing::Opaque;
use crate::door::{
    listener::{Stage, Stay},
    patience::Progress,
};

/// A request that runs. The connection is not idle before the last holder is gone.
#[derive(Debug)]
pub(crate) struct Running {
    progress: Arc<Progress>,
    stay: Stay,
    opaque: Arc<Opaque>,
}

impl Running {
    pub(super) fn begin(progress: &Arc<Progress>, stay: &Stay, opaque: &Arc<Opaque>) -> Arc<Self> {
        Arc::new(Self {
            progress: Arc::clone(progress),
            stay: stay.clone(),
            opaque: Arc::clone(opaque),
        })
    }

    /// Says that the connection speaks another protocol from now on.
    pub(super) fn turn_over(&self) {
        self.opaque.set();
    }

    /// Is ready when the listener drops what is left.
    pub(super) async fn cut(&self) {
        self.stay.reached(Stage::Cut).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.progress.end();
    }
}
