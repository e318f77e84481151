//! One name, and what its limit last said.

use std::{cmp::Ordering, sync::Arc};

use sekisho_core::{Limit, Mode, Outcome, Span, Timestamp, Verdict};

use super::FullKey;
use crate::{
    key::Key,
    store::{Charge, Scope},
};

/// Decisions of one key on two threads may be noted in the other order, by the length of a pause of one of them. What seems older
/// than this was decided by a clock that was set back.
const LATE: Span = Span::from_secs(1);

/// A share of a capacity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fullness {
    pub(super) used: u64,
    pub(super) capacity: u64,
}

impl Ord for Fullness {
    fn cmp(&self, other: &Self) -> Ordering {
        let cross = |one: &Self, other: &Self| u128::from(one.used) * u128::from(other.capacity);
        cross(self, other).cmp(&cross(other, self))
    }
}

impl PartialOrd for Fullness {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Fullness {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Fullness {}

/// What was seen of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    limit: Limit,
    used: u64,
    capacity: u64,
    outcome: Outcome,
    /// Whether this was a decision; otherwise only its numbers count.
    pub(super) is_decision: bool,
    pub(super) at: Timestamp,
    next_at: Timestamp,
    fresh_at: Timestamp,
}

impl Seen {
    /// Returns what a verdict shows; `None` of a limit that has no numbers.
    pub(super) fn of(
        charge: &Charge<'_>,
        verdict: &Verdict,
        at: Timestamp,
        mode: Mode,
    ) -> Option<Self> {
        let capacity = verdict.capacity.filter(|capacity| *capacity > 0)?;
        Some(Self {
            limit: *charge.limit,
            used: capacity.saturating_sub(verdict.remaining?),
            capacity,
            outcome: verdict.outcome,
            is_decision: match mode {
                Mode::Check => charge.cost > 0,
                Mode::Force => true,
                Mode::Look | Mode::Refund { .. } => false,
            },
            at,
            next_at: at.plus(verdict.next_after),
            fresh_at: at.plus(verdict.reset_after),
        })
    }

    pub(super) const fn is_fresh(&self) -> bool {
        self.used == 0
    }

    /// Returns whether somebody would miss it: it is exhausted, or refused.
    pub(super) fn matters(&self) -> bool {
        self.is_denial() || self.used == self.capacity
    }

    /// Returns what a place with it is worth, while its key is not fresh again.
    pub(super) fn worth(&self) -> (Fullness, u64) {
        (Fullness { used: self.used, capacity: self.capacity }, u64::from(self.is_denial()))
    }

    fn is_denial(&self) -> bool {
        self.is_decision && self.outcome != Outcome::Allow
    }
}

/// How much a place is worth keeping. The least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worth {
    Empty,
    /// Its key is fresh again, since then.
    Stale(Timestamp),
    /// How full it is, how often it was refused, and how long it stays so.
    Living(Fullness, u64, Timestamp),
}

/// Who it is.
#[derive(Debug)]
struct Name {
    scope: Scope,
    key: Key,
}

/// A place that is taken.
#[derive(Clone, Debug)]
pub(super) struct Place {
    // Shared, so that a reader copies it under the lock and needs no memory there.
    name: Arc<Name>,
    seen: Seen,
    denied: u64,
}

// What `Fullest::new` says of its memory.
const _: () = assert!(size_of::<Option<Place>>() <= 176, "a place takes 176 bytes");

impl Place {
    pub(super) fn new(charge: &Charge<'_>, seen: Seen) -> Self {
        let name = Name { scope: charge.scope.clone(), key: charge.key.clone() };
        Self { name: Arc::new(name), denied: u64::from(seen.is_denial()), seen }
    }

    pub(super) fn is_of(&self, charge: &Charge<'_>) -> bool {
        self.name.key == *charge.key && self.name.scope == *charge.scope
    }

    /// Returns what it is with what was seen since; `None` when nothing is used any more.
    pub(super) fn updated(mut self, seen: Seen) -> Option<Self> {
        self.denied = self.denied.saturating_add(u64::from(seen.is_denial()));
        if seen.at < self.seen.at && self.seen.at.since(seen.at) < LATE {
            return Some(self);
        }
        let outcome = if seen.is_decision { seen.outcome } else { self.seen.outcome };
        self.seen = Seen { outcome, ..seen };
        (!seen.is_fresh()).then_some(self)
    }

    pub(super) fn is_living(&self, now: Timestamp) -> bool {
        self.seen.fresh_at > now
    }

    /// Returns whether somebody would miss it: it is exhausted, or was refused.
    pub(super) const fn matters(&self) -> bool {
        self.denied > 0 || self.seen.used == self.seen.capacity
    }

    pub(super) fn worth(&self, now: Timestamp) -> Worth {
        let Seen { used, capacity, fresh_at, .. } = self.seen;
        if self.is_living(now) {
            Worth::Living(Fullness { used, capacity }, self.denied, fresh_at)
        } else {
            Worth::Stale(fresh_at)
        }
    }

    pub(super) fn show(&self) -> FullKey {
        let Seen { limit, used, capacity, outcome, at, next_at, fresh_at, .. } = self.seen;
        let Name { scope, key } = &*self.name;
        let (scope, key) = (scope.clone(), key.clone());
        let denied = self.denied;
        FullKey { scope, key, limit, used, capacity, outcome, denied, seen: at, next_at, fresh_at }
    }
}
