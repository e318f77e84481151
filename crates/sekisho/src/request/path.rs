//! The canonical form of a path, so that no other spelling of it escapes a policy.
//!
//! Percent-decoded once, whatever the octet, and compared as bytes; `//` and dot segments resolved; a trailing slash equals
//! none; the query is never part of it. What two servers could read differently is refused.

use std::fmt;

/// A path in the one form that all its spellings have: segments of decoded bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CanonicalPath {
    // Invariant: begins with a slash, ends with one only as the root; no empty and no dot segment; no NUL, no backslash.
    bytes: Vec<u8>,
}

/// Why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It does not begin with a slash.
    #[error("a path begins with `/`")]
    NotAbsolute,
    /// A percent sign without two hexadecimal digits.
    #[error("a `%` in a path is followed by two hexadecimal digits")]
    Escape,
    /// A slash, backslash or NUL that is encoded, or a backslash or NUL that is not.
    #[error("a path has no encoded slash, no backslash and no NUL: servers read them differently")]
    Separator,
    /// A `..` that leaves the root.
    #[error("a path does not leave its root")]
    AboveRoot,
}

impl CanonicalPath {
    /// Returns the canonical form of a request's path; a query or fragment behind it is left off.
    ///
    /// ```
    /// use sekisho::{CanonicalPath, PathError};
    ///
    /// let path = CanonicalPath::parse("/v1//auth/%6Cogin/../login/?next=/")?;
    /// assert_eq!(path.to_string(), "/v1/auth/login");
    /// assert_eq!(CanonicalPath::parse("/v1%2Fauth"), Err(PathError::Separator));
    /// # Ok::<(), PathError>(())
    /// ```
    ///
    /// # Errors
    /// [`PathError`] when servers could read it differently.
    pub fn parse(target: &str) -> Result<Self, PathError> {
        Self::parse_bytes(target.as_bytes())
    }

    /// The same for a target that may not be text: some servers pass any octet on.
    ///
    /// # Errors
    /// [`PathError`] when servers could read it differently.
    pub fn parse_bytes(target: &[u8]) -> Result<Self, PathError> {
        let path = target.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
        if !path.starts_with(b"/") {
            return Err(PathError::NotAbsolute);
        }
        let mut bytes = Vec::with_capacity(path.len());
        for segment in path.split(|byte| *byte == b'/') {
            let start = bytes.len();
            bytes.push(b'/');
            decode(segment, &mut bytes)?;
            match &bytes[start + 1..] {
                b"" | b"." => bytes.truncate(start),
                b".." => {
                    bytes.truncate(start);
                    let parent = bytes.iter().rposition(|byte| *byte == b'/');
                    bytes.truncate(parent.ok_or(PathError::AboveRoot)?);
                }
                _ => {}
            }
        }
        if bytes.is_empty() {
            bytes.push(b'/');
        }
        Ok(Self { bytes })
    }

    /// Returns the root.
    pub fn root() -> Self {
        Self { bytes: b"/".to_vec() }
    }

    /// Returns the decoded bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the segments: none for the root.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.bytes.split(|byte| *byte == b'/').filter(|segment| !segment.is_empty())
    }
}

fn decode(segment: &[u8], into: &mut Vec<u8>) -> Result<(), PathError> {
    let mut rest = segment;
    while let [first, tail @ ..] = rest {
        let (byte, tail) = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                let digit =
                    |byte: &u8| char::from(*byte).to_digit(16).and_then(|of| u8::try_from(of).ok());
                let (high, low) =
                    (digit(high).ok_or(PathError::Escape)?, digit(low).ok_or(PathError::Escape)?);
                (high << 4 | low, tail)
            }
            (b'%', _) => return Err(PathError::Escape),
            (plain, tail) => (*plain, tail),
        };
        if matches!(byte, b'/' | b'\\' | 0) {
            return Err(PathError::Separator);
        }
        into.push(byte);
        rest = tail;
    }
    Ok(())
}

impl fmt::Display for CanonicalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.bytes))
    }
}

impl fmt::Debug for CanonicalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_has_one_form() {
        for spelling in [
            "/v1/auth",
            "/v1/auth/",
            "//v1///auth",
            "/v1/./auth/.",
            "/v1/x/../auth",
            "/%76%31/auth?a=/b",
            "/v1/%2e/auth",
            "/v1/x/%2E%2e/auth#part",
            "/x/..//v1/auth/y/..",
        ] {
            assert_eq!(
                CanonicalPath::parse(spelling).unwrap().to_string(),
                "/v1/auth",
                "{spelling}"
            );
        }
        assert_eq!(CanonicalPath::parse_bytes(b"/\xff/A?\xfe"), CanonicalPath::parse("/%ff/A"));
        for root in ["/", "//", "/.", "/a/..", "/?a=b"] {
            assert_eq!(CanonicalPath::parse(root), Ok(CanonicalPath::root()), "{root}");
        }
        assert_eq!(CanonicalPath::parse("/%2541").unwrap().as_bytes(), b"/%41", "decoded once");
        assert_eq!(
            CanonicalPath::parse("/%ff/A").unwrap().as_bytes(),
            b"/\xff/A",
            "any octet, case kept"
        );
    }

    #[test]
    fn what_could_be_read_differently_is_refused() {
        for (path, error) in [
            ("", PathError::NotAbsolute),
            ("*", PathError::NotAbsolute),
            ("/a%2fb", PathError::Separator),
            ("/a%5Cb", PathError::Separator),
            ("/a\\b", PathError::Separator),
            ("/a%00", PathError::Separator),
            ("/a%", PathError::Escape),
            ("/a%4", PathError::Escape),
            ("/a%zz", PathError::Escape),
            ("/..", PathError::AboveRoot),
            ("/a/../../b", PathError::AboveRoot),
        ] {
            assert_eq!(CanonicalPath::parse(path), Err(error), "{path}");
        }
    }
}
