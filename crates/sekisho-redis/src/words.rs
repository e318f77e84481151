//! What the script is told of a charge, and what it cannot be told.
//!
//! Lua counts in doubles, so every product is made here, in 128 bits, and what could take the script beyond 2⁵³ is refused.

use std::fmt;

use sekisho::StoreError;
use sekisho_core::{
    Algorithm, Metered, Mode, Period, Span, Timestamp, Window, limits::WAIT_NS_MAX,
};

use crate::state::US;

/// The largest amount that the script can count with: a rest below three times as much is exact in Lua.
pub(crate) const AMOUNT_MAX: u64 = 1 << 51;
/// The largest whole number up to which all are exact in Lua. As a time in microseconds it is the year 2255.
const EXACT_MAX: u64 = 1 << 53;
/// The longest debt, in microseconds.
const DEBT_MAX: u64 = WAIT_NS_MAX / US;

/// The words of a charge, as the script unpacks them: the letter of the algorithm, which the script's files name; how long its
/// state matters; and the numbers that the algorithm's file says. All numbers are little-endian doubles.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Words(Vec<u8>);

impl Words {
    /// Returns no words: for what needs none.
    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    fn new(algorithm: u8, matters: u64, numbers: &[u64]) -> Self {
        let mut words = Self(Vec::with_capacity(9 + 8 * numbers.len().max(4)));
        words.0.push(algorithm);
        words.add(&[matters]);
        words.add(numbers);
        words
    }

    /// Adds numbers.
    pub(crate) fn add(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.0.extend_from_slice(&double(*number));
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    #[cfg(test)]
    fn numbers(&self) -> Vec<f64> {
        let doubles = self.0[1..].chunks(8).map(|bytes| bytes.try_into().unwrap());
        doubles.map(f64::from_le_bytes).collect()
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words({} bytes)", self.0.len())
    }
}

/// Returns the bytes of the double that is a whole number of at most 2⁵³, made without a float.
pub(crate) fn double(number: u64) -> [u8; 8] {
    debug_assert!(number <= EXACT_MAX);
    let Some(highest) = number.checked_ilog2() else { return [0; 8] };
    // IEEE 754: 11 bits of exponent, biased by 1023; then the bits after the highest, from the left.
    let exponent = u64::from(highest) + 1023;
    let fraction = if highest > 52 { 0 } else { (number << (52 - highest)) & ((1 << 52) - 1) };
    (exponent << 52 | fraction).to_le_bytes()
}

/// What is done with a charge: how, and how long its caller would wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) mode: Mode,
    pub(crate) longest: Option<Span>,
}

/// A time of so many microseconds, and a rest in parts of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    us: u64,
    rest: u64,
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

/// Returns the words of a calendar window: its first microsecond, and the first after it.
pub(crate) const fn bounds(window: &Window) -> [u64; 2] {
    [window.start.as_nanos() / US, window.end.as_nanos() / US]
}

/// Returns the words for `cost` units, which fit the capacity where they are checked. `now` is the time in microseconds where
/// it is given, and `windows` are the calendar windows that are known.
pub(crate) fn words(
    limit: &Metered,
    cost: u64,
    manner: Manner,
    now: Option<u64>,
    windows: &[Window],
) -> Result<Words, StoreError> {
    let amount = limit.amount().get();
    if amount > AMOUNT_MAX {
        return Err(unsupported(format!("amount above {AMOUNT_MAX}")));
    }
    let units = counted(limit, cost, manner.mode)?;
    let period = match limit.period() {
        Period::Fixed(ns) if ns.get().is_multiple_of(US) => ns.get() / US,
        Period::Fixed(_) => return Err(unsupported("period between two microseconds")),
        Period::Calendar(unit, _) => unit.longest().as_nanos() / US,
    };
    let (algorithm, matters) = match (limit.algorithm(), limit.period()) {
        (Algorithm::FixedWindow, Period::Calendar(..)) => (b'k', period),
        (Algorithm::FixedWindow, _) => (b'w', period),
        (Algorithm::AnchoredWindow, _) => (b'a', period),
        // An entry may lie ahead by less than its resolution.
        (Algorithm::SlidingLog, _) => (b'l', period + resolution(limit)?.saturating_sub(1)),
        (Algorithm::SlidingWindow, _) => (b's', 2 * period),
        (Algorithm::TokenBucket | Algorithm::LeakyQueue, _) => {
            return time_words(limit, (cost, units), period, manner, now);
        }
    };
    fits(now, matters)?;
    let mut words = Words::new(algorithm, matters, &[amount, units]);
    match limit.period() {
        Period::Calendar(..) => windows.iter().for_each(|window| words.add(&bounds(window))),
        Period::Fixed(_) => words.add(&[period]),
    }
    if limit.algorithm() == Algorithm::SlidingLog {
        words.add(&[resolution(limit)?]);
    }
    Ok(words)
}

