//! Forward-auth: a proxy asks whether a request may pass before it passes it on.
//!
//! The original request is this one, with its path behind `/auth` or `/auth403`: the same method, query and header lines.

use std::net::IpAddr;

use http::{StatusCode, request::Parts};
use sekisho::{Asked, CanonicalPath};
use sekisho_http::{Answer, HeaderLines, Profile, describe};

use crate::{
    door::Doors,
    metrics::Door,
    reply::{self, Reply},
};

/// Answers one request. Every answer is 200 or a refusal, never a redirect, which a proxy would pass on to the client.
pub(crate) fn answer(
    doors: &Doors,
    parts: &Parts,
    (profile, path): (Profile, &str),
    peer: IpAddr,
) -> Reply {
    let path = match CanonicalPath::parse(path) {
        Ok(path) => path,
        // nginx reads no other refusal, and to every proxy this one says that the request does not pass.
        Err(error) => return reply::problem(StatusCode::FORBIDDEN, error.to_string()),
    };
    let headers = HeaderLines(&parts.headers);
    let request = describe(parts, &headers, &path, Some(peer.to_canonical()));
    let door = match profile {
        Profile::Standard => Door::Auth,
        Profile::Nginx => Door::Auth403,
    };
    let decision = doors.decide(door, &request, Asked::default());
    reply::of(Answer::of(&decision, profile))
}
