//! One lock's share of the table: leaves that split one at a time, so that growing never moves more than one of them.
//!
//! This is linear hashing (Litwin 1980) over leaves instead of buckets: the leaf after the last is made by splitting the one
//! whose number it has without its highest bit. A leaf that waits for its turn just gets longer.

use sekisho_core::{State, Timestamp};

use super::{
    NoRoom, Table, heap_bytes,
    large::Large,
    leaf::{Leaf, is_stale},
    slot::{Slot, Words},
};
use crate::digest::PART_MASK;

/// How many entries a leaf has on average before another one is made.
const PER_LEAF: usize = 1024;
/// How many slots an insertion looks at when there is no room. Bounded, so that no decision pays for the whole table.
const SWEEP_STEPS: usize = 64;

/// One lock's share of the table.
#[derive(Debug, Default)]
pub(in crate::store) struct Shard {
    leaves: Vec<Leaf>,
    large: Large,
    len: usize,
    /// Where the sweep goes on: a leaf and a slot of it.
    cursor: (usize, usize),
    /// The time of the last decision.
    pub(in crate::store) latest: Timestamp,
}

/// Where an entry is, until the shard is changed.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Place {
    leaf: usize,
    slot: usize,
}

/// Whom an insertion must leave in peace, and since when the others may be dropped.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Sweep<'a> {
    /// Who equals a fresh one at this time may go.
    pub(in crate::store) now: Timestamp,
    /// Digests that may not, in ascending order.
    pub(in crate::store) spare: &'a [u128],
}

impl Sweep<'_> {
    fn may_go(&self, of: &Table, slot: &Slot) -> bool {
        !of.keep_all && is_stale(slot, self.now) && self.spare.binary_search(&slot.digest).is_err()
    }
}

impl Shard {
    /// Returns the leaf of a digest, among `leaves`.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the bits above are not wanted")]
    const fn leaf_of(digest: u128, leaves: usize) -> usize {
        let bits = (digest as u64 >> PART_MASK.count_ones()) as usize;
        // The bits of the highest leaf's number, and all below them.
        let mask = usize::MAX >> (leaves.wrapping_sub(1) | 1).leading_zeros();
        let leaf = bits & mask;
        // The leaf has not been made yet: its entries are where they will be split from.
        if leaf < leaves { leaf } else { leaf & (mask >> 1) }
    }

    /// Returns where the state of a digest is.
    #[inline]
    pub(in crate::store) fn find(&self, digest: u128) -> Option<Place> {
        let leaf = Self::leaf_of(digest, self.leaves.len());
        let slot = self.leaves.get(leaf)?.find(digest)?;
        Some(Place { leaf, slot })
    }

    /// Returns the words of the state of a digest.
    #[inline]
    pub(in crate::store) fn words_of(&mut self, digest: u128) -> Option<&mut Words> {
        let leaf = Self::leaf_of(digest, self.leaves.len());
        let leaf = self.leaves.get_mut(leaf)?;
        let slot = leaf.find(digest)?;
        Some(&mut leaf.slot_mut(slot).words)
    }

    /// Asks for the line of a digest ahead of time.
    #[inline]
    pub(in crate::store) fn prefetch(&self, digest: u128) {
        if let Some(leaf) = self.leaves.get(Self::leaf_of(digest, self.leaves.len())) {
            leaf.prefetch(digest);
        }
    }

    fn slot(&self, place: Place) -> &Slot {
        self.leaves[place.leaf].slot(place.slot)
    }

    fn words_mut(&mut self, place: Place) -> &mut Words {
        &mut self.leaves[place.leaf].slot_mut(place.slot).words
    }

    /// Returns the state there to look at.
    pub(in crate::store) fn with_state<R>(
        &self,
        place: Place,
        look: impl FnOnce(&State) -> R,
    ) -> R {
        let words = self.slot(place).words;
        match words.place() {
            Some(number) => look(self.large.get(number)),
            None => look(&words.state().unwrap_or_default()),
        }
    }

    /// Returns whether the state there is kept elsewhere.
    pub(in crate::store) fn is_large(&self, place: Place) -> bool {
        self.slot(place).words.place().is_some()
    }

    /// Takes the state there out. Until one is [set](Self::set), an entry without state is there.
    pub(in crate::store) fn take(&mut self, place: Place) -> State {
        let words = self.slot(place).words;
        match words.place() {
            Some(number) => self.large.take(number),
            None => words.state().unwrap_or_default(),
        }
    }

    /// Puts back a state that was taken out and has not changed.
    pub(in crate::store) fn put_back(&mut self, place: Place, state: State) {
        if let Some(number) = self.slot(place).words.place() {
            self.large.put(number, state);
        }
    }

