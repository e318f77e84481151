//! Instants and lengths of time, in whole nanoseconds, each of its own type so that they are not mixed up.

use core::{fmt, time::Duration};

use crate::limits::TIMESTAMP_NS_MAX;

/// An instant: whole nanoseconds since the Unix epoch, from 0 to 10¹⁹ (the year 2286).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);
    /// The end of time.
    pub const MAX: Self = Self(TIMESTAMP_NS_MAX);
    /// After the end of time: when nothing ever happens.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the instant `ns` nanoseconds after the epoch, stopping at [`Timestamp::MAX`].
    pub const fn from_nanos(ns: u64) -> Self {
        Self(if ns < TIMESTAMP_NS_MAX { ns } else { TIMESTAMP_NS_MAX })
    }

    /// Returns the instant `seconds` seconds after the epoch, stopping at [`Timestamp::MAX`].
    pub const fn from_secs(seconds: u64) -> Self {
        Self::from_nanos(seconds.saturating_mul(1_000_000_000))
    }

    /// Returns an instant that may lie after the end of time: an end of a window, or of a wait, or an entry of a log with a resolution,
    /// is computed, never given. For those who keep what was computed.
    pub const fn beyond(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns the nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the instant `span` later, stopping at [`Timestamp::MAX`].
    #[must_use]
    pub const fn plus(self, span: Span) -> Self {
        Self::from_nanos(self.0.saturating_add(span.0))
    }

    /// Returns how long after `earlier` this is, or nothing at all if it is not.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

/// A length of time in whole nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// Returns a span of `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns a span of `seconds` seconds, saturating.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Returns the whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the seconds, rounded up: what a `Retry-After` may promise.
    pub const fn as_secs_ceil(self) -> u64 {
        self.0.div_ceil(1_000_000_000)
    }

    /// Returns the milliseconds, rounded up.
    pub const fn as_millis_ceil(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// Returns whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Self::from_nanos(span.0)
    }
}

impl From<Duration> for Span {
    /// Saturates at `u64::MAX` nanoseconds (584 years).
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Duration::from(*self), f)
    }
}
