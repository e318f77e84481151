//! Token bucket, which is GCRA: tokens come back evenly at `r = L/P`, up to B.
//!
//! The state is one instant, the theoretical arrival time (TAT): when the bucket will be full again. The tokens at t are
//! `B − (TAT − t)·r`, at most B, and a request of cost n is admitted when there are n:
//! `max(t, TAT) + n·P/L − t <= B·P/L`. (ATM Forum, Traffic Management 4.1, 4.4.2, with increment `P/L` and limit `(B−1)·P/L`.)
//! A counter that is refilled would need two numbers, its level and its time.
//!
//! Worst case: B + L − 1 in a half-open stretch of length P, B at once and the rest as they come back.

use core::num::NonZero;

use super::{Account, Context, Standing};
use crate::{
    ExactTime, Metered, Span, Timestamp,
    exact::{ExactSpan, divide, times, wait},
    limits::WAIT_NS_MAX,
};

/// When a key's bucket is full again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// The theoretical arrival time.
    pub tat: ExactTime,
    /// The instant of the force that left a debt, while there is one. A debt may lie further ahead than a full wait,
    /// so only this tells it from a clock that was set back.
    pub debt_at: Option<Timestamp>,
}

impl TokenBucket {
    /// Returns the bucket of a key that has used nothing.
    #[inline]
    pub const fn full_of(limit: &Metered) -> Self {
        Self { tat: ExactTime { ns: 0, rest: 0, amount: limit.amount() }, debt_at: None }
    }

    /// Returns a full bucket's worth, in `1/amount` nanoseconds whatever the amount.
    fn full(limit: &Metered) -> u128 {
        times(limit.burst(), limit.period_ns().get())
    }

    /// Returns how far `cost` units are from fitting: 0 when they fit.
    fn excess(&self, context: &Context<'_>, cost: u64) -> u128 {
        let asked = times(cost, context.limit.period_ns().get());
        let level = self.tat.level(context.now).saturating_add(asked);
        level.saturating_sub(Self::full(context.limit))
    }

    /// Returns how far the instant is ahead of now, and would be after `cost` units more. Nothing when the state was written under
    /// another number: then it takes levels to tell.
    #[inline(always)]
    fn ahead(&self, context: &Context<'_>, cost: u64) -> Option<(ExactSpan, ExactSpan)> {
        let amount = context.limit.amount();
        if self.tat.amount != amount {
            return None;
        }
        let before = self.tat.ahead(context.now);
        Some((before, before.plus(context.limit.span(cost), amount)))
    }

    /// Moves the instant to `ahead` of now, if that is not too far. Returns how much too far it is otherwise.
    #[inline(always)]
    fn move_to(&mut self, context: &Context<'_>, ahead: ExactSpan) -> Result<Span, Span> {
        let full = context.limit.full();
        if ahead > full {
            return Err(ahead.excess(full));
        }
        self.tat.ns = context.now.as_nanos().saturating_add(ahead.ns);
        self.tat.rest = ahead.rest;
        self.debt_at = None;
        Ok(Span::ZERO)
    }

    /// Returns the numbers of a state that was written under the limit's own.
    #[inline(always)]
    fn numbers(context: &Context<'_>, ahead: ExactSpan) -> Standing {
        let (limit, step) = (context.limit, context.limit.step());
        // A unit takes whole nanoseconds in most limits: whatever is begun is used.
        let remaining = if let Some(step) = NonZero::new(step.ns).filter(|_| step.rest == 0) {
            limit.burst().saturating_sub(ahead.ceil().as_nanos().div_ceil(step.get()))
        } else {
            let level = times(ahead.ns, limit.amount().get()).saturating_add(ahead.rest.into());
            divide(Self::full(limit).saturating_sub(level), limit.period_ns()).0
        };
        let next_after = match remaining {
            0 => ahead.plus(step, limit.amount()).excess(limit.full()),
            _ => Span::ZERO,
        };
        Standing { remaining, reset_after: ahead.ceil(), next_after, quota_after: next_after }
    }

    fn set(&mut self, context: &Context<'_>, level: u128, debt_at: Option<Timestamp>) {
        self.tat = ExactTime::after(context.now, level, context.limit.amount());
        self.debt_at = debt_at.filter(|_| level > Self::full(context.limit));
    }
}

impl Account for TokenBucket {
    fn fresh(limit: &Metered) -> Self {
        Self::full_of(limit)
    }

    #[inline(always)]
    fn take(&mut self, context: &Context<'_>, cost: u64) -> Result<Span, Span> {
        if let Some((_, after)) = self.ahead(context, cost) {
            return self.move_to(context, after);
        }
        self.admit(context, cost)?;
        self.charge(context, cost);
        Ok(Span::ZERO)
    }

    #[inline(always)]
    fn check(&mut self, context: &Context<'_>, cost: u64) -> (Result<Span, Span>, Standing) {
        let Some((before, after)) = self.ahead(context, cost) else {
            let taken = self.take(context, cost);
            return (taken, self.standing(context));
        };
        let moved = self.move_to(context, after);
        (moved, Self::numbers(context, if moved.is_ok() { after } else { before }))
    }

    fn admit(&self, context: &Context<'_>, cost: u64) -> Result<Span, Span> {
        // Until a charge converts it, a bucket drains at the rate that it was written with; the wait says so too.
        match self.excess(context, cost) {
            0 => Ok(Span::ZERO),
            excess => Err(wait(excess, self.tat.amount)),
        }
    }

    fn charge(&mut self, context: &Context<'_>, cost: u64) {
        let asked = times(cost, context.limit.period_ns().get());
        self.set(
            context,
            self.tat.converted(context.now, context.limit.amount()).saturating_add(asked),
            None,
        );
    }

    fn force(&mut self, context: &Context<'_>, cost: u64) {
        let asked = times(cost, context.limit.period_ns().get());
        let level = self.tat.converted(context.now, context.limit.amount());
        let most = times(WAIT_NS_MAX, context.limit.amount().get()).max(level);
        self.set(context, level.saturating_add(asked).min(most), Some(context.now));
    }

    fn refund(&mut self, context: &Context<'_>, cost: u64, _: Timestamp) {
        let back = times(cost, context.limit.period_ns().get());
        match self.tat.converted(context.now, context.limit.amount()) {
            // All of it has come back already.
            0 => {}
            level => self.set(context, level.saturating_sub(back), self.debt_at),
        }
    }

    #[inline]
    fn standing(&self, context: &Context<'_>) -> Standing {
        if let Some((ahead, _)) = self.ahead(context, 1) {
            return Self::numbers(context, ahead);
        }
        let level = self.tat.level(context.now);
        let left = Self::full(context.limit).saturating_sub(level);
        let remaining = divide(left, context.limit.period_ns()).0;
        let next_after =
            if remaining > 0 { Span::ZERO } else { wait(self.excess(context, 1), self.tat.amount) };
        Standing {
            remaining,
            reset_after: wait(level, self.tat.amount),
            next_after,
            quota_after: next_after,
        }
    }

    fn repair(&mut self, context: &Context<'_>) {
        let level = self.tat.level(context.now);
        let full = Self::full(context.limit);
        match self.debt_at {
            Some(at) if at > context.now => {
                self.tat = self.tat.earlier(at.since(context.now));
                self.debt_at = Some(context.now);
            }
            None if level > full => {
                self.tat = ExactTime::after(context.now, full, context.limit.amount());
            }
            Some(_) | None => {}
        }
    }

    fn fresh_at(&self, _: &Context<'_>) -> Timestamp {
        self.tat.ceil()
    }
}
