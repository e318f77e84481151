//! The memory store: this process's counts, bounded in entries and bytes, each decision under the locks of its keys.

mod joint;
mod single;
mod size;

use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use sekisho_core::{Algorithm, Call, Limit, Mode, State, Timestamp, Verdict};

pub(crate) use self::single::{One, Reply};
use super::{
    Answer, Ask, Now, Scope, Store, StoreError,
    table::{NoRoom, Place, STATE_BYTES_MAX, Shard, Sweep, Table, Words, heap_bytes},
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
    /// States may lie after a `now` before this: they were written by a clock that was ahead. `EPOCH`: none do.
    pub(crate) repair_before: Timestamp,
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
            // Many more shards than threads, so that two of them seldom meet.
            table: Table::new(
                (32 * cores).max(64),
                options.max_entries.max(2),
                options.max_bytes,
                options.keep_all,
            ),
            clock,
            seed: options.seed,
            overflow: options.overflow,
            overflowed: AtomicU64::new(0),
            repair_before: Timestamp::EPOCH,
        }
    }

    /// Returns the clock that this store decides by.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns what is held.
    pub fn occupancy(&self) -> Occupancy {
        Occupancy {
            entries: self.table.entries(),
            bytes: self.table.bytes(),
            max_entries: self.table.max_entries,
            max_bytes: self.table.max_bytes,
            dropped: self.table.dropped(),
            overflowed: self.overflowed.load(Relaxed),
        }
    }

    /// Decides some requests, each all or none, without waiting for anything but locks. The entries of several are asked for before
    /// the first is decided, so that one is loaded while another is waited for.
    pub fn decide_now(&self, asks: &[Ask<'_>], now: Now) -> Vec<Result<Answer, StoreError>> {
        for charge in asks.iter().flat_map(|ask| ask.charges).take(PREFETCH_MAX) {
            if asks.len() == 1 {
                break;
            }
            self.prefetch(self.locate(charge.scope, charge.key.as_bytes()));
        }
        asks.iter().map(|ask| self.ask(ask, now)).collect()
    }

    /// Returns where the state of a key under a scope is: the scope's mark and the key's digest, combined by exclusive
    /// or.
    #[inline]
    fn locate(&self, scope: &Scope, key: &[u8]) -> u128 {
        self.mark(scope) ^ self.digest(key)
    }

    #[inline]
    pub(crate) fn mark(&self, scope: &Scope) -> u128 {
        scope.mark(&self.seed)
    }

    #[inline]
    pub(crate) fn digest(&self, key: &[u8]) -> u128 {
        self.seed.digest(key)
    }

    /// Asks for the cache line of a state ahead of time.
    #[inline]
    pub(crate) fn prefetch(&self, digest: u128) {
        self.table.lock(self.table.shard_of(digest)).prefetch(digest);
    }

    /// Returns the place of the keys of a scope that found no room of their own.
    fn shared(&self, scope: &Scope) -> u128 {
        // A key meets it with the odds with which it meets any other.
        !self.mark(scope)
    }

    /// Drops the entries that equal fresh ones, a few under each lock, and gives their memory back. Returns how many went.
    /// For a timer: a table that nobody adds to does not sweep itself.
    pub fn sweep(&self) -> usize {
        if self.table.keep_all {
            return 0;
        }
        let mut dropped = 0;
        for index in 0..self.table.shards() {
            let mut leaf = 0;
            while let Some(gone) = self.table.lock(index).tend(&self.table, leaf, self.clock.now())
            {
                dropped += gone;
                leaf += 1;
            }
            while self.table.lock(index).merge(&self.table) {}
        }
        dropped
    }

    /// Drops what is known of a key under a limit. Returns whether there was anything.
    pub fn forget_now(&self, scope: &Scope, key: &[u8]) -> bool {
        let digest = self.locate(scope, key);
        self.table.lock(self.table.shard_of(digest)).remove(&self.table, digest)
    }

    /// Begins to show every entry, a small part of the table at a time.
    pub(crate) fn visit(&self) -> Visit<'_> {
        self.table.enter();
        Visit { table: &self.table, shard: 0, leaf: 0 }
    }

    /// Returns the seed that entries are found with.
    pub(crate) const fn seed(&self) -> &Seed {
        &self.seed
    }

    /// Puts an entry back that a [visit](Self::visit) of a store with the same seed has shown, unless it has become fresh. It takes a
    /// place that is kept for keys that share only when it `may_share`.
    ///
    /// # Errors
    /// [`StoreError::Full`] when there is no room for it, [`StoreError::Twice`] when it is there already.
    pub(crate) fn put(
        &self,
        digest: u128,
        state: State,
        fresh_at: Timestamp,
        may_share: bool,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        if fresh_at <= now {
            return Ok(());
        }
        let mut shard = self.table.lock(self.table.shard_of(digest));
        if shard.find(digest).is_some() {
            return Err(StoreError::Twice);
        }
        // What words say of themselves may be earlier, in a file that no store wrote: then it is kept as it is said.
        let words = Words::of(&state, fresh_at).filter(|words| words.fresh_at() == fresh_at);
        let log = heap_bytes(&state);
        let beside = if words.is_none() { STATE_BYTES_MAX } else { 0 };
        self.table.grow(log + beside).map_err(|_| StoreError::Full)?;
        self.table.shrink(beside);
        let sweep = Sweep { now, spare: &[] };
        let place = shard.insert(&self.table, digest, sweep, may_share).map_err(|_| {
            self.table.shrink(log);
            StoreError::Full
        })?;
        shard.set(&self.table, place, state, (words, fresh_at));
        Ok(())
    }

    /// Returns the time at which something is about to be decided.
    #[inline]
    pub(crate) fn told(&self, now: Now) -> Told {
        match now {
            Now::At(at) => Told::Caller(at),
            Now::StoreClock => Told::Clock(self.clock.now()),
        }
    }

    /// Charges the state at a place with what was allowed, if the bytes that it needs may be had: for a log, or for a state that
    /// does not fit its entry. A caller that must not fail has `paid` for them before: what is too much of that is given back.
    fn charge(
        &self,
        shard: &mut Shard,
        place: Place,
        (limit, call, verdict): (&Limit, Call, Verdict),
        paid: Option<usize>,
    ) -> Result<Verdict, NoRoom> {
        let was_large = shard.is_large(place);
        let mut state = shard.take(place);
        let (before, log) = (heap_bytes(&state), growth(&state, limit));
        if paid.is_none() && self.table.grow(log).is_err() {
            shard.put_back(place, state);
            return Err(NoRoom);
        }
        let settled = limit.settle(&mut state, call, verdict, &Zones);
        self.table.adjust(before + log, heap_bytes(&state));
        let fresh_at = limit.fresh_at(&state, &Zones);
        let words = Words::of(&state, fresh_at);
        let mut beside = paid.map(|paid| paid - log);
        if beside.is_none() && words.is_none() && !was_large {
            if self.table.grow(STATE_BYTES_MAX).is_err() {
                // What fitted the entry is still there as it was.
                self.table.adjust(heap_bytes(&state), before);
                return Err(NoRoom);
            }
            beside = Some(STATE_BYTES_MAX);
        }
        self.table.shrink(beside.unwrap_or_default());
        shard.set(&self.table, place, state, (words, fresh_at));
        Ok(settled)
    }
}

