//! The text of a state, as the script writes it and as the core knows it.

use std::num::NonZero;

use sekisho::Zones;
use sekisho_core::{
    Algorithm, AnchoredWindow, Call, ExactTime, FixedWindow, LeakyQueue, Limit, Metered, Mode,
    Period, Rate, SlidingWindow, Span, State, Timestamp, TokenBucket, Verdict,
    limits::PERIOD_NS_MAX,
};

/// Nanoseconds of a microsecond.
pub(crate) const US: u64 = 1_000;

/// Returns the state that a text stands for: fresh for an empty one and for another algorithm's, nothing for one that the
/// script never wrote.
pub(crate) fn read(limit: &Metered, text: &[u8]) -> Option<State> {
    let wanted = match limit.algorithm() {
        Algorithm::FixedWindow => "w",
        Algorithm::AnchoredWindow => "a",
        Algorithm::SlidingWindow => "s",
        Algorithm::SlidingLog => "l",
        Algorithm::TokenBucket => "b",
        Algorithm::LeakyQueue => "q",
    };
    if !text.starts_with(wanted.as_bytes()) {
        return Some(State::Fresh);
    }
    let text = str::from_utf8(text).ok()?;
    let numbers: Result<Vec<u64>, _> = text.split(' ').skip(1).map(str::parse).collect();
    let numbers = numbers.ok()?;
    match (limit.algorithm(), numbers.as_slice()) {
        (Algorithm::FixedWindow, &[start, used]) => {
            Some(State::FixedWindow(FixedWindow { start: timestamp(start)?, used }))
        }
        (Algorithm::AnchoredWindow, &[start, used]) => {
            Some(State::AnchoredWindow(AnchoredWindow { start: timestamp(start)?, used }))
        }
        (Algorithm::SlidingWindow, &[start, previous, current]) => {
            let Period::Fixed(period) = limit.period() else { return None };
            let number = timestamp(start)?.as_nanos() / *period;
            Some(State::SlidingWindow(SlidingWindow { number, previous, current }))
        }
        (Algorithm::SlidingLog, entries) => log(entries),
        (Algorithm::TokenBucket, &[us, rest, amount, ref debt @ ..]) => {
            let (tat, debt_at) = (instant(us, rest, amount)?, debts(debt)?.pop());
            Some(State::TokenBucket(TokenBucket { tat, debt_at }))
        }
        (Algorithm::LeakyQueue, &[us, rest, amount, last_at, last_units, ref debt @ ..]) => {
            let (next, debt_at) = (instant(us, rest, amount)?, debts(debt)?.pop());
            let last_at = timestamp(last_at)?;
            Some(State::LeakyQueue(LeakyQueue { next, last_at, last_units, debt_at }))
        }
        _ => None,
    }
}

/// Returns the times of what forces left, of which there is one at most; nothing where there are more.
fn debts(words: &[u64]) -> Option<Vec<Timestamp>> {
    if words.len() > 1 { None } else { words.iter().map(|us| timestamp(*us)).collect() }
}

/// Returns the log of some entries, whose units are running sums: the core has no other way to make one than to charge it.
fn log(words: &[u64]) -> Option<State> {
    // Nothing leaves under the longest period that there is.
    let period = Period::fixed(Span::from_nanos(PERIOD_NS_MAX)).ok()?;
    let limit = Rate::new(u64::MAX, period).ok()?.sliding_log().ok()?;
    let (before, entries) = words.split_first()?;
    let mut state = State::Fresh;
    let (mut last, mut sum) = (None, *before);
    for entry in entries.chunks(2) {
        let &[us, sum_then] = entry else { return None };
        let units = sum_then.checked_sub(sum).filter(|units| *units > 0)?;
        if last.is_some_and(|last| us <= last) {
            return None;
        }
        (last, sum) = (Some(us), sum_then);
        charge(&limit, &mut state, timestamp(us)?, units);
    }
    Some(state)
}

fn charge(limit: &Limit, state: &mut State, now: Timestamp, cost: u64) {
    let call = Call { now, cost, mode: Mode::Force };
    let _verdict = limit.settle(state, call, Verdict::UNLIMITED, &Zones);
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
        for (limit, bad) in [
            ("7/min", "b"),
            ("7/min", "b 1 2"),
            ("7/min", "b 1 2 x"),
            ("7/min", "b 1 7 7"),
            ("7/min", "b 1 0 0"),
            ("7/min", "b 1 0 7 9 9"),
            ("7/min", "b 99999999999999999999 0 7"),
            ("7/min leaky-queue", "q 1 0 7"),
            ("7/min leaky-queue", "q 1 0 7 1 1 1 1"),
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
