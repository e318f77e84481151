//! The memory store's table: power-of-two shards, each under a lock of its own.
//!
//! An entry is found by the digest of its scope and key; the key itself is not kept. A state that equals a fresh one is
//! dropped for free: by the insertion that comes by its slot, before a leaf grows, and by a timer. Nothing ever passes over the
//! whole table.

mod large;
mod leaf;
mod shard;
mod slot;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use sekisho_core::State;

pub(super) use self::{
    large::STATE_BYTES_MAX,
    shard::{Place, Shard, Sweep},
    slot::Words,
};
use crate::{
    digest::PART_MASK,
    sync::{Guard, Lock},
};

/// The most shards.
const SHARDS_MAX: usize = 1 << PART_MASK.count_ones();
/// How many entries there are at least to a shard, when the table is full: a stale entry is only found in its own.
const PER_SHARD: usize = 1_024;

/// A lock that shares its cache lines with no other.
#[derive(Debug)]
#[repr(align(128))]
struct Padded(Lock<Shard>);

/// What the table may hold, and what it holds.
#[derive(Debug)]
pub(super) struct Table {
    shards: Box<[Padded]>,
    entries: AtomicUsize,
    bytes: AtomicUsize,
    stale: AtomicU64,
    pub(super) max_entries: usize,
    /// Entries that only shared ones may take.
    reserved: usize,
    pub(super) max_bytes: usize,
    /// How many are looking at all entries. While anybody does, none moves from leaf to leaf: leaves grow instead of splitting.
    visitors: AtomicUsize,
    /// Whether nothing is dropped for being stale.
    pub(super) keep_all: bool,
}

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoRoom;

impl Table {
    pub(super) fn new(shards: usize, max_entries: usize, max_bytes: usize, keep_all: bool) -> Self {
        let wanted = shards.min(max_entries / PER_SHARD).clamp(1, SHARDS_MAX);
        let shards = (0..wanted.next_power_of_two()).map(|_| Padded(Lock::new(Shard::default())));
        Self {
            shards: shards.collect(),
            entries: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            stale: AtomicU64::new(0),
            max_entries,
            reserved: (max_entries / 16).clamp(1, 256).min(max_entries),
            max_bytes,
            visitors: AtomicUsize::new(0),
            keep_all,
        }
    }

    #[inline]
    pub(super) const fn shard_of(&self, digest: u128) -> usize {
        digest as usize & (self.shards.len() - 1)
    }

    #[inline]
    pub(super) fn lock(&self, shard: usize) -> Guard<'_, Shard> {
        self.shards[shard].0.lock()
    }

    /// Notes that somebody looks at all entries from now on. Whoever holds a shard later sees it.
    pub(super) fn enter(&self) {
        let _before = self.visitors.fetch_add(1, Relaxed);
    }

    pub(super) fn leave(&self) {
        let _before = self.visitors.fetch_sub(1, Relaxed);
    }

    fn is_visited(&self) -> bool {
        self.visitors.load(Relaxed) > 0
    }

    pub(super) const fn shards(&self) -> usize {
        self.shards.len()
    }

    pub(super) fn entries(&self) -> usize {
        self.entries.load(Relaxed)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Returns how many entries have been dropped for being stale.
    pub(super) fn dropped(&self) -> u64 {
        self.stale.load(Relaxed)
    }

    /// Takes a place for one more entry, or says that there is none.
    fn reserve(&self, shared: bool) -> Result<(), NoRoom> {
        let most = if shared { self.max_entries } else { self.max_entries - self.reserved };
        let taken =
            self.entries.fetch_update(Relaxed, Relaxed, |taken| (taken < most).then(|| taken + 1));
        taken.map(drop).map_err(|_| NoRoom)
    }

    fn give_back(&self, entries: usize) {
        if entries > 0 {
            let _before = self.entries.fetch_sub(entries, Relaxed);
        }
    }

    fn stale(&self, entries: usize) {
        if entries > 0 {
            let _before = self.stale.fetch_add(entries as u64, Relaxed);
        }
    }

    /// Counts bytes that are about to be used, or says that there is no room for them.
    pub(super) fn grow(&self, by: usize) -> Result<(), NoRoom> {
        if by == 0 {
            return Ok(());
        }
        let most = self.max_bytes;
        let used = self
            .bytes
            .fetch_update(Relaxed, Relaxed, |used| used.checked_add(by).filter(|sum| *sum <= most));
        used.map(drop).map_err(|_| NoRoom)
    }

    pub(super) fn shrink(&self, by: usize) {
        if by > 0 {
            let _before = self.bytes.fetch_sub(by, Relaxed);
        }
    }

    /// Counts what something took before and takes now.
    pub(super) fn adjust(&self, before: usize, after: usize) {
        if after > before {
            let _before = self.bytes.fetch_add(after - before, Relaxed);
        }
        self.shrink(before.saturating_sub(after));
    }
}

/// Returns what a state keeps outside its entry.
pub(super) fn heap_bytes(state: &State) -> usize {
    match state {
        State::SlidingLog(log) => log.heap_bytes(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
