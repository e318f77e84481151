//! A share of a limit, as an exact fraction.

use std::{fmt, num::NonZero, str::FromStr};

use sekisho_core::{Algorithm, Limit, Metered, Period, limits::WAIT_NS_MAX};

/// The most decimal places and the largest denominator of a share: 10¹⁸ fits a `u64`.
const PLACES_MAX: u32 = 18;
const DENOMINATOR_MAX: u64 = 10_u64.pow(PLACES_MAX);

/// A part of a whole: more than nothing, and no more than all of it.
///
/// ```
/// use sekisho::Share;
///
/// let quarter: Share = "1/4".parse()?;
/// assert_eq!("0.25".parse(), Ok(quarter));
/// assert_eq!((quarter.of(10), quarter.of(1)), (2, 0));
/// assert_eq!(quarter.to_string(), "1/4");
/// # Ok::<(), sekisho::ShareError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    // Invariant: in lowest terms, and at most 1.
    numerator: NonZero<u64>,
    denominator: NonZero<u64>,
}

/// Not a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a share is more than 0 and at most 1, like `0.25` or `1/4`, with at most {PLACES_MAX} decimal places"
)]
pub struct ShareError;

impl Share {
    /// All of it.
    pub const WHOLE: Self =
        Self { numerator: NonZero::<u64>::MIN, denominator: NonZero::<u64>::MIN };

    /// Returns `numerator` parts of `denominator`.
    ///
    /// # Errors
    /// When that is nothing, or more than a whole, or parts smaller than 10⁻¹⁸.
    pub fn new(numerator: u64, denominator: u64) -> Result<Self, ShareError> {
        let common = common_divisor(numerator, denominator).max(1);
        let reduced = |number: u64| NonZero::new(number / common).ok_or(ShareError);
        let (numerator, denominator) = (reduced(numerator)?, reduced(denominator)?);
        let fits = numerator <= denominator && denominator.get() <= DENOMINATOR_MAX;
        fits.then_some(Self { numerator, denominator }).ok_or(ShareError)
    }

    /// Returns this share of a number, rounded down.
    pub fn of(&self, number: u64) -> u64 {
        let product = u128::from(number) * u128::from(self.numerator.get());
        // No larger than the number, since a share is at most a whole.
        u64::try_from(product / u128::from(self.denominator.get())).unwrap_or(number)
    }

    /// Returns this share of a limit: of its amount and its burst, rounded down, all else as it was. Something always
    /// remains: one unit of the amount and of a bucket, and the place in service of a queue. `block` and `unlimited` have no
    /// parts.
    pub fn of_limit(&self, limit: &Limit) -> Limit {
        let Some(metered) = limit.as_metered().filter(|_| *self != Self::WHOLE) else {
            return *limit;
        };
        let amount = self.of(metered.amount().get()).max(1);
        let scaled = metered.with_numbers(amount, self.burst(metered, amount));
        // Neither number is out of bounds: smaller than what was within them, and not 0.
        scaled.unwrap_or(*limit)
    }

    fn burst(&self, metered: &Metered, amount: u64) -> Option<u64> {
        let least = match metered.algorithm() {
            Algorithm::TokenBucket => 1,
            Algorithm::LeakyQueue => 0,
            Algorithm::FixedWindow
            | Algorithm::AnchoredWindow
            | Algorithm::SlidingLog
            | Algorithm::SlidingWindow => return None,
        };
        // An amount that was rounded down more than the burst would make the burst's wait longer than any may be.
        let longest = match metered.period() {
            Period::Fixed(period) => {
                u128::from(WAIT_NS_MAX) * u128::from(amount) / u128::from(period.get())
            }
            Period::Calendar(..) => u128::from(u64::MAX),
        };
        let longest = u64::try_from(longest).unwrap_or(u64::MAX);
        Some(self.of(metered.burst()).min(longest).max(least))
    }
}

const fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl FromStr for Share {
    type Err = ShareError;

    /// Reads `1/4`, `0.25` or `1`, digit by digit.
    fn from_str(text: &str) -> Result<Self, ShareError> {
        if let Some((numerator, denominator)) = text.split_once('/') {
            return Self::new(number(numerator)?, number(denominator)?);
        }
        let (whole, places) = text.split_once('.').unwrap_or((text, "0"));
        let length = u32::try_from(places.len()).ok().filter(|length| *length <= PLACES_MAX);
        let denominator = 10_u64.pow(length.ok_or(ShareError)?);
        let whole = number(whole)?.checked_mul(denominator).ok_or(ShareError)?;
        Self::new(whole.checked_add(number(places)?).ok_or(ShareError)?, denominator)
    }
}

/// Reads digits alone: no sign, no blank, nothing else.
fn number(text: &str) -> Result<u64, ShareError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().ok_or(ShareError)
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.numerator, self.denominator.get()) {
            (numerator, 1) => write!(f, "{numerator}"),
            (numerator, denominator) => write!(f, "{numerator}/{denominator}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_digit_by_digit() {
        for (text, numerator, denominator) in [
            ("1", 1, 1),
            ("1.000", 1, 1),
            ("1/1", 1, 1),
            ("7/7", 1, 1),
            ("0.1", 1, 10),
            ("0.30", 3, 10),
            ("2/8", 1, 4),
            ("0.000000000000000001", 1, 1_000_000_000_000_000_000),
            // As a double it would be 1.
            ("0.999999999999999999", 999_999_999_999_999_999, 1_000_000_000_000_000_000),
        ] {
            assert_eq!(text.parse(), Share::new(numerator, denominator), "{text}");
            assert!(text.parse::<Share>().is_ok(), "{text}");
        }
        for text in [
            "",
            "0",
            "0.0",
            "0/4",
            "4/0",
            "0/0",
            "5/4",
            "1.1",
            "2",
            "-0.5",
            "+0.5",
            ".5",
            "5.",
            "1/",
            "/4",
            "1/2/3",
            "1e-1",
            "inf",
            "nan",
            " 1",
            "0.0000000000000000001",
            "1/1000000000000000001",
            "18446744073709551616/18446744073709551617",
        ] {
            assert_eq!(text.parse::<Share>(), Err(ShareError), "{text:?}");
        }
    }

    #[test]
    fn amounts_and_bursts_are_scaled_and_nothing_else_is() {
        for (limit, share, scaled) in [
            ("100/min burst 10", "1", "100/min burst 10"),
            ("100/min burst 10", "1/4", "25/min burst 2"),
            ("100/min", "0.1", "10/min"),
            ("10/min burst 1", "1/4", "2/min burst 1"),
            ("1/s sliding-log", "1/4", "1/s sliding-log"),
            ("9/s sliding-log resolution 10ms", "1/4", "2/s sliding-log resolution 10ms"),
            ("7/s sliding-window", "0.5", "3/s sliding-window"),
            ("9/30s fixed-window", "1/3", "3/30s fixed-window"),
            ("9/h anchored-window", "1/10", "1/h anchored-window"),
            ("5/min burst 10 leaky-queue", "1/2", "2/min burst 5 leaky-queue"),
            ("5/min burst 0 leaky-queue", "1/2", "2/min leaky-queue"),
            ("5/min burst 1 leaky-queue", "1/2", "2/min burst 0 leaky-queue"),
            ("5000/calendar-day zone Asia/Tokyo", "1/3", "1666/calendar-day zone Asia/Tokyo"),
            ("18446744073709551615/s", "1/2", "9223372036854775807/s"),
            ("block", "1/4", "block"),
            ("unlimited", "1/4", "unlimited"),
            // Of 3 every ten years, half is 1: a burst of 15 would take longer than any may.
            ("3/3650day burst 30", "1/2", "1/3650day burst 10"),
        ] {
            let (limit, wanted): (Limit, Limit) = (limit.parse().unwrap(), scaled.parse().unwrap());
            assert_eq!(share.parse::<Share>().unwrap().of_limit(&limit), wanted, "{limit} {share}");
        }
    }
}
