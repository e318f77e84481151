//! The memory store's table: power-of-two shards, each a hash table under a lock of its own.
//!
//! An entry is found by the digest of its scope and key; the key itself is not kept. A state that equals a fresh one is
//! dropped for free: whoever adds an entry looks at a few others on the way, so no pass over the whole table is ever made.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use hashbrown::{HashTable, hash_table::Entry as Place};
use parking_lot::{Mutex, MutexGuard};
use sekisho_core::{State, Timestamp};

/// How many entries an insertion looks at for one to drop; more than one, so that the dropping outruns the adding.
const SWEEP_STEPS: usize = 4;
/// How many it looks at when there is no room. Bounded, so that no decision pays for the whole table.
const SWEEP_STEPS_FULL: usize = 64;

/// What is kept of one key under one limit.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) digest: u128,
    /// From this instant on the state equals a fresh one.
    pub(super) fresh_at: Timestamp,
    pub(super) state: State,
}

/// One lock's share of the table.
#[derive(Debug, Default)]
pub(super) struct Shard {
    table: HashTable<Entry>,
    /// Where the sweep goes on.
    cursor: usize,
}

/// What the table may hold, and what it holds.
#[derive(Debug)]
pub(super) struct Table {
    shards: Box<[Mutex<Shard>]>,
    pub(super) entries: AtomicUsize,
    pub(super) bytes: AtomicUsize,
    pub(super) stale: AtomicU64,
    pub(super) max_entries: usize,
    /// Entries that only shared ones may take.
    reserved: usize,
    pub(super) max_bytes: usize,
}

/// Why there is no room.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoRoom;

/// Returns the half of the digest that finds the place in a shard; the other finds the shard.
#[expect(clippy::cast_possible_truncation, reason = "half of it is wanted")]
const fn hash(digest: u128) -> u64 {
    digest as u64
}

impl Table {
    pub(super) fn new(shards: usize, max_entries: usize, max_bytes: usize) -> Self {
        let shards = (0..shards.next_power_of_two()).map(|_| Mutex::default()).collect();
        Self {
            shards,
            entries: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            stale: AtomicU64::new(0),
            max_entries,
            reserved: (max_entries / 16).clamp(1, 256).min(max_entries),
            max_bytes,
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the bits above the mask are not wanted")]
    pub(super) fn shard_of(&self, digest: u128) -> usize {
        (digest >> 64) as usize & (self.shards.len() - 1)
    }

    pub(super) fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.shards[shard].lock()
    }

    pub(super) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Takes a place for one more entry, or says that there is none.
    fn reserve(&self, shared: bool) -> Result<(), NoRoom> {
        let most = if shared { self.max_entries } else { self.max_entries - self.reserved };
        let taken =
            self.entries.fetch_update(Relaxed, Relaxed, |taken| (taken < most).then(|| taken + 1));
        taken.map(drop).map_err(|_| NoRoom)
    }

    /// Counts bytes that are about to be used, or says that there is no room for them.
    pub(super) fn grow(&self, by: usize) -> Result<(), NoRoom> {
        let most = self.max_bytes;
        let used = self
            .bytes
            .fetch_update(Relaxed, Relaxed, |used| used.checked_add(by).filter(|sum| *sum <= most));
        used.map(drop).map_err(|_| NoRoom)
    }

    pub(super) fn shrink(&self, by: usize) {
        let _before = self.bytes.fetch_sub(by, Relaxed);
    }
}

impl Shard {
    pub(super) fn get(&self, digest: u128) -> Option<&Entry> {
        self.table.find(hash(digest), |entry| entry.digest == digest)
    }

    pub(super) fn get_mut(&mut self, digest: u128) -> Option<&mut Entry> {
        self.table.find_mut(hash(digest), |entry| entry.digest == digest)
    }

