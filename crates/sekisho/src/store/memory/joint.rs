//! A request with several charges: all or none.

use std::sync::atomic::Ordering::Relaxed;

use smallvec::{SmallVec, smallvec};

use sekisho_core::{Algorithm, Call, Joint, Limit, Outcome, Span, State, Timestamp, Verdict};

use super::{
    CHARGES_MAX, Memory, Overflow, Told, changes, gives_back, growth, is_log, shares, single::One,
    uncounted,
};
use crate::{
    calendar::Zones,
    key::Key,
    store::{
        Answer, Ask, Charge, Now, StoreError,
        table::{Place, STATE_BYTES_MAX, Shard, Sweep, Table, Words},
    },
    sync::Guard,
};

/// Why a joint decision could not be carried out as it stands.
enum Blocked {
    /// The charge of that index found no room.
    Room(usize),
    /// A log may not grow.
    Growth,
    /// Two charges name one state.
    Twice,
}

impl Memory {
    pub(super) fn ask(&self, ask: &Ask<'_>, now: Now) -> Result<Answer, StoreError> {
        if let [charge] = ask.charges {
            let digest = self.locate(charge.scope, charge.key.as_bytes());
            let (at, verdict) = self.one(one(charge, ask), digest, self.told(now))?;
            return Ok(Answer::new(at, vec![verdict]));
        }
        if ask.charges.len() > CHARGES_MAX {
            return Err(StoreError::Unsupported("request of more than 1024 charges".into()));
        }
        let mut digests = self.digests(ask.charges);
        let mut unbounded: Few<bool> = smallvec![false; digests.len()];
        // Each turn but the last sends one more charge to its shared place.
        loop {
            match self.several(ask, &digests, &unbounded, now) {
                Ok(answer) => return Ok(answer),
                Err(Blocked::Twice) => return Err(StoreError::Twice),
                Err(Blocked::Growth) if self.overflow != Overflow::Allow => {
                    return Err(StoreError::Full);
                }
                Err(Blocked::Growth) => unbounded.fill(true),
                Err(Blocked::Room(index)) => {
                    let _before = self.overflowed.fetch_add(1, Relaxed);
                    let shared = self.shared(ask.charges[index].scope);
                    match self.overflow {
                        Overflow::Shared
                            if digests[index] != shared && shares(ask.charges[index].scope) =>
                        {
                            digests[index] = shared;
                        }
                        Overflow::Shared | Overflow::Deny => return Err(StoreError::Full),
                        Overflow::Allow => unbounded[index] = true,
                    }
                }
            }
        }
    }

