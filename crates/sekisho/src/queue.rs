//! Those who wait in this process for slots of a `leaky-queue`: when one leaves, those behind move up.
//!
//! A store hands out slots one after the other, and takes back only the last charge's. Which request uses a slot is nobody's
//! business but ours: so who leaves hands the slot to the next in line, that one's goes to the one behind it, and only the slot
//! that is left over at the end is given back to the store. When the store cannot take that one either, since it has forgotten
//! whose the last slots are, the slot stands empty, and the next who lines up takes it.
//!
//! Every slot is used by one request at most, so no two start closer than the store's slots are. What was not handed on and
//! not given back stays charged: a queue never holds more than it may.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Poll, Waker},
};

use parking_lot::Mutex;
use sekisho_core::{Span, Timestamp};

use crate::{
    clock::{Clock, Wait},
    decision::{Decision, Part},
    key::Key,
    limiter::{Limiter, ready},
    store::{Scope, Store, StoreError, memory::Memory},
};

/// Lines that have only empty slots left are looked for when there are this many lines, or twice as many as after the last look.
const SWEEP_MIN: usize = 64;

/// The lines of a limiter's queues.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    lines: HashMap<(Scope, Key), Line>,
    tickets: u64,
    sweep_at: usize,
}

/// Who waits for the slots of one key, earliest slot first, and the slots that stand empty.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Waiter>,
    empty: Vec<Slot>,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    slot: Slot,
    waker: Option<Waker>,
}

/// A slot that was taken and is not needed any more, to be given back with [`Limiter::free`].
#[must_use = "a slot that is not given back stays charged"]
#[derive(Clone, Debug)]
pub struct Slot {
    /// By the clock of those who wait.
    start: Timestamp,
    /// The charge that took it, whoever uses it now: one part.
    charge: Box<Decision>,
}

impl Slot {
    fn of(decision: &Decision, part: &Part, start: Timestamp) -> Self {
        let mut charge = decision.clone();
        charge.parts = vec![part.clone()];
        Self { start, charge: Box::new(charge) }
    }

    /// Returns the charge that took it: a decision of one part. It need not be that of the request that left.
    pub const fn charge(&self) -> &Decision {
        &self.charge
    }

    fn part(&self) -> Option<&Part> {
        self.charge.parts.first()
    }

    fn cost(&self) -> u64 {
        self.part().map_or(0, |part| part.cost)
    }
}

impl Line {
    /// Takes the place behind all with earlier slots; an earlier slot that stands empty, if there is one, in exchange for the
    /// own, which is returned.
    fn join(&mut self, mut waiter: Waiter, now: Timestamp) -> Option<Slot> {
        self.empty.retain(|slot| slot.start >= now);
        let fits =
            |slot: &Slot| slot.cost() == waiter.slot.cost() && slot.start < waiter.slot.start;
        let earlier = self.empty.iter().enumerate().filter(|(_, slot)| fits(slot));
        let earliest = earlier.min_by_key(|(_, slot)| slot.start).map(|(index, _)| index);
        let own = earliest
            .map(|index| std::mem::replace(&mut waiter.slot, self.empty.swap_remove(index)));
        let behind = self.waiting.partition_point(|other| other.slot.start <= waiter.slot.start);
        self.waiting.insert(behind, waiter);
        own
    }

    /// Hands a slot on, each who gets one handing on their own, and returns the last of them, with whom to wake.
    fn hand_on(&mut self, mut slot: Slot, now: Timestamp) -> (Slot, Vec<Waker>) {
        let mut moved = Vec::new();
        // A slot whose time is over is nobody's any more: whoever started in it now would be too close to the next.
        if slot.start >= now {
            for waiter in &mut self.waiting {
                // Who needs more slots, or fewer, keeps its own.
                if waiter.slot.start > slot.start && waiter.slot.cost() == slot.cost() {
                    std::mem::swap(&mut waiter.slot, &mut slot);
                    moved.extend(waiter.waker.take());
                }
            }
            self.waiting.make_contiguous().sort_by_key(|waiter| waiter.slot.start);
        }
        (slot, moved)
    }
}

impl Inner {
    /// Drops lines that nobody waits in and whose slots are over, now and then.
    fn sweep(&mut self, now: Timestamp) {
        if self.lines.len() < self.sweep_at.max(SWEEP_MIN) {
            return;
        }
        self.lines.retain(|_, line| {
            !line.waiting.is_empty() || line.empty.iter().any(|slot| slot.start >= now)
        });
        self.sweep_at = self.lines.len().saturating_mul(2);
    }

