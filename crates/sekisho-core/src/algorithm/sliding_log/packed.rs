//! A queue of pairs of numbers in as few bytes as they need.
//!
//! A number takes a byte for every seven of its bits (LEB128). The bytes stand in chunks: what is full is never moved or copied
//! again, only the last chunk is written, and the first goes as soon as all of it has been taken away. A pair may begin in one
//! chunk and end in the next, so no byte of a full chunk is wasted. The last chunk grows in small steps at first, because most
//! queues are short.

use alloc::{
    collections::{LinkedList, linked_list::Iter},
    vec::Vec,
};
use core::mem;

/// Bytes of a full chunk: with the two links of the list they are 512.
const CHUNK: usize = 512 - LINKS;
const LINKS: usize = 2 * size_of::<usize>();
/// By how many bytes the last chunk grows.
const STEP: usize = 16;
/// Bytes of the largest number.
const LONGEST: usize = 10;

/// Pairs of numbers, first in, first out.
#[derive(Debug, Default)]
#[expect(clippy::linkedlist, reason = "what is full stays where it is, and goes by itself")]
pub(super) struct Packed {
    full: LinkedList<[u8; CHUNK]>,
    // Invariant: at most a chunk long; with a full chunk before it, it has the capacity of one.
    last: Vec<u8>,
    // How many bytes of the first full chunk have been taken away. Invariant: less than a chunk, and 0 without one.
    taken: usize,
}

impl Clone for Packed {
    /// A copy holds as many bytes: a vector's own copy would have no room left, and take it again at its next change.
    fn clone(&self) -> Self {
        let mut last = Vec::with_capacity(self.last.capacity());
        last.extend_from_slice(&self.last);
        Self { full: self.full.clone(), last, taken: self.taken }
    }
}

impl Packed {
    pub(super) fn is_empty(&self) -> bool {
        self.full.is_empty() && self.last.is_empty()
    }

    /// Returns how many bytes are held, all of which were asked for one by one.
    pub(super) fn heap_bytes(&self) -> usize {
        let full = self.full.len().saturating_mul(CHUNK.saturating_add(LINKS));
        full.saturating_add(self.last.capacity())
    }

    /// Returns how many more bytes the next pair may take, of which the first number is known.
    pub(super) fn next_growth(&self, first: u64) -> usize {
        let wanted = self.last.len().saturating_add(length(first)).saturating_add(LONGEST);
        let grown = stepped(wanted).saturating_sub(self.last.capacity());
        if wanted > CHUNK { grown.saturating_add(CHUNK).saturating_add(LINKS) } else { grown }
    }

    /// Adds a pair at the end.
    pub(super) fn push(&mut self, pair: (u64, u64)) {
        for number in [pair.0, pair.1] {
            let mut rest = number;
            while let Some(more) = rest.checked_shr(7).filter(|more| *more > 0) {
                self.push_byte(low_bits(rest) | 0x80);
                rest = more;
            }
            self.push_byte(low_bits(rest));
        }
    }

    fn push_byte(&mut self, byte: u8) {
        if let Ok(chunk) = self.last.as_slice().try_into() {
            self.full.push_back(chunk);
            self.last.clear();
        }
        if self.last.len() == self.last.capacity() {
            let wanted = stepped(self.last.len().saturating_add(1));
            self.last.reserve_exact(wanted.saturating_sub(self.last.len()));
        }
        self.last.push(byte);
    }

    /// Returns the pairs, the first that was pushed first.
    pub(super) fn pairs(&self) -> Pairs<'_> {
        let mut chunks = self.full.iter();
        let first = chunks.next().and_then(|chunk| chunk.get(self.taken..)).unwrap_or_default();
        Pairs { part: first, chunks, last: &self.last, read: 0 }
    }

    /// Takes away as many bytes as some first pairs had: [`Pairs::read`].
    pub(super) fn take_away(&mut self, bytes: usize) {
        let mut taken = self.taken.saturating_add(bytes);
        while taken >= CHUNK && self.full.pop_front().is_some() {
            taken = taken.saturating_sub(CHUNK);
        }
        self.taken = taken;
        if self.full.is_empty() {
            // No longer than a chunk, so it moves a bounded number of bytes however many pairs there were.
            self.last.drain(..taken.min(self.last.len()));
            self.taken = 0;
            let wanted = stepped(self.last.len().max(1));
            // By half at least, so that a queue whose length goes up and down a little is left alone.
            if wanted <= self.last.capacity() / 2 {
                self.last.shrink_to(wanted);
            }
        }
    }
}

