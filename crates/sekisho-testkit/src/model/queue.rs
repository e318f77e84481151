//! The leaky bucket as a queue: its time value is the next free slot.

use super::ModelLimit;
use super::ratio::Ratio;
use super::rules::Rules;
use super::time_value::{TimeValue, rate, taking};

#[derive(Clone, Debug)]
pub(super) struct LeakyQueue {
    next: TimeValue,
    /// The stamp of the charges that made `next` what it is, and how many of their units are still
    /// there.
    last: Option<(u64, u64)>,
}

impl LeakyQueue {
    pub(super) fn fresh(limit: &ModelLimit) -> Self {
        Self { next: TimeValue::fresh(limit), last: None }
    }

    /// How long after `t` the last of `n` units would start: `max(t, next) + (n − 1)·P/L − t`.
    fn last_start(&self, limit: &ModelLimit, t: u64, n: u64) -> Ratio {
        self.next.ahead(limit, t) + taking(limit, n - 1)
    }

    fn remember(&mut self, t: u64, n: u64) {
        let before = self.last.filter(|&(at, _)| at == t).map_or(0, |(_, units)| units);
        self.last = Some((t, before.saturating_add(n)));
    }
}

/// The longest anyone may wait: `B·P/L`.
fn longest_delay(limit: &ModelLimit) -> Ratio {
    taking(limit, limit.burst)
}

impl Rules for LeakyQueue {
    fn admits(&self, limit: &ModelLimit, t: u64, n: u64) -> bool {
        self.last_start(limit, t, n) <= longest_delay(limit)
    }

    fn charge(&mut self, limit: &ModelLimit, t: u64, n: u64) {
        self.next.charge(limit, t, n);
        self.remember(t, n);
    }

    fn force(&mut self, limit: &ModelLimit, t: u64, n: u64) {
        self.next.force(limit, t, n);
        self.remember(t, n);
    }

    fn refund(&mut self, limit: &ModelLimit, t: u64, n: u64, at: u64) {
        // Where all slots have passed there is nothing to give back.
        let Some((stamp, units)) = self.last.filter(|_| !self.next.paid_at(t)) else { return };
        if at == stamp && n <= units {
            self.next.refund(limit, t, n);
            self.last = Some((stamp, units - n));
        }
    }

    fn remaining(&self, limit: &ModelLimit, t: u64) -> u64 {
        (Ratio::whole(limit.capacity()) - self.next.ahead(limit, t) * rate(limit)).floor()
    }

    fn wait(&self, limit: &ModelLimit, t: u64, n: u64) -> u64 {
        let excess = self.last_start(limit, t, n) - longest_delay(limit);
        self.next.at_own_rate(limit, excess).ceil()
    }

    fn reset_after(&self, limit: &ModelLimit, t: u64) -> u64 {
        self.next.at_own_rate(limit, self.next.ahead(limit, t)).ceil()
    }

    fn delay(&self, limit: &ModelLimit, t: u64, n: u64) -> u64 {
        self.last_start(limit, t, n).ceil()
    }

    fn fresh_at(&self, _limit: &ModelLimit, t: u64) -> bool {
        // A saturated force, refunded in part, leaves units that a charge at its stamp would add to.
        self.next.paid_at(t) && self.last.is_none_or(|(at, units)| at < t || units == 0)
    }

    fn repair(&mut self, limit: &ModelLimit, now: u64) {
        // What the repair made of `next` is no longer what any charge made of it.
        if self.next.repair(limit, now) {
            self.last = None;
        }
    }
}
