//! What a snapshot keeps, and what of it is refused.

mod files;
mod restarts;

use std::{hash::Hasher as _, sync::Arc};

use sekisho::{
    Ask, Charge, Clock, FakeClock, Key, KeyedLimiter, Memory, MemoryOptions, Mode, Now, Outcome,
    Restored, Scope, Seed, Snapshot, SnapshotFault, Span, Timestamp,
};
use siphasher::sip128::{Hasher128 as _, SipHasher24};

/// The longest resolution of a log, by which its entries may lie after the end of time.
const TEN_YEARS: u64 = sekisho::core::limits::PERIOD_NS_MAX;

const BEGIN: Timestamp = Timestamp::from_secs(1_800_000_000);

fn decode(bytes: &[u8], at: Timestamp) -> Result<(Memory, Seed, Restored), SnapshotFault> {
    Snapshot::decode(bytes, MemoryOptions::default(), Arc::new(FakeClock::at(at)))
}

/// Returns a store with states of every algorithm, some in debt and some with several entries.
fn of_every_algorithm(clock: &Arc<FakeClock>) -> Memory {
    let store = Memory::with_clock(MemoryOptions::default(), clock.clone());
    for limit in [
        "7/h fixed-window",
        "7/h anchored-window",
        "7/h sliding-window",
        "7/h token-bucket",
        "7/h burst 3 leaky-queue",
        "7/h sliding-log",
    ] {
        for (key, cost, mode) in [
            ("a", 1, Mode::Check),
            ("a", 2, Mode::Check),
            ("b", 1, Mode::Check),
            ("c", 20, Mode::Force),
        ] {
            clock.advance(Span::from_secs(1));
            assert!(ask(&store, limit, key, (cost, mode)));
        }
    }
    store
}

/// Charges a key under a limit, and returns whether that passed.
fn ask(store: &Memory, limit: &str, key: &str, (cost, mode): (u64, Mode)) -> bool {
    let key = Key::plain(key.as_bytes(), &Seed::from_bytes([0; 16]));
    let (scope, limit) = (Scope::new("p", limit), limit.parse().unwrap());
    let charges = [Charge { limit: &limit, scope: &scope, key: &key, cost }];
    let answer = store.decide_now(&[Ask::new(&charges, mode)], Now::StoreClock).remove(0);
    answer.unwrap().joint().outcome == Outcome::Allow
}

#[test]
fn what_is_read_writes_the_same_bytes() {
    let clock = Arc::new(FakeClock::at(BEGIN));
    let store = of_every_algorithm(&clock);
    let keys = Seed::from_bytes([9; 16]);
    let bytes = Snapshot::encode(&store, &keys).unwrap();
    let (again, keys, restored) = decode(&bytes, clock.now()).unwrap();
    assert_eq!((restored.entries, restored.left_out), (18, 0));
    assert_eq!((restored.bytes, restored.written_at), (bytes.len() as u64, clock.now()));
    let (before, after) = (store.occupancy(), again.occupancy());
    assert_eq!((before.entries, before.bytes), (after.entries, after.bytes));
    // The order within a part is the table's own.
    let written = Snapshot::encode(&again, &keys).unwrap();
    let sorted = |bytes: &[u8]| {
        let mut bytes = bytes[..bytes.len() - 16].to_vec();
        bytes.sort_unstable();
        bytes
    };
    assert_eq!(sorted(&written), sorted(&bytes));
}

#[test]
fn an_empty_store_is_a_snapshot_too() {
    let store = Memory::with_clock(MemoryOptions::default(), Arc::new(FakeClock::at(BEGIN)));
    let bytes = Snapshot::encode(&store, &Seed::random()).unwrap();
    assert_eq!(bytes.len(), 96);
    assert_eq!(decode(&bytes, BEGIN).unwrap().2.entries, 0);
}

