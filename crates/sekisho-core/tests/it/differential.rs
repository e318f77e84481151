//! Every decision beside the independent rational model: random limits, times (late ones too), costs, modes, alone and jointly.
//!
//! `SEKISHO_DECISIONS` sets how many decisions each test makes (100,000 by default, a hundred million with `SEKISHO_LONG`),
//! `SEKISHO_SEED` the first seed.

use std::env;

use sekisho_core::{
    Algorithm, Limit, Mode, Outcome, Period, Rate, Slot, Span, State, Timestamp, Utc, Verdict,
    decide,
};
use sekisho_testkit::{
    generate::{Rng, random_call, random_limit},
    model::{self, Answer, Joint, JointAnswer, Model, ModelLimit},
};

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Returns how many decisions a test makes.
fn decisions() -> u64 {
    let default = if env::var_os("SEKISHO_LONG").is_some() { 100_000_000 } else { 100_000 };
    setting("SEKISHO_DECISIONS", default)
}

fn limit(of: &ModelLimit) -> Limit {
    let period = Period::fixed(Span::from_nanos(of.period_ns)).unwrap();
    let (algorithm, burst) = match of.algorithm {
        model::Algorithm::FixedWindow => (Algorithm::FixedWindow, None),
        model::Algorithm::AnchoredWindow => (Algorithm::AnchoredWindow, None),
        model::Algorithm::SlidingLog => (Algorithm::SlidingLog, None),
        model::Algorithm::SlidingWindow => (Algorithm::SlidingWindow, None),
        model::Algorithm::TokenBucket => (Algorithm::TokenBucket, Some(of.burst)),
        model::Algorithm::LeakyQueue => (Algorithm::LeakyQueue, Some(of.burst)),
    };
    Limit::metered(Rate::new(of.amount, period).unwrap(), algorithm, burst).unwrap()
}

fn mode(of: model::Mode) -> Mode {
    match of {
        model::Mode::Check => Mode::Check,
        model::Mode::Look => Mode::Look,
        model::Mode::Force => Mode::Force,
        model::Mode::Refund { at } => Mode::Refund { at: Timestamp::from_nanos(at) },
    }
}

/// A refund of a charge after the end of time cannot be asked for.
fn in_time((at, cost, mode): (u64, u64, model::Mode)) -> (u64, u64, model::Mode) {
    let mode = match mode {
        model::Mode::Refund { at } => {
            model::Mode::Refund { at: at.min(sekisho_core::limits::TIMESTAMP_NS_MAX) }
        }
        other => other,
    };
    (at, cost, mode)
}

fn outcome(of: Outcome) -> model::Outcome {
    match of {
        Outcome::Allow => model::Outcome::Allow,
        Outcome::Deny => model::Outcome::Deny,
        Outcome::Never => model::Outcome::Never,
    }
}

fn answer(of: &Verdict) -> Answer {
    Answer {
        outcome: outcome(of.outcome),
        remaining: of.remaining.unwrap(),
        retry_after: of.retry_after.map(Span::as_nanos),
        reset_after: of.reset_after.as_nanos(),
        delay: of.delay.as_nanos(),
        next_after: of.next_after.as_nanos(),
        quota_after: of.quota_after.as_nanos(),
    }
}

/// Some limits on one key, in the core and in the model.
struct Pair {
    limits: Vec<ModelLimit>,
    core: Vec<(Limit, State)>,
    model: Joint,
}

impl Pair {
    fn new(limits: Vec<ModelLimit>) -> Self {
        let core = limits.iter().map(|of| (limit(of), State::Fresh)).collect();
        Self { model: Joint::new(limits.clone()), limits, core }
    }

    fn call(
        &mut self,
        now: u64,
        costs: &[u64],
        as_mode: model::Mode,
    ) -> (JointAnswer, JointAnswer) {
        let expected = self.model.call(now, costs, as_mode);
        let mut slots: Vec<_> = self
            .core
            .iter_mut()
            .zip(costs)
            .map(|((limit, state), cost)| Slot { limit, state, cost: *cost })
            .collect();
        let mut verdicts = vec![Verdict::UNLIMITED; slots.len()];
        let joint =
            decide(&mut slots, &mut verdicts, Timestamp::from_nanos(now), mode(as_mode), &Utc);
        let seen = JointAnswer {
            outcome: outcome(joint.outcome),
            binding: joint.binding,
            delay: joint.delay.as_nanos(),
            answers: verdicts.iter().map(answer).collect(),
        };
        (seen, expected)
    }
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
            let (at, cost, as_mode) = in_time(random_call(&mut rng, &lead, now));
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
            let (at, cost, as_mode) = in_time(random_call(&mut rng, &of, now));
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
        let (mut core, mut model) = ((limit(&of), State::Fresh), Model::new(of));
        let mut now = 0;
        for step in 0..8 + rng.below(24) {
            let (at, cost, as_mode) = in_time(random_call(&mut rng, &of, now));
            now = at;
            if rng.chance(1, 6) {
                let changed =
                    ModelLimit { amount: 1 + rng.below(of.amount.saturating_mul(2)), ..of };
                let waits = u128::from(changed.burst) * u128::from(changed.period_ns);
                if waits
                    <= u128::from(sekisho_core::limits::WAIT_NS_MAX) * u128::from(changed.amount)
                {
                    of = changed;
                    core.0 = limit(&of);
                    model.change(of.amount, of.burst);
                }
            }
            if rng.chance(1, 6) {
                core.0.repair(&mut core.1, Timestamp::from_nanos(at), &Utc);
                model.repair(at);
            }
            let call =
                sekisho_core::Call { now: Timestamp::from_nanos(at), cost, mode: mode(as_mode) };
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
