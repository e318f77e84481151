//! Which requests a policy covers: method, host, canonical path, header, and what is left out.

use std::fmt;

use super::{
    compile::Problems,
    file::{MatchFile, OneOrMany, Spanned},
    lint::Code,
};
use crate::request::{Request, path::CanonicalPath};

/// What a request must be. Fields that are empty match everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matcher {
    methods: Vec<String>,
    hosts: Vec<String>,
    paths: Vec<PathPattern>,
    headers: Vec<(String, Vec<String>)>,
    unless: Option<Box<Self>>,
}

/// A request that is covered, and the path pattern by which it is.
pub(crate) struct Matched<'a> {
    pub(crate) pattern: Option<&'a PathPattern>,
}

/// A path pattern, in segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathPattern {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// These bytes.
    Literal(Vec<u8>),
    /// One segment, whatever it is.
    One,
    /// Any number of segments, none too.
    Any,
}

impl Matcher {
    pub(crate) fn compile(file: &Spanned<MatchFile>, problems: &mut Problems<'_>) -> Self {
        let of = file.get_ref();
        let texts = |of: &Option<Spanned<OneOrMany>>| {
            of.as_ref().map(|texts| (texts.span(), texts.get_ref().as_slice().to_vec()))
        };
        let mut matcher = Self::default();
        if let Some((span, methods)) = texts(&of.method) {
            let token = |method: &String| {
                !method.is_empty()
                    && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
            };
            if methods.is_empty() || !methods.iter().all(token) {
                problems.add(Code::Match, span, "a method is written in capitals, like `GET`; `match` without `method` covers all");
            }
            matcher.methods = methods;
        }
        if let Some((span, hosts)) = texts(&of.host) {
            let name = |host: &String| {
                let bare = host.strip_prefix("*.").unwrap_or(host);
                let address = bare.parse::<std::net::Ipv6Addr>().is_ok();
                !bare.is_empty()
                    && (address || !bare.contains(':'))
                    && bare
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte))
            };
            if hosts.is_empty() || !hosts.iter().all(name) {
                problems.add(
                    Code::Match,
                    span,
                    "a host is a name without a port, like `api.example.com` or `*.example.com`",
                );
            }
            matcher.hosts =
                hosts.iter().map(|host| host.trim_end_matches('.').to_ascii_lowercase()).collect();
        }
        if let Some((span, paths)) = texts(&of.path) {
            if paths.is_empty() {
                problems.add(
                    Code::Match,
                    span.clone(),
                    "an empty list of paths matches nothing: leave `path` out to cover all",
                );
            }
            for path in &paths {
                match PathPattern::parse(path) {
                    Ok(pattern) => matcher.paths.push(pattern),
                    Err(message) => {
                        problems.add(Code::Match, span.clone(), format!("`{path}`: {message}"));
                    }
                }
            }
        }
        matcher.headers = headers(of, problems);
        if let Some(unless) = &of.unless {
            if unless.get_ref().is_empty() {
                problems.add(
                    Code::Match,
                    unless.span(),
                    "an empty `unless` leaves out everything: name what is not covered",
                );
            }
            matcher.unless = Some(Box::new(Self::compile(unless, problems)));
        }
        matcher
    }

    /// Returns by which pattern a request is covered, or that it is not.
    pub(crate) fn matches(&self, request: &Request<'_>) -> Option<Matched<'_>> {
        let method = self.methods.is_empty()
            || self.methods.iter().any(|method| covers(method, request.method));
        if !method || !self.host_matches(request) {
            return None;
        }
        let pattern = self.paths.iter().find(|pattern| pattern.matches(request.path));
        if pattern.is_none() && !self.paths.is_empty() {
            return None;
        }
        let headers = self.headers.iter().all(|(name, wanted)| {
            let value = request.header(name);
            value.is_some_and(|value| {
                wanted.iter().any(|text| text == "*" || text.as_bytes() == value)
            })
        });
        let left_out =
            || self.unless.as_ref().is_some_and(|unless| unless.matches(request).is_some());
        (headers && !left_out()).then_some(Matched { pattern })
    }

    fn host_matches(&self, request: &Request<'_>) -> bool {
        if self.hosts.is_empty() {
            return true;
        }
        let Some(name) = request.host_name() else { return false };
        self.hosts.iter().any(|host| match host.strip_prefix('*') {
            Some(suffix) => name.len() > suffix.len() && name.ends_with(suffix),
            None => *host == name,
        })
    }

    /// Returns the number of segments that every covered path has.
    pub(crate) fn segments_min(&self) -> usize {
        self.paths.iter().map(PathPattern::segments_min).min().unwrap_or(0)
    }

    pub(crate) fn has_paths(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Returns whether this surely covers every request that `other` covers.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let open = self.hosts.is_empty() && self.headers.is_empty() && self.unless.is_none();
        let methods = self.methods.is_empty()
            || !other.methods.is_empty()
                && other.methods.iter().all(|method| self.methods.contains(method));
        let path = |path: &PathPattern| self.paths.iter().any(|pattern| pattern.covers(path));
        let paths =
            self.paths.is_empty() || !other.paths.is_empty() && other.paths.iter().all(path);
        open && methods && paths
    }
}

