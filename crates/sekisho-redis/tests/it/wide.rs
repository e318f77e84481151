//! Limits of very different sizes, made up from seeds: memory and Redis say the same, or Redis says what it has not.
//!
//! `SEKISHO_DECISIONS` and `SEKISHO_SEED` are as for the traces of chosen limits.

use sekisho::{Ask, Charge, Limit, Mode, Now, Scope, StoreError, Timestamp};
use sekisho_testkit::{
    beside::{core_limit, core_mode, in_time},
    generate::{Rng, random_call, random_limit},
    model::ModelLimit,
};

use crate::{
    agree::setting,
    support::{Counted, Pair},
};

const DAY_NS: u64 = 86_400_000_000_000;

/// Returns a limit of whole microseconds.
fn whole(rng: &mut Rng) -> ModelLimit {
    loop {
        let mut of = random_limit(rng);
        of.period_ns = of.period_ns.saturating_mul(1_000).min(3_650 * DAY_NS) / 1_000 * 1_000;
        if of.resolution_ns > 1 {
            of.resolution_ns = of.resolution_ns.saturating_mul(1_000).min(of.period_ns);
        }
        let full = u128::from(of.burst) * u128::from(of.period_ns);
        if full <= u128::from(36_500 * DAY_NS) * u128::from(of.amount) {
            return of;
        }
    }
}

/// Returns the limit with another number, where it is one.
fn changed(rng: &mut Rng, of: ModelLimit) -> ModelLimit {
    let other = ModelLimit { amount: 1 + rng.below(of.amount.saturating_mul(2)), ..of };
    let full = u128::from(of.burst) * u128::from(of.period_ns);
    let fits = full <= u128::from(36_500 * DAY_NS) * u128::from(other.amount);
    if fits { other } else { of }
}

fn named(of: &ModelLimit, name: &str) -> Counted {
    let limit: Limit = core_limit(of);
    Counted { limit, scope: Scope::new("wide", name), ..Counted::new("1/s", name, "u") }
}

#[tokio::test]
async fn random_limits_are_answered_as_in_memory_or_refused_by_name() {
    let (decisions, mut seed) = (setting("SEKISHO_DECISIONS", 6_000), setting("SEKISHO_SEED", 1));
    println!("{decisions} decisions from seed {seed}");
    let pair = Pair::start();
    let (mut made, mut refused) = (0_u64, 0_u64);
    while made + refused < decisions {
        let mut rng = Rng::new(seed);
        let count = if rng.chance(1, 2) { 1 } else { rng.between(2, 4) };
        let mut limits: Vec<ModelLimit> = (0..count).map(|_| whole(&mut rng)).collect();
        let mut now = if rng.chance(1, 2) { 0 } else { 1_700_000_000_000_000_000 };
        for step in 0..8 + rng.below(24) {
            if rng.chance(1, 10) {
                limits = limits.into_iter().map(|of| changed(&mut rng, of)).collect();
            }
            let lead = *rng.pick(&limits);
            let (at, units, mode) = random_call(&mut rng, &lead, now);
            now = at / 1_000 * 1_000;
            let mode = match core_mode(in_time(mode)) {
                Mode::Refund { at } => {
                    Mode::Refund { at: Timestamp::from_nanos(at.as_nanos() / 1_000 * 1_000) }
                }
                other => other,
            };
            let counted: Vec<Counted> = (limits.iter().enumerate())
                .map(|(index, of)| named(of, &format!("{seed} {index}")))
                .collect();
            let charges: Vec<Charge<'_>> = counted
                .iter()
                .map(|one| one.charge(if rng.chance(2, 3) { units } else { rng.below(4) }))
                .collect();
            let ask = Ask::new(&charges, mode);
            match pair.decide(ask, Now::At(Timestamp::from_nanos(now))).await {
                Ok(_) => made += 1,
                Err(StoreError::Unsupported(_)) => refused += 1,
                Err(error) => panic!("seed {seed}, step {step}: {error}"),
            }
        }
        seed += 1;
    }
    println!("{made} agreed, {refused} refused");
    assert!(made > decisions / 2, "{made} {refused}");
}

