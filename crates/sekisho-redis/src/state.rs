//! The text of a state, as the script writes it and as the core knows it.

use std::{num::NonZero, str};

use sekisho_core::{Algorithm, ExactTime, FixedWindow, Metered, State, Timestamp, TokenBucket};

/// Nanoseconds of a microsecond.
pub(crate) const US: u64 = 1_000;

/// Returns the state that a text stands for: fresh for an empty one and for another algorithm's, nothing for one that the
/// script never wrote.
pub(crate) fn read(limit: &Metered, text: &[u8]) -> Option<State> {
    let wanted = match limit.algorithm() {
        Algorithm::TokenBucket => "b",
        Algorithm::FixedWindow => "w",
        _ => return None,
    };
    if !text.starts_with(wanted.as_bytes()) {
        return Some(State::Fresh);
    }
    let mut words = str::from_utf8(text).ok()?.split(' ').skip(1).map(str::parse::<u64>);
    let mut next = || words.next()?.ok();
    let state = match limit.algorithm() {
        Algorithm::TokenBucket => State::TokenBucket(TokenBucket {
            tat: instant(next()?, next()?, next()?)?,
            debt_at: None,
        }),
        _ => State::FixedWindow(FixedWindow { start: timestamp(next()?)?, used: next()? }),
    };
    words.next().is_none().then_some(state)
}

/// Returns the instant `us` microseconds after the epoch.
pub(crate) fn timestamp(us: u64) -> Option<Timestamp> {
    us.checked_mul(US).map(Timestamp::from_nanos)
}

/// Returns the instant `us` and `rest / amount` microseconds after the epoch, which the core keeps as whole nanoseconds and a
/// rest of its own.
fn instant(us: u64, rest: u64, amount: u64) -> Option<ExactTime> {
    let amount = NonZero::new(amount)?;
    let below = (rest < amount.get()).then(|| u128::from(rest) * u128::from(US))?;
    let wide = u128::from(amount.get());
    // Both fit: the rest is less than a microsecond, and less than the amount of a nanosecond.
    let (ns, rest) = (u64::try_from(below / wide).ok()?, u64::try_from(below % wide).ok()?);
    Some(ExactTime { ns: us.checked_mul(US)?.checked_add(ns)?, rest, amount })
}

#[cfg(test)]
mod tests {
    use sekisho_core::Limit;

    use super::*;

    fn read_under(limit: &str, text: &str) -> Option<State> {
        let limit: Limit = limit.parse().unwrap();
        read(limit.as_metered().unwrap(), text.as_bytes())
    }

    #[test]
    fn a_rest_below_a_microsecond_keeps_its_value() {
        // 8,571,428 and 4/7 us are 8,571,428,571 and 3/7 ns.
        let tat = ExactTime { ns: 8_571_428_571, rest: 3, amount: NonZero::new(7).unwrap() };
        let wanted = State::TokenBucket(TokenBucket { tat, debt_at: None });
        assert_eq!(read_under("7/min", "b 8571428 4 7"), Some(wanted));
    }

    #[test]
    fn what_another_algorithm_left_is_fresh_and_what_nobody_wrote_is_found() {
        for fresh in ["", "w 60000000 5", "101", "[]"] {
            assert_eq!(read_under("7/min", fresh), Some(State::Fresh), "{fresh}");
        }
        for bad in [
            "b",
            "b 1 2",
            "b 1 2 x",
            "b 1 7 7",
            "b 1 0 0",
            "b 1 0 7 9",
            "b 99999999999999999999 0 7",
        ] {
            assert_eq!(read_under("7/min", bad), None, "{bad}");
        }
        assert_eq!(read_under("7/min fixed-window", "b 1 0 7"), Some(State::Fresh));
        assert!(matches!(
            read_under("7/min fixed-window", "w 60000000 5"),
            Some(State::FixedWindow(_))
        ));
    }
}
