//! Sliding window counter: two counts, the older one weighed by how much of it still lies in the last period.
//!
//! With `e = t mod P`: a request of cost n is admitted when `prev·(P − e)/P + cur + n <= L`, compared as a rational.
//!
//! Worst case: 2L − 1 in a stretch of length P: L at the end of one window, whose weight is nearly gone at the end of the next.

use core::num::NonZero;

use super::{Account, Context, Standing};
use crate::{
    Metered, Span, Timestamp,
    exact::{divide, narrow, times},
};

/// What a key has used in two neighbouring windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    /// The number of the current window, counted in periods since the epoch.
    pub number: u64,
    /// Units used in the window before it.
    pub previous: u64,
    /// Units used in it; more than L after a force.
    pub current: u64,
}

/// The windows as they are at an instant.
struct Open {
    windows: SlidingWindow,
    /// How far into the window the estimate is taken.
    into: u64,
    /// The first instant of the window, in nanoseconds.
    start: u64,
    period: NonZero<u64>,
}

impl SlidingWindow {
    fn open(self, context: &Context<'_>) -> Open {
        let (now, period) = (context.now.as_nanos(), context.limit.period_ns());
        let number = now / period;
        let (windows, into) = match number.checked_sub(self.number) {
            // A late request counts in the window that is open, at its start.
            None => (self, 0),
            Some(0) => (self, now % period),
            Some(1) => (Self { number, previous: self.current, current: 0 }, now % period),
            Some(_) => (Self { number, previous: 0, current: 0 }, now % period),
        };
        Open { windows, into, start: windows.number.saturating_mul(period.get()), period }
    }
}

impl Open {
    /// Returns the room that is left, in `1/P` units.
    fn room(&self, amount: u64) -> u128 {
        let weight = self.period.get().saturating_sub(self.into);
        let estimate = times(self.windows.previous, weight)
            .saturating_add(times(self.windows.current, self.period.get()));
        times(amount, self.period.get()).saturating_sub(estimate)
    }

    fn fits(&self, amount: u64, cost: u64) -> bool {
        // An estimate above the limit leaves a room of 0, in which no cost of 1 or more fits.
        self.room(amount) >= times(cost, self.period.get())
    }

    /// Returns the first instant at which `cost` units fit if nothing else comes. `cost` is at most `amount`.
    fn fits_at(&self, amount: u64, cost: u64) -> u64 {
        let next = self.start.saturating_add(self.period.get());
        match amount.saturating_sub(cost).checked_sub(self.windows.current) {
            // The current window leaves room once the previous one weighs little enough.
            Some(room) => self.start.saturating_add(self.weighed_out(self.windows.previous, room)),
            // It does not: the same in the next window, where this one is the previous.
            None => next.saturating_add(
                self.weighed_out(self.windows.current, amount.saturating_sub(cost)),
            ),
        }
    }

    /// Returns the least e with `previous·(P − e)/P <= room`, at most P.
    fn weighed_out(&self, previous: u64, room: u64) -> u64 {
        let Some(previous) = NonZero::new(previous) else { return 0 };
        let weight = divide(times(room, self.period.get()), previous).0;
        self.period.get().saturating_sub(weight)
    }

    fn wait(&self, context: &Context<'_>, cost: u64) -> Span {
        let at = self.fits_at(context.limit.amount().get(), cost);
        Span::from_nanos(at.saturating_sub(context.now.as_nanos()))
    }

    fn end(&self, windows_ahead: u64) -> Timestamp {
        Timestamp::beyond(
            self.start.saturating_add(self.period.get().saturating_mul(windows_ahead)),
        )
    }
}

impl Account for SlidingWindow {
    fn fresh(_: &Metered) -> Self {
        Self { number: 0, previous: 0, current: 0 }
    }

    fn admit(&self, context: &Context<'_>, cost: u64) -> Result<Span, Span> {
        let open = self.open(context);
        if open.fits(context.limit.amount().get(), cost) {
            Ok(Span::ZERO)
        } else {
            Err(open.wait(context, cost))
        }
    }

    fn charge(&mut self, context: &Context<'_>, cost: u64) {
        *self = self.open(context).windows;
        self.current = self.current.saturating_add(cost);
    }

    fn refund(&mut self, context: &Context<'_>, cost: u64, at: Timestamp) {
        let open = self.open(context);
        // A window in which nothing was used has nothing to give back, and is not opened for it.
        if open.windows.current > 0 && at.as_nanos() / open.period == open.windows.number {
            *self = open.windows;
            self.current = self.current.saturating_sub(cost);
        }
    }

    fn standing(&self, context: &Context<'_>) -> Standing {
        let open = self.open(context);
        let remaining =
            narrow(open.room(context.limit.amount().get()) / NonZero::<u128>::from(open.period));
        let reset_at = match (open.windows.previous, open.windows.current) {
            (0, 0) => context.now,
            (_, 0) => open.end(1),
            (_, _) => open.end(2),
        };
        Standing {
            remaining,
            reset_after: reset_at.since(context.now),
            next_after: if remaining > 0 { Span::ZERO } else { open.wait(context, 1) },
            quota_after: open.end(1).since(context.now),
        }
    }

    fn repair(&mut self, context: &Context<'_>) {
        self.number = self.number.min(context.now.as_nanos() / context.limit.period_ns());
    }

    fn fresh_at(&self, context: &Context<'_>) -> Timestamp {
        let ahead = match (self.previous, self.current) {
            (0, 0) => return Timestamp::EPOCH,
            (_, 0) => 1,
            (_, _) => 2,
        };
        let number = self.number.saturating_add(ahead);
        Timestamp::beyond(number.saturating_mul(context.limit.period_ns().get()))
    }
}
