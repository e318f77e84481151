//! The body of a response that may be the inner service's or a refusal.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The inner service's body, passed on as it is, or a refusal's.
    #[derive(Debug)]
    pub struct LimitBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = KindProjection]
    enum Kind<B> {
        Inner { #[pin] body: B },
        Refusal { whole: Option<Bytes> },
    }
}

impl<B> LimitBody<B> {
    pub(super) const fn inner(body: B) -> Self {
        Self { kind: Kind::Inner { body } }
    }

    pub(super) fn refusal(body: Vec<u8>) -> Self {
        // An empty body has no frames at all: gRPC knows a refusal by that.
        Self { kind: Kind::Refusal { whole: (!body.is_empty()).then(|| body.into()) } }
    }
}

impl<B: Default> Default for LimitBody<B> {
    fn default() -> Self {
        Self::inner(B::default())
    }
}

impl<B: Body<Data = Bytes>> Body for LimitBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            KindProjection::Inner { body } => body.poll_frame(context),
            KindProjection::Refusal { whole } => {
                Poll::Ready(whole.take().map(|whole| Ok(Frame::data(whole))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Inner { body } => body.is_end_stream(),
            Kind::Refusal { whole } => whole.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Inner { body } => body.size_hint(),
            Kind::Refusal { whole } => {
                SizeHint::with_exact(whole.as_ref().map_or(0, |whole| whole.len() as u64))
            }
        }
    }
}