    /// Notes a slot as empty when somebody has a later one: the store must not take that back in its stead, as it would when both
    /// were charged at the same nanosecond.
    fn is_in_between(&mut self, place: &(Scope, Key), slot: &Slot) -> bool {
        let Some(line) = self.lines.get_mut(place) else { return false };
        let later = |other: &Slot| other.start > slot.start;
        let between =
            line.waiting.iter().any(|waiter| later(&waiter.slot)) || line.empty.iter().any(later);
        if between {
            line.empty.push(slot.clone());
        }
        between
    }

    fn take(&mut self, place: &(Scope, Key), ticket: u64) -> Option<Slot> {
        let line = self.lines.get_mut(place)?;
        let index = line.waiting.iter().position(|waiter| waiter.ticket == ticket)?;
        let slot = line.waiting.remove(index)?.slot;
        if line.waiting.is_empty() && line.empty.is_empty() {
            let _line = self.lines.remove(place);
        }
        Some(slot)
    }
}

/// A request's place in the lines of its queues; made by [`Limiter::line_up`]. Dropped, it leaves them and hands nothing on.
#[must_use = "a place does nothing unless it is waited for"]
pub struct Place {
    queues: Arc<Queues>,
    clock: Arc<dyn Clock>,
    /// The same number in all of them.
    ticket: u64,
    lines: Vec<(Scope, Key)>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("lines", &self.lines).finish_non_exhaustive()
    }
}

impl Place {
    /// Waits until the request's turn has come, which is earlier when somebody in front leaves.
    pub async fn turn(&mut self) {
        let mut timer: Option<(Timestamp, Wait)> = None;
        poll_fn(|context| {
            let Some(start) = self.start(context.waker()) else { return Poll::Ready(()) };
            let wait = match &mut timer {
                Some((until, wait)) if *until == start => wait,
                _ => &mut timer.insert((start, self.clock.wait_until(start))).1,
            };
            wait.as_mut().poll(context)
        })
        .await;
        self.quit();
    }

    /// Gives the place up, lets those behind move up, and returns the slots that are left over.
    pub fn leave(mut self) -> Vec<Slot> {
        let mut left = Vec::new();
        for place in std::mem::take(&mut self.lines) {
            let moved = {
                let mut inner = self.queues.inner.lock();
                let Some(slot) = inner.take(&place, self.ticket) else { continue };
                let now = self.clock.now();
                let Some(line) = inner.lines.get_mut(&place) else {
                    left.push(slot);
                    continue;
                };
                let (slot, moved) = line.hand_on(slot, now);
                left.push(slot);
                moved
            };
            moved.into_iter().for_each(Waker::wake);
        }
        left
    }

    /// Returns when the request's turn comes as things stand, and has `waker` woken when it comes earlier.
    fn start(&self, waker: &Waker) -> Option<Timestamp> {
        let mut inner = self.queues.inner.lock();
        let mut latest = None;
        for place in &self.lines {
            let line = inner.lines.get_mut(place)?;
            let waiter = line.waiting.iter_mut().find(|waiter| waiter.ticket == self.ticket)?;
            waiter.waker = Some(waker.clone());
            latest = latest.max(Some(waiter.slot.start));
        }
        latest
    }

    /// Leaves all lines, and hands nothing on.
    fn quit(&mut self) {
        let mut inner = self.queues.inner.lock();
        for place in self.lines.drain(..) {
            let _charged = inner.take(&place, self.ticket);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.quit();
    }
}

/// Returns whether a part of an allowed decision waits for a slot.
fn waits(part: &Part) -> bool {
    part.verdict.delay > Span::ZERO
}

impl<S: Store> Limiter<S> {
    /// Takes the places that an allowed request waits for, whose decisions these are. Its turn is when all their delays are
    /// over, or earlier, when somebody who waits in front of it in this process leaves.
    ///
    /// Also returns slots that are not needed any more, for [`free`](Self::free): who finds an earlier one empty takes that.
    ///
    /// ```
    /// use std::{pin::pin, sync::Arc, task::{Context, Poll, Waker}};
    /// use sekisho::{Clock, Direct, FakeClock, Limiter, Mode, PolicySet, Span};
    ///
    /// let clock: Arc<FakeClock> = Arc::default();
    /// let policies = PolicySet::parse("[[policy]]\nname = \"any\"\nkey = [\"ip\"]\nlimits = [\"1/s\"]\n")?;
    /// let limiter = Limiter::with_clock(policies, clock.clone());
    /// let limits = ["1/s burst 3 leaky-queue".parse()?];
    /// let ask = Direct { limits: &limits, key: b"alice", cost: 1 };
    /// let any: Arc<dyn Clock> = clock.clone();
    /// let mut line_up = || limiter.line_up(&any, &[limiter.decide_direct_now(&ask, Mode::Check)]).0;
    ///
    /// let _at_once = line_up();
    /// let (first, mut second) = (line_up(), line_up());
    /// drop(first.leave());
    /// clock.advance(Span::from_secs(1));
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert_eq!(pin!(second.turn()).poll(&mut context), Poll::Ready(())); // it would have been two seconds
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn line_up(&self, clock: &Arc<dyn Clock>, decisions: &[Decision]) -> (Place, Vec<Slot>) {
        let queues = Arc::clone(self.queues());
        let mut left = Vec::new();
        let mut inner = queues.inner.lock();
        inner.tickets += 1;
        let ticket = inner.tickets;
        let mut lines = Vec::new();
        let now = clock.now();
        inner.sweep(now);
        for decision in decisions {
            for part in decision.parts.iter().filter(|part| waits(part)) {
                let slot = Slot::of(decision, part, self.start(decision, part, now));
                let place = (part.scope.clone(), part.key.clone());
                let line = inner.lines.entry(place.clone()).or_default();
                left.extend(line.join(Waiter { ticket, slot, waker: None }, now));
                lines.push(place);
            }
        }
        drop(inner);
        (Place { queues, clock: Arc::clone(clock), ticket, lines }, left)
    }

