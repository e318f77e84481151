//! The body of a refusal: problem details (RFC 9457).

use std::borrow::Cow;

use http::{HeaderValue, StatusCode};
use serde::Serialize;

/// The media type of a problem.
pub const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// What kind of problem it is: a client may go by this, and never by the detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemType {
    /// Nothing more than the status says.
    AboutBlank,
    /// A quota is used up; it comes back.
    QuotaExceeded,
    /// The request costs more than a limit can ever hold.
    NeverAdmissible,
    /// The limiter cannot decide at the moment.
    TemporaryReducedCapacity,
}

impl ProblemType {
    /// Returns the URI that names the type.
    pub const fn uri(self) -> &'static str {
        match self {
            Self::AboutBlank => "about:blank",
            Self::QuotaExceeded => "https://iana.org/assignments/http-problem-types#quota-exceeded",
            Self::NeverAdmissible => "https://sekisho.dev/problems/never-admissible",
            Self::TemporaryReducedCapacity => {
                "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
            }
        }
    }

    /// Returns the type's title; that of the untyped problem is its status's.
    fn title(self, status: StatusCode) -> &'static str {
        match self {
            Self::AboutBlank => status.canonical_reason().unwrap_or("Error"),
            Self::QuotaExceeded => "Quota Exceeded",
            Self::NeverAdmissible => "Never Admissible",
            Self::TemporaryReducedCapacity => "Temporary Reduced Capacity",
        }
    }
}

/// A problem, to be told to the client.
///
/// ```
/// use http::StatusCode;
/// use sekisho_http::Problem;
///
/// let problem = Problem::plain(StatusCode::NOT_FOUND, "there is nothing at this path");
/// assert_eq!(
///     String::from_utf8(problem.to_json())?,
///     r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"there is nothing at this path"}"#,
/// );
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem<'a> {
    /// Its kind.
    pub kind: ProblemType,
    /// The status that it is sent with.
    pub status: StatusCode,
    /// What went wrong this time, for people.
    pub detail: Cow<'a, str>,
    /// The names of the limits that refuse, as in `RateLimit-Policy`.
    pub violated: Vec<&'a str>,
    /// The numbers of the limit that refuses.
    pub quota: Option<ProblemQuota>,
}

/// The numbers of a quota in a problem, for clients that read bodies and no headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ProblemQuota {
    /// Always [`RATE_LIMIT_EXCEEDED`].
    pub error_code: &'static str,
    /// Seconds after which the same request passes, as in `Retry-After`; none when it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// As in `X-RateLimit-Limit`, whether that field is sent or not.
    pub limit: u64,
    /// As in `X-RateLimit-Remaining`.
    pub remaining: u64,
    /// As in `X-RateLimit-Reset`.
    pub reset: u64,
}

/// The `error_code` of a quota that is used up.
pub const RATE_LIMIT_EXCEEDED: &str = "rate_limit_exceeded";

/// The members on the wire.
#[derive(Serialize)]
struct Members<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    detail: &'a str,
    #[serde(rename = "violated-policies", skip_serializing_if = "<[_]>::is_empty")]
    violated: &'a [&'a str],
    #[serde(flatten)]
    quota: Option<ProblemQuota>,
}

impl<'a> Problem<'a> {
    /// Returns a problem of which the status says all but the detail.
    pub fn plain(status: StatusCode, detail: impl Into<Cow<'a, str>>) -> Self {
        Self {
            kind: ProblemType::AboutBlank,
            status,
            detail: detail.into(),
            violated: Vec::new(),
            quota: None,
        }
    }

    /// Returns the body.
    pub fn to_json(&self) -> Vec<u8> {
        let members = Members {
            kind: self.kind.uri(),
            title: self.kind.title(self.status),
            status: self.status.as_u16(),
            detail: &self.detail,
            violated: &self.violated,
            quota: self.quota,
        };
        // Text and numbers always have a JSON form.
        serde_json::to_vec(&members).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_members_are_those_of_the_standard() {
        let problem = Problem {
            kind: ProblemType::QuotaExceeded,
            status: StatusCode::TOO_MANY_REQUESTS,
            detail: "say \"when\"".into(),
            violated: vec!["a", "b"],
            quota: Some(ProblemQuota {
                error_code: RATE_LIMIT_EXCEEDED,
                retry_after: Some(7),
                limit: 10,
                remaining: 0,
                reset: 1_700_000_060,
            }),
        };
        assert_eq!(
            String::from_utf8(problem.to_json()).unwrap(),
            concat!(
                r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","#,
                r#""title":"Quota Exceeded","status":429,"detail":"say \"when\"","#,
                r#""violated-policies":["a","b"],"error_code":"rate_limit_exceeded","retry_after":7,"#,
                r#""limit":10,"remaining":0,"reset":1700000060}"#,
            )
        );
    }
}