/// Returns the headers that a request must have, and their values.
fn headers(file: &MatchFile, problems: &mut Problems<'_>) -> Vec<(String, Vec<String>)> {
    let mut headers = Vec::new();
    for (name, values) in &file.header {
        let trimmed = |value: &String| !value.is_empty() && value.trim() == value;
        let fit = values.get_ref().as_slice().iter().all(trimmed);
        if !is_header_name(name) || values.get_ref().as_slice().is_empty() || !fit {
            problems.add(
                Code::Match,
                values.span(),
                "a header is `name = \"value\"` without blanks around it, or `\"*\"` for any value",
            );
        }
        headers.push((name.to_ascii_lowercase(), values.get_ref().as_slice().to_vec()));
    }
    headers
}

impl MatchFile {
    fn is_empty(&self) -> bool {
        self.method.is_none()
            && self.host.is_none()
            && self.path.is_none()
            && self.header.is_empty()
            && self.unless.is_none()
    }
}

/// `GET` covers `HEAD`, which asks the same of a server.
fn covers(wanted: &str, method: &str) -> bool {
    wanted == method || wanted == "GET" && method == "HEAD"
}

/// Returns whether the text is a header's name (RFC 9110, 5.6.2).
pub(crate) fn is_header_name(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.len() <= 256 && name.bytes().all(token)
}

impl PathPattern {
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        if !text.starts_with('/') {
            return Err("a path pattern begins with `/`");
        }
        let mut segments = Vec::new();
        for segment in text.split('/').filter(|segment| !segment.is_empty()) {
            segments.push(match segment {
                "*" => Segment::One,
                "**" => Segment::Any,
                // A whole segment in braces names what stands there.
                _ if segment.starts_with('{') && segment.ends_with('}') => Segment::One,
                _ if segment.contains('*') => {
                    return Err(
                        "`*` and `**` stand for whole segments; write a literal star as `%2A`",
                    );
                }
                _ => Segment::Literal(literal(segment)?),
            });
        }
        if segments.iter().filter(|segment| **segment == Segment::Any).count() > 1 {
            return Err("at most one `**` in a pattern");
        }
        Ok(Self { text: text.to_owned(), segments })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    fn matches(&self, path: &CanonicalPath) -> bool {
        let given: Vec<&[u8]> = path.segments().collect();
        let fits = |pattern: &[Segment], given: &[&[u8]]| {
            pattern.iter().zip(given).all(|(segment, given)| match segment {
                Segment::Literal(bytes) => bytes == given,
                Segment::One | Segment::Any => true,
            })
        };
        match self.segments.iter().position(|segment| *segment == Segment::Any) {
            None => given.len() == self.segments.len() && fits(&self.segments, &given),
            Some(any) => {
                let (before, after) = (&self.segments[..any], &self.segments[any + 1..]);
                given.len() >= before.len() + after.len()
                    && fits(before, &given)
                    && fits(after, &given[given.len() - after.len()..])
            }
        }
    }

