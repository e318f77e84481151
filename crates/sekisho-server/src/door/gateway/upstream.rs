//! Where requests are passed on to.

use std::str::FromStr;

use http::{
    Uri,
    uri::{Authority, PathAndQuery, Scheme},
};

/// The one place that a gateway forwards to: `http://host:port[/base]` or `https://host[:port][/base]`.
///
/// ```
/// use sekisho_server::door::gateway::Upstream;
///
/// let upstream: Upstream = "https://api.example/v2/".parse()?;
/// assert_eq!(upstream.to_string(), "https://api.example:443/v2");
/// assert!("ftp://api.example".parse::<Upstream>().is_err());
/// # Ok::<(), sekisho_server::door::gateway::UpstreamError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    pub(super) tls: bool,
    /// Without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
    /// As the URL says it.
    pub(super) authority: Authority,
    // Invariant: empty, or begins with a slash and does not end with one.
    base: String,
}

/// Why a text names no upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// It is no URL, or one without a scheme or a host.
    #[error("an upstream is like `http://127.0.0.1:3000` or `https://api.example/base`")]
    Form,
    /// Its scheme is another.
    #[error("an upstream's scheme is `http` or `https`")]
    Scheme,
    /// It has a user name, or a query.
    #[error("an upstream has no user name and no query")]
    Extra,
}

impl FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let uri: Uri = text.parse().map_err(|_| UpstreamError::Form)?;
        let scheme = uri.scheme().ok_or(UpstreamError::Form)?;
        let tls = *scheme == Scheme::HTTPS;
        if !tls && *scheme != Scheme::HTTP {
            return Err(UpstreamError::Scheme);
        }
        let authority = uri.authority().ok_or(UpstreamError::Form)?.clone();
        if uri.query().is_some() || authority.as_str().contains('@') {
            return Err(UpstreamError::Extra);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = match authority.port() {
            Some(port) => port.as_str().parse().map_err(|_| UpstreamError::Form)?,
            None if tls => 443,
            None => 80,
        };
        if host.is_empty() || port == 0 {
            return Err(UpstreamError::Form);
        }
        Ok(Self { tls, host, port, authority, base: uri.path().trim_end_matches('/').to_owned() })
    }
}

impl std::fmt::Display for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}{}", self.authority.host(), self.port, self.base)
    }
}

impl Upstream {
    /// Returns what a request's target is there: the same path behind the base, and the same query.
    pub(super) fn target(&self, uri: &Uri) -> Option<PathAndQuery> {
        let target = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        if self.base.is_empty() {
            return uri.path_and_query().cloned().or_else(|| target.parse().ok());
        }
        format!("{}{target}", self.base).parse().ok()
    }

    pub(super) const fn scheme(&self) -> Scheme {
        if self.tls { Scheme::HTTPS } else { Scheme::HTTP }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_that_name_a_place_are_upstreams() {
        for (text, expected) in [
            ("http://127.0.0.1:3000", Ok("http://127.0.0.1:3000")),
            ("http://h.example/", Ok("http://h.example:80")),
            ("https://[2001:db8::1]/a/b//", Ok("https://[2001:db8::1]:443/a/b")),
            ("127.0.0.1:3000", Err(UpstreamError::Form)),
            ("/a", Err(UpstreamError::Form)),
            ("http://h.example:0", Err(UpstreamError::Form)),
            ("ftp://h.example", Err(UpstreamError::Scheme)),
            ("http://u@h.example", Err(UpstreamError::Extra)),
            ("http://h.example/?a", Err(UpstreamError::Extra)),
        ] {
            let parsed = text.parse::<Upstream>().map(|upstream| upstream.to_string());
            assert_eq!(parsed, expected.map(str::to_owned), "{text}");
        }
        assert_eq!("https://[2001:db8::1]".parse::<Upstream>().unwrap().host, "2001:db8::1");
    }

    #[test]
    fn a_target_keeps_its_spelling_behind_the_base() {
        let target = |upstream: &str, uri: &str| {
            let upstream: Upstream = upstream.parse().unwrap();
            upstream.target(&uri.parse().unwrap()).unwrap().to_string()
        };
        assert_eq!(target("http://h", "/a%20b?c=%2F"), "/a%20b?c=%2F");
        assert_eq!(target("http://h/v2/", "/a?b"), "/v2/a?b");
        assert_eq!(target("http://h/v2", "http://other/a//b"), "/v2/a//b");
        assert_eq!(target("http://h", "http://other"), "/");
    }
}
