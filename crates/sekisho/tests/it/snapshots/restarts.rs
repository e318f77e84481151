//! A store that was restarted beside one that never was: the same limits, the same traffic, the same verdicts.

use std::sync::Arc;

use sekisho::{
    Ask, CanonicalPath, Charge, Clock as _, FakeClock, Key, Limit, Limiter, Memory, MemoryOptions,
    Mode, Now, PolicySet, Request, Scope, Seed, Snapshot, Span, Timestamp, Verdict,
    core::{Slot, State, Utc},
};
use sekisho_testkit::{
    beside::{core_limit, core_mode, in_time},
    generate::{Rng, random_call, random_limit},
    model::ModelLimit,
};

use super::BEGIN;

/// How many random stories are told.
fn stories() -> u64 {
    if std::env::var_os("SEKISHO_LONG").is_some() { 200_000 } else { 4_000 }
}

/// Limits, the places of their states, and some keys.
struct World {
    of: Vec<ModelLimit>,
    limits: Vec<Limit>,
    scopes: Vec<Scope>,
    keys: Vec<Key>,
}

/// What is asked about one of the keys.
#[derive(Clone, Debug)]
struct Step {
    key: usize,
    costs: Vec<u64>,
    mode: Mode,
}

impl World {
    fn random(rng: &mut Rng) -> Self {
        let of: Vec<_> = (0..rng.between(1, 3)).map(|_| random_limit(rng)).collect();
        let scope = |index: usize| Scope::new("p", &index.to_string());
        let key = |name: u8| Key::plain(&[name], &Seed::from_bytes([0; 16]));
        Self {
            limits: of.iter().map(core_limit).collect(),
            scopes: (0..of.len()).map(scope).collect(),
            keys: (b'a'..=b'c').map(key).collect(),
            of,
        }
    }

    /// Returns what is asked next, and lets time pass until then.
    fn step(&self, rng: &mut Rng, clock: &FakeClock) -> Step {
        let now = clock.now().as_nanos();
        let (at, cost, mode) = random_call(rng, &self.of[0], now);
        clock.advance(Span::from_nanos(at.saturating_sub(now)));
        let others = self.of.iter().skip(1).map(|of| random_call(rng, of, now).1);
        let costs = [cost].into_iter().chain(others.collect::<Vec<_>>()).collect();
        let key = usize::try_from(rng.below(3)).unwrap();
        Step { key, costs, mode: core_mode(in_time(mode)) }
    }

    fn ask(&self, store: &Memory, step: &Step) -> Vec<Verdict> {
        let charge = |((limit, scope), cost): ((_, _), &u64)| Charge {
            limit,
            scope,
            key: &self.keys[step.key],
            cost: *cost,
        };
        let charges: Vec<_> =
            self.limits.iter().zip(&self.scopes).zip(&step.costs).map(charge).collect();
        let ask = Ask::new(&charges, step.mode);
        store.decide_now(&[ask], Now::StoreClock).remove(0).unwrap().verdicts
    }
}

/// Returns a store that a snapshot of this one holds.
fn restarted(store: &Memory, clock: Arc<FakeClock>) -> Memory {
    let bytes = Snapshot::encode(store, &Seed::random()).unwrap();
    let (again, _, restored) = Snapshot::decode(&bytes, MemoryOptions::default(), clock).unwrap();
    assert_eq!(restored.left_out, 0);
    again
}

#[test]
fn a_restart_changes_no_verdict() {
    for seed in 0..stories() {
        let mut rng = Rng::new(seed);
        let world = World::random(&mut rng);
        let clock = Arc::new(FakeClock::at(BEGIN));
        let steady = Memory::with_clock(MemoryOptions::default(), clock.clone());
        let mut other = Memory::with_clock(MemoryOptions::default(), clock.clone());
        for number in 0..40 {
            if rng.chance(1, 5) {
                other = restarted(&other, clock.clone());
            }
            let step = world.step(&mut rng, &clock);
            let (wanted, found) = (world.ask(&steady, &step), world.ask(&other, &step));
            assert_eq!(found, wanted, "seed {seed}, step {number}: {step:?} of {:?}", world.limits);
        }
    }
}