    /// Returns where the states of some charges are. Charges on one key follow each other, and it is digested once.
    fn digests(&self, charges: &[Charge<'_>]) -> Few<u128> {
        let mut digests = Few::with_capacity(charges.len());
        let mut last: Option<(&Key, u128)> = None;
        for charge in charges {
            let digest = match last {
                Some((key, digest)) if key == charge.key => digest,
                _ => self.seed.digest(charge.key.as_bytes()),
            };
            last = Some((charge.key, digest));
            digests.push(charge.scope.mark(&self.seed) ^ digest);
        }
        digests
    }

    /// Decides some charges together. Nothing is changed unless all of it is.
    fn several(
        &self,
        ask: &Ask<'_>,
        digests: &[u128],
        unbounded: &[bool],
        now: Now,
    ) -> Result<Answer, Blocked> {
        let mut sorted: Few<u128> = digests.into();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Blocked::Twice);
        }
        let told = self.told(now);
        let mut held = Held::lock(&self.table, digests);
        let now = held.settle(told);
        let call = |charge: &Charge<'_>| Call { now, cost: charge.cost, mode: ask.mode };
        for digest in digests {
            held.shard(*digest).prefetch(*digest);
        }
        if let Some(verdicts) = self.buckets(&mut held, ask, digests, now) {
            return Ok(Answer::new(now, verdicts));
        }
        let mut verdicts = Vec::with_capacity(digests.len());
        for (charge, digest) in ask.charges.iter().zip(digests) {
            let call = call(charge);
            let shard = held.shard(*digest);
            let place = shard.find(*digest);
            let judge = |state: &State| charge.limit.judge(state, call, &Zones);
            let verdict = match place {
                Some(place) => self.repaired(shard, place, (charge.limit, call), judge),
                None => judge(&State::Fresh),
            };
            verdicts.push(ask.in_time(verdict));
        }
        if Joint::of(&verdicts).outcome != Outcome::Allow {
            for verdict in &mut verdicts {
                verdict.delay = Span::ZERO;
            }
            return Ok(Answer::new(now, verdicts));
        }
        // Taken until all is charged: another request's log cannot have them in between.
        self.make_places(&mut held, ask, (digests, unbounded), (now, &sorted))?;
        for (index, charge) in ask.charges.iter().enumerate() {
            let (digest, verdict) = (digests[index], &mut verdicts[index]);
            if !changes(charge.limit, charge.cost, ask.mode) {
                continue;
            }
            let shard = held.shard(digest);
            let charged = match shard.find(digest) {
                Some(place) if !unbounded[index] => {
                    let paid = needs(shard, Some(place), charge.limit);
                    let what = (charge.limit, call(charge), *verdict);
                    self.charge(shard, place, what, Some(paid)).ok()
                }
                _ => None,
            };
            match charged {
                Some(settled) => *verdict = settled,
                None if gives_back(ask.mode) => {}
                None => *verdict = uncounted(charge.limit, call(charge), *verdict),
            }
        }
        Ok(Answer::new(now, verdicts))
    }

    /// Decides a check under buckets that are all there and all admit it, which is what nearly every request is. Otherwise returns
    /// nothing, and nothing has changed.
    fn buckets(
        &self,
        held: &mut Held<'_>,
        ask: &Ask<'_>,
        digests: &[u128],
        now: Timestamp,
    ) -> Option<Vec<Verdict>> {
        if now < self.repair_before {
            return None;
        }
        let mut verdicts = Vec::with_capacity(digests.len());
        let mut charged: Few<Words> = Few::with_capacity(digests.len());
        for (charge, digest) in ask.charges.iter().zip(digests) {
            let limit = one(charge, ask).bucket()?;
            let mut bucket = held.shard(*digest).words_of(*digest)?.bucket()?;
            let verdict = limit.decide_bucket(&mut bucket, now, charge.cost);
            charged.push(Words::of_bucket(&bucket).filter(|_| verdict.is_allowed())?);
            verdicts.push(verdict);
        }
        for (words, digest) in charged.into_iter().zip(digests) {
            *held.shard(*digest).words_of(*digest)? = words;
        }
        Some(verdicts)
    }

    /// Makes a place for every charge that has none, and takes the bytes that each [needs]. Or takes all of it back and names the
    /// first that found no room.
    fn make_places(
        &self,
        held: &mut Held<'_>,
        ask: &Ask<'_>,
        (digests, unbounded): (&[u128], &[bool]),
        (now, spare): (Timestamp, &[u128]),
    ) -> Result<(), Blocked> {
        let (mut made, mut bytes) = (Vec::new(), 0);
        let mut blocked = None;
        for (index, charge) in ask.charges.iter().enumerate() {
            if unbounded[index] || !changes(charge.limit, charge.cost, ask.mode) {
                continue;
            }
            let digest = digests[index];
            let shard = held.shard(digest);
            let place = shard.find(digest);
            if place.is_none() && gives_back(ask.mode) {
                continue;
            }
            bytes += needs(shard, place, charge.limit);
            if place.is_some() {
                continue;
            }
            let shared = digest == self.shared(charge.scope);
            if shard.insert(&self.table, digest, Sweep { now, spare }, shared).is_err() {
                blocked = Some(Blocked::Room(index));
                break;
            }
            made.push(digest);
        }
        if blocked.is_none() && self.table.grow(bytes).is_err() {
            blocked = Some(Blocked::Growth);
        }
        let Some(blocked) = blocked else { return Ok(()) };
        for digest in made {
            let _undone = held.shard(digest).remove(&self.table, digest);
        }
        Err(blocked)
    }
}

/// A list of what a request has one of for each charge.
type Few<T> = SmallVec<[T; 4]>;

/// Returns one charge of a request by itself.
const fn one<'a>(charge: &Charge<'a>, ask: &Ask<'a>) -> One<'a> {
    let (mode, longest) = (ask.mode, ask.longest);
    One { limit: charge.limit, scope: charge.scope, cost: charge.cost, mode, longest }
}

/// Returns how many bytes the next charge may take beside the entry.
fn needs(shard: &Shard, place: Option<Place>, limit: &Limit) -> usize {
    let log = match place {
        _ if !is_log(limit) => 0,
        Some(place) => shard.with_state(place, |state| growth(state, limit)),
        None => growth(&State::Fresh, limit),
    };
    // A bucket of a usual number fits its entry. Of the others that cannot be told before they are charged.
    let fits = limit.as_metered().is_none_or(|limit| {
        limit.algorithm() == Algorithm::TokenBucket && u32::try_from(limit.amount().get()).is_ok()
    });
    let beside = !fits && !place.is_some_and(|place| shard.is_large(place));
    log + if beside { STATE_BYTES_MAX } else { 0 }
}

/// The shards of a request, locked in ascending order so that no two requests wait for each other.
struct Held<'a> {
    table: &'a Table,
    guards: SmallVec<[(usize, Guard<'a, Shard>); 2]>,
}

impl<'a> Held<'a> {
    fn lock(table: &'a Table, digests: &[u128]) -> Self {
        let mut shards: Few<usize> = digests.iter().map(|digest| table.shard_of(*digest)).collect();
        shards.sort_unstable();
        shards.dedup();
        let guards = shards.into_iter().map(|shard| (shard, table.lock(shard))).collect();
        Self { table, guards }
    }

    /// Returns a time that is not before that of any decision in these shards.
    fn settle(&mut self, told: Told) -> Timestamp {
        let latest = self.guards.iter_mut().map(|(_, shard)| told.settle(shard)).max();
        let latest = latest.unwrap_or(told.time());
        for (_, shard) in &mut self.guards {
            let _latest = Told::Clock(latest).settle(shard);
        }
        latest
    }

    fn shard(&mut self, digest: u128) -> &mut Shard {
        let shard = self.table.shard_of(digest);
        let place = self.guards.binary_search_by_key(&shard, |(index, _)| *index);
        let (_, guard) = &mut self.guards[place.expect("the shard of every digest is locked")];
        guard
    }
}
