//! From a snapshot's bytes to a store. Nothing is believed: a store is handed out only once the last byte has been checked, and
//! nothing takes more memory than bytes have come for.

use std::{
    hash::Hasher as _,
    io::{self, Read},
    sync::Arc,
};

use sekisho_core::State;
use siphasher::sip128::{Hasher128 as _, SipHasher24};

use super::{
    Restored,
    error::SnapshotFault,
    format::{
        END_BYTES, HEAD_BYTES, Head, MAGIC, Numbers, VERSION, Wrong, fresh_at, hasher, head_time,
        state,
    },
};
use crate::{
    clock::Clock,
    digest::Seed,
    store::{
        StoreError,
        memory::{Memory, MemoryOptions},
    },
};

/// Why bytes became no store.
#[derive(Debug)]
pub(super) enum ReadError {
    /// They are wrong.
    Fault(SnapshotFault),
    /// They did not come.
    System(io::Error),
}

impl From<SnapshotFault> for ReadError {
    fn from(fault: SnapshotFault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Wrong> for ReadError {
    fn from(what: Wrong) -> Self {
        Self::Fault(SnapshotFault::Damaged(what))
    }
}

/// The entries of a snapshot, as far as they have not been read.
struct Entries<R> {
    from: R,
    left: u64,
    hash: SipHasher24,
}

impl<R: Read> Entries<R> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        self.left = self.left.checked_sub(N as u64).ok_or("an entry is longer than the file")?;
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes).map_err(ReadError::System)?;
        self.hash.write(&bytes);
        Ok(bytes)
    }

    fn entry(&mut self) -> Result<(u128, u64, State), ReadError> {
        let digest = u128::from_le_bytes(self.bytes()?);
        let fresh_at = self.number()?;
        let [kind] = self.bytes()?;
        Ok((digest, fresh_at, state(kind, self)?))
    }
}

impl<R: Read> Numbers for Entries<R> {
    type Error = ReadError;

    fn number(&mut self) -> Result<u64, ReadError> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn expect(&self, numbers: u64) -> Result<(), ReadError> {
        let fits = numbers.checked_mul(8).is_some_and(|bytes| bytes <= self.left);
        if fits { Ok(()) } else { Err("a log is longer than the file".into()) }
    }
}

/// Reads a snapshot of so many bytes into a new store.
pub(super) fn read(
    mut from: impl Read,
    length: u64,
    mut options: MemoryOptions,
    clock: Arc<dyn Clock>,
) -> Result<(Memory, Seed, Restored), ReadError> {
    let written = head(&mut from, length)?;
    let head = parse_head(&written, length)?;
    options.seed = head.seed.clone();
    let now = clock.now();
    let mut store = Memory::with_clock(options, clock);
    if now < head.time {
        store.repair_before = head.time;
    }
    // What is kept for keys that share is kept, unless it is among what was written.
    let may_share = head.entries <= store.occupancy().max_entries as u64;
    let left = length.saturating_sub((HEAD_BYTES + END_BYTES) as u64);
    let mut entries = Entries { from, left, hash: hasher() };
    let mut left_out = 0;
    for _ in 0..head.entries {
        let (digest, fresh_ns, state) = entries.entry()?;
        match store.put(digest, state, fresh_at(fresh_ns), may_share) {
            Ok(()) => {}
            Err(StoreError::Twice) => return Err("an entry is there twice".into()),
            Err(_) => left_out += 1,
        }
    }
    if entries.left > 0 {
        return Err("something stands behind its last entry".into());
    }
    let Entries { mut from, mut hash, .. } = entries;
    hash.write(&written);
    let mut end = [0; END_BYTES];
    from.read_exact(&mut end).map_err(ReadError::System)?;
    if hash.finish128().as_u128().to_le_bytes() != end {
        return Err("its checksum is not that of its bytes".into());
    }
    let restored = Restored {
        entries: head.entries,
        left_out,
        bytes: length,
        written_at: head.time,
        ahead: head.time.since(now),
        open_to_others: false,
    };
    Ok((store, head.keys, restored))
}

/// Reads the head, if there is a whole one of ours.
fn head(from: &mut impl Read, length: u64) -> Result<[u8; HEAD_BYTES], ReadError> {
    let mut bytes = [0; HEAD_BYTES];
    let there = usize::try_from(length).unwrap_or(HEAD_BYTES).min(HEAD_BYTES);
    let Some(begin) = bytes.get_mut(..there) else { return Err("its head is missing".into()) };
    from.read_exact(begin).map_err(ReadError::System)?;
    if begin.iter().zip(MAGIC).any(|(found, wanted)| found != wanted) {
        return Err(SnapshotFault::Foreign.into());
    }
    if there < HEAD_BYTES {
        return Err(SnapshotFault::CutShort { found: length, wanted: HEAD_BYTES as u64 }.into());
    }
    Ok(bytes)
}

fn parse_head(bytes: &[u8; HEAD_BYTES], found: u64) -> Result<Head, ReadError> {
    let mut rest = &bytes[MAGIC.len()..];
    let version = u32::from_le_bytes(take(&mut rest));
    if version != VERSION {
        return Err(SnapshotFault::Version(version).into());
    }
    let zero = u32::from_le_bytes(take(&mut rest));
    let [wanted, entries, time] = [(); 3].map(|()| u64::from_le_bytes(take(&mut rest)));
    let [seed, keys] = [(); 2].map(|()| Seed::from_bytes(take(&mut rest)));
    if zero != 0 || wanted < (HEAD_BYTES + END_BYTES) as u64 {
        return Err("its head is not one that was written".into());
    }
    if found < wanted {
        return Err(SnapshotFault::CutShort { found, wanted }.into());
    }
    if found > wanted {
        return Err(SnapshotFault::TooLong { found, wanted }.into());
    }
    Ok(Head { length: wanted, entries, time: head_time(time)?, seed, keys })
}

/// Takes the first bytes off; zeros when there are too few, which a head never has.
fn take<const N: usize>(from: &mut &[u8]) -> [u8; N] {
    let (first, rest) = from.split_first_chunk().unwrap_or((&[0; N], &[]));
    *from = rest;
    *first
}
