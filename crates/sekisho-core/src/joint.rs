//! Several limits on one request: check all, then charge all or none.
//!
//! The order of the limits never changes an outcome or a charge; it only breaks ties in which limit the answer names.

use core::cmp::Ordering;

use crate::{Calendar, Call, Limit, Mode, Outcome, Span, State, Timestamp, Verdict, exact::times};

/// One limit of a request, with the state of its key and what the request costs there.
#[derive(Debug)]
pub struct Slot<'a> {
    /// The limit.
    pub limit: &'a Limit,
    /// The state of the key under that limit.
    pub state: &'a mut State,
    /// The cost there.
    pub cost: u64,
}

/// What all limits of a request say together.
#[must_use = "a decision does nothing until it is acted on"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joint {
    /// Never if any says never, else deny if any denies, else allow.
    pub outcome: Outcome,
    /// The index of the limit whose numbers the answer shows.
    pub binding: usize,
    /// The longest of the delays when allowed, else 0.
    pub delay: Span,
}

impl Joint {
    /// Weighs the verdicts of one request's limits. No limits at all allow.
    ///
    /// The binding one is: on never the first that says so, `block` before any other; on deny the longest wait; on allow the
    /// smallest remaining share, `unlimited` last. Ties go to the first listed.
    pub fn of<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Self {
        let mut verdicts = verdicts.into_iter().enumerate();
        let Some((binding, first)) = verdicts.next() else {
            return Self { outcome: Outcome::Allow, binding: 0, delay: Span::ZERO };
        };
        let (mut binding, mut bound, mut delay) = (binding, first, first.delay);
        for (index, verdict) in verdicts {
            delay = delay.max(verdict.delay);
            if binds_before(verdict, bound) {
                (binding, bound) = (index, verdict);
            }
        }
        let delay = if bound.is_allowed() { delay } else { Span::ZERO };
        Self { outcome: bound.outcome, binding, delay }
    }
}

/// Returns whether `a`, listed later, binds before `b`.
fn binds_before(a: &Verdict, b: &Verdict) -> bool {
    match (a.outcome, b.outcome) {
        (Outcome::Never, Outcome::Never) => a.is_block() && !b.is_block(),
        (Outcome::Deny, Outcome::Deny) => a.retry_after > b.retry_after,
        (Outcome::Allow, Outcome::Allow) => smaller_share(a, b),
        (Outcome::Never, _) | (Outcome::Deny, Outcome::Allow) => true,
        (_, Outcome::Never) | (Outcome::Allow, Outcome::Deny) => false,
    }
}

fn smaller_share(a: &Verdict, b: &Verdict) -> bool {
    let (Some(a_left), Some(a_full)) = (a.remaining, a.capacity) else { return false };
    let (Some(b_left), Some(b_full)) = (b.remaining, b.capacity) else { return true };
    times(a_left, b_full).cmp(&times(b_left, a_full)) == Ordering::Less
}

/// Decides one request under several limits, all or none, and writes one verdict a limit.
///
/// `verdicts` takes as many as there are slots; what is beyond either length is left alone. When the request is refused, a
/// limit that would have admitted it says allow, with its numbers as they stand and nothing charged.
///
/// ```
/// use sekisho_core::{Limit, Mode, Outcome, Slot, State, Timestamp, Utc, Verdict, decide};
///
/// let (minute, hour): (Limit, Limit) = ("10/min fixed-window".parse()?, "30/30min".parse()?);
/// let (mut a, mut b) = (State::Fresh, State::Fresh);
/// let mut verdicts = [Verdict::UNLIMITED; 2];
/// let mut slots = [
///     Slot { limit: &minute, state: &mut a, cost: 11 },
///     Slot { limit: &hour, state: &mut b, cost: 11 },
/// ];
/// let joint = decide(&mut slots, &mut verdicts, Timestamp::from_secs(0), Mode::Check, &Utc);
/// assert_eq!((joint.outcome, joint.binding), (Outcome::Never, 0));
/// assert_eq!(verdicts[1].remaining, Some(30)); // nothing was charged
/// # Ok::<(), sekisho_core::LimitError>(())
/// ```
pub fn decide(
    slots: &mut [Slot<'_>],
    verdicts: &mut [Verdict],
    now: Timestamp,
    mode: Mode,
    calendar: &dyn Calendar,
) -> Joint {
    let joint = judge(slots, verdicts, now, mode, calendar);
    if joint.outcome == Outcome::Allow {
        return settle(slots, verdicts, now, mode, calendar);
    }
    joint
}

/// Says what [`decide`] would, and changes nothing: the first half, for a store that must make room before it charges.
pub fn judge(
    slots: &[Slot<'_>],
    verdicts: &mut [Verdict],
    now: Timestamp,
    mode: Mode,
    calendar: &dyn Calendar,
) -> Joint {
    for (slot, verdict) in slots.iter().zip(verdicts.iter_mut()) {
        *verdict = slot.limit.judge(slot.state, Call { now, cost: slot.cost, mode }, calendar);
    }
    let joint = Joint::of(verdicts.iter().take(slots.len()));
    if joint.outcome != Outcome::Allow {
        // Nobody waits for a request that is refused.
        for verdict in verdicts.iter_mut().take(slots.len()) {
            verdict.delay = Span::ZERO;
        }
    }
    joint
}

/// Carries out what [`judge`] allowed, and leaves the verdicts with the numbers after it: the second half of [`decide`].
pub fn settle(
    slots: &mut [Slot<'_>],
    verdicts: &mut [Verdict],
    now: Timestamp,
    mode: Mode,
    calendar: &dyn Calendar,
) -> Joint {
    for (slot, verdict) in slots.iter_mut().zip(verdicts.iter_mut()) {
        let call = Call { now, cost: slot.cost, mode };
        *verdict = slot.limit.settle(slot.state, call, *verdict, calendar);
    }
    Joint::of(verdicts.iter().take(slots.len()))
}
