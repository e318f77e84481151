//! The three numbers of the limit that binds, as `X-RateLimit-*` and a problem's members tell them.

use http::{HeaderMap, HeaderName, HeaderValue};
use sekisho::{Decision, ResetForm, Timestamp};

use super::INTEGER_MAX;

/// How much there can be.
pub const X_RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
/// How much is left.
pub const X_RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
/// When all of it is back: Unix seconds or seconds from now, as the settings say.
pub const X_RATELIMIT_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// The numbers of the limit that binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    pub(crate) reset: u64,
}

impl Quota {
    /// Returns the numbers of a decision that was made when the wall clock showed `wall`. `None` when the limit that binds
    /// does not count, or no limit was asked.
    pub(crate) fn of(decision: &Decision, form: ResetForm, wall: Timestamp) -> Option<Self> {
        let part = decision.binding()?;
        let metered = part.limit.as_metered()?;
        let reset = match form {
            ResetForm::Delta => part.verdict.reset_after.as_secs_ceil(),
            ResetForm::Unix => wall.plus(part.verdict.reset_after).as_nanos().div_ceil(SECOND_NS),
        };
        Some(Self {
            // The same bound as in a structured field, so that all fields say the same.
            limit: metered.capacity().min(INTEGER_MAX),
            remaining: part.verdict.remaining?.min(INTEGER_MAX),
            reset,
        })
    }

    /// Writes one line of each field: these numbers, or an upstream's where it has less left of its own.
    pub(super) fn merge_into(self, headers: &mut HeaderMap) {
        let told = self.or_tighter(headers);
        for (name, number) in [
            (X_RATELIMIT_LIMIT, told.limit),
            (X_RATELIMIT_REMAINING, told.remaining),
            (X_RATELIMIT_RESET, told.reset),
        ] {
            let _upstream = headers.insert(name, HeaderValue::from(number));
        }
    }

    /// Returns what the headers tell already if less is left of it, else this. The three belong together: the limit of one
    /// and the remainder of another would tell of a quota that does not exist. What is missing there is taken from this.
    fn or_tighter(self, headers: &HeaderMap) -> Self {
        let Some(remaining) = number(headers, &X_RATELIMIT_REMAINING) else { return self };
        let upstream = Self {
            limit: number(headers, &X_RATELIMIT_LIMIT).unwrap_or(self.limit),
            remaining,
            reset: number(headers, &X_RATELIMIT_RESET).unwrap_or(self.reset),
        };
        if upstream.is_tighter_than(self) { upstream } else { self }
    }

    /// Returns whether less is left: as a share of the limit, then as a number.
    fn is_tighter_than(self, other: Self) -> bool {
        let share = |of: Self, per: Self| u128::from(of.remaining) * u128::from(per.limit.max(1));
        (share(self, other), self.remaining) < (share(other, self), other.remaining)
    }
}

/// Returns the number in a field: one line of digits. Anything else, several lines above all, says nothing that can be kept.
fn number(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let mut lines = headers.get_all(name).iter();
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    let digits = line.to_str().ok()?.trim();
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

const SECOND_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(lines: &[(&HeaderName, &str)]) -> [String; 3] {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let _first = headers.append(*name, value.parse().unwrap());
        }
        Quota { limit: 10, remaining: 5, reset: 60 }.merge_into(&mut headers);
        [X_RATELIMIT_LIMIT, X_RATELIMIT_REMAINING, X_RATELIMIT_RESET].map(|name| {
            assert_eq!(headers.get_all(&name).iter().count(), 1, "one line of {name}");
            headers[&name].to_str().unwrap().to_owned()
        })
    }

    fn with(limit: &str, remaining: &str, reset: &str) -> [String; 3] {
        merged(&[
            (&X_RATELIMIT_LIMIT, limit),
            (&X_RATELIMIT_REMAINING, remaining),
            (&X_RATELIMIT_RESET, reset),
        ])
    }

    const OURS: [&str; 3] = ["10", "5", "60"];

    #[test]
    fn the_tighter_one_stands_whole() {
        assert_eq!(merged(&[]), OURS);
        assert_eq!(with("1000", "499", "7"), ["1000", "499", "7"], "a smaller share is left of it");
        assert_eq!(with("1000", "501", "7"), OURS);
        assert_eq!(with("6", "3", "7"), ["6", "3", "7"], "the same share, and fewer");
        assert_eq!(with("10", "5", "7"), OURS, "of two that are alike, ours");
        assert_eq!(with("0", "0", "0"), ["0", "0", "0"], "zero is a value");
        let most = u64::MAX.to_string();
        assert_eq!(with(&most, &most, &most), OURS);
        assert_eq!(with(&most, "1", "0"), [most.as_str(), "1", "0"]);
    }

    #[test]
    fn what_is_missing_is_filled_in() {
        assert_eq!(merged(&[(&X_RATELIMIT_REMAINING, "3")]), ["10", "3", "60"]);
        assert_eq!(merged(&[(&X_RATELIMIT_REMAINING, "7")]), OURS);
        assert_eq!(merged(&[(&X_RATELIMIT_LIMIT, "1")]), OURS);
        assert_eq!(with("x", "3", "Mon, 30 Nov 2026 14:54:32 GMT"), ["10", "3", "60"]);
    }

    #[test]
    fn what_is_no_number_is_replaced() {
        for junk in
            ["", "-1", "+1", "1.5", "1000,1000", "10;w=60", "99999999999999999999", "\u{e9}"]
        {
            assert_eq!(with("10", junk, "1"), OURS, "{junk}");
        }
        let twice = [(&X_RATELIMIT_REMAINING, "1"), (&X_RATELIMIT_REMAINING, "1")];
        assert_eq!(merged(&twice), OURS);
    }
}
