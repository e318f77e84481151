//! What a trace is run against: any store, the core by itself, or the exact model.

use std::{collections::BTreeMap, future};

use sekisho::{
    Ask, Charge, Joint, Key, Limit, Mode, Now, Outcome, Scope, Seed, Span, Store, Timestamp,
    Verdict, Zones,
    core::{Slot, State, decide},
};

use super::{decimal::written, steps::Step};
use crate::{beside, model};

/// What was said of one call: together, and by each limit.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) joint: Joint,
    pub(super) verdicts: Vec<Verdict>,
}

/// Something that decides the calls of a trace.
pub(super) trait Subject {
    /// Decides one call.
    fn ask(
        &mut self,
        step: &Step,
        at: Timestamp,
    ) -> impl Future<Output = Result<Seen, String>> + Send;
}

/// A store, told the time of each call.
pub(super) struct InStore<'a, S> {
    store: &'a S,
    limits: &'a [Limit],
    scopes: Vec<Scope>,
    seed: Seed,
}

impl<'a, S: Store> InStore<'a, S> {
    /// No two traces share a scope, so one store takes them all.
    pub(super) fn new(store: &'a S, limits: &'a [Limit], scope: &str) -> Self {
        let id = |(index, limit): (usize, &Limit)| {
            let name = limit.as_metered().map_or(limit.to_string(), |of| of.id().to_string());
            Scope::new(scope, &format!("{index}-{name}"))
        };
        let scopes = limits.iter().enumerate().map(id).collect();
        Self { store, limits, scopes, seed: Seed::from_bytes([7; 16]) }
    }
}

impl<S: Store> Subject for InStore<'_, S> {
    async fn ask(&mut self, step: &Step, at: Timestamp) -> Result<Seen, String> {
        let key = Key::plain(step.key.as_bytes(), &self.seed);
        let charges: Vec<Charge<'_>> = (self.limits.iter().zip(&self.scopes).enumerate())
            .map(|(index, (limit, scope))| Charge {
                limit,
                scope,
                key: &key,
                cost: step.cost(index),
            })
            .collect();
        let ask = Ask::new(&charges, step.mode);
        let mut answers = self.store.decide(&[ask], Now::At(at)).await;
        match (answers.pop(), answers.len()) {
            (Some(Ok(answer)), 0) if answer.at == at => {
                Ok(Seen { joint: answer.joint(), verdicts: answer.verdicts })
            }
            (Some(Ok(answer)), 0) => Err(format!("it was decided at {}", written(answer.at))),
            (Some(Err(error)), 0) => Err(error.to_string()),
            (_, more) => Err(format!("one ask has one answer, and not {more} more")),
        }
    }
}

/// The core by itself; it is held to more than its answers, since its state can be seen.
pub(super) struct InCore<'a> {
    limits: &'a [Limit],
    keys: BTreeMap<String, Vec<State>>,
    denials: u64,
}

/// How many denials of a trace are all replayed; of those after them, one in 97.
const REPLAYED: u64 = 2_000;

impl<'a> InCore<'a> {
    pub(super) fn new(limits: &'a [Limit]) -> Self {
        Self { limits, keys: BTreeMap::new(), denials: 0 }
    }

    fn decide(limits: &[Limit], states: &mut [State], step: &Step, at: Timestamp) -> Seen {
        let mut verdicts = vec![Verdict::UNLIMITED; limits.len()];
        let mut slots: Vec<Slot<'_>> = (limits.iter().zip(states).enumerate())
            .map(|(index, (limit, state))| Slot { limit, state, cost: step.cost(index) })
            .collect();
        let joint = decide(&mut slots, &mut verdicts, at, step.mode, &Zones);
        Seen { joint, verdicts }
    }