    /// Makes a place for a new entry with a fresh state, dropping stale ones on the way. It stays until it is told when
    /// it equals a fresh one. A `shared` one, for keys that found no room, may take a reserved place.
    pub(super) fn insert(
        &mut self,
        of: &Table,
        digest: u128,
        now: Timestamp,
        shared: bool,
    ) -> Result<(), NoRoom> {
        self.sweep(of, now, SWEEP_STEPS);
        if of.reserve(shared).is_err() {
            self.sweep(of, now, SWEEP_STEPS_FULL);
            of.reserve(shared)?;
        }
        if self.make_room(of, now).is_err() {
            let _before = of.entries.fetch_sub(1, Relaxed);
            return Err(NoRoom);
        }
        let entry = Entry { digest, fresh_at: Timestamp::NEVER, state: State::Fresh };
        self.table.insert_unique(hash(digest), entry, |entry| hash(entry.digest));
        Ok(())
    }

    /// Lets the table grow if it must and may.
    fn make_room(&mut self, of: &Table, now: Timestamp) -> Result<(), NoRoom> {
        if self.table.len() < self.table.capacity() {
            return Ok(());
        }
        // While it moves, the old table and the new one are both there; the new one is about twice as large.
        let before = self.table.allocation_size();
        let after = (2 * before).max(1_024);
        if of.grow(after).is_err() {
            self.sweep(of, now, SWEEP_STEPS_FULL);
            return if self.table.len() < self.table.capacity() { Ok(()) } else { Err(NoRoom) };
        }
        self.table.reserve(1, |entry| hash(entry.digest));
        let grown = self.table.allocation_size();
        of.shrink(before + after);
        // At most what was asked for a moment ago, so the cap holds.
        let _before = of.bytes.fetch_add(grown, Relaxed);
        Ok(())
    }

    /// Drops the stale ones among the next few entries. Returns how many.
    pub(super) fn sweep(&mut self, of: &Table, now: Timestamp, steps: usize) -> usize {
        let buckets = self.table.num_buckets();
        let mut dropped = 0;
        for _ in 0..steps.min(buckets) {
            self.cursor = (self.cursor + 1) % buckets;
            let Ok(place) = self.table.get_bucket_entry(self.cursor) else { continue };
            if place.get().fresh_at <= now {
                let (entry, _) = place.remove();
                of.dropped(&entry);
                dropped += 1;
            }
        }
        let _before = of.stale.fetch_add(dropped as u64, Relaxed);
        dropped
    }

    /// Gives memory back when most of the table is empty. Moves what is left, so it belongs to a timer, not to a decision.
    pub(super) fn shrink(&mut self, of: &Table) {
        let (held, before) = (self.table.len(), self.table.allocation_size());
        if 4 * held >= self.table.capacity() {
            return;
        }
        // The old table and the new one, at most half as large, are both there for a moment.
        if of.grow(before / 2).is_err() {
            return;
        }
        self.table.shrink_to(2 * held, |entry| hash(entry.digest));
        self.cursor = 0;
        of.shrink(before / 2 + before - self.table.allocation_size());
    }

    pub(super) fn remove(&mut self, of: &Table, digest: u128) -> Option<Entry> {
        match self.table.entry(
            hash(digest),
            |entry| entry.digest == digest,
            |entry| hash(entry.digest),
        ) {
            Place::Occupied(place) => {
                let (entry, _) = place.remove();
                of.dropped(&entry);
                Some(entry)
            }
            Place::Vacant(_) => None,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.table.iter()
    }

    pub(super) fn buckets(&self) -> usize {
        self.table.num_buckets()
    }
}

impl Table {
    fn dropped(&self, entry: &Entry) {
        let _before = self.entries.fetch_sub(1, Relaxed);
        self.shrink(heap_bytes(&entry.state));
    }
}

/// Returns what a state keeps outside its entry.
pub(super) fn heap_bytes(state: &State) -> usize {
    match state {
        State::SlidingLog(log) => log.heap_bytes(),
        _ => 0,
    }
}
