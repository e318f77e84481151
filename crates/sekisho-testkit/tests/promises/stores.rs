//! P5 to P7: what a store promises besides. The memory store is the one that is held to them here.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

use sekisho::{
    Ask, Charge, FakeClock, Key as StoreKey, Limit, Memory, MemoryOptions, Mode, Now, Outcome,
    Scope, Seed, Span, Timestamp, Verdict,
};
use sekisho_core::{State, Utc};
use sekisho_testkit::{generate::Rng, model::ModelLimit};

use crate::{Key, Step, exists, traces};

const KEYS: u64 = 3;

/// A memory store beside the pure core, for the same keys under the same limits.
struct Beside {
    store: Memory,
    clock: Arc<FakeClock>,
    scopes: Vec<Scope>,
    names: Vec<StoreKey>,
    pure: Vec<Key>,
}

impl Beside {
    fn new(of: &[ModelLimit], keep_all: bool) -> Self {
        let clock = Arc::new(FakeClock::default());
        let options = MemoryOptions { keep_all, ..MemoryOptions::default() };
        let (seed, store) = (Seed::random(), Memory::with_clock(options, clock.clone()));
        let scope = |index: usize| Scope::new("promises", &index.to_string());
        Self {
            store,
            clock,
            scopes: (0..of.len()).map(scope).collect(),
            names: (0..KEYS).map(|key| StoreKey::plain(&key.to_be_bytes(), &seed)).collect(),
            pure: (0..KEYS).map(|_| Key::new(of)).collect(),
        }
    }

    /// Asks both about one key; returns what the store says and what the core does.
    fn decide(&mut self, key: usize, step: &Step, now: Now) -> (Vec<Verdict>, Vec<Verdict>) {
        let limits = self.pure[key].limits.clone();
        let charges: Vec<_> = (limits.iter().zip(&self.scopes).zip(&step.costs))
            .map(|((limit, scope), &cost)| Charge { limit, scope, key: &self.names[key], cost })
            .collect();
        let ask = Ask::new(&charges, step.mode);
        let answer = self.store.decide_now(&[ask], now).remove(0).unwrap();
        assert_eq!(answer.at.as_nanos(), step.at);
        (answer.verdicts, self.pure[key].decide(step).1)
    }

    fn any_key(rng: &mut Rng) -> usize {
        usize::try_from(rng.below(KEYS)).unwrap()
    }
}

/// P5: the memory store answers as the core does, in every field, though it drops what is fresh again.
#[test]
fn p5_a_live_memory_store_agrees_with_the_core() {
    traces(|seed, rng, of| {
        let (mut both, mut now) = (Beside::new(&of, false), 0);
        for _ in 0..40 {
            let step = Step::random(rng, &of, now).in_order(now);
            both.clock.advance(Span::from_nanos(step.at - now));
            now = step.at;
            if rng.chance(1, 8) {
                let _dropped = both.store.sweep();
            }
            let key = Beside::any_key(rng);
            let (seen, expected) = both.decide(key, &step, Now::StoreClock);
            assert_eq!(seen, expected, "seed {seed}: {step:?} of {of:?}");
        }
        40
    });
}

/// P5: so does one that is told the times, late ones too, as a replay does.
#[test]
fn p5_a_replayed_memory_store_agrees_with_the_core() {
    traces(|seed, rng, of| {
        let (mut both, mut now) = (Beside::new(&of, true), 0);
        for _ in 0..40 {
            let step = Step::random(rng, &of, now);
            now = step.at;
            let key = Beside::any_key(rng);
            let at = Now::At(Timestamp::from_nanos(now));
            let (seen, expected) = both.decide(key, &step, at);
            assert_eq!(seen, expected, "seed {seed}: {step:?} of {of:?}");
        }
        40
    });
}

/// P5: a request that finds one of its states fresh again, and makes places for others, counts in all of them.
#[test]
fn p5_what_is_fresh_again_is_charged_beside_what_is_new() {
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1_000)));
    let store = Memory::with_clock(MemoryOptions::default(), clock.clone());
    let (limit, seed) = ("2/s fixed-window".parse::<Limit>().unwrap(), Seed::random());
    let scopes: Vec<_> = (0..32).map(|id: u32| Scope::new("p5", &id.to_string())).collect();
    for round in 0_u32..50 {
        let key = StoreKey::plain(&round.to_be_bytes(), &seed);
        let ask = |count: usize, mode| {
            let charge = |scope| Charge { limit: &limit, scope, key: &key, cost: 1 };
            let charges: Vec<_> = scopes[..count].iter().map(charge).collect();
            store.decide_now(&[Ask::new(&charges, mode)], Now::StoreClock).remove(0).unwrap()
        };
        assert_eq!(ask(1, Mode::Check).joint().outcome, Outcome::Allow);
        clock.advance(Span::from_secs(2));
        assert_eq!(ask(32, Mode::Check).joint().outcome, Outcome::Allow);
        assert_eq!(ask(1, Mode::Look).verdicts[0].remaining, Some(1), "round {round}");
    }
}

