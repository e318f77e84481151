//! The sliding window counter.

use super::ModelLimit;
use super::rules::{Rules, until};

/// The number of the open window, what the window before it used, and what it has used itself.
#[derive(Clone, Debug, Default)]
pub(super) struct SlidingWindow {
    number: u64,
    previous: u64,
    current: u64,
}

/// The counter as it stands at one instant.
struct View {
    counts: SlidingWindow,
    /// How far into the open window the instant is; 0 when it lies before it.
    elapsed: u64,
}

impl SlidingWindow {
    fn at(&self, limit: &ModelLimit, t: u128) -> View {
        let period = u128::from(limit.period_ns);
        let number = u64::try_from(t / period).unwrap_or(u64::MAX);
        if number < self.number {
            return View { counts: self.clone(), elapsed: 0 };
        }
        let (previous, current) = match number - self.number {
            0 => (self.previous, self.current),
            1 => (self.current, 0),
            _ => (0, 0),
        };
        let elapsed = u64::try_from(t % period).unwrap_or(0); // less than the period, which fits
        View { counts: Self { number, previous, current }, elapsed }
    }

    fn end(&self, limit: &ModelLimit) -> u128 {
        (u128::from(self.number) + 1) * u128::from(limit.period_ns)
    }

    fn room_at(&self, limit: &ModelLimit, t: u128, n: u64) -> bool {
        let period = u128::from(limit.period_ns);
        self.at(limit, t).estimate(limit) + u128::from(n) * period
            <= u128::from(limit.amount) * period
    }
}

impl View {
    /// `previous · (P − e)/P + current`, times P so that it stays whole.
    fn estimate(&self, limit: &ModelLimit) -> u128 {
        u128::from(self.counts.previous) * u128::from(limit.period_ns - self.elapsed)
            + u128::from(self.counts.current) * u128::from(limit.period_ns)
    }
}

impl Rules for SlidingWindow {
    fn admits(&self, limit: &ModelLimit, t: u64, n: u64) -> bool {
        self.room_at(limit, t.into(), n)
    }

    fn charge(&mut self, limit: &ModelLimit, t: u64, n: u64) {
        *self = self.at(limit, t.into()).counts;
        self.current = self.current.saturating_add(n);
    }

    fn refund(&mut self, limit: &ModelLimit, t: u64, n: u64, at: u64) {
        let open = self.at(limit, t.into()).counts;
        // A window in which nothing was used has nothing to give back, and is not opened for that.
        if open.current > 0 && at / limit.period_ns == open.number {
            *self = Self { current: open.current.saturating_sub(n), ..open };
        }
    }

    fn remaining(&self, limit: &ModelLimit, t: u64) -> u64 {
        let period = u128::from(limit.period_ns);
        let estimate = self.at(limit, t.into()).estimate(limit);
        let left = (u128::from(limit.amount) * period).saturating_sub(estimate) / period;
        u64::try_from(left).unwrap_or(limit.amount) // never more than the amount, which fits
    }

    /// The estimate only falls while nothing is counted, so the first instant with room is found by
    /// halving: no formula to get wrong. At the end of the next window there is always room.
    fn wait(&self, limit: &ModelLimit, t: u64, n: u64) -> u64 {
        if self.admits(limit, t, n) {
            return 0;
        }
        let (mut without, mut with) = (
            u128::from(t),
            self.at(limit, t.into()).counts.end(limit) + u128::from(limit.period_ns),
        );
        while with - without > 1 {
            let middle = without.midpoint(with);
            if self.room_at(limit, middle, n) {
                with = middle;
            } else {
                without = middle;
            }
        }
        until(with, t)
    }

    fn reset_after(&self, limit: &ModelLimit, t: u64) -> u64 {
        let open = self.at(limit, t.into()).counts;
        match (open.previous, open.current) {
            (0, 0) => 0,
            (_, 0) => until(open.end(limit), t),
            _ => until(open.end(limit) + u128::from(limit.period_ns), t),
        }
    }

    fn quota_after(&self, limit: &ModelLimit, t: u64) -> Option<u64> {
        Some(until(self.at(limit, t.into()).counts.end(limit), t))
    }

    fn fresh_at(&self, limit: &ModelLimit, t: u64) -> bool {
        // Unused windows that lie ahead of `t` still gather late requests: that can be told.
        let open = self.at(limit, t.into()).counts;
        open.previous == 0 && open.current == 0 && open.number == t / limit.period_ns
    }

    fn repair(&mut self, limit: &ModelLimit, now: u64) {
        self.number = self.number.min(now / limit.period_ns);
    }
}
