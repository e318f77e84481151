//! The text of a state, as the script writes it and as the core knows it.

use std::num::NonZero;

use sekisho::Zones;
use sekisho_core::{
    Algorithm, AnchoredWindow, Entry, ExactTime, FixedWindow, LeakyQueue, Limit, Metered, Period,
    Rate, SlidingLog, SlidingWindow, State, Timestamp, TokenBucket,
};

use crate::words;

/// Nanoseconds of a microsecond.
pub(crate) const US: u64 = 1_000;

/// Returns the state that a text stands for at a time, nothing for one that the script never wrote. It is repaired where a
/// clock may have been set back, under the numbers that it was written with: what is more than a full wait under those of now
/// may be used all the same.
pub(crate) fn read(limit: &Limit, text: &[u8], repaired_at: Option<Timestamp>) -> Option<State> {
    let metered = limit.as_metered()?;
    let (mut state, numbers) = read_as_written(metered, text)?;
    if let Some(at) = repaired_at {
        let then = numbers.and_then(|numbers| with_numbers(metered, numbers));
        then.as_ref().unwrap_or(limit).repair(&mut state, at, &Zones);
    }
    Some(state)
}

/// Returns a limit with the amount and burst that a state was written with, where they are others.
fn with_numbers(limit: &Metered, (amount, burst): (u64, u64)) -> Option<Limit> {
    if (amount, burst) == (limit.amount().get(), words::burst(limit)) {
        return None;
    }
    let rate = Rate::new(amount, *limit.period()).ok()?;
    let then = if limit.algorithm() == Algorithm::LeakyQueue {
        rate.leaky_queue(burst)
    } else {
        rate.token_bucket(burst)
    };
    then.ok()
}

/// Returns the state that a text stands for: fresh for an empty one and for another algorithm's; and the amount and the burst
/// that it was written with, where it says so.
fn read_as_written(limit: &Metered, text: &[u8]) -> Option<(State, Option<(u64, u64)>)> {
    let wanted = match limit.algorithm() {
        Algorithm::FixedWindow => "w",
        Algorithm::AnchoredWindow => "a",
        Algorithm::SlidingWindow => "s",
        Algorithm::SlidingLog => "l",
        Algorithm::TokenBucket => "b",
        Algorithm::LeakyQueue => "q",
    };
    if !text.starts_with(wanted.as_bytes()) {
        return Some((State::Fresh, None));
    }
    let text = str::from_utf8(text).ok()?;
    let numbers: Result<Vec<u64>, _> = text.split(' ').skip(1).map(str::parse).collect();
    let numbers = numbers.ok()?;
    let state = match (limit.algorithm(), numbers.as_slice()) {
        (Algorithm::FixedWindow, &[start, used]) => {
            State::FixedWindow(FixedWindow { start: timestamp(start)?, used })
        }
        (Algorithm::AnchoredWindow, &[start, used]) => {
            State::AnchoredWindow(AnchoredWindow { start: timestamp(start)?, used })
        }
        (Algorithm::SlidingWindow, &[start, previous, current]) => {
            let Period::Fixed(period) = limit.period() else { return None };
            let number = timestamp(start)?.as_nanos() / *period;
            State::SlidingWindow(SlidingWindow { number, previous, current })
        }
        (Algorithm::SlidingLog, entries) => log(entries)?,
        (Algorithm::TokenBucket, &[us, rest, amount, ref more @ ..]) => {
            let burst = more.first().copied().unwrap_or(amount);
            if burst == 0 {
                return None;
            }
            let debt_at = debts(more.get(1..).unwrap_or_default())?.pop();
            let tat = instant(us, rest, amount)?;
            let state = State::TokenBucket(TokenBucket { tat, debt_at });
            return Some((state, Some((amount, burst))));
        }
        (Algorithm::LeakyQueue, &[us, rest, amount, burst, last_at, last_units, ref more @ ..]) => {
            let (next, debt_at) = (instant(us, rest, amount)?, debts(more)?.pop());
            let last_at = timestamp(last_at)?;
            let state = State::LeakyQueue(LeakyQueue { next, last_at, last_units, debt_at });
            return Some((state, Some((amount, burst))));
        }
        _ => return None,
    };
    Some((state, None))
}

/// Returns the times since which more is used than the burst, of which there is one at most; nothing where there are more.
fn debts(words: &[u64]) -> Option<Vec<Timestamp>> {
    if words.len() > 1 { None } else { words.iter().map(|us| timestamp(*us)).collect() }
}

