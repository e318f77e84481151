//! Waiting for a place: in line first, then until the limit admits the units, then for the slot of a queue.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use sekisho_core::{Mode, Outcome, Span, Timestamp};

use super::{Checked, Lines, WaitError};
use crate::{clock::Clock, store::StoreError};

/// Where somebody waits.
pub(crate) struct Waiting<'a> {
    pub(crate) lines: &'a Arc<Lines>,
    pub(crate) key: &'a [u8],
    pub(crate) clock: &'a Arc<dyn Clock>,
}

impl Waiting<'_> {
    /// Waits until `units` are admitted and charged by `call`, at most `within`.
    pub(crate) async fn until_ready(
        &self,
        units: u64,
        within: Duration,
        call: impl Fn(u64, Mode) -> Result<Checked, StoreError>,
    ) -> Result<Checked, WaitError> {
        let deadline = self.clock.now().plus(Span::from(within));
        let mut ticket = Lines::join(self.lines, self.key).ok_or(WaitError::LineFull)?;
        let mut too_late = self.clock.wait_until(deadline.plus(Span::from_nanos(1)));
        let checked = loop {
            poll_fn(|context| {
                if ticket.is_first(context.waker()) {
                    return Poll::Ready(Ok(()));
                }
                too_late.as_mut().poll(context).map(|()| Err(WaitError::TooLate))
            })
            .await?;
            let checked = call(units, Mode::Check)?;
            match (checked.outcome, checked.retry_after) {
                (Outcome::Allow, _) => break checked,
                (Outcome::Never, _) | (_, None) => return Err(WaitError::Never(checked.verdict)),
                (Outcome::Deny, Some(wait)) => {
                    let free = checked.at.plus(wait);
                    if free > deadline {
                        return Err(WaitError::TooLate);
                    }
                    self.clock.wait_until(free).await;
                }
            }
        };
        // The place is taken: whoever is next may look for theirs while this one waits for its slot.
        drop(ticket);
        self.wait_for_slot(units, checked, deadline, call).await
    }

    /// Waits for the slot of a queue, and gives it back when it comes too late or nobody waits for it any more.
    async fn wait_for_slot(
        &self,
        units: u64,
        checked: Checked,
        deadline: Timestamp,
        call: impl Fn(u64, Mode) -> Result<Checked, StoreError>,
    ) -> Result<Checked, WaitError> {
        if checked.delay.is_zero() {
            return Ok(checked);
        }
        let slot = checked.at.plus(checked.delay);
        let taken = TakenSlot { call, units, at: checked.at };
        if slot > deadline {
            drop(taken);
            return Err(WaitError::TooLate);
        }
        self.clock.wait_until(slot).await;
        taken.keep();
        Ok(checked)
    }
}

/// A slot that is given back unless it is used.
struct TakenSlot<C: Fn(u64, Mode) -> Result<Checked, StoreError>> {
    call: C,
    units: u64,
    at: Timestamp,
}

impl<C: Fn(u64, Mode) -> Result<Checked, StoreError>> TakenSlot<C> {
    fn keep(mut self) {
        self.units = 0;
    }
}

impl<C: Fn(u64, Mode) -> Result<Checked, StoreError>> Drop for TakenSlot<C> {
    fn drop(&mut self) {
        if self.units > 0 {
            // Whatever the store says, there is nobody left to tell.
            let _told_nobody = (self.call)(self.units, Mode::Refund { at: self.at });
        }
    }
}
