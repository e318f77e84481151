//! Forward-auth: a proxy asks whether a request may pass before it passes it on.
//!
//! The original request is this one, with its path behind `/auth` or `/auth403`; or it stands in header lines that a trusted
//! proxy sets. A proxy whose word does not count gets 503: to count it instead of its clients would lock out a whole site.

use std::{borrow::Cow, net::IpAddr};

use http::{HeaderMap, StatusCode, request::Parts};
use sekisho::{Asked, CanonicalPath, IdentityDoor, Original, PathError};
use sekisho_http::{HeaderLines, Profile, client_addr, host};

use crate::{
    door::Doors,
    metrics::Door,
    reply::{self, Reply},
};

/// The request that is asked about.
struct Asking<'a> {
    method: &'a str,
    host: Option<&'a str>,
    /// The path with its query; a proxy may pass on any octet in it.
    target: Cow<'a, [u8]>,
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
    let path = match CanonicalPath::parse_bytes(&asking.target) {
        Ok(path) => path,
        Err(error) => return bad_path(error),
    };
    let query = query(&asking.target);
    let request = sekisho::Request {
        method: asking.method,
        host: asking.host,
        path: &path,
        query: query.as_deref(),
        client: client.address,
        principal: None,
        headers: &headers,
    };
    let door = match profile {
        Profile::Standard => Door::Auth,
        Profile::Nginx => Door::Auth403,
    };
    let decision = doors.decide(door, &request, Asked::default());
    doors.reply(&decision, profile)
}

/// Returns what follows the question mark.
fn query(target: &[u8]) -> Option<Cow<'_, str>> {
    let target = target.split(|byte| *byte == b'#').next()?;
    let mark = target.iter().position(|byte| *byte == b'?')?;
    Some(String::from_utf8_lossy(&target[mark + 1..]))
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
                Some(query) => format!("{path}?{query}").into_bytes().into(),
                None => path.as_bytes().into(),
            };
            Ok(Asking { method: parts.method.as_str(), host: own_host, target })
        }
        _ if !trusted => Err(Unasked::Untrusted),
        Original::XOriginal => Ok(Asking {
            method: text(headers, "x-original-method")
                .ok_or(Unasked::Absent("the proxy does not send `X-Original-Method` once"))?,
            target: only(headers, "x-original-uri")
                .ok_or(Unasked::Absent("the proxy does not send `X-Original-URI` once"))?
                .into(),
            host: text(headers, "x-original-host").or(own_host),
        }),
        Original::XForwarded => Ok(Asking {
            method: text(headers, "x-forwarded-method")
                .ok_or(Unasked::Absent("the proxy does not send `X-Forwarded-Method` once"))?,
            target: only(headers, "x-forwarded-uri")
                .ok_or(Unasked::Absent("the proxy does not send `X-Forwarded-Uri` once"))?
                .into(),
            host: text(headers, "x-forwarded-host").or(own_host),
        }),
    }
}

/// Returns the value of a header that has one line. With two, one may be the client's own.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a [u8]> {
    let mut lines = headers.get_all(name).iter();
    let line = lines.next()?;
    if lines.next().is_some() {
        return None;
    }
    Some(line.as_bytes()).filter(|value| !value.is_empty())
}

/// The same for a value that is text.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    std::str::from_utf8(only(headers, name)?).ok()
}
