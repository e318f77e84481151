//! What is known of a request when it is limited. Doors translate into this, and policies ask nothing else.

pub(crate) mod path;

use std::net::IpAddr;

use self::path::CanonicalPath;

/// The header lines of a request, whoever holds them.
pub trait Headers {
    /// Calls `visit` with the value of every line of that name, in order. Names are compared without case.
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8]));
}

impl<N: AsRef<str>, V: AsRef<[u8]>> Headers for &[(N, V)] {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        let lines = self.iter().filter(|(line, _)| line.as_ref().eq_ignore_ascii_case(name));
        lines.for_each(|(_, value)| visit(value.as_ref()));
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> Headers for Vec<(N, V)> {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        self.as_slice().each(name, visit);
    }
}

/// No header lines at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHeaders;

impl Headers for NoHeaders {
    fn each(&self, _: &str, _: &mut dyn FnMut(&[u8])) {}
}

/// What is known of a request.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The method, as sent.
    pub method: &'a str,
    /// The host that was asked for, with or without a port.
    pub host: Option<&'a str>,
    /// The path, in the one form that all its spellings have.
    pub path: &'a CanonicalPath,
    /// The query, without its question mark.
    pub query: Option<&'a str>,
    /// The client's address; absent on a unix socket.
    pub client: Option<IpAddr>,
    /// Who the caller has been found to be, when something before the limiter has verified it.
    pub principal: Option<&'a str>,
    /// The header lines.
    pub headers: &'a dyn Headers,
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Headers carry secrets, and a query may.
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("host", &self.host)
            .field("path", &self.path)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

impl Request<'_> {
    /// Returns a header's value, its lines joined by commas as RFC 9110 (5.3) allows; `None` when absent or empty.
    pub(crate) fn header(&self, name: &str) -> Option<Vec<u8>> {
        let mut joined: Vec<u8> = Vec::new();
        self.headers.each(name, &mut |value| {
            let value = value.trim_ascii();
            if !value.is_empty() && !joined.is_empty() {
                joined.extend_from_slice(b", ");
            }
            joined.extend_from_slice(value);
        });
        (!joined.is_empty()).then_some(joined)
    }

    /// Returns the first cookie of that name; `None` when absent or empty.
    pub(crate) fn cookie(&self, name: &str) -> Option<Vec<u8>> {
        let mut found = None;
        self.headers.each("cookie", &mut |line| {
            for pair in line.split(|byte| *byte == b';') {
                let Some(equals) = pair.iter().position(|byte| *byte == b'=') else { continue };
                let (key, value) = pair.split_at(equals);
                if found.is_none() && key.trim_ascii() == name.as_bytes() {
                    found = Some(value[1..].trim_ascii().to_vec());
                }
            }
        });
        found.filter(|value| !value.is_empty())
    }

    /// Returns the first query parameter of that name, decoded; `None` when absent or empty.
    pub(crate) fn parameter(&self, name: &str) -> Option<Vec<u8>> {
        let decoded = |text: &str| {
            let spaced = text.replace('+', " ");
            percent_encoding::percent_decode_str(&spaced).collect::<Vec<u8>>()
        };
        let value = self.query?.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(key) == name.as_bytes()).then(|| decoded(value))
        })?;
        (!value.is_empty()).then_some(value)
    }

    /// Returns the host without its port, in small letters.
    pub(crate) fn host_name(&self) -> Option<String> {
        let host = self.host?;
        let name = match host.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or(v6),
            None => host.split(':').next().unwrap_or(host),
        };
        Some(name.trim_end_matches('.').to_ascii_lowercase()).filter(|name| !name.is_empty())
    }
}