    /// Writes a state that equals a fresh one from `fresh_at` on, in words if it has them. One that has none takes bytes beside
    /// the entry: the caller has asked for them.
    pub(in crate::store) fn set(
        &mut self,
        of: &Table,
        place: Place,
        state: State,
        (words, fresh_at): (Option<Words>, Timestamp),
    ) {
        let before = self.large.bytes();
        let old = self.slot(place).words.place();
        let words = match (words, old) {
            (Some(words), None) => words,
            (Some(words), Some(number)) => {
                let _moved = self.large.remove(number);
                words
            }
            (None, Some(number)) => {
                self.large.put(number, state);
                Words::elsewhere(number, fresh_at)
            }
            (None, None) => Words::elsewhere(self.large.insert(state), fresh_at),
        };
        *self.words_mut(place) = words;
        of.adjust(before, self.large.bytes());
    }

    /// Makes a place for a digest that has none, dropping stale entries on the way. A `shared` one, for keys that found no room,
    /// may take a reserved place. The place is taken for good: it does not go stale until a state is set.
    pub(in crate::store) fn insert(
        &mut self,
        of: &Table,
        digest: u128,
        sweep: Sweep<'_>,
        shared: bool,
    ) -> Result<Place, NoRoom> {
        if of.reserve(shared).is_err() {
            let _dropped = self.sweep(of, sweep, SWEEP_STEPS);
            of.reserve(shared)?;
        }
        let leaf = self.make_room(of, digest, sweep).inspect_err(|_| of.give_back(1))?;
        let (slot, replaced) =
            self.leaves[leaf].insert(digest, Words::TAKEN, |slot| sweep.may_go(of, slot));
        match replaced {
            Some(words) => self.dropped(of, words),
            None => self.len += 1,
        }
        Ok(Place { leaf, slot })
    }

    /// Accounts for an entry that has gone, and lets go of what it had elsewhere.
    fn dropped(&mut self, of: &Table, words: Words) {
        self.gone(of, words);
        of.stale(1);
    }

    fn gone(&mut self, of: &Table, words: Words) {
        of.give_back(1);
        if let Some(number) = words.place() {
            let before = self.large.bytes();
            let state = self.large.remove(number);
            of.adjust(before + heap_bytes(&state), self.large.bytes());
        }
    }

    /// Sees to it that the leaf of a digest has an empty slot, and returns which that is.
    fn make_room(&mut self, of: &Table, digest: u128, sweep: Sweep<'_>) -> Result<usize, NoRoom> {
        if self.leaves.is_empty() {
            self.leaves.push(Leaf::default());
        }
        let leaf = Self::leaf_of(digest, self.leaves.len());
        if !self.leaves[leaf].is_full(false) {
            return Ok(leaf);
        }
        let all = self.leaves[leaf].slots();
        let _dropped = self.clean(of, (leaf, 0), all, sweep);
        if !self.leaves[leaf].is_full(false) {
            return Ok(leaf);
        }
        if self.len >= PER_LEAF * self.leaves.len() && !of.is_visited() {
            // Where there are no bytes for it, the leaf that is full may still find some.
            let _split = self.split(of);
        }
        let leaf = Self::leaf_of(digest, self.leaves.len());
        if !self.leaves[leaf].is_full(false) {
            return Ok(leaf);
        }
        let (buckets, len) = (self.leaves[leaf].buckets(), self.leaves[leaf].len());
        let grown = Leaf::buckets_for(len + 1).max(buckets + buckets / 8);
        match self.rebuild(of, leaf, grown) {
            Err(NoRoom) if self.leaves[leaf].is_full(true) => Err(NoRoom),
            _ => Ok(leaf),
        }
    }

    /// Moves a leaf's entries to one of that many buckets.
    fn rebuild(&mut self, of: &Table, leaf: usize, buckets: usize) -> Result<(), NoRoom> {
        of.grow(Leaf::bytes_of(buckets))?;
        let mut rebuilt = Leaf::new(buckets);
        for slot in self.leaves[leaf].iter() {
            let _new = rebuilt.insert(slot.digest, slot.words, |_| false);
        }
        of.shrink(self.leaves[leaf].bytes());
        self.leaves[leaf] = rebuilt;
        Ok(())
    }

    /// Makes one more leaf, from half of the entries of another.
    fn split(&mut self, of: &Table) -> Result<(), NoRoom> {
        let new = self.leaves.len();
        let from = parent(new);
        let moves = |slot: &Slot| Self::leaf_of(slot.digest, new + 1) == new;
        let moved = self.leaves[from].iter().filter(|slot| moves(slot)).count();
        // A little room, or the next insertion would move all of them again.
        let buckets_for = |len: usize| Leaf::buckets_for(len + len / 8);
        let buckets = (buckets_for(self.leaves[from].len() - moved), buckets_for(moved));
        of.grow(Leaf::bytes_of(buckets.0) + Leaf::bytes_of(buckets.1))?;
        let (mut stay, mut go) = (Leaf::new(buckets.0), Leaf::new(buckets.1));
        for slot in self.leaves[from].iter() {
            let to = if moves(slot) { &mut go } else { &mut stay };
            let _new = to.insert(slot.digest, slot.words, |_| false);
        }
        of.shrink(self.leaves[from].bytes());
        self.leaves[from] = stay;
        self.leaves.push(go);
        Ok(())
    }

