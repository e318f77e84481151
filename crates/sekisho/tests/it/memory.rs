//! The memory store: bounded, all or none, and no fresh quota for a flood.

use std::sync::Arc;

use sekisho::{
    Ask, Charge, FakeClock, Key, KeyedLimiter, Limit, Memory, MemoryOptions, Mode, Now, Outcome,
    Overflow, Scope, Seed, Span, StoreError, Timestamp,
};

fn bounded(limit: &str, options: MemoryOptions) -> (Arc<FakeClock>, KeyedLimiter) {
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1_000_000)));
    let store = Memory::with_clock(options, clock.clone());
    (clock, KeyedLimiter::with_store(limit.parse().unwrap(), store))
}

#[test]
fn a_flood_of_keys_stays_within_the_cap_and_frees_no_exhausted_key() {
    let options = MemoryOptions { max_entries: 10_000, ..Default::default() };
    let (clock, limiter) = bounded("1/min", options);
    assert!(limiter.check("victim").unwrap().is_allowed());
    for key in 0..200_000_u32 {
        let _any = limiter.check(key.to_be_bytes()).unwrap();
        assert!(limiter.store().occupancy().entries <= 10_000);
    }
    assert!(!limiter.check("victim").unwrap().is_allowed(), "the flood bought no fresh quota");
    assert!(limiter.store().occupancy().overflowed > 100_000);
    clock.advance(Span::from_secs(120));
    let before = limiter.store().occupancy();
    limiter.store().sweep();
    let after = limiter.store().occupancy();
    assert_eq!(after.entries, 0, "before: {before:?}");
    assert!(limiter.check("victim").unwrap().is_allowed());
}

#[test]
fn new_keys_push_out_what_is_fresh_again_without_a_sweep() {
    let options =
        MemoryOptions { max_entries: 1_000, overflow: Overflow::Deny, ..Default::default() };
    let (clock, limiter) = bounded("1/s", options);
    for round in 0..20_u32 {
        for key in 0..500_u32 {
            assert!(
                limiter
                    .check([round.to_be_bytes(), key.to_be_bytes()].concat())
                    .unwrap()
                    .is_allowed()
            );
        }
        clock.advance(Span::from_secs(1));
    }
    assert!(limiter.store().occupancy().entries <= 1_000);
}

#[test]
fn each_overflow_does_what_it_says() {
    let fill = |overflow| {
        let options = MemoryOptions { max_entries: 32, overflow, ..Default::default() };
        let (_, limiter) = bounded("1/min", options);
        for key in 0..30_u32 {
            assert!(limiter.check(key.to_be_bytes()).unwrap().is_allowed());
        }
        let outcome = |key: &str| limiter.check(key).map(|checked| checked.is_allowed());
        [outcome("new"), outcome("newer"), outcome("newer")]
    };
    assert_eq!(fill(Overflow::Shared), [Ok(true), Ok(false), Ok(false)], "they share one bucket");
    assert_eq!(fill(Overflow::Allow), [Ok(true), Ok(true), Ok(true)]);
    let full = Err(StoreError::Full);
    assert_eq!(fill(Overflow::Deny), [full.clone(), full.clone(), full]);
}

#[test]
fn logs_count_against_the_bytes() {
    let options =
        MemoryOptions { max_bytes: 1 << 20, overflow: Overflow::Deny, ..Default::default() };
    let (clock, limiter) = bounded("1000000/h sliding-log", options);
    let mut admitted = 0_u64;
    let full = loop {
        clock.advance(Span::from_nanos(1));
        match limiter.check("hoarder") {
            Ok(checked) => admitted += u64::from(checked.is_allowed()),
            Err(error) => break error,
        }
        assert!(limiter.store().occupancy().bytes <= 1 << 20);
        assert!(admitted < 1_000_000, "a log of a mebibyte cannot hold so much");
    };
    assert_eq!(full, StoreError::Full);
    assert!(admitted > 10_000, "{admitted}");
    assert_eq!(
        limiter.look("hoarder").unwrap().remaining,
        Some(1_000_000 - admitted),
        "nothing was lost"
    );
    clock.advance(Span::from_secs(3_600));
    limiter.store().sweep();
    assert!(limiter.check("hoarder").unwrap().is_allowed());
}