/// Returns how far apart the entries of a log are, in microseconds; 0 where each time has its own.
fn resolution(limit: &Metered) -> Result<u64, StoreError> {
    match limit.resolution().as_nanos() {
        1 => Ok(0),
        ns if ns.is_multiple_of(US) => Ok(ns / US),
        _ => Err(unsupported("resolution between two microseconds")),
    }
}

/// Returns the words of a limit whose state is one time.
fn time_words(
    limit: &Metered,
    (cost, units): (u64, u64),
    period: u64,
    manner: Manner,
    now: Option<u64>,
) -> Result<Words, StoreError> {
    let amount = limit.amount().get();
    let (algorithm, full, room) = levels(limit, period, manner.longest);
    let forces = manner.mode == Mode::Force;
    let most = if forces { DEBT_MAX.max(full.us) } else { full.us };
    fits(now, most)?;
    let cost = u128::from(cost) * u128::from(period);
    let cost = match manner.mode {
        // More than the longest debt is as much as that, and more than there is to give back as much as there is.
        Mode::Force => time_of(cost, amount, DEBT_MAX + 1),
        _ => time_of(cost, amount, EXACT_MAX - 1),
    };
    let [cost, full, room] = [cost, full, room].map(|pair| [pair.us, pair.rest]);
    let numbers =
        [amount, units, cost[0], cost[1], full[0], full[1], room[0], room[1], burst(limit), period];
    Ok(Words::new(algorithm, most, &numbers))
}

/// Returns the burst that a state is written with: one beyond what Lua counts is as good as that.
pub(crate) const fn burst(limit: &Metered) -> u64 {
    if limit.burst() < AMOUNT_MAX { limit.burst() } else { AMOUNT_MAX }
}

/// Refuses a time so far ahead that what is added to it would not be exact.
fn fits(now: Option<u64>, matters: u64) -> Result<(), StoreError> {
    if now.unwrap_or(0).saturating_add(matters) >= EXACT_MAX {
        return Err(unsupported("time so far ahead"));
    }
    Ok(())
}

/// Returns the letter, the longest that a clock set back may leave, and how far ahead the time value may lie after a charge.
fn levels(limit: &Metered, period: u64, longest: Option<Span>) -> (u8, Pair, Pair) {
    let amount = limit.amount().get();
    let (one, full) = (u128::from(period), u128::from(limit.burst()) * u128::from(period));
    if limit.algorithm() == Algorithm::TokenBucket {
        let full = time_of(full, amount, EXACT_MAX - 1);
        return (b'b', full, full);
    }
    // The last unit's slot is no further than a full queue's, and no further than the caller waits: rounded down, as a delay
    // is a whole number of these parts.
    let waited =
        longest.map(|wait| u128::from(wait.as_nanos()) * u128::from(amount) / u128::from(US));
    let room = waited.map_or(full, |waited| full.min(waited)) + one;
    let time = |level| time_of(level, amount, EXACT_MAX - 1);
    (b'q', time(full + one), time(room))
}

/// Returns the time that so many parts take, at most `most` microseconds.
fn time_of(level: u128, amount: u64, most: u64) -> Pair {
    let (us, rest) = (level / u128::from(amount), level % u128::from(amount));
    match (u64::try_from(us), u64::try_from(rest)) {
        (Ok(us), Ok(rest)) if us < most => Pair { us, rest },
        _ => Pair { us: most, rest: 0 },
    }
}

