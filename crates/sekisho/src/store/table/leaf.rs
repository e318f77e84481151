//! A small open-addressing table: a run of buckets in which a digest is looked for from its own bucket on.
//!
//! A bucket is two neighbouring cache lines, which are loaded together, so that nearly every digest is found in the time of one
//! load. The order is that of linear probing: a digest lies between its own bucket and the next empty slot after it. What is
//! removed leaves no mark; those behind it move up.

use sekisho_core::Timestamp;

use super::slot::{Slot, Words};
use crate::machine;

/// How many slots a bucket has.
const WIDTH: usize = 4;

/// Two cache lines of slots.
#[derive(Clone, Copy, Debug)]
#[repr(align(128))]
struct Bucket([Slot; WIDTH]);

/// A run of buckets.
#[derive(Debug, Default)]
pub(super) struct Leaf {
    buckets: Box<[Bucket]>,
    len: u32,
}

impl Leaf {
    /// Returns an empty one of that many buckets.
    pub(super) fn new(buckets: usize) -> Self {
        Self { buckets: vec![Bucket([Slot::EMPTY; WIDTH]); buckets].into_boxed_slice(), len: 0 }
    }

    /// Returns how many buckets hold `len` entries without being too full: 13 of 16 slots.
    pub(super) const fn buckets_for(len: usize) -> usize {
        (16 / WIDTH * len).div_ceil(13)
    }

    pub(super) const fn buckets(&self) -> usize {
        self.buckets.len()
    }

    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) const fn bytes(&self) -> usize {
        Self::bytes_of(self.buckets.len())
    }

    /// Returns what a leaf of that many buckets takes, with its share of the list of leaves and of the allocator's own.
    pub(super) const fn bytes_of(buckets: usize) -> usize {
        if buckets == 0 { 0 } else { buckets * size_of::<Bucket>() + 4 * size_of::<Self>() }
    }

    pub(super) const fn slots(&self) -> usize {
        WIDTH * self.buckets.len()
    }

    /// Returns whether one entry more makes it too full to stay fast; with `hard`, whether it makes it too full at all.
    pub(super) const fn is_full(&self, hard: bool) -> bool {
        let len = self.len() + 1;
        if hard {
            16 * len > 15 * self.slots()
        } else {
            Self::buckets_for(len) > self.buckets.len()
        }
    }

    /// Returns a digest's own bucket. The map keeps order, so that growing moves entries along, not about.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "less than the number of buckets")]
    const fn home(&self, digest: u128) -> usize {
        let high = (digest >> 64) as u64;
        ((high as u128 * self.buckets.len() as u64 as u128) >> 64) as usize
    }

    #[inline]
    pub(super) fn slot(&self, at: usize) -> &Slot {
        &self.buckets[at / WIDTH].0[at % WIDTH]
    }

    #[inline]
    pub(super) fn slot_mut(&mut self, at: usize) -> &mut Slot {
        &mut self.buckets[at / WIDTH].0[at % WIDTH]
    }

    /// Asks for the bucket in which a digest most likely is.
    #[inline]
    pub(super) fn prefetch(&self, digest: u128) {
        if let Some(Bucket([first, _, third, _])) = self.buckets.get(self.home(digest)) {
            machine::prefetch(first);
            machine::prefetch(third);
        }
    }

    /// Returns where a digest is.
    #[inline]
    pub(super) fn find(&self, digest: u128) -> Option<usize> {
        let home = self.home(digest);
        let Bucket(slots) = self.buckets.get(home)?;
        // While the first line is waited for, the second one is on its way too.
        machine::prefetch(&slots[WIDTH / 2]);
        for (half, slot) in slots.iter().enumerate() {
            if slot.digest == digest && !slot.is_empty() {
                return Some(WIDTH * home + half);
            }
        }
        if slots[WIDTH - 1].is_empty() { None } else { self.find_after(digest, home) }
    }

    /// Looks on behind a digest's own bucket.
    #[cold]
    fn find_after(&self, digest: u128, home: usize) -> Option<usize> {
        let first = WIDTH * (home + 1);
        for at in (first..self.slots()).chain(0..first) {
            let slot = self.slot(at);
            if slot.is_empty() {
                return None;
            }
            if slot.digest == digest {
                return Some(at);
            }
        }
        None
    }

    /// Puts an entry in that is not there yet, in an empty slot or in that of an entry that may go. Returns where it is, and the
    /// words of that. There is an empty slot.
    pub(super) fn insert(
        &mut self,
        digest: u128,
        words: Words,
        may_go: impl Fn(&Slot) -> bool,
    ) -> (usize, Option<Words>) {
        let mut at = WIDTH * self.home(digest);
        while !self.slot(at).is_empty() {
            let held = *self.slot(at);
            if may_go(&held) {
                *self.slot_mut(at) = Slot { digest, words };
                return (at, Some(held.words));
            }
            at = self.after(at);
        }
        *self.slot_mut(at) = Slot { digest, words };
        self.len += 1;
        (at, None)
    }

    /// Takes an entry out, and moves up those behind it that would not be found any more.
    pub(super) fn remove(&mut self, at: usize) {
        let (mut hole, mut next) = (at, self.after(at));
        // A full leaf has no empty slot to stop at.
        for _ in 0..self.slots() {
            let slot = *self.slot(next);
            if slot.is_empty() {
                break;
            }
            if self.distance(WIDTH * self.home(slot.digest), next) >= self.distance(hole, next) {
                *self.slot_mut(hole) = slot;
                hole = next;
            }
            next = self.after(next);
        }
        *self.slot_mut(hole) = Slot::EMPTY;
        self.len -= 1;
    }

    const fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots() { 0 } else { at + 1 }
    }

    const fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.slots() - from }
    }

    /// Takes out the entries that may go among some slots; hands their words out, and returns where it stopped.
    pub(super) fn clean(
        &mut self,
        from: usize,
        steps: usize,
        may_go: impl Fn(&Slot) -> bool,
        mut gone: impl FnMut(Words),
    ) -> usize {
        let (mut at, end) = (from, self.slots().min(from + steps));
        let mut turns = 2 * self.slots();
        while at < end && turns > 0 {
            turns -= 1;
            let slot = *self.slot(at);
            if slot.is_empty() || !may_go(&slot) {
                at += 1;
                continue;
            }
            // What moves up into this slot is looked at next.
            self.remove(at);
            gone(slot.words);
        }
        at
    }

    /// Returns every entry.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.buckets.iter().flat_map(|bucket| &bucket.0).filter(|slot| !slot.is_empty())
    }
}

/// Returns whether an entry equals a fresh one now.
#[inline]
pub(super) fn is_stale(slot: &Slot, now: Timestamp) -> bool {
    slot.words.fresh_at() <= now
}