/// The layout is a promise to the next version: it is spelled out here a second time.
#[test]
fn the_layout_is_what_it_says() {
    let clock = Arc::new(FakeClock::at(BEGIN));
    let store = Memory::with_clock(
        MemoryOptions { seed: Seed::from_bytes([1; 16]), ..MemoryOptions::default() },
        clock,
    );
    let limiter = KeyedLimiter::with_store("7/h sliding-log".parse().unwrap(), store);
    assert!(limiter.check_n("a", 3).unwrap().is_allowed());
    let bytes = Snapshot::encode(limiter.store(), &Seed::from_bytes([2; 16])).unwrap();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!(&bytes[..16], b"sekisho snapshot");
    let begin = BEGIN.as_nanos();
    // Version, length, entries, time.
    assert_eq!([16, 24, 32, 40].map(number), [1, 80 + 16 + 8 + 1 + 8 + 16 + 16, 1, begin]);
    assert_eq!((&bytes[48..64], &bytes[64..80]), (&[1; 16][..], &[2; 16][..]));
    // When it is fresh again, the algorithm, the length of the log, its one entry.
    assert_eq!(number(96), begin + 3_600_000_000_000);
    assert_eq!(bytes[104], 6);
    assert_eq!([105, 113, 121].map(number), [1, begin, 3]);
    assert_eq!(bytes.len(), 145);
}

#[test]
fn every_prefix_and_every_flipped_bit_is_refused() {
    let clock = Arc::new(FakeClock::at(BEGIN));
    let bytes = Snapshot::encode(&of_every_algorithm(&clock), &Seed::random()).unwrap();
    for length in 0..bytes.len() {
        let fault = decode(&bytes[..length], clock.now()).unwrap_err();
        let wanted = if length < 80 { 80 } else { bytes.len() } as u64;
        assert_eq!(fault, SnapshotFault::CutShort { found: length as u64, wanted });
    }
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut wrong = bytes.clone();
            wrong[place] ^= 1 << bit;
            let fault = decode(&wrong, clock.now()).unwrap_err();
            let fits = match place {
                0..16 => fault == SnapshotFault::Foreign,
                16..20 => matches!(fault, SnapshotFault::Version(_)),
                24..32 => matches!(
                    fault,
                    SnapshotFault::CutShort { .. }
                        | SnapshotFault::TooLong { .. }
                        | SnapshotFault::Damaged(_)
                ),
                _ => matches!(fault, SnapshotFault::Damaged(_)),
            };
            assert!(fits, "byte {place}, bit {bit}: {fault:?}");
        }
    }
    let longer = [&bytes[..], &[0]].concat();
    let wanted = bytes.len() as u64;
    let too_long = SnapshotFault::TooLong { found: wanted + 1, wanted };
    assert_eq!(decode(&longer, clock.now()).unwrap_err(), too_long);
    assert!(decode(&bytes, clock.now()).is_ok(), "the file itself is good");
}

#[test]
fn a_store_that_is_smaller_takes_what_fits_and_counts_the_rest() {
    let clock = Arc::new(FakeClock::at(BEGIN));
    let store = Memory::with_clock(MemoryOptions::default(), clock.clone());
    let limiter = KeyedLimiter::with_store("1/h".parse().unwrap(), store);
    for key in 0..1_000_u32 {
        assert!(limiter.check(key.to_be_bytes()).unwrap().is_allowed());
    }
    let bytes = Snapshot::encode(limiter.store(), &Seed::random()).unwrap();
    let smaller = |max_entries: usize| {
        let options = MemoryOptions { max_entries, ..MemoryOptions::default() };
        let (store, _, restored) = Snapshot::decode(&bytes, options, clock.clone()).unwrap();
        (store, restored.left_out)
    };
    // A sixteenth is kept for keys that share.
    let (store, left_out) = smaller(640);
    assert_eq!((store.occupancy().entries, left_out), (600, 400));
    // Who was left out is new to a full store: all of them share one quota, and none gets its own.
    let limiter = KeyedLimiter::with_store("1/h".parse().unwrap(), store);
    let passed = (0..1_000_u32)
        .filter(|key| limiter.check(key.to_be_bytes()).is_ok_and(|checked| checked.is_allowed()));
    assert_eq!(passed.count(), 1);
    // A store of the same size takes all, the places that are kept included.
    assert_eq!(smaller(1_000).1, 0);
}

#[test]
fn what_has_become_fresh_does_not_come_back() {
    let clock = Arc::new(FakeClock::at(BEGIN));
    let bytes = Snapshot::encode(&of_every_algorithm(&clock), &Seed::random()).unwrap();
    let (store, _, restored) =
        decode(&bytes, clock.now().plus(Span::from_secs(100_000_000))).unwrap();
    assert_eq!((restored.entries, restored.left_out, store.occupancy().entries), (18, 0, 0));
}

