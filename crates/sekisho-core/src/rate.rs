//! A rate: an amount per period.

use core::num::NonZero;

use crate::{CalendarUnit, Limit, LimitError, Span, Timestamp, Zone, limits::PERIOD_NS_MAX};

/// The stretch of time that an amount belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Period {
    /// A fixed number of nanoseconds, from 1 to ten years.
    Fixed(NonZero<u64>),
    /// A true calendar window: as long as that day or month is in that zone.
    Calendar(CalendarUnit, Zone),
}

impl Period {
    /// Returns a period of fixed length.
    ///
    /// # Errors
    /// [`LimitError::ZeroPeriod`] or [`LimitError::LongPeriod`] (more than 3,650 days).
    pub fn fixed(span: Span) -> Result<Self, LimitError> {
        match NonZero::new(span.as_nanos()) {
            None => Err(LimitError::ZeroPeriod),
            Some(ns) if ns.get() > PERIOD_NS_MAX => Err(LimitError::LongPeriod),
            Some(ns) => Ok(Self::Fixed(ns)),
        }
    }

    /// Returns a length that every window of it reaches: exact for a fixed one and for days in UTC.
    pub fn shortest(&self) -> Span {
        match self {
            Self::Fixed(ns) => Span::from_nanos(ns.get()),
            Self::Calendar(CalendarUnit::Day, zone) if *zone == Zone::UTC => {
                Span::from_secs(24 * 3_600)
            }
            Self::Calendar(CalendarUnit::Month, zone) if *zone == Zone::UTC => {
                Span::from_secs(28 * 24 * 3_600)
            }
            Self::Calendar(unit, _) => unit.shortest(),
        }
    }

    /// Returns the length: exact for a fixed one, the longest that occurs for a calendar one (25 hours; 31 days and 1 hour).
    pub const fn longest(&self) -> Span {
        match self {
            Self::Fixed(ns) => Span::from_nanos(ns.get()),
            Self::Calendar(unit, _) => unit.longest(),
        }
    }
}

/// An amount of units per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    amount: NonZero<u64>,
    period: Period,
}

impl Rate {
    /// Returns a rate of `amount` units per `period`.
    ///
    /// # Errors
    /// [`LimitError::ZeroAmount`].
    pub fn new(amount: u64, period: Period) -> Result<Self, LimitError> {
        NonZero::new(amount).map(|amount| Self { amount, period }).ok_or(LimitError::ZeroAmount)
    }

    /// Returns a rate of `amount` units per second.
    ///
    /// # Errors
    /// As [`Rate::new`].
    pub fn per_second(amount: u64) -> Result<Self, LimitError> {
        Self::new(amount, Period::fixed(Span::from_secs(1))?)
    }

    /// Returns a rate of `amount` units per minute.
    ///
    /// ```
    /// use sekisho_core::{Limit, Rate};
    ///
    /// assert_eq!(Rate::per_minute(60)?.token_bucket(10)?, "60/min burst 10".parse::<Limit>()?);
    /// # Ok::<(), sekisho_core::LimitError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Rate::new`].
    pub fn per_minute(amount: u64) -> Result<Self, LimitError> {
        Self::new(amount, Period::fixed(Span::from_secs(60))?)
    }

    /// Returns the amount, at least 1.
    pub const fn amount(&self) -> NonZero<u64> {
        self.amount
    }

    /// Returns the period.
    pub const fn period(&self) -> &Period {
        &self.period
    }

    /// Returns the length of a period that has one; a calendar period has its longest.
    pub(crate) const fn longest_ns(&self) -> NonZero<u64> {
        match &self.period {
            Period::Fixed(ns) => *ns,
            Period::Calendar(unit, _) => match NonZero::new(unit.longest().as_nanos()) {
                Some(ns) => ns,
                None => NonZero::<u64>::MIN,
            },
        }
    }

    /// Returns a token bucket of this rate that holds `burst` tokens.
    ///
    /// # Errors
    /// As [`Limit::metered`].
    pub fn token_bucket(self, burst: u64) -> Result<Limit, LimitError> {
        Limit::metered(self, crate::Algorithm::TokenBucket, Some(burst))
    }

    /// Returns an exact sliding log of this rate.
    ///
    /// # Errors
    /// As [`Limit::metered`].
    pub fn sliding_log(self) -> Result<Limit, LimitError> {
        Limit::metered(self, crate::Algorithm::SlidingLog, None)
    }

    /// Returns a queue of this rate in which `waiting` units may wait behind the one in service.
    ///
    /// # Errors
    /// As [`Limit::metered`].
    pub fn leaky_queue(self, waiting: u64) -> Result<Limit, LimitError> {
        Limit::metered(self, crate::Algorithm::LeakyQueue, Some(waiting))
    }
}

/// Returns the period's window that holds `at`, for a period of fixed length.
pub(crate) fn fixed_window(period: NonZero<u64>, at: Timestamp) -> crate::Window {
    let into = at.as_nanos() % period;
    let start = at.as_nanos().saturating_sub(into);
    crate::Window {
        start: Timestamp::from_nanos(start),
        end: Timestamp::beyond(start.saturating_add(period.get())),
    }
}
