//! What a head must have before anybody acts on it, where the parser does not insist.

use http::{
    Method, Request, StatusCode, Version,
    header::{EXPECT, HOST},
};

use crate::reply::{self, Reply};

/// Returns the refusal of a head that could be read in two ways, or that asks for what a gateway has not.
pub(super) fn refusal<B>(request: &Request<B>) -> Option<Reply> {
    if request.method() == Method::CONNECT {
        return Some(reply::last_problem(
            StatusCode::METHOD_NOT_ALLOWED,
            "this gateway opens no tunnels",
        ));
    }
    let hosts = request.headers().get_all(HOST).iter().count();
    // RFC 9112 (3.2): exactly one from HTTP/1.1 on; HTTP/2 has it in the target.
    let enough = hosts == 1 || request.version() != Version::HTTP_11;
    (hosts > 1 || !enough)
        .then(|| reply::last_problem(StatusCode::BAD_REQUEST, "a request has exactly one `Host`"))
}

/// Returns whether the client sends its body without being told to.
pub(super) fn sends_at_once<B>(request: &Request<B>) -> bool {
    request.version() < Version::HTTP_2 && !request.headers().contains_key(EXPECT)
}
