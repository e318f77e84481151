//! What is decided while the store cannot: each policy says. Over the policies of a request deny goes before local, and local
//! before allow.
//!
//! A `local` policy is decided in this process's own memory, on its share of each limit. While the store works, what it allows
//! is charged there too, as far as it fits, so that an outage does not begin with a fresh quota for everybody.

use std::sync::Arc;

use sekisho_core::{Limit, Mode, Outcome, Span, Timestamp, Verdict};

use super::{Limiter, charges, note};
use crate::{
    clock::Clock,
    decision::{Decision, Degraded, Part, Ruling},
    policy::{Outage, Policy, PolicySet},
    store::{
        Ask, Charge, Now, Store, StoreError,
        memory::{Memory, MemoryOptions},
    },
};

/// What this process counts in while the store is down.
#[derive(Debug)]
pub(super) struct Fallback {
    pub(super) memory: Memory,
}

impl Fallback {
    /// Returns a memory where some policy needs it.
    pub(super) fn of(policies: &PolicySet, clock: Arc<dyn Clock>) -> Option<Self> {
        let mut limits = policies.policies().iter().flat_map(Policy::plans);
        let needed = limits.any(|(_, limits)| limits.iter().any(|limit| limit.local().is_some()));
        let options = || MemoryOptions::from(&policies.settings().store);
        needed.then(|| Self { memory: Memory::with_clock(options(), clock) })
    }

    /// Charges here what the store has charged, each limit by itself. A check charges what fits and makes no debt: the store
    /// knows what other servers have left over, and this memory does not.
    pub(super) fn warm(&self, parts: &mut [Part], mode: Mode) {
        if mode == Mode::Look {
            return;
        }
        for part in parts {
            let Outage::Local(limit) = &part.outage else { continue };
            part.warmed = self.charge(part, limit, mode);
        }
    }

    /// Gives back here what was charged here, beside what the store is asked to give back.
    pub(super) fn take_back(&self, parts: &[&Part]) {
        for part in parts {
            if let (Outage::Local(limit), Some(at)) = (&part.outage, part.warmed) {
                let _charged = self.charge(part, limit, Mode::Refund { at });
            }
        }
    }

    /// Returns when a part was charged to a limit, if it was.
    fn charge(&self, part: &Part, limit: &Limit, mode: Mode) -> Option<Timestamp> {
        let Part { scope, key, cost, .. } = part;
        let charges = [Charge { limit, scope, key, cost: *cost }];
        let answer = self.memory.decide_now(&[Ask::new(&charges, mode)], Now::StoreClock).pop();
        // A memory that is full of keys in use stays as it is: the store has decided.
        let answer = answer?.ok()?;
        (answer.joint().outcome == Outcome::Allow).then_some(answer.at)
    }
}

impl<S: Store> Limiter<S> {
    /// Decides what the store could not.
    pub(super) fn decide_without_store(
        &self,
        mut parts: Vec<Part>,
        error: StoreError,
        (mode, longest): (Mode, Option<Span>),
    ) -> Decision {
        if !self.is_outage(&error) {
            return Decision::without_limits(Ruling::StoreDown(error), Timestamp::EPOCH, None);
        }
        // Deny before the others: then nothing is charged for them.
        let denied = policies(&parts, |outage| match outage {
            Outage::Deny => true,
            Outage::Local(_) => self.fallback.is_none(),
            Outage::Allow | Outage::Unsaid => false,
        });
        if !denied.is_empty() {
            return refused(denied, error);
        }
        if parts.iter().any(|part| matches!(part.outage, Outage::Unsaid)) {
            return Decision::without_limits(Ruling::StoreDown(error), Timestamp::EPOCH, None);
        }
        let degraded = Degraded {
            allowed: policies(&parts, |outage| matches!(outage, Outage::Allow)),
            local: policies(&parts, |outage| matches!(outage, Outage::Local(_))),
            denied,
            error,
        };
        // `block` needs no store: an outage does not open what is closed.
        let judged = matches!(mode, Mode::Check | Mode::Look);
        if judged && parts.iter().any(|part| part.limit == Limit::Block) {
            parts.retain(|part| part.limit == Limit::Block);
            for part in &mut parts {
                part.verdict = Verdict::BLOCK;
            }
            return marked(Decision::from_parts(Timestamp::EPOCH, parts), degraded);
        }
        parts.retain(|part| matches!(part.outage, Outage::Local(_)));
        match &self.fallback {
            Some(fallback) if !parts.is_empty() => {
                fallback.decide(parts, degraded, (mode, longest))
            }
            _ => marked(Decision::from_parts(Timestamp::EPOCH, Vec::new()), degraded),
        }
    }

    /// Returns whether an error is one that policies have a say in: the store is away, or has no room. What it has not learned, or
    /// was asked wrongly, is a fault, and must open nothing. A memory that is full was told what to do then.
    fn is_outage(&self, error: &StoreError) -> bool {
        let no_room = *error == StoreError::Full && self.policies.settings().store.shared.is_some();
        error.is_transient() || no_room
    }
}

impl Fallback {
    /// Decides in this process's memory.
    fn decide(
        &self,
        mut parts: Vec<Part>,
        degraded: Degraded,
        (mode, longest): (Mode, Option<Span>),
    ) -> Decision {
        let whole: Vec<Limit> = parts.iter().map(|part| part.limit).collect();
        for part in &mut parts {
            if let Outage::Local(limit) = &part.outage {
                part.limit = **limit;
            }
        }
        let answer = {
            let charges = charges(&parts);
            let ask = Ask { longest, ..Ask::new(&charges, mode) };
            self.memory.decide_now(&[ask], Now::StoreClock).pop()
        };
        let answer = match answer.unwrap_or_else(|| Err(super::no_answer())) {
            Ok(answer) => answer,
            Err(error) => return refused(degraded.local, error),
        };
        note(&mut parts, &answer);
        // More than this process's share ever holds, and less than the limit: never would be untrue, and so would any wait.
        let too_dear = |(part, whole): &(&Part, &Limit)| {
            part.verdict.outcome == Outcome::Never
                && whole.capacity().is_none_or(|capacity| part.cost <= capacity)
        };
        let dear: Vec<_> = parts.iter().zip(&whole).filter(too_dear).collect();
        if let Some((part, _)) = dear.first() {
            return refused(vec![Arc::clone(&part.policy)], degraded.error);
        }
        marked(Decision::from_parts(answer.at, parts), degraded)
    }
}

fn marked(mut decision: Decision, degraded: Degraded) -> Decision {
    decision.degraded = Some(Box::new(degraded));
    decision
}

/// Returns the refusal of a request that some policies refuse.
fn refused(denied: Vec<Arc<str>>, error: StoreError) -> Decision {
    let refusing = denied.first().cloned();
    let ruling = Ruling::StoreDown(error.clone());
    let decision = Decision::without_limits(ruling, Timestamp::EPOCH, refusing);
    marked(decision, Degraded { error, allowed: Vec::new(), local: Vec::new(), denied })
}

/// Returns the policies of some parts, each once, in the file's order.
fn policies(parts: &[Part], wanted: impl Fn(&Outage) -> bool) -> Vec<Arc<str>> {
    let mut policies: Vec<_> = parts
        .iter()
        .filter(|part| wanted(&part.outage))
        .map(|part| Arc::clone(&part.policy))
        .collect();
    policies.dedup();
    policies
}