    /// Drops the stale ones among the next few entries. Returns how many.
    fn sweep(&mut self, of: &Table, sweep: Sweep<'_>, steps: usize) -> usize {
        let (leaf, slot) = self.cursor;
        if leaf >= self.leaves.len() {
            self.cursor = (0, 0);
            return if self.leaves.is_empty() { 0 } else { self.sweep(of, sweep, steps) };
        }
        let before = self.leaves[leaf].len();
        let stopped = self.clean(of, (leaf, slot), steps, sweep);
        self.cursor =
            if stopped < self.leaves[leaf].slots() { (leaf, stopped) } else { (leaf + 1, 0) };
        before - self.leaves[leaf].len()
    }

    /// Drops the stale ones among some slots of a leaf. Returns where it stopped.
    fn clean(
        &mut self,
        of: &Table,
        (leaf, slot): (usize, usize),
        steps: usize,
        sweep: Sweep<'_>,
    ) -> usize {
        let mut gone = Vec::new();
        let mut small = 0;
        let stopped = self.leaves[leaf].clean(
            slot,
            steps,
            |slot| sweep.may_go(of, slot),
            |words| match words.place() {
                Some(_) => gone.push(words),
                None => small += 1,
            },
        );
        self.len -= small + gone.len();
        of.give_back(small);
        of.stale(small);
        for words in gone {
            self.dropped(of, words);
        }
        stopped
    }

    /// Takes an entry out. Returns whether it was there.
    pub(in crate::store) fn remove(&mut self, of: &Table, digest: u128) -> bool {
        let Some(place) = self.find(digest) else { return false };
        let words = self.slot(place).words;
        self.leaves[place.leaf].remove(place.slot);
        self.len -= 1;
        self.gone(of, words);
        true
    }

    /// Shows the entries of one leaf. Returns whether there are more.
    pub(in crate::store) fn visit(
        &self,
        leaf: usize,
        each: &mut dyn FnMut(u128, &State, Timestamp),
    ) -> bool {
        let Some(entries) = self.leaves.get(leaf) else { return false };
        for slot in entries.iter() {
            let fresh_at = slot.words.fresh_at();
            if let Some(number) = slot.words.place() {
                each(slot.digest, self.large.get(number), fresh_at);
            } else {
                each(slot.digest, &slot.words.state().unwrap_or_default(), fresh_at);
            }
        }
        true
    }

    /// Drops the stale entries of one leaf and gives memory back if few are left; for a timer, not for a decision. Returns how many
    /// went, or nothing when there is no such leaf.
    pub(in crate::store) fn tend(
        &mut self,
        of: &Table,
        leaf: usize,
        now: Timestamp,
    ) -> Option<usize> {
        let before = self.leaves.get(leaf)?.len();
        let all = self.leaves[leaf].slots();
        let _stopped = self.clean(of, (leaf, 0), all, Sweep { now, spare: &[] });
        let len = self.leaves[leaf].len();
        let buckets = if len == 0 { 0 } else { Leaf::buckets_for(len + len / 8) };
        if 2 * buckets < self.leaves[leaf].buckets() || buckets == 0 {
            let _rebuilt = self.rebuild(of, leaf, buckets);
        }
        Some(before - len)
    }

    /// Undoes a split when there are far fewer entries than leaves for them. Returns whether it did.
    pub(in crate::store) fn merge(&mut self, of: &Table) -> bool {
        let Some(last) = self.leaves.len().checked_sub(1) else { return false };
        if 4 * self.len >= PER_LEAF * self.leaves.len() || of.is_visited() {
            return false;
        }
        let Some(to) = (last > 0).then(|| parent(last)) else {
            if self.len == 0 {
                of.shrink(self.leaves[0].bytes());
                self.leaves = Vec::new();
            }
            return false;
        };
        let len = self.leaves[to].len() + self.leaves[last].len();
        if self.rebuild(of, to, Leaf::buckets_for(len + 1)).is_err() {
            return false;
        }
        let Some(leaf) = self.leaves.pop() else { return false };
        for slot in leaf.iter() {
            let _new = self.leaves[to].insert(slot.digest, slot.words, |_| false);
        }
        of.shrink(leaf.bytes());
        if self.leaves.capacity() > 4 * self.leaves.len() {
            self.leaves.shrink_to(2 * self.leaves.len());
        }
        true
    }
}

/// Returns the leaf from which another one is split.
const fn parent(leaf: usize) -> usize {
    leaf & !(1 << leaf.ilog2())
}
