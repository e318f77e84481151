//! Instants that are not a whole number of nanoseconds, kept exactly.
//!
//! A bucket of 7 per 60 s refills every 8,571,428,571 and 3/7 ns. Rounding that interval drifts, so the part below a
//! nanosecond is kept as a count of `1/amount` nanoseconds. The distance of such an instant from a whole one, in those
//! units, is the *level*: `units · period`. It does not depend on the amount, so a changed number keeps the usage exactly.

use core::num::NonZero;

use crate::{Span, Timestamp, limits::WAIT_NS_MAX};

/// An instant of whole nanoseconds and a remainder in `1/amount` of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExactTime {
    /// Whole nanoseconds since the epoch.
    pub ns: u64,
    /// The remainder, in `1/amount` nanoseconds. Invariant: `rest < amount`.
    pub rest: u64,
    /// The amount of the limit under which this was written.
    pub amount: NonZero<u64>,
}

/// A length of time of whole nanoseconds and a remainder in `1/amount` of one, for an amount that both sides know.
///
/// Adding, subtracting and comparing such lengths takes no division, which is most of what a bucket does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ExactSpan {
    pub(crate) ns: u64,
    // Invariant: less than the amount.
    pub(crate) rest: u64,
}

impl ExactSpan {
    /// Returns `level / amount` nanoseconds.
    #[inline]
    pub(crate) fn of(level: u128, amount: NonZero<u64>) -> Self {
        let (ns, rest) = divide(level, amount);
        Self { ns, rest }
    }

    #[inline(always)]
    pub(crate) const fn plus(self, other: Self, amount: NonZero<u64>) -> Self {
        let (sum, over) = self.rest.overflowing_add(other.rest);
        let carries = over || sum >= amount.get();
        let rest = if carries { sum.wrapping_sub(amount.get()) } else { sum };
        Self { ns: self.ns.saturating_add(other.ns).saturating_add(carries as u64), rest }
    }

    /// Returns how much longer this is than `other`, in whole nanoseconds, rounded up; 0 when it is not.
    #[inline]
    pub(crate) const fn excess(self, other: Self) -> Span {
        let up = (self.rest > other.rest) as u64;
        Span::from_nanos(self.ns.saturating_add(up).saturating_sub(other.ns))
    }

    /// Returns this rounded up.
    #[inline]
    pub(crate) const fn ceil(self) -> Span {
        Span::from_nanos(self.ns.saturating_add((self.rest > 0) as u64))
    }
}

impl ExactTime {
    /// Returns how far ahead of `now` this is; nothing when it is not ahead.
    #[inline]
    pub(crate) fn ahead(self, now: Timestamp) -> ExactSpan {
        match self.ns.checked_sub(now.as_nanos()) {
            Some(ns) => ExactSpan { ns, rest: self.rest },
            None => ExactSpan::default(),
        }
    }

    /// Returns the instant that lies `level / amount` nanoseconds after `now`.
    #[inline]
    pub(crate) fn after(now: Timestamp, level: u128, amount: NonZero<u64>) -> Self {
        let (ns, rest) = divide(level, amount);
        Self { ns: now.as_nanos().saturating_add(ns), rest, amount }
    }

    /// Returns how far ahead of `now` this is, in `1/amount` nanoseconds; 0 when it is not ahead.
    #[inline]
    pub(crate) fn level(self, now: Timestamp) -> u128 {
        // A remainder is less than a nanosecond, so an instant in an earlier nanosecond is past.
        self.ns.checked_sub(now.as_nanos()).map_or(0, |ahead| {
            times(ahead, self.amount.get()).saturating_add(u128::from(self.rest))
        })
    }

    /// Returns the level that is stored under a limit of `amount`. Where the number has changed, no debt gets longer than
    /// the longest by it.
    #[inline]
    pub(crate) fn converted(self, now: Timestamp, amount: NonZero<u64>) -> u128 {
        let level = self.level(now);
        if self.amount == amount { level } else { level.min(times(WAIT_NS_MAX, amount.get())) }
    }

    /// Returns this moved back, stopping at the epoch.
    pub(crate) fn earlier(self, by: Span) -> Self {
        match self.ns.checked_sub(by.as_nanos()) {
            Some(ns) => Self { ns, ..self },
            None => Self { ns: 0, rest: 0, ..self },
        }
    }

    /// Returns the first whole nanosecond that is not before this.
    #[inline]
    pub(crate) fn ceil(self) -> Timestamp {
        Timestamp::beyond(self.ns.saturating_add(u64::from(self.rest > 0)))
    }
}

/// Returns the product, which always fits.
#[inline]
pub(crate) const fn times(a: u64, b: u64) -> u128 {
    (a as u128).saturating_mul(b as u128)
}

/// Returns quotient and remainder; the quotient saturates, which no bounded limit reaches.
#[inline]
pub(crate) fn divide(dividend: u128, divisor: NonZero<u64>) -> (u64, u64) {
    // Nearly every dividend fits 64 bits, and there the division is several times as fast.
    if let Ok(small) = u64::try_from(dividend) {
        return (small / divisor, small % divisor);
    }
    let wide = NonZero::<u128>::from(divisor);
    (narrow(dividend / wide), narrow(dividend % wide))
}

/// Returns the quotient rounded up.
#[inline]
pub(crate) fn divide_ceil(dividend: u128, divisor: NonZero<u64>) -> u64 {
    let (quotient, rest) = divide(dividend, divisor);
    quotient.saturating_add(u64::from(rest > 0))
}

/// Returns `level / amount` nanoseconds, rounded up.
#[inline]
pub(crate) fn wait(level: u128, amount: NonZero<u64>) -> Span {
    Span::from_nanos(divide_ceil(level, amount))
}

/// Returns the number, stopping at `u64::MAX`.
#[inline]
pub(crate) fn narrow(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}