/// Returns the capacity that so many bytes of the last chunk are given.
fn stepped(bytes: usize) -> usize {
    bytes.next_multiple_of(STEP).min(CHUNK)
}

/// Returns how many bytes a number takes.
fn length(number: u64) -> usize {
    let bits = number.checked_ilog2().unwrap_or(0).saturating_add(1);
    usize::try_from(bits.div_ceil(7)).unwrap_or(LONGEST)
}

fn low_bits(number: u64) -> u8 {
    u8::try_from(number & 0x7F).unwrap_or(0x7F) // seven bits always fit
}

/// Pairs that are read one after the other.
#[derive(Clone, Debug)]
pub(super) struct Pairs<'a> {
    part: &'a [u8],
    chunks: Iter<'a, [u8; CHUNK]>,
    last: &'a [u8],
    read: usize,
}

impl Pairs<'_> {
    /// Returns how many bytes the pairs had that were read so far.
    pub(super) const fn read(&self) -> usize {
        self.read
    }

    fn byte(&mut self) -> Option<u8> {
        while self.part.is_empty() {
            self.part = match self.chunks.next() {
                Some(chunk) => chunk,
                None if self.last.is_empty() => return None,
                None => mem::take(&mut self.last),
            };
        }
        let (byte, rest) = self.part.split_first()?;
        (self.part, self.read) = (rest, self.read.saturating_add(1));
        Some(*byte)
    }

    fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Some(number);
            }
            shift = shift.saturating_add(7);
        }
    }
}

impl Iterator for Pairs<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.number()?, self.number()?))
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    #[test]
    fn a_number_takes_a_byte_for_seven_bits() {
        for number in (0..64).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits]).chain([u64::MAX]) {
            let mut packed = Packed::default();
            packed.push((number, 0));
            assert_eq!(packed.last.len(), length(number) + 1, "{number}");
            assert_eq!(packed.pairs().collect::<Vec<_>>(), [(number, 0)]);
        }
        assert_eq!([0, 127, 128, u64::MAX].map(length), [1, 1, 2, LONGEST]);
    }

    #[test]
    fn pairs_go_over_the_ends_of_chunks() {
        let (mut packed, mut model) = (Packed::default(), Vec::new());
        for n in 0..2_000_u64 {
            let pair = (n % 300, u64::MAX >> (n % 64));
            let promised = packed.heap_bytes() + packed.next_growth(pair.0);
            packed.push(pair);
            model.push(pair);
            assert!(packed.heap_bytes() <= promised, "{n}");
            let copy = packed.clone();
            assert_eq!(copy.heap_bytes(), packed.heap_bytes(), "{n}");
            assert!(copy.pairs().eq(packed.pairs()), "{n}");
        }
        assert!(packed.full.len() > 10);
        while !model.is_empty() {
            assert!(packed.pairs().eq(model.iter().copied()));
            let (mut pairs, away) = (packed.pairs(), model.len().min(7));
            assert!(pairs.by_ref().take(away).eq(model.drain(..away)));
            let bytes = pairs.read();
            packed.take_away(bytes);
        }
        assert!(packed.is_empty());
        assert_eq!((packed.taken, packed.heap_bytes()), (0, STEP));
    }

    #[test]
    fn a_short_queue_is_small_and_a_long_one_gives_back() {
        let mut packed = Packed::default();
        let mut held = vec![packed.heap_bytes()];
        for _ in 0..6 {
            packed.push((1, 1 << 34));
            held.push(packed.heap_bytes());
        }
        assert_eq!(held, [0, 16, 16, 32, 32, 32, 48], "six bytes each, in steps of sixteen");
        for _ in 0..1_000 {
            packed.push((1, 1 << 34));
        }
        let most = packed.heap_bytes();
        assert!((6_000..7_000).contains(&most), "{most}");
        for left in [900, 500, 100, 10, 1] {
            let mut pairs = packed.pairs();
            let away = pairs.clone().count() - left;
            assert_eq!(pairs.by_ref().take(away).count(), away);
            let bytes = pairs.read();
            packed.take_away(bytes);
            let chunks = (left * 6).div_ceil(CHUNK) + 1;
            assert!(packed.heap_bytes() <= chunks * 512, "{left}: {}", packed.heap_bytes());
        }
        assert_eq!(packed.heap_bytes(), STEP);
    }
}
