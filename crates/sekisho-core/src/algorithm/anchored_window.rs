//! Anchored window: a count that starts with a key's first counted request and lasts a period.
//!
//! With `L` per `P`: a request of cost n is admitted when `used + n <= L`. This is what `INCR` with `EXPIRE` approximates.
//!
//! Worst case: 2L − 1 in a stretch of length P: one unit opens the window, L − 1 come at its end, and L at once after it.

use super::{Account, Context, Standing};
use crate::{Metered, Span, Timestamp};

/// What a key has used of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnchoredWindow {
    /// The instant of the request that opened the window.
    pub start: Timestamp,
    /// Units used in it; more than L after a force, 0 when no window is open.
    pub used: u64,
}

impl AnchoredWindow {
    const fn end(self, limit: &Metered) -> Timestamp {
        Timestamp::beyond(self.start.as_nanos().saturating_add(limit.period_ns().get()))
    }

    /// Returns the window that is open at the context's time. A late request finds it open too.
    fn open(self, context: &Context<'_>) -> Option<Self> {
        (self.used > 0 && context.now < self.end(context.limit)).then_some(self)
    }
}

impl Account for AnchoredWindow {
    fn fresh(_: &Metered) -> Self {
        Self { start: Timestamp::EPOCH, used: 0 }
    }

    fn admit(&self, context: &Context<'_>, cost: u64) -> Result<Span, Span> {
        let Some(open) = self.open(context) else { return Ok(Span::ZERO) };
        let fits =
            open.used.checked_add(cost).is_some_and(|sum| sum <= context.limit.amount().get());
        if fits { Ok(Span::ZERO) } else { Err(self.end(context.limit).since(context.now)) }
    }

    fn charge(&mut self, context: &Context<'_>, cost: u64) {
        let open = self.open(context).unwrap_or(Self { start: context.now, used: 0 });
        *self = Self { used: open.used.saturating_add(cost), ..open };
    }

    fn refund(&mut self, context: &Context<'_>, cost: u64, at: Timestamp) {
        let Some(open) = self.open(context) else { return };
        if at >= open.start && at < open.end(context.limit) {
            self.used = open.used.saturating_sub(cost);
        }
    }

    fn standing(&self, context: &Context<'_>) -> Standing {
        let amount = context.limit.amount().get();
        let Some(open) = self.open(context) else {
            return Standing {
                remaining: amount,
                reset_after: Span::ZERO,
                next_after: Span::ZERO,
                quota_after: Span::from_nanos(context.limit.period_ns().get()),
            };
        };
        let left = open.end(context.limit).since(context.now);
        let remaining = amount.saturating_sub(open.used);
        Standing {
            remaining,
            reset_after: left,
            next_after: if remaining > 0 { Span::ZERO } else { left },
            quota_after: left,
        }
    }

    fn repair(&mut self, context: &Context<'_>) {
        self.start = self.start.min(context.now);
    }

    fn fresh_at(&self, context: &Context<'_>) -> Timestamp {
        if self.used == 0 { Timestamp::EPOCH } else { self.end(context.limit) }
    }
}
