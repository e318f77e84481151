//! A request's body on its way to the upstream, and how far it has come.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, combinators::UnsyncBoxBody};
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::body::BoxError;

/// What is known of a body while it is sent.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// How many pieces the upstream has taken, the end included.
    moved: AtomicU64,
    /// Whether the client is who is waited for.
    waiting: AtomicBool,
    /// Whether it was waited for too long.
    slow: AtomicBool,
}

impl Flow {
    pub(super) fn moved(&self) -> u64 {
        self.moved.load(Relaxed)
    }

    pub(super) fn waits_for_client(&self) -> bool {
        self.waiting.load(Relaxed)
    }

    pub(super) fn client_was_slow(&self) -> bool {
        self.slow.load(Relaxed)
    }
}

/// A body on its way.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Nothing for a request that has no body, which most have not.
    body: Option<UnsyncBoxBody<Bytes, BoxError>>,
    flow: Arc<Flow>,
    patience: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Outgoing {
    /// Returns a body whose sender may pause for `patience` and no longer.
    pub(super) fn new<B>(body: B, patience: Duration) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let body = (!body.is_end_stream()).then(|| body.map_err(Into::into).boxed_unsync());
        Self { body, flow: Arc::default(), patience, timer: None }
    }

    pub(super) fn empty() -> Self {
        Self { body: None, flow: Arc::default(), patience: Duration::ZERO, timer: None }
    }

    pub(super) fn flow(&self) -> Arc<Flow> {
        Arc::clone(&self.flow)
    }

    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<BoxError> {
        let patience = self.patience;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(patience)));
        timer.as_mut().poll(context).map(|()| {
            self.flow.slow.store(true, Relaxed);
            io::Error::from(io::ErrorKind::TimedOut).into()
        })
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(context);
        self.flow.waiting.store(polled.is_pending(), Relaxed);
        if polled.is_pending() {
            return self.poll_patience(context).map(|error| Some(Err(error)));
        }
        self.timer = None;
        let _before = self.flow.moved.fetch_add(1, Relaxed);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}
