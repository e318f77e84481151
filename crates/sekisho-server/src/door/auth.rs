//! Forward-auth: a proxy asks whether a request may pass before it passes it on.
//!
//! The original request is this one, with its path behind `/auth` or `/auth403`; or it stands in header lines that a trusted
//! proxy sets. A proxy whose word does not count gets 503: to count it instead of its clients would lock out a whole site.

use std::{borrow::Cow, net::IpAddr};

use http::{HeaderMap, StatusCode, request::Parts};
use sekisho::{Asked, CanonicalPath, IdentityDoor, Original, PathError};
use sekisho_http::{Answer, HeaderLines, Profile, client_addr, host};

use crate::{
    door::Doors,
    metrics::Door,
    reply::{self, Reply},
};

/// The request that is asked about.
struct Asking<'a> {
    method: &'a str,
    host: Option<&'a str>,
    /// The path with its query.
    target: Cow<'a, str>,
}

/// Why the original request cannot be had.
enum Unasked {
    /// Whoever connects may not say what it is.
    Untrusted,
    /// A proxy that may did not say, or said it twice.
    Absent(&'static str),
}

/// Answers one request. Every answer is 200 or a refusal, never a redirect, which a proxy would pass on to the client.
pub(crate) fn answer(
    doors: &Doors,
    parts: &Parts,
    (profile, path): (Profile, &str),
    peer: IpAddr,
) -> Reply {
    let settings = doors.limiter.policies().settings();
    let trusted = settings.identity.trusts(peer);
    let headers = HeaderLines(&parts.headers);
    let source = settings.identity.source(IdentityDoor::Auth);
    let client = client_addr(&settings.identity, source, Some(peer), &headers);
    let asking = original(settings.listen.original, parts, path, trusted);
    let asking = match asking {
        Ok(asking) if !client.unbelieved => asking,
        Ok(_) | Err(Unasked::Untrusted) => {
            doors.unbelieved.note(peer);
            return reply::problem(
                StatusCode::SERVICE_UNAVAILABLE,
                "this server does not trust the proxy that asks: it is not in `trusted_proxies`",
            );
        }
        Err(Unasked::Absent(what)) => return reply::problem(StatusCode::SERVICE_UNAVAILABLE, what),
    };
    let path = match CanonicalPath::parse(&asking.target) {
        Ok(path) => path,
        Err(error) => return bad_path(error),
    };
    let request = sekisho::Request {
        method: asking.method,
        host: asking.host,
        path: &path,
        query: asking
            .target
            .split('#')
            .next()
            .and_then(|target| target.split_once('?'))
            .map(|(_, query)| query),
        client: client.address,
        principal: None,
        headers: &headers,
    };
    let door = match profile {
        Profile::Standard => Door::Auth,
        Profile::Nginx => Door::Auth403,
    };
    let decision = doors.decide(door, &request, Asked::default());
    reply::of(Answer::of(&decision, profile))
}

/// nginx reads no other refusal, and to every proxy this one says that the request does not pass.
fn bad_path(error: PathError) -> Reply {
    reply::problem(StatusCode::FORBIDDEN, error.to_string())
}

fn original<'a>(
    from: Original,
    parts: &'a Parts,
    path: &'a str,
    trusted: bool,
) -> Result<Asking<'a>, Unasked> {
    let headers = &parts.headers;
    let own_host = host(&parts.uri, headers);
    match from {
        Original::Path => {
            let target = match parts.uri.query() {
                Some(query) => format!("{path}?{query}").into(),
                None => path.into(),
            };
            Ok(Asking { method: parts.method.as_str(), host: own_host, target })
        }
        _ if !trusted => Err(Unasked::Untrusted),
        Original::XOriginal => Ok(Asking {
            method: only(headers, "x-original-method")
                .ok_or(Unasked::Absent("the proxy does not send `X-Original-Method` once"))?,
            target: only(headers, "x-original-uri")
                .ok_or(Unasked::Absent("the proxy does not send `X-Original-URI` once"))?
                .into(),
            host: only(headers, "x-original-host").or(own_host),
        }),
        Original::XForwarded => Ok(Asking {
            method: only(headers, "x-forwarded-method")
                .ok_or(Unasked::Absent("the proxy does not send `X-Forwarded-Method` once"))?,
            target: only(headers, "x-forwarded-uri")
                .ok_or(Unasked::Absent("the proxy does not send `X-Forwarded-Uri` once"))?
                .into(),
            host: only(headers, "x-forwarded-host").or(own_host),
        }),
    }
}

/// Returns the value of a header that has one line. With two, one may be the client's own.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut lines = headers.get_all(name).iter();
    let line = lines.next()?;
    if lines.next().is_some() {
        return None;
    }
    line.to_str().ok().filter(|value| !value.is_empty())
}
