//! A request of the `http` crate as the limiter sees it.

use std::net::IpAddr;

use http::{HeaderMap, Uri, header::HOST, request::Parts};
use sekisho::{CanonicalPath, Headers, Request};

/// The header lines of a request.
///
/// ```
/// use http::{HeaderMap, HeaderValue};
/// use sekisho::Headers;
/// use sekisho_http::HeaderLines;
///
/// let mut map = HeaderMap::new();
/// map.append("x-api-key", HeaderValue::from_static("a"));
/// map.append("x-api-key", HeaderValue::from_static("b"));
/// let mut lines = Vec::new();
/// HeaderLines(&map).each("X-API-Key", &mut |line| lines.push(line.to_vec()));
/// assert_eq!(lines, [b"a", b"b"]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HeaderLines<'a>(pub &'a HeaderMap);

impl Headers for HeaderLines<'_> {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        self.0.get_all(name).iter().for_each(|value| visit(value.as_bytes()));
    }
}

/// Returns the request as the limiter sees it. The path is given apart, since a door may take it from elsewhere.
pub fn describe<'a>(
    parts: &'a Parts,
    headers: &'a HeaderLines<'a>,
    path: &'a CanonicalPath,
    client: Option<IpAddr>,
) -> Request<'a> {
    Request {
        method: parts.method.as_str(),
        host: host(&parts.uri, &parts.headers),
        path,
        query: parts.uri.query(),
        client,
        principal: None,
        headers,
    }
}

/// Returns the host that is asked for: the target's, if it has one, else the header's (RFC 9112, 3.2.2).
pub fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    uri.host().or_else(|| headers.get(HOST)?.to_str().ok())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_targets_host_comes_before_the_headers() {
        let mut headers = HeaderMap::new();
        assert_eq!(host(&Uri::from_static("/a"), &headers), None);
        headers.insert(HOST, HeaderValue::from_static("b.example:80"));
        assert_eq!(host(&Uri::from_static("/a"), &headers), Some("b.example:80"));
        assert_eq!(host(&Uri::from_static("http://a.example/a"), &headers), Some("a.example"));
        headers.insert(HOST, HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(host(&Uri::from_static("/a"), &headers), None, "never a panic");
    }

    #[test]
    fn a_name_that_no_header_can_have_has_no_lines() {
        let mut headers = HeaderMap::new();
        headers.insert("a", HeaderValue::from_static("1"));
        for name in ["", "a b", "a\r\n", "\u{e9}"] {
            HeaderLines(&headers).each(name, &mut |_| unreachable!("no such line"));
        }
    }

    #[test]
    fn all_that_a_policy_may_ask_for_is_passed_on() {
        let (parts, ()) = http::Request::put("/x%20y?a=b")
            .header("host", "h.example")
            .body(())
            .unwrap()
            .into_parts();
        let path = CanonicalPath::parse(parts.uri.path()).unwrap();
        let lines = HeaderLines(&parts.headers);
        let request = describe(&parts, &lines, &path, Some([192, 0, 2, 1].into()));
        assert_eq!((request.method, request.host), ("PUT", Some("h.example")));
        assert_eq!((request.path.as_bytes(), request.query), (&b"/x y"[..], Some("a=b")));
    }
}