    /// A denied request passes after its wait, alone, and not a nanosecond before.
    fn is_honest(
        &self,
        states: &[State],
        step: &Step,
        wait: Span,
        at: Timestamp,
    ) -> Result<(), String> {
        let due = at.as_nanos().saturating_add(wait.as_nanos());
        if wait.is_zero() {
            return Err("a denial without a wait".to_owned());
        }
        if due > Timestamp::MAX.as_nanos() {
            return Ok(());
        }
        let outcome = |ns: u64| {
            let mut states = states.to_vec();
            Self::decide(self.limits, &mut states, step, Timestamp::from_nanos(ns)).joint.outcome
        };
        match (outcome(due - 1), outcome(due)) {
            (Outcome::Deny, Outcome::Allow) => Ok(()),
            (before, then) => {
                Err(format!("after its wait it is {then:?}, and {before:?} a nanosecond before"))
            }
        }
    }
}

impl Subject for InCore<'_> {
    fn ask(
        &mut self,
        step: &Step,
        at: Timestamp,
    ) -> impl Future<Output = Result<Seen, String>> + Send {
        let fresh = || vec![State::Fresh; self.limits.len()];
        let mut states = self.keys.remove(&step.key).unwrap_or_else(fresh);
        let before = states.clone();
        let seen = Self::decide(self.limits, &mut states, step, at);
        let refused = seen.joint.outcome != Outcome::Allow;
        let mut result = Ok(());
        if (refused || step.mode == Mode::Look) && states != before {
            result = Err("what charges nothing has changed the state".to_owned());
        }
        let wait = seen.verdicts.get(seen.joint.binding).and_then(|verdict| verdict.retry_after);
        if let Some(wait) = wait.filter(|_| refused) {
            self.denials += 1;
            if self.denials <= REPLAYED || self.denials.is_multiple_of(97) {
                result = result.and_then(|()| self.is_honest(&states, step, wait, at));
            }
        }
        let _none = self.keys.insert(step.key.clone(), states);
        future::ready(result.map(|()| seen))
    }
}

/// The model that counts in unbounded rationals.
pub(super) struct InModel {
    limits: Vec<model::ModelLimit>,
    keys: BTreeMap<String, model::Joint>,
}

impl InModel {
    /// `None` when the model knows nothing of one of the limits: it has no calendars, `block` or `unlimited`.
    pub(super) fn new(limits: &[Limit]) -> Option<Self> {
        let limits = limits.iter().map(beside::numbers).collect::<Option<Vec<_>>>()?;
        Some(Self { limits, keys: BTreeMap::new() })
    }
}

fn outcome(of: model::Outcome) -> Outcome {
    match of {
        model::Outcome::Allow => Outcome::Allow,
        model::Outcome::Deny => Outcome::Deny,
        model::Outcome::Never => Outcome::Never,
    }
}

fn verdict(limit: &model::ModelLimit, answer: &model::Answer) -> Verdict {
    Verdict {
        outcome: outcome(answer.outcome),
        capacity: u64::try_from(limit.capacity()).ok(),
        remaining: Some(answer.remaining),
        retry_after: answer.retry_after.map(Span::from_nanos),
        reset_after: Span::from_nanos(answer.reset_after),
        delay: Span::from_nanos(answer.delay),
        next_after: Span::from_nanos(answer.next_after),
        quota_after: Span::from_nanos(answer.quota_after),
    }
}

impl Subject for InModel {
    fn ask(
        &mut self,
        step: &Step,
        at: Timestamp,
    ) -> impl Future<Output = Result<Seen, String>> + Send {
        let costs: Vec<u64> = (0..self.limits.len()).map(|index| step.cost(index)).collect();
        let mode = match step.mode {
            Mode::Check => model::Mode::Check,
            Mode::Look => model::Mode::Look,
            Mode::Force => model::Mode::Force,
            Mode::Refund { at } => model::Mode::Refund { at: at.as_nanos() },
        };
        let fresh = || model::Joint::new(self.limits.clone());
        let key = self.keys.entry(step.key.clone()).or_insert_with(fresh);
        let answer = key.call(at.as_nanos(), &costs, mode);
        let (outcome, delay) = (outcome(answer.outcome), Span::from_nanos(answer.delay));
        let joint = Joint { outcome, binding: answer.binding, delay };
        let verdicts =
            self.limits.iter().zip(&answer.answers).map(|(limit, answer)| verdict(limit, answer));
        future::ready(Ok(Seen { joint, verdicts: verdicts.collect() }))
    }
}
