//! A store's state, part by part, into what takes bytes.

use std::{
    hash::Hasher as _,
    io::{self, Seek, SeekFrom, Write},
};

use siphasher::sip128::Hasher128 as _;

use super::{
    Saved,
    format::{END_BYTES, HEAD_BYTES, Head, hasher, put_entry},
};
use crate::{digest::Seed, store::memory::Memory};

/// Writes a snapshot of a store. The head comes last, once it is known what is behind it.
pub(super) fn write(
    to: &mut (impl Write + Seek),
    store: &Memory,
    keys: &Seed,
) -> io::Result<Saved> {
    let mut hash = hasher();
    let (mut entries, mut length) = (0_u64, HEAD_BYTES as u64);
    let mut part = Vec::new();
    to.write_all(&[0; HEAD_BYTES])?;
    let mut visit = store.visit();
    loop {
        part.clear();
        let now = store.clock().now();
        let shown = visit.next(|digest, state, fresh_at| {
            if fresh_at > now {
                entries += u64::from(put_entry(&mut part, digest, state, fresh_at));
            }
        });
        if !shown {
            break;
        }
        // Nothing is held here: whoever decides does not wait for the disk.
        hash.write(&part);
        to.write_all(&part)?;
        length += part.len() as u64;
    }
    length += END_BYTES as u64;
    // After the last entry, so that none was charged later. What a clock that was ahead has left is still there until now is later.
    let time = store.clock().now().max(store.repair_before);
    let (seed, keys) = (store.seed().clone(), keys.clone());
    let head = Head { length, entries, time, seed, keys }.to_bytes();
    hash.write(&head);
    to.write_all(&hash.finish128().as_u128().to_le_bytes())?;
    let _start = to.seek(SeekFrom::Start(0))?;
    to.write_all(&head)?;
    to.flush()?;
    Ok(Saved { entries, bytes: length })
}