/// A clock that was set back leaves state after now. It is moved to now, as the core does it, until now is where the snapshot was.
#[test]
fn a_clock_that_was_set_back_locks_nobody_out() {
    for seed in 0..stories() {
        let mut rng = Rng::new(seed);
        let world = World::random(&mut rng);
        let clock = Arc::new(FakeClock::at(BEGIN));
        let store = Memory::with_clock(MemoryOptions::default(), clock.clone());
        let mut pure = vec![vec![State::Fresh; world.limits.len()]; world.keys.len()];
        for _ in 0..10 {
            let step = world.step(&mut rng, &clock);
            let _same = world.ask(&store, &step);
            let _verdicts = decide(&world, &mut pure, &step, clock.now());
        }
        let written_at = clock.now();
        // What has become fresh is forgotten, and a clock that goes back does not bring it back.
        for (limit, state) in pure.iter_mut().flat_map(|of| world.limits.iter().zip(of)) {
            if limit.fresh_at(state, &Utc) <= written_at {
                *state = State::Fresh;
            }
        }
        let back = random_call(&mut rng, &world.of[0], 0).0.min(BEGIN.as_nanos() / 2);
        let earlier = Timestamp::from_nanos(written_at.as_nanos() - back);
        let clock = Arc::new(FakeClock::at(earlier));
        let mut store = restarted(&store, clock.clone());
        for number in 0..20 {
            // A second restart before the clock is there again forgets nothing of this.
            if rng.chance(1, 10) {
                store = restarted(&store, clock.clone());
            }
            let step = world.step(&mut rng, &clock);
            let now = clock.now();
            let before = pure[step.key].clone();
            if now < written_at {
                for (limit, state) in world.limits.iter().zip(&mut pure[step.key]) {
                    limit.repair(state, now, &Utc);
                }
            }
            let (wanted, found) = (decide(&world, &mut pure, &step, now), world.ask(&store, &step));
            // A look shows what was moved, and stores nothing.
            let looks = step.costs.iter().map(|cost| *cost == 0 || step.mode == Mode::Look);
            for ((state, before), _) in
                pure[step.key].iter_mut().zip(before).zip(looks).filter(|(_, looks)| *looks)
            {
                *state = before;
            }
            assert_eq!(found, wanted, "seed {seed}, step {number}: {step:?} of {:?}", world.limits);
        }
    }
}

/// Asks the core, without a store.
fn decide(world: &World, states: &mut [Vec<State>], step: &Step, now: Timestamp) -> Vec<Verdict> {
    let slot = |((limit, state), cost): ((_, _), &u64)| Slot { limit, state, cost: *cost };
    let states = world.limits.iter().zip(&mut states[step.key]);
    let mut slots: Vec<_> = states.zip(&step.costs).map(slot).collect();
    let mut verdicts = vec![Verdict::UNLIMITED; slots.len()];
    let _joint = sekisho::core::decide(&mut slots, &mut verdicts, now, step.mode, &Utc);
    verdicts
}

/// Keys of headers and cookies, and those on lists, are digests under a seed of their own, which comes back too.
#[test]
fn headers_and_cookies_are_found_again() {
    let file = r#"
        [[policy]]
        name = "by-header"
        key = [{ header = "x-key" }]
        on_missing_key = "deny"
        limits = ["1/h"]
        deny = { key = ["leaked"] }
        [[policy]]
        name = "by-cookie"
        key = [{ cookie = "session" }]
        on_missing_key = "deny"
        limits = ["1/h"]
    "#;
    let clock = Arc::new(FakeClock::at(BEGIN));
    let path = CanonicalPath::parse("/").unwrap();
    let passes = |limiter: &Limiter, secret: &str| {
        let headers = vec![("x-key", secret.to_owned()), ("cookie", format!("session={secret}"))];
        let request = Request {
            method: "GET",
            host: None,
            path: &path,
            query: None,
            client: None,
            principal: None,
            headers: &headers,
        };
        limiter.decide_now(&request, Mode::Check).is_allowed()
    };
    let first = Limiter::with_clock(PolicySet::parse(file).unwrap(), clock.clone());
    assert_eq!(["alice", "leaked"].map(|secret| passes(&first, secret)), [true, false]);
    let bytes = Snapshot::encode(first.store(), first.policies().seed()).unwrap();
    let (store, keys, _) = Snapshot::decode(&bytes, MemoryOptions::default(), clock).unwrap();
    let policies = PolicySet::parse(file).unwrap().with_seed(keys);
    assert!(!format!("{policies:?}").contains("leaked"), "what is listed is a secret");
    let second = Limiter::with_store(policies, store);
    let passed = ["alice", "bob", "bob", "leaked"].map(|secret| passes(&second, secret));
    assert_eq!(passed, [false, true, false, false]);
}
