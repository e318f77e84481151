//! The memory store: this process's counts, bounded in entries and bytes, each decision under the locks of its keys.

mod size;

use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use parking_lot::MutexGuard;
use sekisho_core::{Call, Joint, Limit, Mode, Outcome, Span, State, Timestamp, Verdict};

use super::{
    Answer, Ask, Charge, Now, Scope, Store, StoreError,
    table::{Entry, NoRoom, Shard, Table, heap_bytes},
};
use crate::{
    calendar::Zones,
    clock::{Clock, SystemClock},
    digest::Seed,
    key::Key,
};

/// The most limits that one request may be charged to.
pub const CHARGES_MAX: usize = 1_024;

/// What happens to a key that is not known when every entry is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// It counts in one bucket of its limit that all such keys share. A limit that a caller names itself, without a policy,
    /// has none: its request is refused, as with `Deny`.
    #[default]
    Shared,
    /// The request is refused: [`StoreError::Full`].
    Deny,
    /// The request passes and is not counted.
    Allow,
}

/// How a memory store is bounded.
#[derive(Clone, Debug)]
pub struct MemoryOptions {
    /// The most bytes that entries and logs may take. Default: a quarter of the machine's memory, or of the cgroup's.
    pub max_bytes: usize,
    /// The most entries: one a key and limit. Default: as many as the bytes hold. At least 2.
    pub max_entries: usize,
    /// What happens to new keys when it is full of keys in use.
    pub overflow: Overflow,
    /// What digests are made with. Default: random.
    pub seed: Seed,
    /// Whether state stays when it equals a fresh one. A trace needs that, since its late stamps go back in time.
    pub keep_all: bool,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            max_bytes: size::default_max_bytes(),
            max_entries: usize::MAX,
            overflow: Overflow::default(),
            seed: Seed::random(),
            keep_all: false,
        }
    }
}

/// What a memory store holds, and what became of keys that it could not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Entries: one a key and limit.
    pub entries: usize,
    /// Bytes of the tables and logs.
    pub bytes: usize,
    /// The most entries that there may be.
    pub max_entries: usize,
    /// The most bytes that there may be.
    pub max_bytes: usize,
    /// Entries that were dropped because they equalled fresh ones. No other is ever dropped to make room.
    pub dropped: u64,
    /// Requests of unknown keys that found no room, and were shared, denied or allowed as `overflow` says.
    pub overflowed: u64,
}

/// The memory store.
///
/// ```
/// use sekisho::{KeyedLimiter, Memory, MemoryOptions, Overflow};
///
/// // At most ten entries; an eleventh key is refused while all ten are in use.
/// let options = MemoryOptions { max_entries: 10, overflow: Overflow::Deny, ..Default::default() };
/// let limiter = KeyedLimiter::with_store("1/min".parse()?, Memory::new(options));
/// let refused = (0..20).filter(|key: &u32| limiter.check(key.to_string()).is_err()).count();
/// assert_eq!(refused, 11); // one entry is kept for keys that share
/// # Ok::<(), sekisho::LimitError>(())
/// ```
#[derive(Debug)]
pub struct Memory {
    table: Table,
    clock: Arc<dyn Clock>,
    seed: Seed,
    overflow: Overflow,
    overflowed: AtomicU64,
    keep_all: bool,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(MemoryOptions::default())
    }
}

impl Memory {
    /// Returns an empty store on the machine's clock.
    pub fn new(options: MemoryOptions) -> Self {
        Self::with_clock(options, Arc::new(SystemClock::new()))
    }

    /// Returns an empty store on a clock of the caller's.
    pub fn with_clock(options: MemoryOptions, clock: Arc<dyn Clock>) -> Self {
        let cores = std::thread::available_parallelism().map_or(4, usize::from);
        Self {
            // More shards than threads, so that two of them seldom meet.
            table: Table::new(8 * cores, options.max_entries.max(2), options.max_bytes),
            clock,
            seed: options.seed,
            overflow: options.overflow,
            overflowed: AtomicU64::new(0),
            keep_all: options.keep_all,
        }
    }

    /// Returns the clock that this store decides by.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns what is held.
    pub fn occupancy(&self) -> Occupancy {
        Occupancy {
            entries: self.table.entries.load(Relaxed),
            bytes: self.table.bytes.load(Relaxed),
            max_entries: self.table.max_entries,
            max_bytes: self.table.max_bytes,
            dropped: self.table.stale.load(Relaxed),
            overflowed: self.overflowed.load(Relaxed),
        }
    }