/// Returns a file of some entries whose head and end are right, whatever the entries are.
fn sealed(count: u64, entries: &[u8]) -> Vec<u8> {
    let length = 96 + entries.len() as u64;
    let mut head = b"sekisho snapshot".to_vec();
    for number in [1, length, count, BEGIN.as_nanos()] {
        head.extend(number.to_le_bytes());
    }
    head.extend([7; 32]);
    let mut hasher = SipHasher24::new_with_key(b"sekisho snapshot");
    hasher.write(entries);
    hasher.write(&head);
    [&head[..], entries, &hasher.finish128().as_u128().to_le_bytes()].concat()
}

fn entry(digest: u128, kind: u8, numbers: &[u64]) -> Vec<u8> {
    let fresh_at = BEGIN.plus(Span::from_secs(60)).as_nanos();
    let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
    [&digest.to_le_bytes()[..], &fresh_at.to_le_bytes(), &[kind], &numbers.collect::<Vec<_>>()]
        .concat()
}

/// A right end does not make wrong entries right.
#[test]
fn what_no_store_writes_is_refused() {
    let begin = BEGIN.as_nanos();
    let (late, none) = (10_000_000_000_000_000_001, u64::MAX);
    let window = entry(1, 1, &[begin, 3]);
    for (count, entries, words) in [
        (1, entry(1, 0, &[begin, 3]), "no algorithm"),
        (1, entry(1, 7, &[begin, 3]), "no algorithm"),
        (1, entry(1, 1, &[late, 3]), "end of time"),
        (1, entry(1, 2, &[none, 3]), "end of time"),
        (1, entry(1, 4, &[begin, 7, 7, none]), "remainder"),
        (1, entry(1, 4, &[begin, 0, 0, none]), "remainder"),
        (1, entry(1, 4, &[begin, 6, 7, late]), "end of time"),
        (1, entry(1, 5, &[begin, 7, 7, begin, 1, none]), "remainder"),
        (1, entry(1, 5, &[begin, 6, 7, late, 1, none]), "end of time"),
        (1, entry(1, 6, &[2, begin, 1, begin, 1]), "order"),
        (1, entry(1, 6, &[2, begin, 1, begin - 1, 1]), "order"),
        (1, entry(1, 6, &[1, begin, 0]), "order"),
        (1, entry(1, 6, &[1, late + TEN_YEARS, 1]), "end of time"),
        (1, entry(1, 6, &[2, begin, 1]), "longer than the file"),
        (1, entry(1, 6, &[u64::MAX, begin, 1]), "longer than the file"),
        (1, entry(1, 6, &[1 << 61, begin, 1]), "longer than the file"),
        (2, [window.clone(), window.clone()].concat(), "twice"),
        (2, window.clone(), "longer than the file"),
        (u64::MAX, window.clone(), "longer than the file"),
        (0, window.clone(), "behind its last entry"),
        (1, [&window[..], &[0]].concat(), "behind its last entry"),
    ] {
        match decode(&sealed(count, &entries), BEGIN).unwrap_err() {
            SnapshotFault::Damaged(what) => assert!(what.contains(words), "{words}: {what}"),
            other => panic!("{words}: {other:?}"),
        }
    }
    // The same numbers as they are written.
    for entries in [
        window,
        entry(1, 2, &[begin, 3]),
        entry(1, 3, &[9, 2, 1]),
        entry(1, 4, &[begin, 6, 7, none]),
        entry(1, 5, &[begin, 6, 7, begin, 1, begin]),
        entry(1, 6, &[2, begin, 1, begin + 1, 1]),
    ] {
        assert_eq!(decode(&sealed(1, &entries), BEGIN).unwrap().0.occupancy().entries, 1);
    }
}

/// An entry that says it is in use is, whatever its state would say of itself: what has been read is written again.
#[test]
fn an_entry_counts_for_as_long_as_the_file_says() {
    let (begin, none) = (BEGIN.as_nanos(), u64::MAX);
    for entries in [
        entry(1, 1, &[begin, 0]),
        entry(1, 2, &[begin - 1, 0]),
        entry(1, 3, &[begin, 1, 0]),
        entry(1, 4, &[begin, 0, 7, none]),
        entry(1, 4, &[begin - 1, 6, 7, none]),
    ] {
        let file = sealed(1, &entries);
        let (store, keys, _) = decode(&file, BEGIN).unwrap();
        let again = Snapshot::encode(&store, &keys).unwrap();
        assert_eq!(decode(&again, BEGIN).unwrap().2.entries, 1, "{entries:?}");
    }
}