    fn segments_min(&self) -> usize {
        self.segments.iter().filter(|segment| **segment != Segment::Any).count()
    }

    /// Returns whether this surely matches all that `other` matches.
    fn covers(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        let Some((Segment::Any, prefix)) = self.segments.split_last() else { return false };
        let same = |(own, other): (&Segment, &Segment)| {
            own == other || *own == Segment::One && *other != Segment::Any
        };
        other.segments.len() >= prefix.len() && prefix.iter().zip(&other.segments).all(same)
    }
}

fn literal(segment: &str) -> Result<Vec<u8>, &'static str> {
    let path = CanonicalPath::parse(&format!("/{segment}")).map_err(|_| {
        "a pattern's segment has no `?`, `#`, backslash or encoded slash, and `%` is followed by two hexadecimal digits"
    })?;
    let mut segments = path.segments();
    match (segments.next(), segments.next()) {
        (Some(bytes), None) if !segment.contains(['?', '#']) => Ok(bytes.to_vec()),
        _ => Err(
            "a pattern has no dot segments, no `?` and no `#`: it is compared with the resolved path",
        ),
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if !self.methods.is_empty() {
            words.push(self.methods.join("|"));
        }
        if !self.hosts.is_empty() {
            words.push(format!("host {}", self.hosts.join("|")));
        }
        let paths: Vec<_> = self.paths.iter().map(PathPattern::as_str).collect();
        if !paths.is_empty() {
            words.push(paths.join("|"));
        }
        for (name, values) in &self.headers {
            words.push(format!("{name}: {}", values.join("|")));
        }
        if words.is_empty() {
            words.push("every request".to_owned());
        }
        if let Some(unless) = &self.unless {
            words.push(format!("unless ({unless})"));
        }
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        PathPattern::parse(pattern).unwrap().matches(&CanonicalPath::parse(path).unwrap())
    }

    #[test]
    fn patterns_match_whole_segments() {
        for (pattern, path, expected) in [
            ("/v1/**", "/v1", true),
            ("/v1/**", "/v1/a/b", true),
            ("/v1/**", "/v10", false),
            ("/v1/*", "/v1/a/", true),
            ("/v1/*", "/v1", false),
            ("/v1/*/x", "/v1/a/x", true),
            ("/v1/{id}/x", "/v1/a/y", false),
            ("/**/export", "/a/b/export", true),
            ("/**/export", "/export", true),
            ("/a/**/b", "/a/b", true),
            ("/a/**/b", "/a", false),
            ("/", "/", true),
            ("/", "/a", false),
            ("/**", "/", true),
            ("/a%20b", "/a b", true),
            ("/%2A", "/*", true),
            ("/v1", "/V1", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn patterns_that_match_nothing_are_refused() {
        for pattern in ["", "v1", "/a*", "/**/a/**", "/a/../b", "/a?b", "/a%2Fb", "/%zz", "/."] {
            assert!(PathPattern::parse(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn covering_is_known_where_it_is_sure() {
        let covers = |a: &str, b: &str| {
            PathPattern::parse(a).unwrap().covers(&PathPattern::parse(b).unwrap())
        };
        assert!(
            covers("/**", "/v1/x") && covers("/v1/**", "/v1/auth/**") && covers("/v1/**", "/v1")
        );
        assert!(
            !covers("/v1/**", "/**")
                && !covers("/v1/x", "/v1/*")
                && !covers("/v1/auth/**", "/v1/**")
        );
    }
}
