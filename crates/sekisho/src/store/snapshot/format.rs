//! The layout of a snapshot: fixed, little-endian, and written down here.
//!
//! ```text
//! head    16  "sekisho snapshot"
//!          4  version
//!          4  zero
//!          8  length of the whole file, in bytes
//!          8  number of entries
//!          8  the time at which the last entry was looked at, in nanoseconds since the epoch, by the store's clock
//!         16  the seed that entries are found with
//!         16  the seed that the digests in keys are made with
//! entries 16  digest of scope and key
//!          8  the time from which the state is a fresh one's
//!          1  the algorithm, which says what follows: whole numbers of 8 bytes each
//! end     16  SipHash-2-4 of 128 bits over the entries and then the head
//! ```
//!
//! A time that is none is all ones. A change to any of this is a new version.

use std::num::NonZero;

use sekisho_core::{
    AnchoredWindow, Entry, ExactTime, FixedWindow, LeakyQueue, SlidingLog, SlidingWindow, State,
    Timestamp, TokenBucket,
    limits::{PERIOD_NS_MAX, TIMESTAMP_NS_MAX},
};
use siphasher::sip128::SipHasher24;

use crate::digest::Seed;

pub(super) const MAGIC: &[u8; 16] = b"sekisho snapshot";
pub(super) const VERSION: u32 = 1;
pub(super) const HEAD_BYTES: usize = 80;
pub(super) const END_BYTES: usize = 16;

/// What the algorithm's byte says.
pub(super) mod kind {
    pub(in super::super) const FIXED_WINDOW: u8 = 1;
    pub(in super::super) const ANCHORED_WINDOW: u8 = 2;
    pub(in super::super) const SLIDING_WINDOW: u8 = 3;
    pub(in super::super) const TOKEN_BUCKET: u8 = 4;
    pub(in super::super) const LEAKY_QUEUE: u8 = 5;
    pub(in super::super) const SLIDING_LOG: u8 = 6;
}

/// A time that is none.
const NONE: u64 = u64::MAX;

/// Returns what the end is made with. The key is no secret: it finds accidents, not forgers, who may write what they like.
pub(super) fn hasher() -> SipHasher24 {
    SipHasher24::new_with_key(MAGIC)
}

/// What a file begins with.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) length: u64,
    pub(super) entries: u64,
    pub(super) time: Timestamp,
    pub(super) seed: Seed,
    pub(super) keys: Seed,
}

impl Head {
    pub(super) fn to_bytes(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = Vec::with_capacity(HEAD_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&u64::from(VERSION).to_le_bytes());
        put(&mut bytes, &[self.length, self.entries, self.time.as_nanos()]);
        bytes.extend_from_slice(self.seed.as_bytes());
        bytes.extend_from_slice(self.keys.as_bytes());
        let mut head = [0; HEAD_BYTES];
        head.copy_from_slice(&bytes);
        head
    }
}

fn put(to: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        to.extend_from_slice(&number.to_le_bytes());
    }
}

fn number(of: Option<Timestamp>) -> u64 {
    of.map_or(NONE, Timestamp::as_nanos)
}

/// Appends an entry. Returns whether there was one: a fresh state has nothing to keep.
pub(super) fn put_entry(
    to: &mut Vec<u8>,
    digest: u128,
    state: &State,
    fresh_at: Timestamp,
) -> bool {
    let mut begin = |kind: u8| {
        to.extend_from_slice(&digest.to_le_bytes());
        to.extend_from_slice(&fresh_at.as_nanos().to_le_bytes());
        to.push(kind);
    };
    match state {
        State::Fresh => return false,
        State::FixedWindow(FixedWindow { start, used }) => {
            begin(kind::FIXED_WINDOW);
            put(to, &[start.as_nanos(), *used]);
        }
        State::AnchoredWindow(AnchoredWindow { start, used }) => {
            begin(kind::ANCHORED_WINDOW);
            put(to, &[start.as_nanos(), *used]);
        }
        State::SlidingWindow(SlidingWindow { number, previous, current }) => {
            begin(kind::SLIDING_WINDOW);
            put(to, &[*number, *previous, *current]);
        }
        State::TokenBucket(TokenBucket { tat, debt_at }) => {
            begin(kind::TOKEN_BUCKET);
            put(to, &[tat.ns, tat.rest, tat.amount.get(), number(*debt_at)]);
        }
        State::LeakyQueue(LeakyQueue { next, last_at, last_units, debt_at }) => {
            begin(kind::LEAKY_QUEUE);
            put(to, &[next.ns, next.rest, next.amount.get()]);
            put(to, &[last_at.as_nanos(), *last_units, number(*debt_at)]);
        }
        State::SlidingLog(log) => {
            begin(kind::SLIDING_LOG);
            put(to, &[log.entries().count() as u64]);
            for entry in log.entries() {
                put(to, &[entry.at.as_nanos(), entry.units]);
            }
        }
    }
    true
}