/// Returns the cost as the script counts it.
fn counted(limit: &Metered, cost: u64, mode: Mode) -> Result<u64, StoreError> {
    let counts = limit.algorithm() != Algorithm::TokenBucket;
    match mode {
        Mode::Check | Mode::Force if counts && cost >= EXACT_MAX => {
            Err(unsupported(format!("cost of {EXACT_MAX} and more here")))
        }
        // A bucket only asks whether it is 0; and nothing that was counted is as much as this.
        _ => Ok(cost.min(EXACT_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use sekisho_core::Limit;

    use super::*;

    fn told(limit: &str, cost: u64, now: u64) -> Result<Words, StoreError> {
        asked(limit, cost, now, Mode::Check, None)
    }

    fn asked(
        limit: &str,
        cost: u64,
        now: u64,
        mode: Mode,
        longest: Option<Span>,
    ) -> Result<Words, StoreError> {
        let limit: Limit = limit.parse().unwrap();
        words(limit.as_metered().unwrap(), cost, Manner { mode, longest }, Some(now), &[])
    }

    #[test]
    fn products_are_made_before_the_script() {
        let bucket = |matters, numbers: [u64; 10]| Ok(Words::new(b'b', matters, &numbers));
        let minute = 60_000_000;
        assert_eq!(
            told("7/min", 1, 0),
            bucket(minute, [7, 1, 8_571_428, 4, minute, 0, minute, 0, 7, minute])
        );
        // The product, 10¹² · 86,400,000,000, is far beyond 2⁵³; neither of its parts is.
        let day = 86_400_000_000;
        let amount = 1_000_000_000_000;
        assert_eq!(
            told("1000000000000/day", 1, 0),
            bucket(day, [amount, 1, 0, day, day, 0, day, 0, amount, day])
        );
        let log = |matters, resolution| Ok(Words::new(b'l', matters, &[7, 1, minute, resolution]));
        assert_eq!(told("7/min sliding-log", 1, 0), log(minute, 0));
        assert_eq!(told("7/min sliding-log resolution 1us", 1, 0), log(minute, 1));
        assert_eq!(told("7/min sliding-log resolution 10ms", 1, 0), log(minute + 9_999, 10_000));
        let window = Words::new(b'w', minute, &[10, 3, minute]);
        assert_eq!(told("10/min fixed-window", 3, 0), Ok(window));
    }

    #[test]
    fn doubles_are_those_of_the_processor() {
        for number in [0_u32, 1, 2, 3, 60, 1_000_000, 1 << 24, u32::MAX] {
            assert_eq!(double(u64::from(number)), f64::from(number).to_le_bytes());
        }
        assert_eq!(double(EXACT_MAX), 9_007_199_254_740_992_f64.to_le_bytes());
        assert_eq!(double(EXACT_MAX - 1), 9_007_199_254_740_991_f64.to_le_bytes());
        assert_eq!(double(1_796_069_035_451_950), 1_796_069_035_451_950_f64.to_le_bytes());
        let words = told("10/min fixed-window", 3, 0).unwrap();
        assert_eq!(words.numbers(), [60_000_000.0, 10.0, 3.0, 60_000_000.0]);
        assert_eq!(words.as_bytes()[0], b'w');
    }

    #[test]
    fn who_cannot_wait_has_less_room() {
        let room = |longest: Option<u64>| {
            let longest = longest.map(Span::from_nanos);
            let words = asked("3/us burst 6 leaky-queue", 1, 0, Mode::Check, longest).unwrap();
            (words.numbers()[7], words.numbers()[8])
        };
        // In thirds of a microsecond: six may wait, and the one in service makes seven.
        assert_eq!(room(None), (2.0, 1.0));
        assert_eq!(room(Some(u64::MAX)), (2.0, 1.0));
        assert_eq!(room(Some(334)), (0.0, 2.0));
        assert_eq!(room(Some(333)), (0.0, 1.0));
        assert_eq!(room(Some(0)), (0.0, 1.0));
    }

    #[test]
    fn what_lua_cannot_count_is_refused() {
        for (limit, now) in [
            ("1/500ns", 0),
            ("1/1500ns fixed-window", 0),
            ("1/s sliding-log resolution 1500ns", 0),
            ("1/s sliding-log resolution 999ns", 0),
            ("60/min sliding-log resolution 3us", EXACT_MAX - 60_000_002),
            ("2251799813685249/s", 0),
            ("2251799813685249/s fixed-window", 0),
            ("60/min", EXACT_MAX - 60_000_000),
            ("60/min fixed-window", EXACT_MAX - 60_000_000),
            ("60/min sliding-window", EXACT_MAX - 120_000_000),
            ("60/calendar-day", EXACT_MAX - 1),
        ] {
            let refused = told(limit, 1, now);
            assert!(matches!(refused, Err(StoreError::Unsupported(_))), "{limit}: {refused:?}");
        }
        assert!(told("2251799813685248/s", 1, 0).is_ok());
        assert!(told("60/min", 1, EXACT_MAX - 60_000_001).is_ok());
        let log = "60/min sliding-log resolution 3us";
        assert!(told(log, 1, EXACT_MAX - 60_000_003).is_ok());
        assert_eq!(
            microseconds(Timestamp::from_nanos(1_500)),
            Err(unsupported("time between two microseconds"))
        );
        let force = |limit, cost| asked(limit, cost, 0, Mode::Force, None);
        assert!(force("1/s", u64::MAX).is_ok());
        assert!(matches!(force("1/s sliding-log", EXACT_MAX), Err(StoreError::Unsupported(_))));
        assert!(force("1/s sliding-log", EXACT_MAX - 1).is_ok());
    }
}
