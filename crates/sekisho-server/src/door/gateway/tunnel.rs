//! Two connections, joined.

use std::{future::pending, sync::Arc};

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use super::running::Running;

/// Carries bytes both ways until both sides have said their last, or the listener drops what is left.
pub(super) async fn tunnel(client: OnUpgrade, upstream: OnUpgrade, running: Option<Arc<Running>>) {
    let joined = async {
        let (client, upstream) = tokio::try_join!(client, upstream)?;
        let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
        let _bytes = copy_bidirectional(&mut client, &mut upstream).await;
        Ok::<(), hyper::Error>(())
    };
    let cut = async {
        match &running {
            Some(running) => running.cut().await,
            None => pending().await,
        }
    };
    // How a tunnel ends is for its two sides to say.
    tokio::select! {
        _ended = joined => {}
        () = cut => {}
    }
}
