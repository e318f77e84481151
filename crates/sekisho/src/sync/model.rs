//! Every order in which two threads may meet: `RUSTFLAGS="--cfg sekisho_loom" cargo test -p sekisho --lib model`.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::SeqCst},
};

use loom::thread;

use super::Lock;
use crate::{
    Answer, Ask, Charge, Clock, Key, KeyedLimiter, Limit, Memory, MemoryOptions, Mode, Now,
    Outcome, Scope, Seed, Timestamp, UnkeyedLimiter, Wait,
};

/// A clock that goes on at every reading.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Clock for Counting {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(1_000_000_000 + self.0.fetch_add(1, SeqCst))
    }

    fn wait_until(&self, _: Timestamp) -> Wait {
        Box::pin(std::future::pending())
    }
}

/// A store of one shard: who meets anywhere meets there.
fn store() -> Memory {
    let options = MemoryOptions { max_entries: 8, ..MemoryOptions::default() };
    Memory::with_clock(options, Arc::new(Counting::default()))
}

/// Runs the same in two threads at once.
fn both<T: Send + Sync + 'static, R: Send + 'static>(
    of: T,
    run: impl Fn(&T) -> R + Copy + Send + 'static,
) -> ([R; 2], Arc<T>) {
    let of = Arc::new(of);
    let other = Arc::clone(&of);
    let other = thread::spawn(move || run(&other));
    let mine = run(&of);
    ([mine, other.join().unwrap()], of)
}

#[test]
fn two_holders_never_hold_at_once() {
    loom::model(|| {
        let (_, lock) = both(Lock::new(0_u64), |lock| {
            for _ in 0..2 {
                *lock.lock() += 1;
            }
        });
        assert_eq!(*lock.lock(), 4);
    });
}

#[test]
fn one_of_two_gets_the_last_unit_of_a_key() {
    for (limit, before) in [("1/s", 0), ("2/s", 1), ("2/s fixed-window", 1), ("2/s sliding-log", 1)]
    {
        loom::model(move || {
            let limiter = KeyedLimiter::with_store(limit.parse().unwrap(), store());
            (0..before).for_each(|_| assert!(limiter.check("a").unwrap().is_allowed()));
            let (answers, _) = both(limiter, |limiter| limiter.check("a").unwrap().is_allowed());
            assert_eq!(answers.into_iter().filter(|allowed| *allowed).count(), 1, "{limit}");
        });
    }
}

#[test]
fn who_decides_later_decides_at_no_earlier_time() {
    loom::model(|| {
        let limiter = KeyedLimiter::with_store("10/h fixed-window".parse().unwrap(), store());
        let (mut answers, _) = both(limiter, |limiter| limiter.check("a").unwrap());
        answers.sort_by_key(|checked| std::cmp::Reverse(checked.remaining));
        assert_eq!(answers.map(|checked| checked.remaining), [Some(9), Some(8)]);
        assert!(answers[0].at <= answers[1].at, "{answers:?}");
    });
}

#[test]
fn one_of_two_gets_the_last_unit_without_a_key() {
    for limit in ["1/s", "7/min burst 1", "1/s anchored-window"] {
        loom::model(move || {
            let clock = Arc::new(Counting::default());
            let limiter = UnkeyedLimiter::with_clock(limit.parse().unwrap(), clock);
            let (answers, limiter) = both(limiter, |limiter| limiter.check().is_allowed());
            assert_eq!(answers.into_iter().filter(|allowed| *allowed).count(), 1, "{limit}");
            assert_eq!(limiter.look().remaining, Some(0));
        });
    }
}

#[test]
fn several_limits_are_all_or_none_for_two() {
    loom::model(|| {
        let (answers, store) = both(store(), |store| ask(store, Mode::Check).joint().outcome);
        assert_eq!(answers.into_iter().filter(|outcome| *outcome == Outcome::Allow).count(), 1);
        let left = ask(&store, Mode::Look).verdicts.into_iter().map(|verdict| verdict.remaining);
        assert!(left.eq([Some(0), Some(4)]), "the one that was refused paid nothing");
    });
}

/// Asks for one unit under two limits.
fn ask(store: &Memory, mode: Mode) -> Answer {
    let key = Key::plain(b"a", &Seed::from_bytes([7; 16]));
    let limits: [Limit; 2] = ["1/s", "5/h"].map(|text| text.parse().unwrap());
    let scopes = ["a", "b"].map(|id| Scope::new("p", id));
    let charges: Vec<_> = limits
        .iter()
        .zip(&scopes)
        .map(|(limit, scope)| Charge { limit, scope, key: &key, cost: 1 })
        .collect();
    store.decide_now(&[Ask::new(&charges, mode)], Now::StoreClock).remove(0).unwrap()
}
