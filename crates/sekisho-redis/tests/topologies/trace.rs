//! Random traces, which a store answers as memory does: in every field, to the last nanosecond.

use std::collections::BTreeMap;

use sekisho::{Ask, Charge, Mode, Now, Outcome, Span, Store, StoreError};
use sekisho_redis::RedisStore;
use sekisho_testkit::generate::Rng;

use crate::common::{Counted, at, memory, setting};

const SECOND: u64 = 1_000_000;
/// Limits of every algorithm, each with other numbers that may come to hold for the same state.
const LIMITS: [[&str; 3]; 11] = [
    ["7/min", "11/min burst 3", "60/min burst 100"],
    ["999999/s", "3000000000/s", "1/s burst 5"],
    ["3/10us", "7/10us burst 2", "1/10us"],
    ["10/min fixed-window", "3/min fixed-window", "1000/min fixed-window"],
    ["9/calendar-day", "3/calendar-day", "100/calendar-day"],
    ["7/10s anchored-window", "3/10s anchored-window", "90/10s anchored-window"],
    ["7/min sliding-window", "3/min sliding-window", "100/min sliding-window"],
    ["7/min sliding-log", "3/min sliding-log", "20/min sliding-log resolution 10s"],
    ["5/7us sliding-log", "2/7us sliding-log", "2251799813685248/7us sliding-log"],
    ["7/min burst 5 leaky-queue", "3/min leaky-queue", "60/min burst 20 leaky-queue"],
    ["3/10us burst 6 leaky-queue", "7/10us burst 2 leaky-queue", "1/10us leaky-queue"],
];

/// What the requests of a trace are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requests {
    /// One identity each, with everything that can happen to it: late stamps, other numbers, refunds.
    OfOne,
    /// Several identities each. Where these live apart, what was charged in vain is given back, which leaves a state that
    /// answers alike from then on, but not to who comes late, counts with other numbers, or gives back an earlier slot.
    OfSeveral,
}

impl Requests {
    /// Returns the next time, which mostly goes on, by about what matters to one of the limits.
    fn step(self, rng: &mut Rng, us: u64) -> u64 {
        match rng.below(16) {
            0..6 => us,
            6..9 => us + rng.below(20),
            9 => us + rng.below(SECOND),
            10..12 => us + rng.below(20) * SECOND,
            12 => us + rng.below(100_000) * SECOND,
            13 if self == Self::OfOne => us.saturating_sub(rng.below(90 * SECOND)),
            _ => (us / (60 * SECOND) + 1) * 60 * SECOND - rng.below(2),
        }
        .max(if self == Self::OfOne { 0 } else { us })
    }

    /// Returns one to four limits of somebody, or of several.
    fn some(self, rng: &mut Rng) -> Vec<Counted> {
        let first = rng.below(LIMITS.len() as u64);
        let count = if rng.chance(1, 3) { 1 } else { rng.between(2, 4) };
        let who = rng.below(5);
        let one = |more: u64| {
            let limit = (first + more * 3) % LIMITS.len() as u64;
            let (number, who) = match self {
                Self::OfOne => (if rng.chance(3, 4) { 0 } else { rng.between(1, 2) }, who),
                Self::OfSeveral => (0, (who + more) % 5),
            };
            let [limit, number] = [limit, number].map(|of| usize::try_from(of).unwrap());
            let who = format!("{self:?} {who}");
            Counted::new(LIMITS[limit][number], LIMITS[limit][0], &who)
        };
        (0..count).map(one).collect()
    }

    fn mode(self, rng: &mut Rng, counted: &[Counted], (us, before): (u64, u64)) -> Mode {
        let has_queue = counted.iter().any(|one| one.scope.limit().contains("queue"));
        match rng.below(20) {
            0..15 => Mode::Check,
            15 => Mode::Look,
            16 => Mode::Force,
            _ if self == Self::OfSeveral && has_queue => Mode::Check,
            _ => Mode::Refund { at: at(if rng.chance(3, 4) { before } else { us }) },
        }
    }
}

fn cost(rng: &mut Rng, capacity: u64) -> u64 {
    match rng.below(14) {
        0..8 => 1,
        8 => 0,
        9 => capacity,
        10 if rng.chance(1, 4) => capacity.saturating_add(1),
        11 => rng.between(0, capacity),
        _ => rng.below(4),
    }
}

/// Asks a store and memory the same, which must answer the same; returns how often each outcome came.
pub(crate) async fn agree(store: &RedisStore, requests: Requests) -> BTreeMap<&'static str, u64> {
    let decisions = setting("SEKISHO_DECISIONS", if long() { 30_000 } else { 3_000 });
    let seed = setting("SEKISHO_SEED", 1);
    println!("{decisions} decisions, {requests:?}, from seed {seed}");
    let (memory, mut rng) = (memory(), Rng::new(seed));
    let mut us = 1_700_000_000 * SECOND + rng.below(86_400 * SECOND);
    let mut said = BTreeMap::new();
    for number in 0..decisions {
        let before = us;
        us = requests.step(&mut rng, us);
        let counted = requests.some(&mut rng);
        let mode = requests.mode(&mut rng, &counted, (us, before));
        let costs: Vec<u64> =
            counted.iter().map(|one| cost(&mut rng, one.limit.capacity().unwrap())).collect();
        let charges: Vec<Charge<'_>> =
            counted.iter().zip(costs).map(|(one, cost)| one.charge(cost)).collect();
        let longest = rng.chance(1, 4).then(|| Span::from_nanos(rng.below(20_000) * 1_000_000));
        let (ask, now) = (Ask { longest, ..Ask::new(&charges, mode) }, Now::At(at(us)));
        let shared = store.decide(&[ask], now).await.pop().unwrap();
        if let Err(StoreError::Unsupported(_)) = shared {
            *said.entry("unsupported").or_default() += 1;
            continue;
        }
        let mut shared = shared.unwrap_or_else(|error| panic!("{number} of seed {seed}: {error}"));
        // A given time is everybody's.
        assert!(shared.apart.iter().all(|then| *then == shared.at), "{shared:?}");
        shared.apart.clear();
        let own = memory.decide_now(&[ask], now).pop().unwrap().unwrap();
        assert_eq!(shared, own, "{number} of seed {seed}: {ask:?} {now:?}");
        *said.entry(own.joint().outcome.as_str()).or_default() += 1;
    }
    println!("{said:?}");
    for outcome in [Outcome::Allow, Outcome::Deny, Outcome::Never] {
        assert!(said[outcome.as_str()] > decisions / 50, "{said:?}");
    }
    assert!(said.get("unsupported").copied().unwrap_or(0) < decisions / 20, "{said:?}");
    said
}

/// Whether somebody has the time.
fn long() -> bool {
    setting("SEKISHO_LONG", 0) != 0
}