    /// Decides some requests, each all or none, without waiting for anything but locks.
    pub fn decide_now(&self, asks: &[Ask<'_>], now: Now) -> Vec<Result<Answer, StoreError>> {
        asks.iter().map(|ask| self.ask(ask, now)).collect()
    }

    /// Drops the entries that equal fresh ones, a few under each lock, and gives their memory back. Returns how many went.
    /// For a timer: a table that nobody adds to does not sweep itself.
    pub fn sweep(&self) -> usize {
        if self.keep_all {
            return 0;
        }
        let mut dropped = 0;
        for index in 0..self.table.shards() {
            let buckets = self.table.lock(index).buckets();
            for _ in 0..buckets.div_ceil(256) {
                let now = self.clock.now();
                dropped += self.table.lock(index).sweep(&self.table, now, 256);
            }
            self.table.lock(index).shrink(&self.table);
        }
        dropped
    }

    /// Drops what is known of a key under a limit. Returns whether there was anything.
    pub fn forget_now(&self, scope: &Scope, key: &[u8]) -> bool {
        let digest = self.seed.locate([scope.as_bytes(), key]);
        let entry = self.table.lock(self.table.shard_of(digest)).remove(&self.table, digest);
        entry.is_some()
    }

    /// Shows every entry: its digest, its state, and the instant from which the state equals a fresh one. A part of the table at
    /// a time is held meanwhile, so what is shown are the entries of no single instant.
    #[expect(dead_code, reason = "for the snapshot")]
    pub(crate) fn visit(&self, mut each: impl FnMut(u128, &State, Timestamp)) {
        for index in 0..self.table.shards() {
            for entry in self.table.lock(index).iter() {
                each(entry.digest, &entry.state, entry.fresh_at);
            }
        }
    }

    /// Puts an entry back that [`visit`](Self::visit) of a store with the same seed has shown.
    ///
    /// # Errors
    /// [`StoreError::Full`] when there is no room for it.
    #[expect(dead_code, reason = "for the snapshot")]
    pub(crate) fn put(
        &self,
        digest: u128,
        state: State,
        fresh_at: Timestamp,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        if fresh_at <= now {
            return Ok(());
        }
        self.table.grow(heap_bytes(&state)).map_err(|_| StoreError::Full)?;
        let mut shard = self.table.lock(self.table.shard_of(digest));
        if shard.insert(&self.table, digest, now, true).is_err() {
            self.table.shrink(heap_bytes(&state));
            return Err(StoreError::Full);
        }
        if let Some(entry) = shard.get_mut(digest) {
            (entry.state, entry.fresh_at) = (state, fresh_at);
        }
        Ok(())
    }

    fn now(&self, now: Now) -> Timestamp {
        match now {
            Now::At(at) => at,
            Now::StoreClock => self.clock.now(),
        }
    }

    fn ask(&self, ask: &Ask<'_>, now: Now) -> Result<Answer, StoreError> {
        if let [charge] = ask.charges {
            let key = charge.key.as_bytes();
            let (at, verdict) =
                self.one(charge.limit, (charge.scope, key), (charge.cost, ask), now)?;
            return Ok(Answer::new(at, vec![verdict]));
        }
        if ask.charges.len() > CHARGES_MAX {
            return Err(StoreError::Unsupported("request of more than 1024 charges".into()));
        }
        let locate = |charge: &Charge<'_>| {
            self.seed.locate([charge.scope.as_bytes(), charge.key.as_bytes()])
        };
        let mut digests: Vec<u128> = ask.charges.iter().map(locate).collect();
        let mut unbounded = vec![false; digests.len()];
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

    /// Returns the place of the keys of a scope that found no room of their own.
    fn shared(&self, scope: &Scope) -> u128 {
        // No key is empty text, so no key is here.
        self.seed.locate([scope.as_bytes(), b""])
    }

    /// Decides a single charge: the fast path of everything.
    pub(crate) fn one(
        &self,
        limit: &Limit,
        (scope, key): (&Scope, &[u8]),
        (cost, ask): (u64, &Ask<'_>),
        now: Now,
    ) -> Result<(Timestamp, Verdict), StoreError> {
        let mode = ask.mode;
        let mut digest = self.seed.locate([scope.as_bytes(), key]);
        loop {
            let mut shard = self.table.lock(self.table.shard_of(digest));
            // Taken while the state is held, so that time never goes back between two requests of one key.
            let now = self.now(now);
            let call = Call { now, cost, mode };
            let Some(entry) = shard.get_mut(digest) else {
                let verdict = ask.in_time(limit.judge(&State::Fresh, call, &Zones));
                if !verdict.is_allowed() || !changes(limit, cost, mode) || gives_back(mode) {
                    return Ok((now, verdict));
                }
                let is_shared = digest == self.shared(scope);
                if shard.insert(&self.table, digest, now, is_shared).is_ok() {
                    let entry = shard.get_mut(digest).ok_or(StoreError::Full)?;
                    match self.settle(entry, limit, call, verdict) {
                        Ok(verdict) => return Ok((now, verdict)),
                        Err(NoRoom) => drop(shard.remove(&self.table, digest)),
                    }
                }
                let _before = self.overflowed.fetch_add(1, Relaxed);
                match self.overflow {
                    Overflow::Shared if !is_shared && shares(scope) => digest = self.shared(scope),
                    Overflow::Shared | Overflow::Deny => return Err(StoreError::Full),
                    Overflow::Allow => return Ok((now, uncounted(limit, call, verdict))),
                }
                continue;
            };
            let verdict = ask.in_time(limit.judge(&entry.state, call, &Zones));
            if !verdict.is_allowed() || !changes(limit, cost, mode) {
                return Ok((now, verdict));
            }
            return match self.settle(entry, limit, call, verdict) {
                Ok(verdict) => Ok((now, verdict)),
                Err(NoRoom) if self.overflow == Overflow::Allow => Ok((now, verdict)),
                Err(NoRoom) => Err(StoreError::Full),
            };
        }
    }

    /// Charges what was allowed, if a log that must grow may.
    fn settle(
        &self,
        entry: &mut Entry,
        limit: &Limit,
        call: Call,
        verdict: Verdict,
    ) -> Result<Verdict, NoRoom> {
        let growth = growth(&entry.state, limit);
        self.table.grow(growth)?;
        let (verdict, grown) = self.charge(entry, limit, call, verdict);
        self.table.shrink(growth.saturating_sub(grown));
        Ok(verdict)
    }

    /// Charges what was allowed, in bytes that have been taken already. Returns how many of them it used.
    fn charge(
        &self,
        entry: &mut Entry,
        limit: &Limit,
        call: Call,
        verdict: Verdict,
    ) -> (Verdict, usize) {
        let before = heap_bytes(&entry.state);
        let verdict = limit.settle(&mut entry.state, call, verdict, &Zones);
        if !self.keep_all {
            entry.fresh_at = limit.fresh_at(&entry.state, &Zones);
        }
        (verdict, heap_bytes(&entry.state).saturating_sub(before))
    }

    /// Decides some charges together. Nothing is changed unless all of it is.
    fn several(
        &self,
        ask: &Ask<'_>,
        digests: &[u128],
        unbounded: &[bool],
        now: Now,
    ) -> Result<Answer, Blocked> {
        let mut held = Held::lock(&self.table, digests)?;
        let now = self.now(now);
        let call = |charge: &Charge<'_>| Call { now, cost: charge.cost, mode: ask.mode };
        let mut verdicts: Vec<_> = ask
            .charges
            .iter()
            .zip(digests)
            .map(|(charge, digest)| {
                ask.in_time(charge.limit.judge(held.state(*digest), call(charge), &Zones))
            })
            .collect();
        if Joint::of(&verdicts).outcome != Outcome::Allow {
            for verdict in &mut verdicts {
                verdict.delay = Span::ZERO;
            }
            return Ok(Answer::new(now, verdicts));
        }
        // Taken until all is charged: another request's log cannot have them in between.
        let mut taken = self.make_places(&mut held, ask, (digests, unbounded), now)?;
        for (index, charge) in ask.charges.iter().enumerate() {
            let verdict = &mut verdicts[index];
            if !changes(charge.limit, charge.cost, ask.mode) {
                continue;
            }
            match held.entry(digests[index]) {
                Some(entry) if !unbounded[index] => {
                    let (settled, used) = self.charge(entry, charge.limit, call(charge), *verdict);
                    *verdict = settled;
                    taken = taken.saturating_sub(used);
                }
                _ if gives_back(ask.mode) => {}
                _ => *verdict = uncounted(charge.limit, call(charge), *verdict),
            }
        }
        self.table.shrink(taken);
        Ok(Answer::new(now, verdicts))
    }

    /// Makes a place for every charge that has none, and takes the bytes that logs may need: returns how many. Or takes all of it
    /// back and names the first that found no room.
    fn make_places(
        &self,
        held: &mut Held<'_>,
        ask: &Ask<'_>,
        (digests, unbounded): (&[u128], &[bool]),
        now: Timestamp,
    ) -> Result<usize, Blocked> {
        let (mut made, mut kept, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut blocked = None;
        for (index, charge) in ask.charges.iter().enumerate() {
            if unbounded[index] || !changes(charge.limit, charge.cost, ask.mode) {
                continue;
            }
            let digest = digests[index];
            bytes += growth(held.state(digest), charge.limit);
            if let Some(entry) = held.entry(digest) {
                // The places that are made after this one push out what is stale, and this one is about to be charged.
                kept.push((digest, std::mem::replace(&mut entry.fresh_at, Timestamp::NEVER)));
                continue;
            }
            if gives_back(ask.mode) {
                continue;
            }
            let shared = digest == self.shared(charge.scope);
            if held.shard(digest).insert(&self.table, digest, now, shared).is_err() {
                blocked = Some(Blocked::Room(index));
                break;
            }
            made.push(digest);
        }
        if blocked.is_none() && self.table.grow(bytes).is_err() {
            blocked = Some(Blocked::Growth);
        }
        let Some(blocked) = blocked else { return Ok(bytes) };
        for digest in made {
            drop(held.shard(digest).remove(&self.table, digest));
        }
        for (digest, fresh_at) in kept.into_iter().rev() {
            if let Some(entry) = held.entry(digest) {
                entry.fresh_at = fresh_at;
            }
        }
        Err(blocked)
    }
}

/// Returns how many bytes the next charge may take beside the entry.
fn growth(state: &State, limit: &Limit) -> usize {
    match state {
        State::SlidingLog(log) => log.next_growth(),
        State::Fresh if is_log(limit) => FIRST_LOG_BYTES,
        _ => 0,
    }
}

/// What a log takes at its first charge.
const FIRST_LOG_BYTES: usize = 4 * size_of::<sekisho_core::Entry>();

/// Why a joint decision could not be carried out as it stands.
enum Blocked {
    /// The charge of that index found no room.
    Room(usize),
    /// A log may not grow.
    Growth,
    /// Two charges name one state.
    Twice,
}

/// The shards of a request, locked in ascending order so that no two requests wait for each other.
struct Held<'a> {
    table: &'a Table,
    guards: Vec<(usize, MutexGuard<'a, Shard>)>,
}

impl<'a> Held<'a> {
    fn lock(table: &'a Table, digests: &[u128]) -> Result<Self, Blocked> {
        let mut sorted = digests.to_vec();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Blocked::Twice);
        }
        let mut shards: Vec<usize> = digests.iter().map(|digest| table.shard_of(*digest)).collect();
        shards.sort_unstable();
        shards.dedup();
        let guards = shards.into_iter().map(|shard| (shard, table.lock(shard))).collect();
        Ok(Self { table, guards })
    }

    fn shard(&mut self, digest: u128) -> &mut Shard {
        let shard = self.table.shard_of(digest);
        let place = self.guards.binary_search_by_key(&shard, |(index, _)| *index);
        let (_, guard) = &mut self.guards[place.expect("the shard of every digest is locked")];
        guard
    }

    fn entry(&mut self, digest: u128) -> Option<&mut Entry> {
        self.shard(digest).get_mut(digest)
    }

    fn state(&mut self, digest: u128) -> &State {
        const FRESH: &State = &State::Fresh;
        self.shard(digest).get(digest).map_or(FRESH, |entry| &entry.state)
    }
}

/// Returns whether keys of a scope that find no room may share a place. Limits that a caller names itself have as many ids as
/// it likes, and would take the places that are kept for policies.
fn shares(scope: &Scope) -> bool {
    !scope.policy().is_empty()
}

/// Returns whether an allowed call of this kind changes state.
fn changes(limit: &Limit, cost: u64, mode: Mode) -> bool {
    cost > 0 && mode != Mode::Look && limit.as_metered().is_some()
}

const fn gives_back(mode: Mode) -> bool {
    matches!(mode, Mode::Refund { .. })
}

fn is_log(limit: &Limit) -> bool {
    limit.as_metered().is_some_and(|of| of.algorithm() == sekisho_core::Algorithm::SlidingLog)
}

/// Returns the verdict of a request that passes and is not counted.
fn uncounted(limit: &Limit, call: Call, verdict: Verdict) -> Verdict {
    limit.settle(&mut State::Fresh, call, verdict, &Zones)
}

impl Store for Memory {
    fn decide(
        &self,
        asks: &[Ask<'_>],
        now: Now,
    ) -> impl Future<Output = Vec<Result<Answer, StoreError>>> + Send {
        future::ready(self.decide_now(asks, now))
    }

    fn forget(
        &self,
        scope: &Scope,
        key: &Key,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        future::ready(Ok(self.forget_now(scope, key.as_bytes())))
    }
}
