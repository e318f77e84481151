//! Fixed window: a count that starts anew at every multiple of the period, or of a calendar's day or month.
//!
//! With `L` per `P`: a request of cost n is admitted when `used + n <= L`.
//!
//! Worst case: 2L in a stretch of length P, L at the end of one window and L at the start of the next.

use super::{Account, Context, Standing};
use crate::{Metered, Span, Timestamp};

/// What a key has used of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    /// The first instant of the window.
    pub start: Timestamp,
    /// Units used in it; more than L after a force.
    pub used: u64,
}

impl FixedWindow {
    /// Returns this as it is at the context's time: the open window is the newer of the state's and the clock's.
    fn open(self, context: &Context<'_>) -> (Self, Span) {
        let window = context.window(context.now.max(self.start));
        let used = if window.start > self.start { 0 } else { self.used };
        (Self { start: window.start, used }, window.end.since(context.now))
    }
}

impl Account for FixedWindow {
    fn fresh(_: &Metered) -> Self {
        Self { start: Timestamp::EPOCH, used: 0 }
    }

    fn admit(&self, context: &Context<'_>, cost: u64) -> Result<Span, Span> {
        let (open, left) = self.open(context);
        let fits =
            open.used.checked_add(cost).is_some_and(|sum| sum <= context.limit.amount().get());
        if fits { Ok(Span::ZERO) } else { Err(left) }
    }

    fn charge(&mut self, context: &Context<'_>, cost: u64) {
        *self = self.open(context).0;
        self.used = self.used.saturating_add(cost);
    }

    fn refund(&mut self, context: &Context<'_>, cost: u64, at: Timestamp) {
        let open = self.open(context).0;
        // A window in which nothing was used has nothing to give back, and is not opened for it.
        if open.used > 0 && context.window(at).start == open.start {
            *self = Self { used: open.used.saturating_sub(cost), ..open };
        }
    }

    fn standing(&self, context: &Context<'_>) -> Standing {
        let (open, left) = self.open(context);
        let remaining = context.limit.amount().get().saturating_sub(open.used);
        Standing {
            remaining,
            reset_after: if open.used > 0 { left } else { Span::ZERO },
            next_after: if remaining > 0 { Span::ZERO } else { left },
            quota_after: left,
        }
    }

    fn repair(&mut self, context: &Context<'_>) {
        if self.start > context.now {
            self.start = context.window(context.now).start;
        }
    }

    fn fresh_at(&self, context: &Context<'_>) -> Timestamp {
        if self.used == 0 { Timestamp::EPOCH } else { context.window(self.start).end }
    }
}
