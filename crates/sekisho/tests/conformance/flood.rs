//! A flood of new keys: the caps hold, and what is exhausted stays so.

use std::sync::Arc;

use sekisho::{
    Ask, Charge, FakeClock, Key, KeyedLimiter, Limit, Memory, MemoryOptions, Mode, Now, Outcome,
    Overflow, Scope, Seed, Span, StoreError, Timestamp,
};

const CAP: usize = 10_000;
const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

fn store(max_entries: usize, overflow: Overflow) -> (Memory, Arc<FakeClock>) {
    let clock = Arc::new(FakeClock::at(NOW));
    let options = MemoryOptions { max_entries, overflow, ..Default::default() };
    (Memory::with_clock(options, Arc::clone(&clock) as _), clock)
}

#[test]
pub(crate) fn a_million_keys_stay_under_the_cap() {
    let (store, clock) = store(CAP, Overflow::default());
    let limiter = KeyedLimiter::with_store("10/min fixed-window".parse().unwrap(), store);
    assert!((0..10).all(|_| limiter.check("used up").unwrap().is_allowed()));
    let base = limiter.store().occupancy().bytes;
    let mut most = 0;
    for key in 0..1_000_000_u32 {
        let _either = limiter.check(key.to_le_bytes()).unwrap();
        most = most.max(limiter.store().occupancy().entries);
    }
    assert!((CAP / 2..=CAP).contains(&most), "{most} entries");
    assert_eq!(limiter.check("used up").unwrap().outcome, Outcome::Deny);
    // What the entries take is bounded by their number, and the bytes by the entries.
    let flooded = limiter.store().occupancy();
    assert!(flooded.bytes < base + CAP * 1_024, "{flooded:?}");
    clock.advance(Span::from_secs(120));
    let dropped = limiter.store().sweep();
    assert_eq!((dropped, limiter.store().occupancy().entries), (flooded.entries, 0));
    assert!(limiter.store().occupancy().bytes <= base, "the memory is given back: {:?}", limiter.store().occupancy());
    // A second flood finds the room of the first, and takes no more.
    for key in 1_000_000..1_100_000_u32 {
        let _either = limiter.check(key.to_le_bytes()).unwrap();
    }
    let again = limiter.store().occupancy();
    assert!(again.entries <= CAP && again.bytes <= 2 * flooded.bytes, "{again:?} {flooded:?}");
}

#[test]
pub(crate) fn an_exhausted_key_stays_exhausted() {
    let seed = Seed::from_bytes([7; 16]);
    let limits: [Limit; 2] = ["10/day".parse().unwrap(), "12/day sliding-log".parse().unwrap()];
    let scopes = [Scope::new("flood", "bucket"), Scope::new("flood", "log")];
    for overflow in [Overflow::Shared, Overflow::Deny, Overflow::Allow] {
        for together in [1, 2] {
            let (store, clock) = store(CAP, overflow);
            let outcome = |name: &[u8]| {
                let key = Key::plain(name, &seed);
                let charges: Vec<_> = (limits.iter().zip(&scopes).take(together))
                    .map(|(limit, scope)| Charge { limit, scope, key: &key, cost: 1 })
                    .collect();
                let ask = Ask::new(&charges, Mode::Check);
                let answer = store.decide_now(&[ask], Now::StoreClock).remove(0);
                answer.map(|answer| answer.joint().outcome)
            };
            assert!((0..10).all(|_| outcome(b"K") == Ok(Outcome::Allow)));
            assert_eq!(outcome(b"K"), Ok(Outcome::Deny));
            for key in 0..10_000_u32 {
                let _any = outcome(&key.to_le_bytes());
                if key.is_multiple_of(1_000) {
                    clock.advance(Span::from_secs(1));
                }
                assert!(store.occupancy().entries <= CAP);
            }
            assert_eq!(outcome(b"K"), Ok(Outcome::Deny), "{overflow:?}, {together} limits");
        }
    }
}

#[test]
pub(crate) fn a_full_store_does_as_it_is_told() {
    let limit = || "3/day".parse().unwrap();
    let (store_of_shared, _) = store(100, Overflow::Shared);
    let shared = KeyedLimiter::with_store(limit(), store_of_shared);
    let passed = (0..1_000_u32).filter(|key| shared.check(key.to_le_bytes()).unwrap().is_allowed());
    let passed = passed.count();
    let own = shared.store().occupancy().entries - 1;
    assert_eq!(passed, own + 3, "those without room share one count");
    assert_eq!(shared.store().occupancy().overflowed, 1_000 - own as u64);

    let (store_of_deny, _) = store(100, Overflow::Deny);
    let deny = KeyedLimiter::with_store(limit(), store_of_deny);
    let answers: Vec<_> = (0..1_000_u32).map(|key| deny.check(key.to_le_bytes())).collect();
    let held = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(held, deny.store().occupancy().entries);
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|of| of.is_allowed()) || *answer == Err(StoreError::Full)));

    let (store_of_allow, _) = store(100, Overflow::Allow);
    let allow = KeyedLimiter::with_store(limit(), store_of_allow);
    assert!((0..1_000_u32).all(|key| allow.check(key.to_le_bytes()).unwrap().is_allowed()));
    assert!(allow.store().occupancy().entries <= 100);
    assert_eq!(allow.store().occupancy().overflowed, 1_000 - allow.store().occupancy().entries as u64);
}

#[test]
pub(crate) fn bytes_have_a_cap_too() {
    const BYTES: usize = 256 << 10;
    let clock = Arc::new(FakeClock::at(NOW));
    let options = MemoryOptions { max_bytes: BYTES, overflow: Overflow::Deny, ..Default::default() };
    let store = Memory::with_clock(options, Arc::clone(&clock) as _);
    let limiter = KeyedLimiter::with_store("1000000/min sliding-log".parse().unwrap(), store);
    let mut full = 0;
    for n in 0..200_000_u32 {
        // A few keys, each with a log that grows at every instant.
        clock.advance(Span::from_nanos(1));
        full += usize::from(limiter.check((n % 16).to_le_bytes()) == Err(StoreError::Full));
        assert!(limiter.store().occupancy().bytes <= BYTES);
    }
    assert!(full > 0, "it never was full");
    let flooded = limiter.store().occupancy().bytes;
    clock.advance(Span::from_secs(60));
    assert_eq!(limiter.store().sweep(), 16);
    let left = limiter.store().occupancy().bytes;
    assert!(left * 4 < flooded, "{left} of {flooded} are still taken");
    assert!(limiter.check("new").unwrap().is_allowed());
}

/// What a log gives back is there for others: its bytes do not add up over the days.
#[test]
pub(crate) fn what_a_log_gives_back_is_counted_back() {
    let (store, clock) = store(CAP, Overflow::default());
    let limiter = KeyedLimiter::with_store("1000/min sliding-log".parse().unwrap(), store);
    let day = || {
        for _ in 0..1_000 {
            clock.advance(Span::from_nanos(1_000_000));
            assert!(limiter.check("k").unwrap().is_allowed());
        }
        let busy = limiter.store().occupancy().bytes;
        clock.advance(Span::from_secs(120));
        assert!(limiter.check("k").unwrap().is_allowed());
        clock.advance(Span::from_secs(120));
        (busy, limiter.store().occupancy().bytes)
    };
    let first = day();
    assert!(first.0 > first.1 + 4_000, "{first:?}");
    assert!((0..20).all(|_| day() == first));
}
