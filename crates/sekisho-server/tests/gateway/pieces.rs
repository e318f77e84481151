//! Bodies that are made and counted piece by piece, so that a test holds as little of them as the gateway should.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming};

/// Zeroes, this many.
pub(crate) struct Zeroes(pub(crate) usize);

static PIECE: [u8; 64 * 1024] = [0; 64 * 1024];

impl Body for Zeroes {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.min(PIECE.len());
        self.0 -= piece;
        let frame = Frame::data(Bytes::from_static(&PIECE[..piece]));
        Poll::Ready((piece > 0).then_some(Ok(frame)))
    }
}

/// Reads a body to its end.
pub(crate) async fn count(mut body: Incoming) -> Result<usize, hyper::Error> {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame?.data_ref().map_or(0, Bytes::len);
    }
    Ok(bytes)
}