/// What is wrong with a state, in words.
pub(super) type Wrong = &'static str;

/// Reads the next number.
pub(super) trait Numbers {
    type Error: From<Wrong>;

    fn number(&mut self) -> Result<u64, Self::Error>;

    /// Says whether so many numbers can still follow.
    fn expect(&self, numbers: u64) -> Result<(), Self::Error>;
}

fn time(ns: u64) -> Result<Timestamp, Wrong> {
    if ns > TIMESTAMP_NS_MAX {
        return Err("a time lies after the end of time");
    }
    Ok(Timestamp::from_nanos(ns))
}

fn time_or_none(ns: u64) -> Result<Option<Timestamp>, Wrong> {
    if ns == NONE { Ok(None) } else { time(ns).map(Some) }
}

/// Returns the instant from which a state is fresh: one after the end of time never comes.
pub(super) const fn fresh_at(ns: u64) -> Timestamp {
    if ns > TIMESTAMP_NS_MAX { Timestamp::NEVER } else { Timestamp::from_nanos(ns) }
}

/// Returns the time of a head.
pub(super) fn head_time(ns: u64) -> Result<Timestamp, Wrong> {
    time(ns)
}

fn exact<N: Numbers>(of: &mut N) -> Result<ExactTime, N::Error> {
    let (ns, rest, amount) = (of.number()?, of.number()?, of.number()?);
    let amount = NonZero::new(amount).filter(|amount| rest < amount.get());
    let amount = amount.ok_or("a remainder is not below its amount")?;
    Ok(ExactTime { ns, rest, amount })
}

/// Returns the state of an algorithm that the next numbers are.
pub(super) fn state<N: Numbers>(kind: u8, of: &mut N) -> Result<State, N::Error> {
    Ok(match kind {
        kind::FIXED_WINDOW => {
            State::FixedWindow(FixedWindow { start: time(of.number()?)?, used: of.number()? })
        }
        kind::ANCHORED_WINDOW => {
            State::AnchoredWindow(AnchoredWindow { start: time(of.number()?)?, used: of.number()? })
        }
        kind::SLIDING_WINDOW => {
            let (number, previous, current) = (of.number()?, of.number()?, of.number()?);
            State::SlidingWindow(SlidingWindow { number, previous, current })
        }
        kind::TOKEN_BUCKET => {
            let tat = exact(of)?;
            State::TokenBucket(TokenBucket { tat, debt_at: time_or_none(of.number()?)? })
        }
        kind::LEAKY_QUEUE => {
            let next = exact(of)?;
            let (last_at, last_units) = (time(of.number()?)?, of.number()?);
            let debt_at = time_or_none(of.number()?)?;
            State::LeakyQueue(LeakyQueue { next, last_at, last_units, debt_at })
        }
        kind::SLIDING_LOG => State::SlidingLog(log(of)?),
        _ => return Err("an entry is of no algorithm that there is".into()),
    })
}

fn log<N: Numbers>(of: &mut N) -> Result<SlidingLog, N::Error> {
    let entries = of.number()?;
    of.expect(entries.saturating_mul(2))?;
    let mut failed = None;
    let read = (0..entries).map_while(|_| {
        let entry = one(of);
        entry.map_err(|error| failed = Some(error)).ok()
    });
    let log = SlidingLog::from_entries(read);
    match failed {
        Some(error) => Err(error),
        None => Ok(log.ok_or("a log is not in order")?),
    }
}

fn one<N: Numbers>(of: &mut N) -> Result<Entry, N::Error> {
    let (ns, units) = (of.number()?, of.number()?);
    // One that was rounded up to a log's resolution may lie after the end of time, by less than the longest period.
    if ns > TIMESTAMP_NS_MAX + PERIOD_NS_MAX {
        return Err("a time lies after the end of time".into());
    }
    Ok(Entry { at: Timestamp::beyond(ns), units })
}
