//! Every decision beside the independent rational model: random limits, times (late ones too), costs, modes, alone and jointly.
//!
//! `SEKISHO_DECISIONS` sets how many decisions each test makes (100,000 by default, a hundred million with `SEKISHO_LONG`),
//! `SEKISHO_SEED` the first seed.

use std::env;

use sekisho_core::{Mode, Outcome, State, Timestamp, Utc};
use sekisho_testkit::{
    beside::{Pair, answer, core_limit, core_mode, in_time},
    generate::{Rng, random_call, random_limit},
    model::{Model, ModelLimit},
};

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Returns how many decisions a test makes.
fn decisions() -> u64 {
    let default = if env::var_os("SEKISHO_LONG").is_some() { 100_000_000 } else { 100_000 };
    setting("SEKISHO_DECISIONS", default)
}

/// Runs traces of some twenty calls until the decisions are made.
fn compare(limits_at_once: u64, name: &str) {
    let decisions = decisions();
    let mut seed = setting("SEKISHO_SEED", 1);
    let mut made = 0;
    while made < decisions {
        seed += 1;
        let mut rng = Rng::new(seed);
        let count = if limits_at_once == 1 { 1 } else { 2 + rng.below(limits_at_once - 1) };
        let mut pair = Pair::new((0..count).map(|_| random_limit(&mut rng)).collect());
        let mut now = 0;
        for step in 0..8 + rng.below(24) {
            let lead = *rng.pick(&pair.limits);
            let (at, cost, as_mode) = random_call(&mut rng, &lead, now);
            let as_mode = in_time(as_mode);
            now = at;
            let costs: Vec<_> =
                (0..count).map(|_| if rng.chance(2, 3) { cost } else { rng.below(4) }).collect();
            let (seen, expected) = pair.call(at, &costs, as_mode);
            assert_eq!(
                seen, expected,
                "{name}: seed {seed}, step {step}, at {at}, costs {costs:?}, {as_mode:?}, limits {:?}, state {:?}",
                pair.limits, pair.core
            );
            made += 1;
        }
    }
}

#[test]
fn one_limit_agrees_with_the_model_in_every_field() {
    compare(1, "one");
}

#[test]
fn several_limits_agree_with_the_model_in_every_field() {
    compare(4, "several");
}

/// Replayed alone at `retry_after` a denied request passes, and a nanosecond before it does not.
#[test]
fn a_named_wait_is_true_to_the_nanosecond() {
    let decisions = decisions();
    let (mut made, mut denied, mut seed) = (0, 0_u64, setting("SEKISHO_SEED", 1));
    while made < decisions {
        seed += 1;
        let mut rng = Rng::new(seed);
        let of = random_limit(&mut rng);
        let mut pair = Pair::new(vec![of]);
        let mut now = 0;
        for _ in 0..8 + rng.below(24) {
            let (at, cost, as_mode) = random_call(&mut rng, &of, now);
            let as_mode = in_time(as_mode);
            now = at;
            made += 1;
            let (seen, _) = pair.call(at, &[cost], as_mode);
            let Some(wait) = seen.answers[0].retry_after else { continue };
            let alone = |ns: u64| {
                let (limit, state) = pair.core[0].clone();
                let call =
                    sekisho_core::Call { now: Timestamp::from_nanos(ns), cost, mode: Mode::Check };
                limit.judge(&state, call, &Utc).outcome
            };
            if at + wait > sekisho_core::limits::TIMESTAMP_NS_MAX {
                continue;
            }
            denied += 1;
            assert!(wait > 0, "seed {seed}");
            assert_eq!(alone(at + wait), Outcome::Allow, "seed {seed}: {of:?} at {at} + {wait}");
            assert_eq!(alone(at + wait - 1), Outcome::Deny, "seed {seed}: {of:?} at {at} + {wait}");
        }
    }
    assert!(denied > decisions / 50, "the generator denies often enough to test: {denied}");
}

/// What long runs have found, for good: a debt that a late refund had brought before its own force, and a clock set back.
#[test]
fn seeds_that_once_differed() {
    repairs_and_changes(242_481, 1);
}

/// A clock set back, and numbers that change on the way, beside the model.
#[test]
fn repairs_and_changed_numbers_agree_with_the_model() {
    repairs_and_changes(setting("SEKISHO_SEED", 1), decisions());
}

fn repairs_and_changes(mut seed: u64, decisions: u64) {
    let mut made = 0;
    while made < decisions {
        seed += 1;
        let mut rng = Rng::new(seed);
        let mut of = random_limit(&mut rng);
        let (mut core, mut model) = ((core_limit(&of), State::Fresh), Model::new(of));
        let mut now = 0;
        for step in 0..8 + rng.below(24) {
            let (at, cost, as_mode) = random_call(&mut rng, &of, now);
            let as_mode = in_time(as_mode);
            now = at;
            if rng.chance(1, 6) {
                let changed =
                    ModelLimit { amount: 1 + rng.below(of.amount.saturating_mul(2)), ..of };
                let waits = u128::from(changed.burst) * u128::from(changed.period_ns);
                if waits
                    <= u128::from(sekisho_core::limits::WAIT_NS_MAX) * u128::from(changed.amount)
                {
                    of = changed;
                    core.0 = core_limit(&of);
                    model.change(of.amount, of.burst);
                }
            }
            if rng.chance(1, 6) {
                core.0.repair(&mut core.1, Timestamp::from_nanos(at), &Utc);
                model.repair(at);
            }
            let call = sekisho_core::Call {
                now: Timestamp::from_nanos(at),
                cost,
                mode: core_mode(as_mode),
            };
            let seen = answer(&core.0.decide(&mut core.1, call, &Utc));
            let expected = model.call(at, cost, as_mode);
            assert_eq!(
                seen, expected,
                "seed {seed}, step {step}, at {at}, cost {cost}, {as_mode:?}, {of:?}"
            );
            made += 1;
        }
    }
}
