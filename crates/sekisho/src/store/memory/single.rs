//! A request with one charge: the fast path of everything.

use std::sync::atomic::Ordering::Relaxed;

use sekisho_core::{
    Algorithm, Call, Limit, Metered, Mode, Outcome, Span, State, Timestamp, TokenBucket, Verdict,
};

use super::{Memory, NoRoom, Overflow, Told, changes, gives_back, growth, shares, uncounted};
use crate::{
    calendar::Zones,
    store::{
        Ask, Scope, StoreError,
        table::{Place, Shard, Sweep, Words},
    },
    sync::Guard,
};

/// How much a caller wants to know: a whole verdict, or the outcome.
pub(crate) trait Reply: Sized {
    /// Decides a check of `cost` units on a bucket.
    fn check_bucket(limit: &Metered, bucket: &mut TokenBucket, now: Timestamp, cost: u64) -> Self;
    /// Returns what is wanted of a verdict.
    fn of(verdict: Verdict) -> Self;
}

impl Reply for Verdict {
    #[inline]
    fn check_bucket(limit: &Metered, bucket: &mut TokenBucket, now: Timestamp, cost: u64) -> Self {
        limit.decide_bucket(bucket, now, cost)
    }

    #[inline]
    fn of(verdict: Verdict) -> Self {
        verdict
    }
}

impl Reply for Outcome {
    #[inline]
    fn check_bucket(limit: &Metered, bucket: &mut TokenBucket, now: Timestamp, cost: u64) -> Self {
        limit.outcome_of_bucket(bucket, now, cost)
    }

    #[inline]
    fn of(verdict: Verdict) -> Self {
        verdict.outcome
    }
}

/// What one charge asks.
#[derive(Clone, Copy)]
pub(crate) struct One<'a> {
    pub(crate) limit: &'a Limit,
    pub(crate) scope: &'a Scope,
    pub(crate) cost: u64,
    pub(crate) mode: Mode,
    pub(crate) longest: Option<Span>,
}

impl<'a> One<'a> {
    /// Returns the limit, if this is a check on a bucket: what nearly every charge is.
    #[inline]
    pub(super) fn bucket(&self) -> Option<&'a Metered> {
        match (self.limit, self.mode, self.cost) {
            (Limit::Metered(limit), Mode::Check, 1..)
                if limit.algorithm() == Algorithm::TokenBucket =>
            {
                Some(limit)
            }
            _ => None,
        }
    }

    const fn call(&self, now: Timestamp) -> Call {
        Call { now, cost: self.cost, mode: self.mode }
    }

    pub(super) fn judge(&self, state: &State, now: Timestamp) -> Verdict {
        let verdict = self.limit.judge(state, self.call(now), &Zones);
        Ask { charges: &[], mode: self.mode, longest: self.longest }.in_time(verdict)
    }
}

impl Memory {
    /// Decides a single charge on the state at a digest.
    #[inline]
    pub(crate) fn one<R: Reply>(
        &self,
        one: One<'_>,
        digest: u128,
        told: Told,
    ) -> Result<(Timestamp, R), StoreError> {
        let mut shard = self.table.lock(self.table.shard_of(digest));
        let time = told.settle(&mut shard);
        let held = one.bucket().and_then(|limit| Some((limit, shard.words_of(digest)?)));
        // A clock that was set back is for the long way.
        if let Some((limit, words)) = held.filter(|_| time >= self.repair_before) {
            let fits = words.bucket().and_then(|mut bucket| {
                let reply = R::check_bucket(limit, &mut bucket, time, one.cost);
                Some((reply, Words::of_bucket(&bucket)?))
            });
            if let Some((reply, after)) = fits {
                // What was refused has not changed. A bucket waits for nobody, so no patience is too short for it.
                *words = after;
                return Ok((time, reply));
            }
        }
        self.seldom(one, digest, (shard, time))
    }