/// The estimate is compared as a product of two large numbers, which no double holds.
#[tokio::test]
async fn a_sliding_estimate_is_exact_to_the_unit() {
    const WEEK_US: u64 = 7 * 86_400_000_000;
    let pair = Pair::start();
    let mut rng = Rng::new(11);
    for number in 0..300 {
        let amount = (1 << 51) - rng.below(1_000_000);
        let text = format!("{amount}/week sliding-window");
        let counted = Counted::new(&text, &format!("{number}"), "u");
        let start = 3_000 * WEEK_US;
        let _all = pair.check(&counted, amount - rng.below(1_000), start).await;
        let at = start + WEEK_US + rng.below(WEEK_US);
        let left = pair.ask(&[counted.charge(0)], Mode::Look, at).await.verdicts[0].remaining;
        let left = left.unwrap();
        let more = pair.check(&counted, left + 1, at).await.verdicts[0];
        let all = pair.check(&counted, left, at).await.verdicts[0];
        assert_eq!((more.is_allowed(), all.is_allowed()), (false, true), "{text}");
    }
}

/// A log's sums grow with all that ever passed, and begin anew before Lua cannot count them.
#[tokio::test]
async fn a_log_of_large_counts_goes_on() {
    let pair = Pair::start();
    let log = Counted::new("2251799813685248/7us sliding-log", "large", "u");
    let mut rng = Rng::new(12);
    let mut us = 1_700_000_000_000_000;
    for _ in 0..400 {
        us += rng.below(4);
        let cost = (1 << 49) + rng.below(1 << 50);
        let mode = match rng.below(6) {
            0 => Mode::Refund { at: Timestamp::from_nanos((us - rng.below(7)) * 1_000) },
            1 if rng.chance(1, 8) => Mode::Force,
            _ => Mode::Check,
        };
        let _answer = pair.ask(&[log.charge(cost)], mode, us).await;
    }
}

/// Of a long log only a few entries are told, and the answer is as if all were.
#[tokio::test]
async fn a_long_log_is_answered_as_in_memory() {
    let pair = Pair::start();
    let log = Counted::new("600/s sliding-log", "long", "u");
    let mut rng = Rng::new(13);
    let mut stamps = vec![1_700_000_000_000_000];
    for call in 0..4_000 {
        let last = *stamps.last().unwrap();
        let us = last + rng.below(if call < 700 { 1_000 } else { 4_000 });
        let mode = match rng.below(12) {
            0 => Mode::Look,
            1 => Mode::Force,
            2 => {
                let back = rng.below(stamps.len().min(900) as u64);
                let place = stamps.len() - 1 - usize::try_from(back).unwrap();
                Mode::Refund { at: Timestamp::from_nanos(stamps[place] * 1_000) }
            }
            _ => Mode::Check,
        };
        let cost = if rng.chance(1, 10) { rng.below(300) } else { rng.between(1, 3) };
        let _answer = pair.ask(&[log.charge(cost)], mode, us).await;
        stamps.push(us);
    }
}

/// A limit that says never does not keep the others from being asked how long they would wait.
#[tokio::test]
async fn a_log_beside_what_never_passes_names_its_wait() {
    let pair = Pair::start();
    let log = Counted::new("9/min sliding-log", "log", "u");
    let one = Counted::new("1/min", "one", "u");
    let at = 1_700_000_000_000_000;
    for second in 0..9 {
        let _answer = pair.check(&log, 1, at + second * 1_000_000).await;
    }
    for cost in [2, 3, 5, 8, 9, 10, u64::MAX] {
        let charges = [one.charge(2), log.charge(cost)];
        let answer = pair.ask(&charges, Mode::Check, at + 10_000_000).await;
        assert_eq!(answer.joint().outcome.as_str(), "never");
    }
}
