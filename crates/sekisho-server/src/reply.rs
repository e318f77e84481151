//! Answers that are not decisions, and the form that all answers have.

use std::borrow::Cow;

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, CONNECTION, CONTENT_TYPE},
};
use http_body_util::Full;
use sekisho_http::{Answer, Problem};

/// An answer, ready to be sent: all bodies are short and made before they are sent.
pub(crate) type Reply = Response<Full<Bytes>>;

/// Returns the answer to a decision, or the one that tells a problem.
pub(crate) fn of(answer: Answer) -> Reply {
    let mut reply = Response::new(Full::new(answer.body.into()));
    *reply.status_mut() = answer.status;
    *reply.headers_mut() = answer.headers;
    reply
}

/// Returns a problem that the status names.
pub(crate) fn problem<'a>(status: StatusCode, detail: impl Into<Cow<'a, str>>) -> Reply {
    of(Answer::problem(&Problem::plain(status, detail)))
}

/// Returns the same, and closes the connection: the rest of its bytes cannot be told apart.
pub(crate) fn last_problem(status: StatusCode, detail: &str) -> Reply {
    let mut reply = problem(status, detail);
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}

/// Returns the answer to a method that a path does not have.
pub(crate) fn wrong_method(allowed: &'static str) -> Reply {
    let mut reply =
        problem(StatusCode::METHOD_NOT_ALLOWED, format!("this path has only {allowed}"));
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}

/// Returns the answer to a path that nothing is at.
pub(crate) fn not_found() -> Reply {
    problem(StatusCode::NOT_FOUND, "there is nothing at this path")
}

/// Returns a body of that type, with status 200.
pub(crate) fn content(kind: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// Returns one word of text.
pub(crate) fn text(status: StatusCode, word: &'static str) -> Reply {
    let mut reply = content("text/plain; charset=utf-8", word);
    *reply.status_mut() = status;
    reply
}
