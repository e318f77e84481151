//! `GET /v1/keys`: the fullest keys, as far as this process has seen them.

mod query;

use http::{Request, StatusCode};
use hyper::body::Incoming;
use sekisho::{FullKey, Fullest, Limit, Limiter, Timestamp};
use serde::Serialize;

use self::query::Wanted;
use crate::{
    door::check::{AsText, Seconds},
    reply::{self, Reply},
    store::{Counting as _, ServerStore},
};

/// The answer, its fields in the order in which they are written.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    /// Whose view it is: other servers of a shared store have their own.
    scope: &'static str,
    at: AsText<Seconds>,
    places: usize,
    held: usize,
    crowded_out: u64,
    keys: Vec<Line<'a>>,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    policy: Option<&'a str>,
    id: &'a str,
    limit: AsText<&'a Limit>,
    key: &'a str,
    used: u64,
    capacity: u64,
    remaining: u64,
    used_percent: u8,
    outcome: &'static str,
    denied: u64,
    seen: AsText<Seconds>,
    next_after_ns: u64,
    fresh_after_ns: u64,
}

/// Answers one request.
pub(super) fn answer(limiter: &Limiter<ServerStore>, request: &Request<Incoming>) -> Reply {
    let wanted = match query::parse(request.uri().query().unwrap_or_default()) {
        Ok(wanted) => wanted,
        Err(bad) => return reply::problem(StatusCode::BAD_REQUEST, bad.to_string()),
    };
    let mut policies = limiter.policies().policies().iter();
    if let Some(asked) = wanted.policy.as_deref().filter(|asked| !asked.is_empty())
        && !policies.any(|policy| policy.name() == asked)
    {
        return reply::problem(
            StatusCode::BAD_REQUEST,
            "policy: there is no policy of that name; empty text asks for limits that callers named themselves",
        );
    }
    // The admin listener has them kept.
    let Some(fullest) = limiter.fullest() else { return reply::not_found() };
    let json = render(fullest, &wanted, limiter.process_clock().now());
    reply::content("application/json", json)
}

fn render(fullest: &Fullest, wanted: &Wanted, now: Timestamp) -> Vec<u8> {
    let keys = fullest.top(now, wanted.top, |key| wanted.wants(key));
    let answer = Answer {
        scope: "process",
        at: AsText(Seconds(now)),
        places: fullest.places(),
        held: fullest.held(),
        crowded_out: fullest.crowded_out(),
        keys: keys.iter().map(|key| line(key, now)).collect(),
    };
    // Text and numbers always have a JSON form.
    serde_json::to_vec(&answer).unwrap_or_default()
}

fn line(of: &FullKey, now: Timestamp) -> Line<'_> {
    let policy = of.scope.policy();
    Line {
        policy: Some(policy).filter(|name| !name.is_empty()),
        id: of.scope.limit(),
        limit: AsText(&of.limit),
        key: of.key.as_str(),
        used: of.used,
        capacity: of.capacity,
        remaining: of.remaining(),
        used_percent: of.used_percent(),
        outcome: of.outcome.as_str(),
        denied: of.denied,
        seen: AsText(Seconds(of.seen)),
        next_after_ns: of.next_at.since(now).as_nanos(),
        fresh_after_ns: of.fresh_at.since(now).as_nanos(),
    }
}
