//! Why a request was not forwarded, and what its client is told.

use http::{Request, StatusCode};
use hyper::client::conn::TrySendError;

use super::{
    connect::ConnectError,
    outgoing::{Flow, Outgoing},
};
use crate::reply::{self, Reply};

/// Why there is no answer of the upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It cannot be reached.
    Unreachable,
    /// It did not take the connection in time.
    Unconnected,
    /// It did not answer in time.
    Late,
    /// It broke off, or what it said is no HTTP.
    Broken,
    /// It changed the protocol, and nobody had asked for that.
    Unasked,
    /// The client paused for too long within its body.
    SlowClient,
    /// The client's body broke off, or its framing is wrong.
    BrokenClient,
    /// The request's target is none that could be forwarded.
    Target,
}

impl Failure {
    /// The one table from a failure to an answer. The client learns nothing of the upstream's address.
    pub(super) fn reply(self) -> Reply {
        match self {
            Self::Unreachable => bad_gateway("the upstream cannot be reached"),
            Self::Broken => bad_gateway("the upstream broke off before it answered"),
            Self::Unasked => bad_gateway("the upstream changed the protocol unasked"),
            Self::Unconnected => timeout("the upstream did not take the connection in time"),
            Self::Late => timeout("the upstream did not answer in time"),
            Self::SlowClient => {
                reply::last_problem(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")
            }
            Self::BrokenClient => {
                reply::last_problem(StatusCode::BAD_REQUEST, "the body cannot be read")
            }
            Self::Target => {
                reply::problem(StatusCode::BAD_REQUEST, "the request's target cannot be passed on")
            }
        }
    }
}

fn bad_gateway(detail: &'static str) -> Reply {
    reply::problem(StatusCode::BAD_GATEWAY, detail)
}

fn timeout(detail: &'static str) -> Reply {
    reply::problem(StatusCode::GATEWAY_TIMEOUT, detail)
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Timeout => Self::Unconnected,
            ConnectError::Failed(cause) => {
                tracing::warn!(
                    cause = &*cause as &dyn std::error::Error,
                    "the upstream cannot be reached"
                );
                Self::Unreachable
            }
        }
    }
}

/// Why one attempt came to nothing.
#[derive(Debug)]
pub(super) enum Broken {
    /// The connection was closed before any of the request was sent; the body is whole.
    Unsent(Outgoing),
    /// It was closed before any of the answer came.
    Off(hyper::Error),
    /// Something that another attempt would not better.
    Final(Failure),
}

impl Broken {
    pub(super) fn of(mut error: TrySendError<Request<Outgoing>>, flow: &Flow) -> Self {
        if let Some(unsent) = error.take_message() {
            return Self::Unsent(unsent.into_body());
        }
        let error = error.into_error();
        if flow.client_was_slow() {
            Self::Final(Failure::SlowClient)
        } else if error.is_user() {
            Self::Final(Failure::BrokenClient)
        } else if error.is_parse() {
            Self::Final(Failure::Broken)
        } else {
            Self::Off(error)
        }
    }
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self::Final(failure)
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Final(failure) => failure,
            Broken::Unsent(_) => Self::Broken,
            Broken::Off(cause) => {
                tracing::warn!(cause = &cause as &dyn std::error::Error, "the upstream broke off");
                Self::Broken
            }
        }
    }
}
