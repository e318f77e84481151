//! Leaky bucket as a queue: slots `P/L` apart, and a place for B units to wait for theirs.
//!
//! n units take n slots; the last one starts at `max(t, next) + (n−1)·P/L`, and the request is admitted with that delay when
//! the delay is at most `B·P/L`. This is nginx's `limit_req` with a burst and without `nodelay`, at nanoseconds.
//!
//! Worst case in a stretch of length P: B + L admitted; L started, evenly spaced.

use super::{Account, Context, Standing};
use crate::{
    ExactTime, Metered, Span, Timestamp,
    exact::{divide, times, wait},
    limits::WAIT_NS_MAX,
};

/// When a key's next slot is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakyQueue {
    /// The next free slot.
    pub next: ExactTime,
    /// The stamp of the charges that took the last slots. `next` alone cannot tell whose they are.
    pub last_at: Timestamp,
    /// How many units those charges took, and can be given back.
    pub last_units: u64,
    /// The instant of the force that left a debt, while there is one.
    pub debt_at: Option<Timestamp>,
}

impl LeakyQueue {
    fn full(limit: &Metered) -> u128 {
        times(limit.burst(), limit.period_ns().get())
    }

    fn capacity(limit: &Metered) -> u128 {
        Self::full(limit).saturating_add(u128::from(limit.period_ns().get()))
    }

    /// Returns the delay of the last of `cost` units, in `1/amount` nanoseconds.
    fn delay(&self, context: &Context<'_>, cost: u64) -> u128 {
        let before = times(cost.saturating_sub(1), context.limit.period_ns().get());
        self.next.level(context.now).saturating_add(before)
    }

    /// Notes whose the last slots are.
    fn remember(&mut self, context: &Context<'_>, cost: u64) {
        if self.last_at == context.now {
            self.last_units = self.last_units.saturating_add(cost);
        } else {
            (self.last_at, self.last_units) = (context.now, cost);
        }
    }

    fn set(&mut self, context: &Context<'_>, level: u128, debt_at: Option<Timestamp>) {
        self.next = ExactTime::after(context.now, level, context.limit.amount());
        self.debt_at = debt_at.filter(|_| level > Self::capacity(context.limit));
    }
}

impl Account for LeakyQueue {
    fn fresh(limit: &Metered) -> Self {
        Self {
            next: ExactTime { ns: 0, rest: 0, amount: limit.amount() },
            last_at: Timestamp::EPOCH,
            last_units: 0,
            debt_at: None,
        }
    }

    fn admit(&self, context: &Context<'_>, cost: u64) -> Result<Span, Span> {
        let delay = self.delay(context, cost);
        match delay.saturating_sub(Self::full(context.limit)) {
            0 => Ok(wait(delay, context.limit.amount())),
            excess => Err(wait(excess, self.next.amount)),
        }
    }

    fn charge(&mut self, context: &Context<'_>, cost: u64) {
        let asked = times(cost, context.limit.period_ns().get());
        self.remember(context, cost);
        self.set(
            context,
            self.next.converted(context.now, context.limit.amount()).saturating_add(asked),
            None,
        );
    }

    fn force(&mut self, context: &Context<'_>, cost: u64) {
        let asked = times(cost, context.limit.period_ns().get());
        let level = self.next.converted(context.now, context.limit.amount());
        let most = times(WAIT_NS_MAX, context.limit.amount().get()).max(level);
        self.remember(context, cost);
        self.set(context, level.saturating_add(asked).min(most), Some(context.now));
    }

    fn refund(&mut self, context: &Context<'_>, cost: u64, at: Timestamp) {
        let level = self.next.converted(context.now, context.limit.amount());
        if at != self.last_at || cost > self.last_units || level == 0 {
            return;
        }
        self.last_units = self.last_units.saturating_sub(cost);
        let back = times(cost, context.limit.period_ns().get());
        self.set(context, level.saturating_sub(back), self.debt_at);
    }

    fn standing(&self, context: &Context<'_>) -> Standing {
        let level = self.next.level(context.now);
        let left = Self::capacity(context.limit).saturating_sub(level);
        let remaining = divide(left, context.limit.period_ns()).0;
        let next_after = if remaining > 0 {
            Span::ZERO
        } else {
            wait(level.saturating_sub(Self::full(context.limit)), self.next.amount)
        };
        Standing {
            remaining,
            reset_after: wait(level, self.next.amount),
            next_after,
            quota_after: next_after,
        }
    }

    fn repair(&mut self, context: &Context<'_>) {
        let level = self.next.level(context.now);
        let most = Self::capacity(context.limit);
        match self.debt_at {
            Some(at) if at > context.now => {
                self.next = self.next.earlier(at.since(context.now));
                self.debt_at = Some(context.now);
                self.last_units = 0;
            }
            None if level > most => {
                self.next = ExactTime::after(context.now, most, context.limit.amount());
                // What is next now is no longer what any charge made it.
                self.last_units = 0;
            }
            Some(_) | None => {}
        }
    }

    fn fresh_at(&self, _: &Context<'_>) -> Timestamp {
        self.next.ceil()
    }
}
