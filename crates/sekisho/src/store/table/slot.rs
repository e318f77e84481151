//! One key's state in 32 bytes: its digest, and the state in two words.
//!
//! The upper two bits of the first word say what the words are; the rest of it is an instant, which reaches to the year 2116:
//!
//! | kind | first word | second word |
//! |---|---|---|
//! | empty | 0 | 0 |
//! | bucket | the whole nanoseconds of the TAT | its remainder and the amount, 32 bits each |
//! | window | the window's start | kind (2), period (26), units used (36, or twice 18) |
//! | elsewhere | from when it equals a fresh one, but for two bits | the number of its place (32), and those two |
//!
//! Whatever does not fit is kept elsewhere, so nothing is ever rounded.

use core::num::NonZero;

use sekisho_core::{
    AnchoredWindow, ExactTime, FixedWindow, SlidingWindow, State, Timestamp, TokenBucket,
};

/// A key's digest and state. Two of them fill a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(super) struct Slot {
    pub(super) digest: u128,
    pub(super) words: Words,
}

/// A state in two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Words(u64, u64);

const TAG_SHIFT: u32 = 62;
const INSTANT: u64 = (1 << TAG_SHIFT) - 1;
const BUCKET: u64 = 1;
const WINDOW: u64 = 2;
const ELSEWHERE: u64 = 3;

const KIND_SHIFT: u32 = 62;
const FIXED: u64 = 0;
const ANCHORED: u64 = 1;
const SLIDING: u64 = 2;
/// A place that is taken, with a state that equals a fresh one until it is charged.
const TAKEN: u64 = 3;
const PERIOD_SHIFT: u32 = 36;
const USED: u64 = (1 << PERIOD_SHIFT) - 1;
const HALF_SHIFT: u32 = 18;
const HALF: u64 = (1 << HALF_SHIFT) - 1;

impl Slot {
    pub(super) const EMPTY: Self = Self { digest: 0, words: Words(0, 0) };

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.words.0 == 0
    }
}

impl Words {
    /// A place that is taken before there is a state for it. It never goes stale.
    pub(in crate::store) const TAKEN: Self = Self(WINDOW << TAG_SHIFT, TAKEN << KIND_SHIFT);

    /// Returns the words of a bucket that fits them.
    #[inline]
    pub(in crate::store) fn of_bucket(bucket: &TokenBucket) -> Option<Self> {
        let TokenBucket { tat: ExactTime { ns, rest, amount }, debt_at: None } = *bucket else {
            return None;
        };
        // The remainder is less than the amount.
        let fits = ns <= INSTANT && u32::try_from(amount.get()).is_ok() && rest < amount.get();
        fits.then_some(Self(BUCKET << TAG_SHIFT | ns, rest << 32 | amount.get()))
    }

    /// Returns the bucket, if it is one.
    #[inline]
    pub(in crate::store) fn bucket(self) -> Option<TokenBucket> {
        if self.0 >> TAG_SHIFT != BUCKET {
            return None;
        }
        let amount = NonZero::new(self.1 & u64::from(u32::MAX))?;
        let tat = ExactTime { ns: self.0 & INSTANT, rest: self.1 >> 32, amount };
        Some(TokenBucket { tat, debt_at: None })
    }

    /// Returns the words of a state that equals a fresh one from `fresh_at` on, if it fits them.
    pub(in crate::store) fn of(state: &State, fresh_at: Timestamp) -> Option<Self> {
        let (start, kind, period, used) = match state {
            State::TokenBucket(bucket) => return Self::of_bucket(bucket),
            State::FixedWindow(FixedWindow { start, used }) => {
                (start.as_nanos(), FIXED, fresh_at.since(*start), Some(*used))
            }
            State::AnchoredWindow(AnchoredWindow { start, used }) => {
                (start.as_nanos(), ANCHORED, fresh_at.since(*start), Some(*used))
            }
            State::SlidingWindow(window) => return Self::of_sliding(window, fresh_at),
            State::Fresh | State::LeakyQueue(_) | State::SlidingLog(_) => return None,
        };
        Self::of_window(start, kind, period.as_nanos(), used.filter(|used| *used <= USED))
    }

