//! The header fields of one hop, and those that tell the upstream who is asking.

use std::net::IpAddr;

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        CONNECTION, EXPECT, FORWARDED, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
        TRANSFER_ENCODING, UPGRADE,
    },
    request::Parts,
};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// What belongs to one connection only (RFC 9110, 7.6.1), whether `Connection` names it or not. `Trailer` is not among them:
/// trailers are passed on.
const ONE_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("http2-settings"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The only protocol that a connection is turned over to. Any other, `h2c` above all, would carry requests past the limiter.
pub(super) const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

/// Takes off what belongs to one hop, and what `Connection` names.
pub(super) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = tokens(headers, &CONNECTION)
        .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
        .collect();
    for name in named.iter().chain(&ONE_HOP) {
        let _removed = headers.remove(name);
    }
}

/// Returns the members of a field that is a list of tokens.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).iter();
    lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(',').map(str::trim))
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    tokens(headers, name).any(|member| member.eq_ignore_ascii_case(token))
}

/// Returns whether a message asks for, or agrees to, a WebSocket.
pub(super) fn is_websocket(headers: &HeaderMap) -> bool {
    let mut protocols = tokens(headers, &UPGRADE);
    protocols.next().is_some_and(|protocol| protocol.eq_ignore_ascii_case("websocket"))
        && protocols.next().is_none()
        && has_token(headers, &CONNECTION, "upgrade")
}

/// Says that the connection becomes a WebSocket.
pub(super) fn upgrade(headers: &mut HeaderMap) {
    let _before = headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    let _before = headers.insert(UPGRADE, WEBSOCKET);
}

/// Returns whether a request is gRPC's.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(http::header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let Some((start, rest)) = kind.split_at_checked(b"application/grpc".len()) else {
        return false;
    };
    start.eq_ignore_ascii_case(b"application/grpc")
        && matches!(rest.first(), None | Some(b'+' | b';'))
}

/// Returns the host that the client asked for: the target's, if it has one (RFC 9112, 3.2.2).
pub(super) fn asked_host(parts: &Parts) -> Option<HeaderValue> {
    match parts.uri.authority() {
        Some(authority) => HeaderValue::from_str(authority.as_str()).ok(),
        None => parts.headers.get(HOST).cloned(),
    }
}

/// Makes the fields of a client's request those of the upstream's.
pub(super) fn forward(parts: &mut Parts, peer: Option<IpAddr>) {
    let host = asked_host(parts);
    let headers = &mut parts.headers;
    let trailers = has_token(headers, &TE, "trailers");
    strip(headers);
    if trailers {
        let _before = headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    // The client is told to go on as soon as its body is asked for, so nobody waits for the upstream's leave.
    let _removed = headers.remove(EXPECT);
    let _removed = headers.remove(FORWARDED);
    append_peer(headers, peer);
    let _before = headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static("http"));
    match host {
        Some(host) => drop(headers.insert(X_FORWARDED_HOST, host)),
        None => drop(headers.remove(X_FORWARDED_HOST)),
    }
}

/// Puts the peer at the end of the list of those that a request came through.
fn append_peer(headers: &mut HeaderMap, peer: Option<IpAddr>) {
    let Some(peer) = peer else { return };
    let mut list = Vec::new();
    for line in headers.get_all(X_FORWARDED_FOR) {
        list.extend_from_slice(line.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(peer.to_canonical().to_string().as_bytes());
    if let Ok(list) = HeaderValue::from_bytes(&list) {
        let _before = headers.insert(X_FORWARDED_FOR, list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn what_belongs_to_one_hop_is_taken_off() {
        let mut map = headers(&[
            ("connection", "close, X-A"),
            ("connection", "x-b , ,not a name"),
            ("x-a", "1"),
            ("x-b", "2"),
            ("x-c", "3"),
            ("keep-alive", "timeout=5"),
            ("te", "gzip"),
            ("trailer", "x-sum"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABk"),
            ("proxy-authorization", "Basic YTpi"),
        ]);
        strip(&mut map);
        let mut left: Vec<_> = map.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["trailer", "x-c"]);
    }

    #[test]
    fn only_a_websocket_is_an_upgrade() {
        let asks = |connection: &str, upgrade: &str| {
            is_websocket(&headers(&[("connection", connection), ("upgrade", upgrade)]))
        };
        assert!(asks("keep-alive, Upgrade", "WebSocket"));
        assert!(!asks("close", "websocket"));
        assert!(!asks("upgrade", "h2c"));
        assert!(!asks("upgrade", "websocket, h2c"));
    }

    #[test]
    fn grpc_is_told_by_its_media_type() {
        let is = |kind: &str| is_grpc(&headers(&[("content-type", kind)]));
        assert!(is("application/grpc") && is("application/grpc+proto") && is("Application/gRPC;x"));
        assert!(!is("application/grpc-web") && !is("application/json") && !is(""));
        assert!(!is_grpc(&HeaderMap::new()));
    }

    #[test]
    fn the_upstream_is_told_who_asks_and_for_what() {
        let request = http::Request::get("/a")
            .header("host", "h.example:81")
            .header("x-forwarded-for", "6.6.6.6")
            .header("x-forwarded-for", "192.0.2.1, 192.0.2.2")
            .header("x-forwarded-proto", "https")
            .header("x-forwarded-host", "evil.example")
            .header("forwarded", "for=6.6.6.6")
            .header("expect", "100-continue")
            .header("te", "gzip;q=0.5, trailers");
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        forward(&mut parts, Some("::ffff:203.0.113.9".parse().unwrap()));
        let seen = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(seen("x-forwarded-for"), Some("6.6.6.6, 192.0.2.1, 192.0.2.2, 203.0.113.9"));
        assert_eq!(seen("x-forwarded-proto"), Some("http"));
        assert_eq!(seen("x-forwarded-host"), Some("h.example:81"));
        assert_eq!((seen("forwarded"), seen("expect"), seen("te")), (None, None, Some("trailers")));
        assert_eq!(seen("host"), Some("h.example:81"));
    }
}
