//! Fixed and anchored windows.

use super::ModelLimit;
use super::rules::{Rules, saturate, until};

/// Windows at multiples of the period: the number of the open one, and what was used in it.
#[derive(Clone, Debug, Default)]
pub(super) struct FixedWindow {
    number: u64,
    used: u64,
}

impl FixedWindow {
    /// The window that a call at `t` falls into: never one before the state's. A fresh key is
    /// window 0 with nothing used, which no stamp can come before.
    fn open(&self, limit: &ModelLimit, t: u64) -> Self {
        let number = t / limit.period_ns;
        if number > self.number { Self { number, used: 0 } } else { self.clone() }
    }

    fn end(&self, limit: &ModelLimit) -> u128 {
        (u128::from(self.number) + 1) * u128::from(limit.period_ns)
    }
}

impl Rules for FixedWindow {
    fn admits(&self, limit: &ModelLimit, t: u64, n: u64) -> bool {
        u128::from(self.open(limit, t).used) + u128::from(n) <= u128::from(limit.amount)
    }

    fn charge(&mut self, limit: &ModelLimit, t: u64, n: u64) {
        *self = self.open(limit, t);
        self.used = self.used.saturating_add(n);
    }

    fn refund(&mut self, limit: &ModelLimit, t: u64, n: u64, at: u64) {
        let open = self.open(limit, t);
        // A window in which nothing was used has nothing to give back, and is not opened for that.
        if open.used > 0 && at / limit.period_ns == open.number {
            *self = Self { number: open.number, used: open.used.saturating_sub(n) };
        }
    }

    fn remaining(&self, limit: &ModelLimit, t: u64) -> u64 {
        limit.amount.saturating_sub(self.open(limit, t).used)
    }

    fn wait(&self, limit: &ModelLimit, t: u64, n: u64) -> u64 {
        if self.admits(limit, t, n) { 0 } else { until(self.open(limit, t).end(limit), t) }
    }

    fn reset_after(&self, limit: &ModelLimit, t: u64) -> u64 {
        let open = self.open(limit, t);
        if open.used == 0 { 0 } else { until(open.end(limit), t) }
    }

    fn quota_after(&self, limit: &ModelLimit, t: u64) -> Option<u64> {
        Some(until(self.open(limit, t).end(limit), t))
    }

    fn fresh_at(&self, limit: &ModelLimit, t: u64) -> bool {
        // An unused window that lies ahead of `t` still gathers late requests: that can be told.
        let open = self.open(limit, t);
        open.used == 0 && open.number == t / limit.period_ns
    }

    fn repair(&mut self, limit: &ModelLimit, now: u64) {
        self.number = self.number.min(now / limit.period_ns);
    }
}

/// A window that opens at the first counted request: its start and what was used, or nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct AnchoredWindow {
    window: Option<(u64, u64)>,
}

impl AnchoredWindow {
    /// The start of the window open at `t`, and what was used in it. A stamp before the start
    /// counts as in it.
    fn open(&self, limit: &ModelLimit, t: u64) -> Option<(u64, u64)> {
        self.window.filter(|&(start, _)| u128::from(t) < end(limit, start))
    }

    fn used(&self, limit: &ModelLimit, t: u64) -> u64 {
        self.open(limit, t).map_or(0, |(_, used)| used)
    }
}

fn end(limit: &ModelLimit, start: u64) -> u128 {
    u128::from(start) + u128::from(limit.period_ns)
}

impl Rules for AnchoredWindow {
    fn admits(&self, limit: &ModelLimit, t: u64, n: u64) -> bool {
        u128::from(self.used(limit, t)) + u128::from(n) <= u128::from(limit.amount)
    }

    fn charge(&mut self, limit: &ModelLimit, t: u64, n: u64) {
        let (start, used) = self.open(limit, t).unwrap_or((t, 0));
        self.window = Some((start, used.saturating_add(n)));
    }

    fn refund(&mut self, limit: &ModelLimit, t: u64, n: u64, at: u64) {
        let Some((start, used)) = self.open(limit, t) else { return };
        if start <= at && u128::from(at) < end(limit, start) {
            // Refunded to nothing it is as if it had never been opened.
            self.window = (used > n).then(|| (start, used - n));
        }
    }

    fn remaining(&self, limit: &ModelLimit, t: u64) -> u64 {
        limit.amount.saturating_sub(self.used(limit, t))
    }

    fn wait(&self, limit: &ModelLimit, t: u64, n: u64) -> u64 {
        if self.admits(limit, t, n) { 0 } else { self.reset_after(limit, t) }
    }

    fn reset_after(&self, limit: &ModelLimit, t: u64) -> u64 {
        self.open(limit, t).map_or(0, |(start, _)| until(end(limit, start), t))
    }

    fn quota_after(&self, limit: &ModelLimit, t: u64) -> Option<u64> {
        let end = end(limit, self.open(limit, t).map_or(t, |(start, _)| start));
        Some(saturate(end - u128::from(t)))
    }

    fn fresh_at(&self, limit: &ModelLimit, t: u64) -> bool {
        self.open(limit, t).is_none()
    }

    fn repair(&mut self, _limit: &ModelLimit, now: u64) {
        if let Some((start, _)) = &mut self.window {
            *start = now.min(*start);
        }
    }
}
