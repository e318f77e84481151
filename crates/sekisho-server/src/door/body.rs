//! A request's body, read whole: bounded in size and time.

use http::{StatusCode, header::EXPECT, request::Parts};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::time::timeout;

use crate::{
    limits::{BODY_DISCARD_BYTES_MAX, Limits},
    reply::{self, Reply},
};

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// It is longer than the limits allow.
    Long,
    /// It did not arrive in time.
    Slow,
    /// Its framing is wrong, or its sender left.
    Broken,
}

impl BodyError {
    pub(crate) fn reply(self) -> Reply {
        match self {
            Self::Long => {
                reply::last_problem(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long")
            }
            Self::Slow => {
                reply::last_problem(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")
            }
            Self::Broken => reply::last_problem(StatusCode::BAD_REQUEST, "the body cannot be read"),
        }
    }
}

/// Reads a body.
pub(crate) async fn read(
    parts: &Parts,
    body: Incoming,
    limits: &Limits,
) -> Result<Vec<u8>, BodyError> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limits.body_bytes && parts.headers.contains_key(EXPECT) {
        // Its sender waits for leave to send it.
        return Err(BodyError::Long);
    }
    match timeout(limits.body_timeout, collect(body, announced, limits.body_bytes)).await {
        Ok(collected) => collected,
        Err(_elapsed) => Err(BodyError::Slow),
    }
}

async fn collect(mut body: Incoming, announced: usize, most: usize) -> Result<Vec<u8>, BodyError> {
    let mut bytes = Vec::with_capacity(announced.min(most));
    let mut seen = 0_usize;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        seen = seen.saturating_add(data.len());
        if seen <= most {
            bytes.extend_from_slice(&data);
        } else if announced.max(seen) > BODY_DISCARD_BYTES_MAX {
            return Err(BodyError::Long);
        }
        // What is too long is read on and dropped: a socket closed on unread bytes takes the answer back.
    }
    if seen <= most { Ok(bytes) } else { Err(BodyError::Long) }
}
