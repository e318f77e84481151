//! What the script is told of a charge, and what it cannot be told.
//!
//! Lua counts in doubles, so every product is made here, in 128 bits, and what could take the script beyond 2⁵³ is refused.

use sekisho::StoreError;
use sekisho_core::{Algorithm, Metered, Period, Timestamp};

use crate::state::US;

/// The largest amount that the script can count with: a rest below three times as much is exact in Lua.
pub(crate) const AMOUNT_MAX: u64 = 1 << 51;
/// The largest whole number up to which all are exact in Lua. As a time in microseconds it is the year 2255.
const EXACT_MAX: u64 = 1 << 53;

/// The words of a charge: the algorithm, the amount, and four numbers that mean what the algorithm says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) algorithm: &'static str,
    pub(crate) numbers: [u64; 5],
}

/// Returns an error that names what this store does not have.
pub(crate) fn unsupported(what: impl Into<Box<str>>) -> StoreError {
    StoreError::Unsupported(what.into())
}

/// Returns the microseconds of a given time.
pub(crate) fn microseconds(at: Timestamp) -> Result<u64, StoreError> {
    if at.as_nanos().is_multiple_of(US) {
        Ok(at.as_nanos() / US)
    } else {
        Err(unsupported("time between two microseconds"))
    }
}

/// Returns the words for `cost` units, which fit the capacity. `now` is the time in microseconds where it is given.
pub(crate) fn words(limit: &Metered, cost: u64, now: Option<u64>) -> Result<Words, StoreError> {
    let amount = limit.amount().get();
    let period = match limit.period() {
        Period::Fixed(ns) if ns.get().is_multiple_of(US) => ns.get() / US,
        Period::Fixed(_) => return Err(unsupported("period between two microseconds")),
        Period::Calendar(..) => return Err(unsupported("calendar windows yet")),
    };
    if amount > AMOUNT_MAX {
        return Err(unsupported(format!("amount above {AMOUNT_MAX}")));
    }
    let (algorithm, ahead, numbers) = match limit.algorithm() {
        Algorithm::TokenBucket => {
            let time_of = |units: u64| {
                let level = u128::from(units) * u128::from(period);
                let (us, rest) = (level / u128::from(amount), level % u128::from(amount));
                // A full burst takes at most a hundred years.
                (u64::try_from(us).unwrap_or(u64::MAX), u64::try_from(rest).unwrap_or(u64::MAX))
            };
            let ((full, full_rest), (us, rest)) = (time_of(limit.burst()), time_of(cost));
            ("bucket", full, [amount, full, full_rest, us, rest])
        }
        Algorithm::FixedWindow => ("window", period, [amount, period, cost, 0, 0]),
        other => return Err(unsupported(format!("`{other}` yet"))),
    };
    if now.unwrap_or(0).saturating_add(ahead) >= EXACT_MAX {
        return Err(unsupported("time so far ahead"));
    }
    Ok(Words { algorithm, numbers })
}

#[cfg(test)]
mod tests {
    use sekisho_core::Limit;

    use super::*;

    fn told(limit: &str, cost: u64, now: u64) -> Result<Words, StoreError> {
        let limit: Limit = limit.parse().unwrap();
        words(limit.as_metered().unwrap(), cost, Some(now))
    }

    #[test]
    fn products_are_made_before_the_script() {
        let bucket = |numbers| Ok(Words { algorithm: "bucket", numbers });
        assert_eq!(told("7/min", 1, 0), bucket([7, 60_000_000, 0, 8_571_428, 4]));
        assert_eq!(told("7/min", 0, 0), bucket([7, 60_000_000, 0, 0, 0]));
        // The product, 10¹² · 86,400,000,000, is far beyond 2⁵³; neither of its parts is.
        let day = bucket([1_000_000_000_000, 86_400_000_000, 0, 0, 86_400_000_000]);
        assert_eq!(told("1000000000000/day", 1, 0), day);
        let window = Words { algorithm: "window", numbers: [10, 60_000_000, 3, 0, 0] };
        assert_eq!(told("10/min fixed-window", 3, 0), Ok(window));
    }

    #[test]
    fn what_lua_cannot_count_is_refused() {
        for (limit, now) in [
            ("1/500ns", 0),
            ("1/1500ns fixed-window", 0),
            ("2251799813685249/s", 0),
            ("2251799813685249/s fixed-window", 0),
            ("60/min", EXACT_MAX - 60_000_000),
            ("60/min fixed-window", EXACT_MAX - 60_000_000),
            ("60/calendar-day", 0),
            ("60/min sliding-log", 0),
            ("60/min leaky-queue", 0),
        ] {
            let refused = told(limit, 1, now);
            assert!(matches!(refused, Err(StoreError::Unsupported(_))), "{limit}: {refused:?}");
        }
        assert!(told("2251799813685248/s", 1, 0).is_ok());
        assert!(told("60/min", 1, EXACT_MAX - 60_000_001).is_ok());
        assert_eq!(
            microseconds(Timestamp::from_nanos(1_500)),
            Err(unsupported("time between two microseconds"))
        );
    }
}