    /// Returns when a slot begins, by the clock of those who wait. A shared store's clock is another machine's: from there only the
    /// delay is taken, which is over that much after the answer came.
    fn start(&self, decision: &Decision, part: &Part, now: Timestamp) -> Timestamp {
        let here = decision.degraded.is_some() || self.policies().settings().store.shared.is_none();
        if here { part.at } else { now }.plus(part.verdict.delay)
    }

    /// Gives a slot back to the store. Returns whether it took it: one that it does not take stands empty, and goes to the next
    /// who lines up for it.
    ///
    /// # Errors
    /// What the store says.
    pub async fn free(&self, slot: Slot) -> Result<bool, StoreError> {
        let Some(part) = slot.part() else { return Ok(false) };
        let place = (part.scope.clone(), part.key.clone());
        if self.queues().inner.lock().is_in_between(&place, &slot) {
            return Ok(false);
        }
        let answer = self.give_back(&slot.charge, &[part]).await?;
        // Taken back, the slot is the next that the store hands out, or time has passed it.
        let next = answer.verdicts.first().map(|verdict| answer.at.plus(verdict.reset_after));
        let start = part.at.plus(part.verdict.delay);
        let taken = next.is_some_and(|next| next <= start.max(answer.at));
        if !taken && start >= answer.at {
            let mut inner = self.queues().inner.lock();
            // What those who wait have on their clock: as long before the slot as the store has.
            let left = start.since(answer.at).as_nanos();
            inner.sweep(Timestamp::from_nanos(slot.start.as_nanos().saturating_sub(left)));
            inner.lines.entry(place).or_default().empty.push(slot);
        }
        Ok(taken)
    }
}

impl Limiter<Memory> {
    /// Gives a slot back as [`free`](Self::free) does, without waiting for anything.
    ///
    /// # Errors
    /// What the store says.
    pub fn free_now(&self, slot: Slot) -> Result<bool, StoreError> {
        ready(self.free(slot))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Context;

    use sekisho_core::Mode;

    use super::*;
    use crate::{clock::FakeClock, limiter::Direct, policy::PolicySet};

    #[test]
    fn lines_that_nobody_waits_in_are_dropped() {
        let clock: Arc<FakeClock> = Arc::default();
        let any: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let policies = "[[policy]]\nname = \"any\"\nkey = [\"ip\"]\nlimits = [\"1/s\"]\n";
        let limiter =
            Limiter::with_clock(PolicySet::parse(policies).unwrap(), Arc::clone(&clock) as _);
        let limits = ["1/s burst 3 leaky-queue".parse().unwrap()];
        let mut empty = 0;
        for key in 0..10_000_u32 {
            let ask = Direct { limits: &limits, key: &key.to_le_bytes(), cost: 1 };
            let places = [(); 4].map(|()| {
                clock.advance(Span::from_nanos(1));
                limiter.line_up(&any, &[limiter.decide_direct_now(&ask, Mode::Check)]).0
            });
            for slot in places.into_iter().flat_map(Place::leave) {
                let mut freeing = Box::pin(limiter.free(slot));
                let freed = freeing.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                empty += usize::from(freed == Poll::Ready(Ok(false)));
            }
            clock.advance(Span::from_nanos(100_000_000));
        }
        assert!(empty >= 10_000, "each key leaves an empty slot, for at most two seconds");
        let lines = limiter.queues().inner.lock().lines.len();
        assert!(lines <= SWEEP_MIN, "{lines}");
    }
}