    fn of_sliding(window: &SlidingWindow, fresh_at: Timestamp) -> Option<Self> {
        let ahead = match (window.previous, window.current) {
            (0, 0) => return None,
            (_, 0) => 1,
            (_, _) => 2,
        };
        let end = window.number.checked_add(ahead)?;
        let period = fresh_at.as_nanos().checked_div(end)?;
        let whole = period.checked_mul(end) == Some(fresh_at.as_nanos());
        let used = (whole && window.previous <= HALF && window.current <= HALF)
            .then_some(window.previous << HALF_SHIFT | window.current);
        Self::of_window(window.number.checked_mul(period)?, SLIDING, period, used)
    }

    fn of_window(start: u64, kind: u64, period: u64, used: Option<u64>) -> Option<Self> {
        let used = used.filter(|_| start <= INSTANT)?;
        let period = Period::of(period)?;
        let words = kind << KIND_SHIFT | period.0 << PERIOD_SHIFT | used;
        Some(Self(WINDOW << TAG_SHIFT | start, words))
    }

    /// Returns the state, unless it is elsewhere.
    pub(in crate::store) fn state(self) -> Option<State> {
        match self.0 >> TAG_SHIFT {
            BUCKET => self.bucket().map(State::TokenBucket),
            WINDOW => Some(self.window()),
            _ => None,
        }
    }

    fn window(self) -> State {
        let (start, used) = (self.0 & INSTANT, self.1 & USED);
        match self.1 >> KIND_SHIFT {
            FIXED => State::FixedWindow(FixedWindow { start: Timestamp::from_nanos(start), used }),
            ANCHORED => {
                State::AnchoredWindow(AnchoredWindow { start: Timestamp::from_nanos(start), used })
            }
            SLIDING => State::SlidingWindow(SlidingWindow {
                number: start.checked_div(self.period().ns()).unwrap_or_default(),
                previous: used >> HALF_SHIFT,
                current: used & HALF,
            }),
            _ => State::Fresh,
        }
    }

    const fn period(self) -> Period {
        Period(self.1 >> PERIOD_SHIFT & Period::MASK)
    }

    /// Returns the words of a state that is kept at a place elsewhere.
    pub(super) fn elsewhere(place: u32, fresh_at: Timestamp) -> Self {
        let ns = fresh_at.as_nanos();
        Self(ELSEWHERE << TAG_SHIFT | ns >> 2, (ns & 3) << 32 | u64::from(place))
    }

    /// Returns where the state is kept, if it is elsewhere.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "it was made from one of 32 bits")]
    pub(super) const fn place(self) -> Option<u32> {
        if self.0 >> TAG_SHIFT == ELSEWHERE { Some(self.1 as u32) } else { None }
    }

    /// Returns the first instant at which the state equals a fresh one.
    #[inline]
    pub(in crate::store) fn fresh_at(self) -> Timestamp {
        let instant = self.0 & INSTANT;
        match self.0 >> TAG_SHIFT {
            // Any remainder makes it the next nanosecond.
            BUCKET => Timestamp::from_nanos(instant + u64::from(self.1 >> 32 > 0)),
            ELSEWHERE => match instant << 2 | self.1 >> 32 {
                ns if ns > Timestamp::MAX.as_nanos() => Timestamp::NEVER,
                ns => Timestamp::from_nanos(ns),
            },
            _ => self.window_fresh_at(),
        }
    }

    fn window_fresh_at(self) -> Timestamp {
        let (start, period, used) = (self.0 & INSTANT, self.period().ns(), self.1 & USED);
        match self.1 >> KIND_SHIFT {
            TAKEN => Timestamp::NEVER,
            // A sliding window's units count in the next one too.
            SLIDING if used & HALF > 0 => Timestamp::from_nanos(start + 2 * period),
            _ if used > 0 => Timestamp::from_nanos(start + period),
            _ => Timestamp::EPOCH,
        }
    }
}

/// A period in 26 bits: 24 of a count, below them 2 of its unit (ns, µs, ms, s). So all but odd ones, and the longest, fit.
#[derive(Clone, Copy)]
struct Period(u64);

impl Period {
    const MASK: u64 = (1 << 26) - 1;
    const UNITS: [u64; 4] = [1, 1_000, 1_000_000, 1_000_000_000];

    fn of(ns: u64) -> Option<Self> {
        Self::UNITS.iter().zip(0_u64..).find_map(|(unit, code)| {
            let fits = ns > 0 && ns % unit == 0 && ns / unit < 1 << 24;
            fits.then_some(Self(((ns / unit) << 2) | code))
        })
    }

    const fn ns(self) -> u64 {
        Self::UNITS[(self.0 & 3) as usize] * (self.0 >> 2)
    }
}

#[cfg(test)]
mod tests;
