//! The seven promises, each under its name, on random limits and traces: one limit alone, and several together.
//!
//! * P1, P2, P3, P4: `arithmetic`, on the core.
//! * P5, P6, P7: `stores`. The memory store is held to the core here; a store that several machines share is held to both by
//!   its own tests.
//!
//! `SEKISHO_DECISIONS` sets how many calls each makes (100,000 by default, five million with `SEKISHO_LONG`),
//! `SEKISHO_SEED` the seed before the first. What fails names its seed.
#![expect(clippy::unwrap_used, reason = "a test may end early")]

mod arithmetic;
mod stores;

use std::env;

use sekisho_core::{
    Joint, Limit, Mode, Slot, State, Timestamp, Utc, Verdict, decide, judge, limits,
};
use sekisho_testkit::{
    beside::{core_limit, core_mode, in_time},
    generate::{Rng, random_call, random_limit},
    model::ModelLimit,
};

/// The most limits that one request of these traces has.
const LIMITS_MAX: u64 = 4;

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn calls() -> u64 {
    let default = if env::var_os("SEKISHO_LONG").is_some() { 5_000_000 } else { 100_000 };
    setting("SEKISHO_DECISIONS", default)
}

/// Runs traces, each with the next seed, until enough calls are made. A trace returns how many it made; half of the traces
/// have one limit, the others up to four.
fn traces(mut trace: impl FnMut(u64, &mut Rng, Vec<ModelLimit>) -> u64) {
    let (calls, mut made, mut seed) = (calls(), 0, setting("SEKISHO_SEED", 0));
    while made < calls {
        seed += 1;
        let mut rng = Rng::new(seed);
        let count = if rng.chance(1, 2) { 1 } else { rng.between(2, LIMITS_MAX) };
        let limits = (0..count).map(|_| random_limit(&mut rng)).collect();
        made += trace(seed, &mut rng, limits);
    }
}

/// One call on a key: its time, a cost for each limit, and how they are charged.
#[derive(Clone, Debug)]
struct Step {
    at: u64,
    costs: Vec<u64>,
    mode: Mode,
}

impl Step {
    /// Returns any call after one at `previous`; some are late.
    fn random(rng: &mut Rng, limits: &[ModelLimit], previous: u64) -> Self {
        let lead = *rng.pick(limits);
        let (at, cost, mode) = random_call(rng, &lead, previous);
        let costs = limits.iter().map(|_| if rng.chance(2, 3) { cost } else { rng.below(4) });
        Self { at, costs: costs.collect(), mode: core_mode(in_time(mode)) }
    }

    /// Returns the same as a check.
    fn check(self) -> Self {
        Self { mode: Mode::Check, ..self }
    }

    /// Returns the same, not before `previous`.
    fn in_order(self, previous: u64) -> Self {
        Self { at: self.at.max(previous), ..self }
    }
}

/// One key under some limits.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    limits: Vec<Limit>,
    states: Vec<State>,
}

impl Key {
    fn new(limits: &[ModelLimit]) -> Self {
        let limits: Vec<_> = limits.iter().map(core_limit).collect();
        Self { states: vec![State::Fresh; limits.len()], limits }
    }

    fn decide(&mut self, step: &Step) -> (Joint, Vec<Verdict>) {
        let now = Timestamp::from_nanos(step.at);
        let mut verdicts = vec![Verdict::UNLIMITED; self.limits.len()];
        let joint = decide(&mut self.slots(step), &mut verdicts, now, step.mode, &Utc);
        (joint, verdicts)
    }

    /// Says what a check at another time would be told, and changes nothing.
    fn judge_at(&self, at: u64, step: &Step) -> (Joint, Vec<Verdict>) {
        let mut verdicts = vec![Verdict::UNLIMITED; self.limits.len()];
        let mut copy = self.clone();
        let (slots, now) = (copy.slots(step), Timestamp::from_nanos(at));
        (judge(&slots, &mut verdicts, now, Mode::Check, &Utc), verdicts)
    }

    fn slots(&mut self, step: &Step) -> Vec<Slot<'_>> {
        let with_state = self.limits.iter().zip(&mut self.states).zip(&step.costs);
        with_state.map(|((limit, state), &cost)| Slot { limit, state, cost }).collect()
    }

    /// The clock was set back to `now`.
    fn repair(&mut self, now: u64) {
        for (limit, state) in self.limits.iter().zip(&mut self.states) {
            limit.repair(state, Timestamp::from_nanos(now), &Utc);
        }
    }

    /// Returns what is left under each limit.
    fn remaining_at(&self, at: u64) -> Vec<u64> {
        let look = Step { at, costs: vec![0; self.limits.len()], mode: Mode::Look };
        let (_, verdicts) = self.judge_at(at, &look);
        verdicts.iter().map(|verdict| verdict.remaining.unwrap()).collect()
    }
}

/// Whether there is such an instant.
fn exists(at: u64) -> bool {
    at <= limits::TIMESTAMP_NS_MAX
}
