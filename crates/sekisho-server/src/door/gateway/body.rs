//! The bodies that pass through: none is ever held whole.

use std::{
    error::Error,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::time::timeout;

use super::pool::Place;
use crate::limits::{BODY_DISCARD_BYTES_MAX, Limits};

/// What a body may fail with.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// The body of an answer: what comes from the upstream, or a short one of our own.
#[derive(Debug)]
pub struct Body(Inner);

#[derive(Debug)]
enum Inner {
    Own(Full<Bytes>),
    Upstream {
        body: Incoming,
        /// Given back when the body ends.
        _place: Place,
    },
}

impl Body {
    pub(super) const fn upstream(body: Incoming, place: Place) -> Self {
        Self(Inner::Upstream { body, _place: place })
    }

    pub(super) const fn whole(body: Full<Bytes>) -> Self {
        Self(Inner::Own(body))
    }
}

impl Default for Body {
    fn default() -> Self {
        Self(Inner::Own(Full::default()))
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self(Inner::Own(Full::new(bytes.into())))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Inner::Own(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
            Inner::Upstream { body, .. } => Pin::new(body).poll_frame(context).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Own(body) => body.is_end_stream(),
            Inner::Upstream { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Own(body) => body.size_hint(),
            Inner::Upstream { body, .. } => body.size_hint(),
        }
    }
}

/// The body of a request, as it comes from a client.
///
/// Nothing of it is read before somebody asks for it. One that is dropped unread is read on for a while and thrown away, since
/// a socket that is closed on unread bytes takes the answer back; a client that waits for leave to send is not given it.
#[derive(Debug)]
pub struct Inbound {
    body: Option<Incoming>,
    limits: Limits,
    /// Whether the client sends without being told to.
    sends: bool,
}

impl Inbound {
    pub(super) const fn new(body: Incoming, limits: Limits, sends: bool) -> Self {
        Self { body: Some(body), limits, sends }
    }
}

impl Drop for Inbound {
    fn drop(&mut self) {
        let Some(body) = self.body.take() else { return };
        if !self.sends || body.is_end_stream() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let patience = self.limits.body_timeout;
        let _running = runtime.spawn(async move { timeout(patience, discard(body)).await });
    }
}

async fn discard(mut body: Incoming) {
    let mut seen = 0_usize;
    while let Some(Ok(frame)) = body.frame().await {
        seen = seen.saturating_add(frame.data_ref().map_or(0, Bytes::len));
        if seen > BODY_DISCARD_BYTES_MAX {
            return;
        }
    }
}

impl hyper::body::Body for Inbound {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // From the first question on, the client knows that its body is wanted.
        self.sends = true;
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}
