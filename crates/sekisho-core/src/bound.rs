//! The worst case: the most units that a limit lets through in a stretch of time, whatever comes.
//!
//! Counted on whole nanoseconds and for requests that come in order; a force is not bounded. A half-open stretch of length
//! T is a closed one of T − 1 ns. No bound is ever passed, and each is reached by some arrivals, except where less can pass: a
//! bucket or queue that regains units within the rounding to whole nanoseconds (a burst of one with an interval that is no whole
//! number of them, rates near or above one unit a nanosecond), and a calendar in a zone, whose shortest window is taken for all.

use core::num::NonZero;

use crate::{
    Algorithm, Limit, Metered, Span,
    exact::{divide_ceil, times},
};

/// The most units that a limit admits in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// In any half-open stretch `[t, t + T)`; `None` without a limit.
    pub half_open: Option<u128>,
    /// In any closed stretch `[t, t + T]`; `None` without a limit.
    pub closed: Option<u128>,
}

impl Limit {
    /// Returns the most units that any stretch of length `span` can admit.
    ///
    /// ```
    /// use sekisho_core::{Limit, Span};
    ///
    /// let bound = "60/min burst 10".parse::<Limit>()?.bound(Span::from_secs(60));
    /// assert_eq!((bound.half_open, bound.closed), (Some(69), Some(70)));
    /// # Ok::<(), sekisho_core::LimitError>(())
    /// ```
    pub fn bound(&self, span: Span) -> Bound {
        let instants = u128::from(span.as_nanos());
        match self {
            Self::Block => Bound { half_open: Some(0), closed: Some(0) },
            Self::Unlimited => Bound { half_open: None, closed: None },
            Self::Metered(limit) => Bound {
                half_open: Some(most(limit, instants)),
                closed: Some(most(limit, instants.saturating_add(1))),
            },
        }
    }
}

/// Returns the most units that `instants` neighbouring nanoseconds can admit.
fn most(limit: &Metered, instants: u128) -> u128 {
    let Some(after_first) = instants.checked_sub(1) else { return 0 };
    let amount = u128::from(limit.amount().get());
    let period = NonZero::new(limit.period().shortest().as_nanos()).unwrap_or(NonZero::<u64>::MIN);
    let wide = NonZero::<u128>::from(period);
    match limit.algorithm() {
        // From the last instant of a window.
        Algorithm::FixedWindow => {
            let windows = divided_up(after_first, wide).saturating_add(1);
            amount.saturating_mul(windows)
        }
        Algorithm::AnchoredWindow => anchored(amount, wide, after_first),
        Algorithm::SlidingLog => logged(limit, wide, after_first),
        Algorithm::SlidingWindow => sliding(limit.amount().get(), period, after_first),
        Algorithm::TokenBucket | Algorithm::LeakyQueue => {
            let back = amount.saturating_mul(after_first) / wide;
            u128::from(limit.capacity()).saturating_add(back)
        }
    }
}

fn divided_up(dividend: u128, divisor: NonZero<u128>) -> u128 {
    (dividend / divisor).saturating_add(u128::from(dividend % divisor > 0))
}

/// The amount at the first instant, one at which the log has an entry, and again whenever that has left: once a period, and
/// from the second time on it is entered at the next instant of the resolution, and leaves a period after that.
fn logged(limit: &Metered, period: NonZero<u128>, after_first: u128) -> u128 {
    let resolution = u128::from(limit.resolution().as_nanos());
    let again = after_first.checked_sub(period.get()).map_or(0, |rest| {
        let apart = period.get().checked_next_multiple_of(resolution).and_then(NonZero::new);
        let apart = apart.unwrap_or(period);
        (rest / apart).saturating_add(1)
    });
    u128::from(limit.amount().get()).saturating_mul(again.saturating_add(1))
}

fn anchored(amount: u128, period: NonZero<u128>, after_first: u128) -> u128 {
    // The stretch opens a window at its first instant ...
    let opened_inside = amount.saturating_mul((after_first / period).saturating_add(1));
    // ... or begins at the last instant of a window that one unit opened before it.
    let opened_before = match after_first.checked_sub(1) {
        Some(rest) if period.get() > 1 => {
            let windows = (rest / period).saturating_add(1);
            amount.saturating_mul(windows).saturating_add(amount.saturating_sub(1))
        }
        Some(_) | None => 0,
    };
    opened_inside.max(opened_before)
}

/// The stretch begins at the last instant of a full window; each window after it takes what its predecessor's weight leaves at
/// its own last instant. Using fewer units in one window never gains more in the next, so taking all of them is the worst.
fn sliding(amount: u64, period: NonZero<u64>, after_first: u128) -> u128 {
    let after = |previous: u64, weight: u64| {
        amount.saturating_sub(divide_ceil(times(previous, weight), period))
    };
    let wide = NonZero::<u128>::from(period);
    let (mut full_windows, rest) = (after_first / wide, after_first % wide);
    let (mut sum, mut previous) = (u128::from(amount), amount);
    let mut before = None;
    while full_windows > 0 {
        let current = after(previous, 1);
        if before == Some(current) {
            // Two counts that follow each other for ever, after at most a few windows.
            let pairs = full_windows / const { NonZero::<u128>::MIN.saturating_add(1) };
            let pair = u128::from(previous).saturating_add(u128::from(current));
            sum = sum.saturating_add(pairs.saturating_mul(pair));
            full_windows %= const { NonZero::<u128>::MIN.saturating_add(1) };
            before = None;
            continue;
        }
        sum = sum.saturating_add(u128::from(current));
        (before, previous) = (Some(previous), current);
        full_windows = full_windows.saturating_sub(1);
    }
    if rest > 0 {
        let weight = u64::try_from(u128::from(period.get()).saturating_sub(rest).saturating_add(1));
        sum = sum.saturating_add(u128::from(after(previous, weight.unwrap_or(u64::MAX))));
    }
    sum
}
