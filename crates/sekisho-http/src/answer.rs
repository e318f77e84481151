//! The one table from a decision to an HTTP answer.

use std::borrow::Cow;

use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use sekisho::{Decision, Ruling};

use crate::{
    headers::{self, RATELIMIT, RATELIMIT_POLICY},
    problem::{PROBLEM_JSON, Problem, ProblemType},
};

/// Who reads the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Anything that passes a status on.
    #[default]
    Standard,
    /// nginx's `auth_request`, which knows 2xx, 401 and 403 and takes any other status for a fault of this server.
    Nginx,
}

/// An HTTP answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The header fields, `Content-Type` included.
    pub headers: HeaderMap,
    /// The body; empty when the request may go ahead.
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns what a decision becomes.
    ///
    /// ```
    /// use sekisho::{Direct, Limiter, Mode, PolicySet};
    /// use sekisho_http::{Answer, Profile};
    ///
    /// let limiter = Limiter::new(PolicySet::parse("[[policy]]\nname = \"any\"\nkey = [\"ip\"]\nlimits = [\"1/s\"]\n")?);
    /// let limits = ["1/min".parse()?];
    /// let ask = Direct { limits: &limits, key: b"alice", cost: 1 };
    /// let answer = || Answer::of(&limiter.decide_direct_now(&ask, Mode::Check), Profile::Standard);
    /// assert_eq!(answer().status, 200);
    /// let refusal = answer();
    /// assert_eq!((refusal.status.as_u16(), &refusal.headers["retry-after"]), (429, &"60".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(decision: &Decision, profile: Profile) -> Self {
        let mut headers = HeaderMap::new();
        if let Some(policies) = headers::ratelimit_policy(decision) {
            headers.insert(RATELIMIT_POLICY, policies);
        }
        if let Some(left) = headers::ratelimit(decision) {
            headers.insert(RATELIMIT, left);
        }
        let status = status(&decision.ruling, profile);
        if decision.is_allowed() {
            return Self { status, headers, body: Vec::new() };
        }
        if let Some(seconds) = retry_after(decision) {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            // RFC 9110 (15.5.2) asks for a challenge. No browser knows this scheme, so none asks its user for a password.
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Key realm=\"sekisho\""));
        }
        Self::refusal(headers, &problem(decision, status))
    }

    /// Returns the answer that tells a problem.
    pub fn problem(problem: &Problem<'_>) -> Self {
        Self::refusal(HeaderMap::new(), problem)
    }

    fn refusal(mut headers: HeaderMap, problem: &Problem<'_>) -> Self {
        headers.insert(CONTENT_TYPE, PROBLEM_JSON);
        // Caches that do not know 429, and 403 and 503 as well, could keep it and refuse for us.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Self { status: problem.status, headers, body: problem.to_json() }
    }
}

const fn status(ruling: &Ruling, profile: Profile) -> StatusCode {
    match (ruling, profile) {
        (Ruling::Allow, _) => StatusCode::OK,
        (Ruling::Deny | Ruling::Never, Profile::Standard) => StatusCode::TOO_MANY_REQUESTS,
        (Ruling::Deny | Ruling::Never, Profile::Nginx) | (Ruling::Blocked, _) => {
            StatusCode::FORBIDDEN
        }
        (Ruling::MissingKey, _) => StatusCode::UNAUTHORIZED,
        (Ruling::BadRequest(_), Profile::Standard) => StatusCode::BAD_REQUEST,
        (Ruling::BadRequest(_), Profile::Nginx) | (Ruling::StoreDown(_), _) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}

/// Returns the seconds after which it is worth trying again: never 0, or clients would try again at once.
fn retry_after(decision: &Decision) -> Option<u64> {
    match decision.ruling {
        // The `t` of `RateLimit`, from the same verdict.
        Ruling::Deny => {
            decision.binding().map(|part| part.verdict.quota_after.as_secs_ceil().max(1))
        }
        Ruling::StoreDown(_) => Some(1),
        _ => None,
    }
}

fn problem(decision: &Decision, status: StatusCode) -> Problem<'_> {
    let kind = match decision.ruling {
        Ruling::Deny => ProblemType::QuotaExceeded,
        Ruling::Never => ProblemType::NeverAdmissible,
        Ruling::StoreDown(_) => ProblemType::TemporaryReducedCapacity,
        _ => ProblemType::AboutBlank,
    };
    let violated = decision.violated().map(|part| &*part.name).collect();
    Problem { kind, status, detail: detail(decision), violated }
}

/// Says what happened, in words that name nothing the client does not know: no key, no address, no inside of the store.
fn detail(decision: &Decision) -> Cow<'_, str> {
    let policy = decision.refused_by.as_deref();
    match (&decision.ruling, decision.binding()) {
        (Ruling::Deny, Some(part)) => {
            let seconds = retry_after(decision).unwrap_or(1);
            format!("the quota `{}` is used up; the same request passes in {seconds} s", part.name)
                .into()
        }
        (Ruling::Never, Some(part)) => {
            let capacity = part.verdict.capacity.unwrap_or_default();
            format!(
                "the request costs {}, and `{}` never holds more than {capacity}",
                part.cost, part.name
            )
            .into()
        }
        (Ruling::MissingKey, _) => match policy {
            Some(policy) => format!("the request lacks what policy `{policy}` counts by").into(),
            None => "the request lacks what it would be counted by".into(),
        },
        (Ruling::BadRequest(error), _) => error.to_string().into(),
        (Ruling::StoreDown(_), _) => "the limiter cannot decide at the moment".into(),
        _ => "this request is not let through".into(),
    }
}

#[cfg(test)]
mod tests;