/// P6: every state names an instant from which it answers as a fresh one does, in everything that may follow.
#[test]
fn p6_every_state_expires() {
    let mut expired = 0;
    traces(|seed, rng, of| {
        let (mut key, mut now, mut newest) = (Key::new(&of), 0, 0);
        for _ in 0..rng.between(1, 20) {
            let step = Step::random(rng, &of, now);
            now = step.at;
            newest = newest.max(now);
            let _any = key.decide(&step);
        }
        let expiries = key.limits.iter().zip(&key.states);
        let fresh_at = expiries.map(|(limit, state)| limit.fresh_at(state, &Utc).as_nanos()).max();
        let from = fresh_at.unwrap().max(newest);
        if !exists(from) {
            return 20;
        }
        expired += 1;
        let mut fresh = Key::new(&of);
        let mut now = from;
        for _ in 0..20 {
            let step = Step::random(rng, &of, now).in_order(from);
            now = step.at;
            let (seen, expected) = (key.decide(&step), fresh.decide(&step));
            assert_eq!(seen, expected, "seed {seed}: {step:?} of {of:?} fresh at {from}");
        }
        40
    });
    assert!(expired > crate::calls() / 100, "only {expired} expired");
}

/// P6: so a memory store holds nothing once that instant has passed, whatever it was asked.
#[test]
fn p6_an_idle_memory_store_becomes_empty() {
    let mut held = 0;
    traces(|seed, rng, of| {
        let (mut both, mut now) = (Beside::new(&of, false), 0);
        for _ in 0..20 {
            let step = Step::random(rng, &of, now).in_order(now);
            both.clock.advance(Span::from_nanos(step.at - now));
            now = step.at;
            let key = Beside::any_key(rng);
            let _any = both.decide(key, &step, Now::StoreClock);
        }
        let fresh_at = |(limit, state): (&Limit, &State)| limit.fresh_at(state, &Utc).as_nanos();
        let from = both.pure.iter().flat_map(|key| key.limits.iter().zip(&key.states));
        let from = from.map(fresh_at).max().unwrap().max(now);
        if !exists(from) {
            return 20;
        }
        held += u64::from(both.store.occupancy().entries > 0);
        both.clock.advance(Span::from_nanos(from - now));
        let _dropped = both.store.sweep();
        assert_eq!(both.store.occupancy().entries, 0, "seed {seed}: {of:?} at {from}");
        20
    });
    assert!(held > crate::calls() / 100, "only {held} held anything");
}

/// P7: however many ask at once, exactly the limit is admitted: each algorithm alone, and all six on one request.
///
/// More of the same, and with more threads, is in the concurrency tests of `sekisho`.
#[test]
fn p7_exactly_the_limit_under_concurrency() {
    let six = [
        "50/365d fixed-window",
        "60/365d anchored-window",
        "70/365d sliding-log",
        "80/365d sliding-window",
        "90/365d token-bucket",
        "99/365d burst 99 leaky-queue",
    ];
    let alone = six.iter().map(|limit| vec![*limit]);
    for texts in alone.chain([six.to_vec()]) {
        let limits: Vec<Limit> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let least = limits.iter().filter_map(Limit::capacity).min().unwrap();
        let scopes: Vec<_> = texts.iter().map(|id| Scope::new("p7", id)).collect();
        let (store, seed) = (Memory::default(), Seed::random());
        for round in 0_u64..20 {
            let key = StoreKey::plain(&round.to_be_bytes(), &seed);
            let charge = |(limit, scope)| Charge { limit, scope, key: &key, cost: 1 };
            let charges: Vec<_> = limits.iter().zip(&scopes).map(charge).collect();
            let ask = |mode| {
                let ask = Ask::new(&charges, mode);
                store.decide_now(&[ask], Now::StoreClock).remove(0).unwrap()
            };
            let passed = passed(|| ask(Mode::Check).joint().outcome == Outcome::Allow);
            assert_eq!(passed, least, "round {round} of {texts:?}");
            for (verdict, limit) in ask(Mode::Look).verdicts.iter().zip(&limits) {
                let left = limit.capacity().map(|capacity| capacity - least);
                assert_eq!(verdict.remaining, left, "round {round}: {limit} was charged otherwise");
            }
        }
    }
}

/// Returns how many of 200 calls pass that four threads make at once.
fn passed(call: impl Fn() -> bool + Sync) -> u64 {
    let (barrier, passed) = (Barrier::new(4), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            let _thread = scope.spawn(|| {
                let _leader = barrier.wait();
                passed.fetch_add((0..50).filter(|_| call()).count() as u64, Relaxed)
            });
        }
    });
    passed.into_inner()
}
