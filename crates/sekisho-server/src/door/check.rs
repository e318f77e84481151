//! The check API: a program asks about limits that it names, or about a request under the policies.
//!
//! An answer is 200 whatever the outcome, unless the body is bad: a decision is what was asked for, not an error. With
//! `?status=decision` the answer has the outcome's own status instead.

mod line;
mod parse;

use std::net::IpAddr;

use http::{StatusCode, request::Parts};
use hyper::body::Incoming;
use sekisho::{
    Asked, CanonicalPath, Decision, Direct, Headers, IdentityDoor, Limit, Mode, Ruling, StoreError,
};
use sekisho_http::{Profile, client_addr};
use sekisho_redis::RedisStore;

use self::line::Line;
pub(crate) use self::line::{AsText, Seconds};
pub use self::parse::parse_body;
use crate::{
    door::{Doors, body},
    metrics::Door,
    reply::{self, Reply},
};

/// A body, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checks {
    /// One check.
    One(Check),
    /// Several, decided and answered in order.
    Many(Vec<Check>),
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is asked about.
    pub subject: Subject,
    /// How many units. When absent: 1 for limits that the caller names, else what the policy says.
    pub cost: Option<u64>,
    /// How they are charged.
    pub mode: Mode,
}

/// What a check asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Limits and a key that the caller names.
    Direct {
        /// At least one, and no two with the same id.
        limits: Vec<Limit>,
        /// Who is counted. Empty text is a key like any other.
        key: String,
    },
    /// A request, under the policies.
    Described {
        /// The one policy that is asked; all that match when absent.
        policy: Option<String>,
        /// The request.
        request: Described,
    },
}

/// A request that a check describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The method; `GET` when absent.
    pub method: String,
    /// The path, the root when absent.
    pub path: CanonicalPath,
    /// What follows the question mark.
    pub query: Option<String>,
    /// The host.
    pub host: Option<String>,
    /// The client's address.
    pub peer: Option<IpAddr>,
    /// The header lines.
    pub headers: HeaderText,
}

/// Header lines as a check gives them: names, and the values of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderText(pub Vec<(String, Vec<String>)>);

impl Headers for HeaderText {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        let lines = self.0.iter().filter(|(line, _)| line.eq_ignore_ascii_case(name));
        lines.flat_map(|(_, values)| values).for_each(|value| visit(value.as_bytes()));
    }
}

/// Why a body is bad. The message names the field, and the place in an array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadBody {
    message: String,
}

impl BadBody {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// Answers one request.
pub(crate) async fn answer(doors: &Doors, parts: &Parts, body: Incoming) -> Reply {
    let body = match body::read(parts, body, &doors.limits).await {
        Ok(body) => body,
        Err(error) => return error.reply(),
    };
    decided(doors, parts.uri.query(), &body).await.unwrap_or_else(|bad| bad_request(bad.message))
}

fn bad_request(detail: String) -> Reply {
    reply::problem(StatusCode::BAD_REQUEST, detail)
}

async fn decided(doors: &Doors, query: Option<&str>, body: &[u8]) -> Result<Reply, BadBody> {
    let by_status = asks_for_status(query)?;
    // All of a body is looked at before any of it is charged.
    match parse_body(body)? {
        Checks::One(check) => {
            can_be_asked(doors, &check).map_err(BadBody::new)?;
            Ok(one(doors, &check, by_status).await)
        }
        Checks::Many(_) if by_status => Err(BadBody::new(
            "an array has no single status: leave `status=decision` out, or send its checks alone",
        )),
        Checks::Many(checks) => {
            for (index, check) in checks.iter().enumerate() {
                can_be_asked(doors, check)
                    .map_err(|what| BadBody::new(format!("[{index}].{what}")))?;
            }
            Ok(many(doors, &checks).await)
        }
    }
}

/// Returns whether the outcome is to be the answer's status.
fn asks_for_status(query: Option<&str>) -> Result<bool, BadBody> {
    let pairs = query.unwrap_or_default().split('&');
    match pairs.filter_map(|pair| pair.strip_prefix("status=")).next_back() {
        None => Ok(false),
        Some("decision") => Ok(true),
        Some(_) => Err(BadBody::new("the query's `status` is `decision` or left out")),
    }
}

/// Says what is asked about that is not there: a policy, or a way of counting that the store has not learned.
fn can_be_asked(doors: &Doors, check: &Check) -> Result<(), String> {
    match &check.subject {
        Subject::Described { policy: Some(asked), .. } => {
            let known = doors.limiter.policies().policies().iter().any(|of| of.name() == asked);
            known.then_some(()).ok_or_else(|| "policy: there is no policy of that name".to_owned())
        }
        Subject::Direct { limits, .. } if doors.limiter.store().as_redis().is_some() => {
            let uncountable = limits.iter().find_map(|limit| RedisStore::supports(limit).err());
            uncountable.map_or(Ok(()), |error| Err(format!("limit: {error}")))
        }
        Subject::Described { policy: None, .. } | Subject::Direct { .. } => Ok(()),
    }
}

async fn one(doors: &Doors, check: &Check, by_status: bool) -> Reply {
    let decision = decide(doors, check).await;
    // The store is there, and would say the same again.
    if let Ruling::StoreDown(error @ StoreError::Unsupported(_)) = &decision.ruling {
        return bad_request(error.to_string());
    }
    if by_status {
        return doors.reply(&decision, Profile::Standard);
    }
    if let Ruling::BadRequest(error) = &decision.ruling {
        return bad_request(format!("request.headers: {error}"));
    }
    let mut json = Vec::with_capacity(256);
    line(doors, check, &decision).write(&mut json);
    reply::content("application/json", json)
}

async fn many(doors: &Doors, checks: &[Check]) -> Reply {
    let mut json = Vec::with_capacity(256 * checks.len() + 2);
    json.push(b'[');
    for (index, check) in checks.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        line(doors, check, &decide(doors, check).await).write(&mut json);
    }
    json.push(b']');
    reply::content("application/json", json)
}

async fn decide(doors: &Doors, check: &Check) -> Decision {
    let deciding = match &check.subject {
        Subject::Direct { limits, key } => {
            let direct = Direct { limits, key: key.as_bytes(), cost: check.cost.unwrap_or(1) };
            return doors.decide_direct(Door::Check, &direct, check.mode).await;
        }
        Subject::Described { policy, request } => {
            let asked = Asked { cost: check.cost, policy: policy.as_deref(), ..check.mode.into() };
            let identity = &doors.limiter.policies().settings().identity;
            let source = identity.source(IdentityDoor::Http);
            let client = client_addr(identity, source, request.peer, &request.headers);
            let request = sekisho::Request {
                method: &request.method,
                host: request.host.as_deref(),
                path: &request.path,
                query: request.query.as_deref(),
                client: client.address,
                principal: None,
                headers: &request.headers,
            };
            doors.decide(Door::Check, &request, asked)
        }
    };
    deciding.await
}

fn line<'a>(doors: &Doors, check: &'a Check, decision: &'a Decision) -> Line<'a> {
    // What no store was asked about has no instant of its own.
    let asked = !decision.parts.is_empty();
    let at = if asked { decision.at } else { doors.clock.now() };
    Line::new(check, decision, at)
}