/// Shows every entry of a store, a leaf of the table at a time: only that is held, and only meanwhile, so what is shown are the
/// entries of no single instant. None is shown twice, and none that is there throughout is missed.
#[derive(Debug)]
pub(crate) struct Visit<'a> {
    table: &'a Table,
    shard: usize,
    leaf: usize,
}

impl Visit<'_> {
    /// Shows the entries of the next part: the digest, the state, and the instant from which the state equals a fresh one. Returns
    /// whether there was a part.
    pub(crate) fn next(&mut self, mut each: impl FnMut(u128, &State, Timestamp)) -> bool {
        while self.shard < self.table.shards() {
            if self.table.lock(self.shard).visit(self.leaf, &mut each) {
                self.leaf += 1;
                return true;
            }
            (self.shard, self.leaf) = (self.shard + 1, 0);
        }
        false
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.table.leave();
    }
}

/// A time, before the state is held that it is for.
#[derive(Clone, Copy)]
pub(crate) enum Told {
    /// The caller's own.
    Caller(Timestamp),
    /// The clock's. It was read while the key was digested, which costs nothing then; whoever was faster may have been told a later
    /// time since, so it is settled once the state is held.
    Clock(Timestamp),
}

impl Told {
    /// Returns the time as it was told.
    const fn time(self) -> Timestamp {
        match self {
            Self::Caller(time) | Self::Clock(time) => time,
        }
    }

    /// Returns the time of a decision in a shard. By the clock, it is never before that of the decision before it.
    #[inline]
    pub(in crate::store) fn settle(self, shard: &mut Shard) -> Timestamp {
        match self {
            Self::Caller(at) => at,
            Self::Clock(read) => {
                shard.latest = shard.latest.max(read);
                shard.latest
            }
        }
    }
}

/// How many entries are asked for ahead of time: about as many as a processor's first cache holds.
pub(crate) const PREFETCH_MAX: usize = 256;

/// Returns how many bytes the next charge may take for a log.
fn growth(state: &State, limit: &Limit) -> usize {
    match state {
        State::SlidingLog(log) if is_log(limit) => log.next_growth(),
        _ if is_log(limit) => FIRST_LOG_BYTES,
        _ => 0,
    }
}

/// What a log takes at its first charge.
const FIRST_LOG_BYTES: usize = sekisho_core::SlidingLog::FIRST_BYTES;

/// Returns whether keys of a scope that find no room may share a place. Limits that a caller names itself have as many ids as
/// it likes, and would take the places that are kept for policies.
fn shares(scope: &Scope) -> bool {
    !scope.policy().is_empty()
}

/// Returns whether an allowed call of this kind changes state.
const fn changes(limit: &Limit, cost: u64, mode: Mode) -> bool {
    cost > 0 && !matches!(mode, Mode::Look) && limit.as_metered().is_some()
}

const fn gives_back(mode: Mode) -> bool {
    matches!(mode, Mode::Refund { .. })
}

fn is_log(limit: &Limit) -> bool {
    limit.as_metered().is_some_and(|of| of.algorithm() == Algorithm::SlidingLog)
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