#[test]
fn charges_of_one_request_are_all_or_none_whatever_finds_no_room() {
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1_000_000)));
    let options = MemoryOptions { max_entries: 3, overflow: Overflow::Deny, ..Default::default() };
    let store = Memory::with_clock(options, clock);
    let seed = Seed::random();
    let limit: Limit = "5/min fixed-window".parse().unwrap();
    let scopes = ["a", "b", "c"].map(|id| Scope::new("p", id));
    let key = Key::plain(b"k", &seed);
    let ask = |count: usize, mode| {
        let charges: Vec<_> = scopes[..count]
            .iter()
            .map(|scope| Charge { limit: &limit, scope, key: &key, cost: 1 })
            .collect();
        store.decide_now(&[Ask::new(&charges, mode)], Now::StoreClock).remove(0)
    };
    // Two entries fit, the third is kept for keys that share.
    assert_eq!(ask(3, Mode::Check), Err(StoreError::Full));
    assert_eq!(store.occupancy().entries, 0, "the places that were made are given up again");
    let answer = ask(2, Mode::Check).unwrap();
    assert_eq!(
        answer.verdicts.iter().map(|verdict| verdict.remaining).collect::<Vec<_>>(),
        [Some(4), Some(4)]
    );
    let look = ask(3, Mode::Look).unwrap();
    assert_eq!(
        look.verdicts.iter().map(|verdict| verdict.remaining).collect::<Vec<_>>(),
        [Some(4), Some(4), Some(5)]
    );
    let twice = [Charge { limit: &limit, scope: &scopes[0], key: &key, cost: 1 }; 2];
    let asks = [Ask::new(&twice, Mode::Check)];
    assert_eq!(store.decide_now(&asks, Now::StoreClock).remove(0), Err(StoreError::Twice));
}

#[test]
fn several_charges_share_when_there_is_no_room() {
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1_000_000)));
    let store = Memory::with_clock(MemoryOptions { max_entries: 32, ..Default::default() }, clock);
    let seed = Seed::random();
    let limit: Limit = "4/min fixed-window".parse().unwrap();
    let scopes = ["a", "b"].map(|id| Scope::new("p", id));
    let passed = (0..60_u32)
        .filter(|index| {
            let key = Key::plain(&index.to_be_bytes(), &seed);
            let charges = [0, 1].map(|scope: usize| Charge {
                limit: &limit,
                scope: &scopes[scope],
                key: &key,
                cost: 1,
            });
            let asks = [Ask::new(&charges, Mode::Check)];
            let answer = store.decide_now(&asks, Now::StoreClock).remove(0).unwrap();
            answer.joint().outcome == Outcome::Allow
        })
        .count();
    assert!(store.occupancy().entries <= 32);
    // Fifteen keys have entries of their own for both limits, the rest share four units.
    assert_eq!(passed, 15 + 4);
}

#[test]
fn a_denial_a_look_and_a_refund_of_nothing_take_no_memory() {
    let (_, limiter) = bounded("block", MemoryOptions::default());
    assert_eq!(limiter.check("a").unwrap().outcome, Outcome::Never);
    let (_, limiter) = bounded("5/min", MemoryOptions::default());
    assert_eq!(limiter.check_n("a", 6).unwrap().outcome, Outcome::Never);
    let _look = limiter.look("a").unwrap();
    let _refund = limiter.refund("a", 3, Timestamp::from_secs(1)).unwrap();
    assert_eq!(limiter.store().occupancy().entries, 0);
    assert!(!limiter.forget("a"));
}

/// Logs of joint decisions on several threads, in a store that runs out of bytes: what is allowed is charged, and the bytes add up.
#[test]
fn joint_decisions_that_are_allowed_are_charged_however_short_the_bytes() {
    let options =
        MemoryOptions { max_bytes: 1 << 20, overflow: Overflow::Deny, ..Default::default() };
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1_000_000)));
    let store = Memory::with_clock(options, clock.clone());
    let (seed, limit) = (Seed::random(), "1000000/h sliding-log".parse::<Limit>().unwrap());
    let scopes = ["a", "b"].map(|id| Scope::new("p", id));
    let used = |mode, key: &Key| {
        let charges = [0, 1].map(|scope: usize| Charge {
            limit: &limit,
            scope: &scopes[scope],
            key,
            cost: 1,
        });
        store.decide_now(&[Ask::new(&charges, mode)], Now::StoreClock).remove(0)
    };
    std::thread::scope(|threads| {
        for thread in 0..4_u32 {
            let (store, clock, seed, used) = (&store, &clock, &seed, &used);
            let _running = threads.spawn(move || {
                let key = Key::plain(&thread.to_be_bytes(), seed);
                let mut admitted = 0;
                while used(Mode::Check, &key).is_ok() {
                    admitted += 1;
                    clock.advance(Span::from_nanos(1));
                    assert!(store.occupancy().bytes <= 1 << 20);
                }
                let left = used(Mode::Look, &key).unwrap();
                let left: Vec<_> = left.verdicts.iter().map(|verdict| verdict.remaining).collect();
                assert_eq!(
                    left,
                    [Some(1_000_000 - admitted); 2],
                    "every one that passed is charged"
                );
            });
        }
    });
    clock.advance(Span::from_secs(3_600));
    store.sweep();
    let empty = store.occupancy();
    assert!(empty.entries == 0 && empty.bytes < 64 << 10, "{empty:?}");
}