    /// Decides whatever is not a check on a bucket that is there.
    #[cold]
    fn seldom<R: Reply>(
        &self,
        one: One<'_>,
        digest: u128,
        (mut shard, now): (Guard<'_, Shard>, Timestamp),
    ) -> Result<(Timestamp, R), StoreError> {
        if let Some(place) = shard.find(digest) {
            let verdict = self.present(&mut shard, place, one, now)?;
            return Ok((now, R::of(verdict)));
        }
        let verdict = one.judge(&State::Fresh, now);
        let is_counted = changes(one.limit, one.cost, one.mode);
        if !verdict.is_allowed() || !is_counted || gives_back(one.mode) {
            return Ok((now, R::of(verdict)));
        }
        let shared = self.shared(one.scope);
        if let Ok(settled) = self.first(&mut shard, one, (digest, digest == shared), (now, verdict))
        {
            return Ok((now, R::of(settled)));
        }
        let _before = self.overflowed.fetch_add(1, Relaxed);
        match self.overflow {
            Overflow::Shared if digest != shared && shares(one.scope) => {
                drop(shard);
                let mut shard = self.table.lock(self.table.shard_of(shared));
                let now = Told::Clock(now).settle(&mut shard);
                self.seldom(one, shared, (shard, now))
            }
            Overflow::Shared | Overflow::Deny => Err(StoreError::Full),
            Overflow::Allow => Ok((now, R::of(uncounted(one.limit, one.call(now), verdict)))),
        }
    }

    /// Charges a key that was not known.
    fn first(
        &self,
        shard: &mut Shard,
        one: One<'_>,
        (digest, shared): (u128, bool),
        (now, verdict): (Timestamp, Verdict),
    ) -> Result<Verdict, NoRoom> {
        // A log's bytes are asked for first: an entry that could not be charged would have pushed out another for nothing.
        let log = growth(&State::Fresh, one.limit);
        self.table.grow(log)?;
        self.table.shrink(log);
        let place = shard.insert(&self.table, digest, Sweep { now, spare: &[] }, shared)?;
        self.charge(shard, place, (one.limit, one.call(now), verdict), None).inspect_err(|_| {
            let _undone = shard.remove(&self.table, digest);
        })
    }

    /// Decides a charge on a state of any kind that is there.
    fn present(
        &self,
        shard: &mut Shard,
        place: Place,
        one: One<'_>,
        now: Timestamp,
    ) -> Result<Verdict, StoreError> {
        let call = one.call(now);
        let verdict = self.repaired(shard, place, (one.limit, call), |state| one.judge(state, now));
        if !verdict.is_allowed() || !changes(one.limit, one.cost, one.mode) {
            return Ok(verdict);
        }
        match self.charge(shard, place, (one.limit, call, verdict), None) {
            Ok(settled) => Ok(settled),
            Err(NoRoom) if self.overflow == Overflow::Allow => Ok(verdict),
            Err(NoRoom) => Err(StoreError::Full),
        }
    }

    /// Judges the state at a place, in which nothing lies in the future: where a clock may have been set back, that is moved to now
    /// first, and stored by all but a look.
    pub(super) fn repaired(
        &self,
        shard: &mut Shard,
        place: Place,
        (limit, call): (&Limit, Call),
        judge: impl FnOnce(&State) -> Verdict,
    ) -> Verdict {
        if call.now < self.repair_before && (call.mode == Mode::Look || call.cost == 0) {
            let mut state = shard.with_state(place, State::clone);
            limit.repair(&mut state, call.now, &Zones);
            return judge(&state);
        }
        if call.now < self.repair_before {
            self.repair(shard, place, limit, call);
        }
        shard.with_state(place, judge)
    }

    fn repair(&self, shard: &mut Shard, place: Place, limit: &Limit, call: Call) {
        let was_large = shard.is_large(place);
        let mut state = shard.take(place);
        limit.repair(&mut state, call.now, &Zones);
        let fresh_at = limit.fresh_at(&state, &Zones);
        let words = Words::of(&state, fresh_at);
        if words.is_some() || was_large {
            shard.set(&self.table, place, state, (words, fresh_at));
        } else {
            shard.put_back(place, state);
        }
    }
}
