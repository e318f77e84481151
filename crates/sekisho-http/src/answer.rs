//! The one table from a decision to an HTTP answer.

mod detail;

use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use sekisho::{AnswerSettings, Decision, Ruling, Timestamp};

pub(crate) use self::detail::detail;
use self::detail::of_limits;
use crate::{
    headers::{self, Quota},
    problem::{PROBLEM_JSON, Problem, ProblemQuota, ProblemType, RATE_LIMIT_EXCEEDED},
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
    /// Returns what a decision becomes, with the fields that `settings` choose, and the words of the policy that refuses if it
    /// has its own. `wall` is the wall clock's time at the decision: `X-RateLimit-Reset` counts from it.
    ///
    /// ```
    /// use sekisho::{AnswerSettings, Direct, HeaderFamily, Limiter, Mode, PolicySet, Timestamp};
    /// use sekisho_http::{Answer, Profile};
    ///
    /// let limiter = Limiter::new(PolicySet::parse("[[policy]]\nname = \"any\"\nkey = [\"ip\"]\nlimits = [\"1/s\"]\n")?);
    /// let limits = ["2/min sliding-log".parse()?];
    /// let ask = Direct { limits: &limits, key: b"alice", cost: 2 };
    /// let decision = limiter.decide_direct_now(&ask, Mode::Check);
    ///
    /// let settings = AnswerSettings { families: vec![HeaderFamily::XRateLimit], ..AnswerSettings::default() };
    /// let wall = Timestamp::from_secs(1_700_000_000);
    /// let answer = Answer::new(&decision, Profile::Standard, &settings, wall);
    /// assert_eq!(answer.headers["x-ratelimit-remaining"], "0");
    /// assert_eq!(answer.headers["x-ratelimit-reset"], "1700000060");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        decision: &Decision,
        profile: Profile,
        settings: &AnswerSettings,
        wall: Timestamp,
    ) -> Self {
        Self::build(decision, profile, settings, Quota::of(decision, settings.reset, wall))
    }

    /// Returns what a decision becomes for a caller that knows no settings and no wall clock: the usual fields, and a problem
    /// of which the body has what the standard names.
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
        Self::build(decision, profile, &AnswerSettings::default(), None)
    }

    fn build(
        decision: &Decision,
        profile: Profile,
        settings: &AnswerSettings,
        quota: Option<Quota>,
    ) -> Self {
        let mut headers = HeaderMap::new();
        headers::merge(&mut headers, decision, settings, quota);
        let status = status(decision, profile);
        if decision.is_allowed() {
            headers::expose(&mut headers, settings);
            return Self { status, headers, body: Vec::new() };
        }
        if let Some(seconds) = retry_after(decision) {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        headers::expose(&mut headers, settings);
        if status == StatusCode::UNAUTHORIZED {
            // RFC 9110 (15.5.2) asks for a challenge. No browser knows this scheme, so none asks its user for a password.
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Key realm=\"sekisho\""));
        }
        match of_limits(decision).and_then(|refusal| refusal.body.as_ref()) {
            Some((body, kind)) => {
                let kind = HeaderValue::from_str(kind).unwrap_or(PLAIN_TEXT);
                Self::with_body(status, headers, kind, body.clone().into_bytes())
            }
            None => Self::refusal(headers, &problem(decision, status, quota)),
        }
    }

    /// Returns the answer that tells a problem.
    pub fn problem(problem: &Problem<'_>) -> Self {
        Self::refusal(HeaderMap::new(), problem)
    }

    fn refusal(headers: HeaderMap, problem: &Problem<'_>) -> Self {
        Self::with_body(problem.status, headers, PROBLEM_JSON, problem.to_json())
    }

    fn with_body(
        status: StatusCode,
        mut headers: HeaderMap,
        kind: HeaderValue,
        body: Vec<u8>,
    ) -> Self {
        headers.insert(CONTENT_TYPE, kind);
        // Caches that do not know 429, and 403 and 503 as well, could keep it and refuse for us.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Self { status, headers, body }
    }
}

/// The media type of a body whose own cannot be sent. A policy file has none such.
const PLAIN_TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Returns the status alone of what a decision becomes.
pub(crate) fn status(decision: &Decision, profile: Profile) -> StatusCode {
    let chosen = |status: Option<u16>| StatusCode::from_u16(status?).ok();
    let own = || of_limits(decision).and_then(|refusal| chosen(refusal.status));
    match (&decision.ruling, profile) {
        (Ruling::Allow, _) => StatusCode::OK,
        (Ruling::Deny | Ruling::Never, Profile::Standard) => {
            own().unwrap_or(StatusCode::TOO_MANY_REQUESTS)
        }
        (Ruling::Blocked, Profile::Standard) => own().unwrap_or(StatusCode::FORBIDDEN),
        // A bad request too: a proxy that lets requests pass while nobody decides must not be opened by a client.
        (
            Ruling::Deny | Ruling::Never | Ruling::Blocked | Ruling::BadRequest(_),
            Profile::Nginx,
        ) => StatusCode::FORBIDDEN,
        (Ruling::MissingKey, Profile::Standard) => {
            let refusal = decision.refusal.as_deref();
            refusal
                .and_then(|refusal| chosen(refusal.missing_key_status))
                .unwrap_or(StatusCode::UNAUTHORIZED)
        }
        (Ruling::MissingKey, Profile::Nginx) => StatusCode::UNAUTHORIZED,
        (Ruling::BadRequest(_), Profile::Standard) => StatusCode::BAD_REQUEST,
        (Ruling::StoreDown(_), _) => StatusCode::SERVICE_UNAVAILABLE,
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

fn problem(decision: &Decision, status: StatusCode, quota: Option<Quota>) -> Problem<'_> {
    let kind = match decision.ruling {
        Ruling::Deny => ProblemType::QuotaExceeded,
        Ruling::Never => ProblemType::NeverAdmissible,
        Ruling::StoreDown(_) => ProblemType::TemporaryReducedCapacity,
        _ => ProblemType::AboutBlank,
    };
    let violated = decision.violated().map(|part| &*part.name).collect();
    let quota = quota.map(|quota| ProblemQuota {
        error_code: RATE_LIMIT_EXCEEDED,
        retry_after: retry_after(decision),
        limit: quota.limit,
        remaining: quota.remaining,
        reset: quota.reset,
    });
    Problem { kind, status, detail: detail(decision), violated, quota }
}

#[cfg(test)]
mod tests;
