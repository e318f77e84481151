//! The fields that tell a quota: `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers, revisions 08 to
//! 11, and the older `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
//!
//! The first two are structured-field lists (RFC 9651) of quoted names with parameters, to which every limiter on the way adds
//! its own members; of the others each is one number. All numbers are those of one decision, so no two of them were taken at
//! different times. Times are whole seconds, rounded up.

mod merge;
mod quota;

use http::{HeaderName, HeaderValue};
use sekisho::{Decision, Part};
use sekisho_core::{CalendarUnit, Metered, Period};
use sfv::{Integer, KeyRef, ListSerializer, StringRef, integer, key_ref};

pub use self::{
    merge::merge_into,
    quota::{X_RATELIMIT_LIMIT, X_RATELIMIT_REMAINING, X_RATELIMIT_RESET},
};
pub(crate) use self::{
    merge::{expose, merge},
    quota::Quota,
};

/// What is enforced: every limit of the request.
pub const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// How much is left of it: the limit that binds.
pub const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// The largest integer of a structured field: fifteen digits.
pub const INTEGER_MAX: u64 = 999_999_999_999_999;

const CAPACITY: &KeyRef = key_ref("q");
const WINDOW: &KeyRef = key_ref("w");
const REMAINING: &KeyRef = key_ref("r");
const TIME: &KeyRef = key_ref("t");

const SECOND_NS: u128 = 1_000_000_000;
const DAY_NS: u64 = 86_400_000_000_000;

/// Returns the value of `RateLimit-Policy`: one member for every limit that counts, in the file's order. `None` when there is
/// none, since an empty list is not sent.
///
/// ```
/// use sekisho::{Direct, Limiter, Mode, PolicySet};
/// use sekisho_http::headers;
///
/// let limiter = Limiter::new(PolicySet::parse("[[policy]]\nname = \"any\"\nkey = [\"ip\"]\nlimits = [\"1/s\"]\n")?);
/// let limits = ["60/min".parse()?];
/// let decision = limiter.decide_direct_now(&Direct { limits: &limits, key: b"alice", cost: 1 }, Mode::Check);
/// assert_eq!(headers::ratelimit_policy(&decision).unwrap(), r#""default";q=60;w=60"#);
/// assert_eq!(headers::ratelimit(&decision).unwrap(), r#""default";r=59;t=0"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ratelimit_policy(decision: &Decision) -> Option<HeaderValue> {
    let mut list = ListSerializer::new();
    for part in &decision.parts {
        let Some((name, metered)) = member(part) else { continue };
        let parameters = list.bare_item(name).parameter(CAPACITY, clamped(metered.capacity()));
        if let Some(window) = window_secs(metered) {
            let _written = parameters.parameter(WINDOW, clamped(window));
        }
    }
    value(list.finish())
}

/// Returns the value of `RateLimit`: what is left of the limit that binds. `None` when that one does not count (`block`,
/// `unlimited`) or no limit was asked.
pub fn ratelimit(decision: &Decision) -> Option<HeaderValue> {
    let part = decision.binding()?;
    let (name, _) = member(part)?;
    let mut list = ListSerializer::new();
    let _written = list
        .bare_item(name)
        .parameter(REMAINING, clamped(part.verdict.remaining?))
        .parameter(TIME, clamped(part.verdict.quota_after.as_secs_ceil()));
    value(list.finish())
}

/// Returns the `w` of a limit: the seconds, rounded up, in which its capacity comes back at its rate. `None` below one
/// second, which the field cannot express.
pub fn window_secs(metered: &Metered) -> Option<u64> {
    let period = match metered.period() {
        Period::Fixed(ns) => ns.get(),
        // The usual length: the field is to stay the same over a run of answers, whatever the calendar says of this day.
        Period::Calendar(CalendarUnit::Day, _) => DAY_NS,
        Period::Calendar(CalendarUnit::Month, _) => 31 * DAY_NS,
    };
    // Two factors of 64 bits each, so neither product leaves 128.
    let full = u128::from(metered.capacity()) * u128::from(period);
    let second = u128::from(metered.amount().get()) * SECOND_NS;
    (full >= second).then(|| u64::try_from(full.div_ceil(second)).unwrap_or(u64::MAX))
}

/// Returns the name and numbers that a limit has in a list; `block` and `unlimited` have none.
fn member(part: &Part) -> Option<(&StringRef, &Metered)> {
    // A name that a structured field cannot carry is refused when a policy is read; one that came another way is left out.
    Some((StringRef::from_str(&part.name).ok()?, part.limit.as_metered()?))
}

fn clamped(number: u64) -> Integer {
    const MAX: Integer = integer(INTEGER_MAX.cast_signed());
    Integer::try_from(number).unwrap_or(MAX)
}

fn value(list: Option<String>) -> Option<HeaderValue> {
    HeaderValue::try_from(list?).ok()
}

#[cfg(test)]
mod tests {
    use sekisho_core::Limit;

    use super::*;

    fn window(limit: &str) -> Option<u64> {
        window_secs(limit.parse::<Limit>().unwrap().as_metered().unwrap())
    }

    #[test]
    fn a_window_is_the_time_in_which_the_capacity_comes_back() {
        assert_eq!(window("60/min"), Some(60));
        assert_eq!(window("60/min burst 90"), Some(90));
        assert_eq!(window("7/60s burst 3"), Some(26), "25.7 s, rounded up");
        assert_eq!(window("10/s burst 4 leaky-queue"), None, "half a second");
        assert_eq!(window("10/s burst 9 leaky-queue"), Some(1), "the one in service counts");
        assert_eq!(window("1000/500ms sliding-log"), None);
        assert_eq!(window("1/1500ms fixed-window"), Some(2));
        assert_eq!(window("100/calendar-day zone Asia/Tokyo"), Some(86_400));
        assert_eq!(window("100/calendar-month"), Some(2_678_400));
        assert_eq!(window("18446744073709551615/day"), Some(86_400));
    }

    #[test]
    fn numbers_of_more_than_fifteen_digits_are_clamped() {
        assert_eq!(i64::from(clamped(INTEGER_MAX)), 999_999_999_999_999);
        assert_eq!(i64::from(clamped(INTEGER_MAX + 1)), 999_999_999_999_999);
        assert_eq!(i64::from(clamped(u64::MAX)), 999_999_999_999_999);
        assert_eq!(i64::from(clamped(0)), 0, "zero is a value, not an absence");
    }
}