/// Returns the log of some entries, whose units are running sums.
fn log(words: &[u64]) -> Option<State> {
    let (before, entries) = words.split_first()?;
    let mut sum = *before;
    let entries: Option<Vec<Entry>> = entries
        .chunks(2)
        .map(|entry| {
            let &[us, sum_then] = entry else { return None };
            let units = sum_then.checked_sub(sum)?;
            sum = sum_then;
            Some(Entry { at: timestamp(us)?, units })
        })
        .collect();
    Some(match entries? {
        none if none.is_empty() => State::Fresh,
        entries => State::SlidingLog(SlidingLog::from_entries(entries)?),
    })
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
    use proptest::prelude::*;
    use sekisho_core::{Call, Mode};

    use super::*;

    fn read_under(limit: &str, text: &str) -> Option<State> {
        let limit: Limit = limit.parse().unwrap();
        read(&limit, text.as_bytes(), None)
    }

    #[test]
    fn a_rest_below_a_microsecond_keeps_its_value() {
        // 8,571,428 and 4/7 us are 8,571,428,571 and 3/7 ns.
        let tat = ExactTime { ns: 8_571_428_571, rest: 3, amount: NonZero::new(7).unwrap() };
        let wanted = State::TokenBucket(TokenBucket { tat, debt_at: None });
        assert_eq!(read_under("7/min", "b 8571428 4 7"), Some(wanted));
    }

    #[test]
    fn what_was_used_under_other_numbers_is_used() {
        let few: Limit = "100/week".parse().unwrap();
        let now = Timestamp::from_secs(1_000_000);
        let read_now = |text: &str| read(&few, text.as_bytes(), Some(now)).unwrap();
        // 570 of 1,000 a week: more than a week under 100, and no clock was set back.
        let week = 604_800_000_000_u64;
        let used = format!("b {} 0 1000", 1_000_000_000_000 + week / 1_000 * 570);
        assert_eq!(read_now(&used), read(&few, used.as_bytes(), None).unwrap());
        // 1,001 of 1,000 cannot be.
        let more = format!("b {} 0 1000", 1_000_000_000_000 + week / 1_000 * 1_001);
        let full = format!("b {} 0 1000", 1_000_000_000_000 + week);
        assert_eq!(read_now(&more), read(&few, full.as_bytes(), None).unwrap());
    }

    #[test]
    fn what_another_algorithm_left_is_fresh_and_what_nobody_wrote_is_found() {
        for fresh in ["", "w 60000000 5", "101", "[]"] {
            assert_eq!(read_under("7/min", fresh), Some(State::Fresh), "{fresh}");
        }
        for (limit, bad) in [
            ("7/min", "b"),
            ("7/min", "b 1 2"),
            ("7/min", "b 1 2 x"),
            ("7/min", "b 1 7 7"),
            ("7/min", "b 1 0 0"),
            ("7/min", "b 1 0 7 9 9 9"),
            ("7/min", "b 1 0 7 0"),
            ("7/min", "b 99999999999999999999 0 7"),
            ("7/min leaky-queue", "q 1 0 7"),
            ("7/min leaky-queue", "q 1 0 7 0 1 1 1 1"),
            ("7/min leaky-queue", "q 1 0 7 0 1"),
            ("7/min fixed-window", "w 60000000"),
            ("7/min anchored-window", "a 60000000 1 1"),
            ("7/min sliding-window", "s 60000000 1"),
            ("7/min sliding-log", "l"),
            ("7/min sliding-log", "l 0 1"),
            ("7/min sliding-log", "l 7 1 7"),
            ("7/min sliding-log", "l 0 2 1 2 2"),
            ("7/min sliding-log", "l 0 2 2 3 1"),
        ] {
            assert_eq!(read_under(limit, bad), None, "{bad}");
        }
        assert_eq!(read_under("7/min fixed-window", "b 1 0 7"), Some(State::Fresh));
    }

    proptest! {
        /// Whatever stands in a key, it is a state, or none; and what is read is judged without a panic.
        #[test]
        fn any_text_is_a_state_or_none(text in "[bwaslq][ 0-9]{0,80}|.{0,40}", limit in 0..LIMITS.len()) {
            if let Some(mut state) = read_under(LIMITS[limit], &text) {
                let limit: Limit = LIMITS[limit].parse().unwrap();
                let call = Call { now: Timestamp::from_secs(1_000_000), cost: 1, mode: Mode::Check };
                limit.repair(&mut state, call.now, &Zones);
                let _verdict = limit.judge(&state, call, &Zones);
            }
        }
    }

    const LIMITS: [&str; 7] = [
        "7/min",
        "7/min fixed-window",
        "7/min anchored-window",
        "7/min sliding-window",
        "7/min sliding-log",
        "7/min burst 3 leaky-queue",
        "7/calendar-day",
    ];

    #[test]
    fn a_log_is_what_was_written() {
        let Some(State::SlidingLog(log)) =
            read_under("7/min sliding-log", "l 3 1 8 400000000000 10")
        else {
            panic!("it is a log");
        };
        let entries: Vec<_> = log.entries().map(|entry| (entry.at, entry.units)).collect();
        let (first, second) = (timestamp(1).unwrap(), timestamp(400_000_000_000).unwrap());
        assert_eq!(entries, [(first, 5), (second, 2)]);
    }
}
