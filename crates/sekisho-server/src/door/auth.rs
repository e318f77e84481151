//! Forward-auth: a proxy asks whether a request may pass before it passes it on.
//!
//! The original request is this one, with its path behind `/auth` or `/auth403`; or it stands in header lines that a trusted
//! proxy sets. A proxy whose word does not count gets 503: to count it instead of its clients would lock out a whole site.

use std::{
    borrow::Cow,
    sync::Arc,
    task::{Context, Waker},
};

use http::{HeaderMap, StatusCode, request::Parts};
use sekisho::{
    AddressSource, Asked, CanonicalPath, Decision, IdentityDoor, Original, Part, PathError, Place,
};
use sekisho_http::{ClientAddr, HeaderLines, Profile, client_addr, host};
use tokio::runtime::Handle;

use crate::{
    door::{Doors, caller::Caller},
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
pub(crate) async fn answer(
    doors: &Doors,
    parts: &Parts,
    (profile, path): (Profile, &str),
    caller: Caller,
) -> Reply {
    let decision = match decide(doors, parts, (profile, path), caller) {
        Ok(deciding) => deciding.await,
        Err(refusal) => return *refusal,
    };
    // Without `hold` a request that has a slot passes at once.
    if doors.limiter.policies().settings().listen.hold.is_some() && !decision.delay.is_zero() {
        hold(doors, &decision).await;
    }
    doors.reply(&decision, profile)
}

fn decide<'d>(
    doors: &'d Doors,
    parts: &Parts,
    (profile, path): (Profile, &str),
    caller: Caller,
) -> Result<impl Future<Output = Decision> + Send + use<'d>, Box<Reply>> {
    let settings = doors.limiter.policies().settings();
    let peer = caller.peer_ip();
    // Whoever reaches a unix socket is trusted: the file's mode says who that may be.
    let trusted = peer.is_none_or(|peer| settings.identity.trusts(peer));
    let headers = HeaderLines(&parts.headers);
    let source = settings.identity.source(IdentityDoor::Auth);
    let client = match source {
        AddressSource::ProxyProtocol => {
            ClientAddr { address: caller.client_ip(), unbelieved: caller.unbelieved }
        }
        _ => client_addr(&settings.identity, source, peer, &headers),
    };
    let asking = original(settings.listen.original, parts, path, trusted);
    let asking = match asking {
        Ok(asking) if !client.unbelieved => asking,
        Ok(_) | Err(Unasked::Untrusted) => {
            // Of those that a PROXY header names, the listener has told already.
            if !caller.unbelieved {
                doors.unbelieved.note(peer);
            }
            return Err(undecided(
                "this server does not trust the proxy that asks: it is not in `trusted_proxies`",
            ));
        }
        Err(Unasked::Absent(what)) => return Err(undecided(what)),
    };
    let path =
        CanonicalPath::parse_bytes(&asking.target).map_err(|error| Box::new(bad_path(error)))?;
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
    let asked: Asked<'static> = Asked { longest: settings.listen.hold, ..Asked::default() };
    Ok(doors.decide(door, &request, asked))
}

/// Waits for a request's slot. A proxy that hangs up meanwhile leaves the queue, and those behind it move up.
async fn hold(doors: &Doors, decision: &Decision) {
    let (place, left) = doors.limiter.line_up(&doors.clock, std::slice::from_ref(decision));
    let mut held = Held { doors, decision, place: Some(place) };
    for slot in left {
        // What a store cannot take back stays charged: the safe side.
        let _given_back = doors.limiter.free(slot).await;
    }
    if let Some(place) = &mut held.place {
        place.turn().await;
    }
    // Its turn has come: there is nothing to give back.
    held.place = None;
}

/// A request that is held. Dropped with its place, it was abandoned.
struct Held<'a> {
    doors: &'a Doors,
    decision: &'a Decision,
    place: Option<Place>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        // Those behind move up at once, whatever the store takes.
        let left = place.leave();
        let (limiter, decision) = (Arc::clone(&self.doors.limiter), self.decision.clone());
        let mut work = Box::pin(async move {
            for slot in left {
                let _given_back = limiter.free(slot).await;
            }
            let at_once = |part: &Part| part.verdict.delay.is_zero();
            let _given_back = limiter.refund(&decision, at_once).await;
        });
        // Memory takes it back at once. For a shared store somebody has to wait, and the proxy that asked has gone.
        let done = work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        if let Some(runtime) = Handle::try_current().ok().filter(|_| !done) {
            drop(runtime.spawn(work));
        }
    }
}

/// Returns what follows the question mark.
fn query(target: &[u8]) -> Option<Cow<'_, str>> {
    let target = target.split(|byte| *byte == b'#').next()?;
    let mark = target.iter().position(|byte| *byte == b'?')?;
    Some(String::from_utf8_lossy(&target[mark + 1..]))
}

fn undecided(why: &'static str) -> Box<Reply> {
    Box::new(reply::problem(StatusCode::SERVICE_UNAVAILABLE, why))
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
