//! Several limits on one request.

use std::cmp::Ordering;

use super::{Answer, Mode, Model, ModelLimit, Outcome};

/// One key under several limits, charged together or not at all.
#[derive(Clone, Debug)]
pub struct Joint {
    models: Vec<Model>,
}

/// The joint decision, and what each limit had to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointAnswer {
    /// Never if any says never, else deny if any denies, else allow.
    pub outcome: Outcome,
    /// The place of the limit whose numbers are the answer's.
    pub binding: usize,
    /// The largest of all on allow, else 0.
    pub delay: u64,
    /// Each limit's own answer. One that would have allowed what another did not shows its numbers
    /// uncharged.
    pub answers: Vec<Answer>,
}

impl Joint {
    /// A fresh key under each of `limits`.
    ///
    /// # Panics
    ///
    /// When there are none.
    pub fn new(limits: Vec<ModelLimit>) -> Self {
        assert!(!limits.is_empty(), "a request without limits has no binding one");
        Self { models: limits.into_iter().map(Model::new).collect() }
    }

    /// Decides a call stamped `t`, with a cost for each limit.
    ///
    /// # Panics
    ///
    /// When there are not as many costs as limits.
    pub fn call(&mut self, t: u64, costs: &[u64], mode: Mode) -> JointAnswer {
        assert_eq!(costs.len(), self.models.len(), "one cost a limit");
        let asked = self.models.iter().zip(costs);
        let outcomes: Vec<Outcome> = match mode {
            Mode::Check => asked.map(|(model, &n)| model.judge(t, n)).collect(),
            Mode::Look | Mode::Force | Mode::Refund { .. } => vec![Outcome::Allow; costs.len()],
        };
        let all_allow = outcomes.iter().all(|&outcome| outcome == Outcome::Allow);
        let answers: Vec<Answer> = (self.models.iter_mut().zip(costs).zip(&outcomes))
            .map(|((model, &n), &outcome)| {
                let spared = outcome == Outcome::Allow && !all_allow;
                model.call(t, n, if spared { Mode::Look } else { mode })
            })
            .collect();
        let outcome = worst(&outcomes);
        let delay = answers.iter().map(|answer| answer.delay).max().unwrap_or(0);
        JointAnswer { outcome, binding: self.binding(outcome, &answers), delay, answers }
    }

    fn binding(&self, outcome: Outcome, answers: &[Answer]) -> usize {
        let mut binding = None;
        for (place, answer) in answers.iter().enumerate() {
            let stronger = |other: usize| match outcome {
                Outcome::Never => false,
                Outcome::Deny => answer.retry_after > answers[other].retry_after,
                Outcome::Allow => self.fuller(place, other, answers) == Ordering::Less,
            };
            if answer.outcome == outcome && binding.is_none_or(stronger) {
                binding = Some(place);
            }
        }
        binding.unwrap_or(0)
    }

    /// Compares what is left, as a share of the capacity.
    fn fuller(&self, one: usize, other: usize, answers: &[Answer]) -> Ordering {
        let left = |place: usize| u128::from(answers[place].remaining);
        let capacity = |place: usize| self.models[place].limit.capacity();
        (left(one) * capacity(other)).cmp(&(left(other) * capacity(one)))
    }
}

fn worst(outcomes: &[Outcome]) -> Outcome {
    if outcomes.contains(&Outcome::Never) {
        Outcome::Never
    } else if outcomes.contains(&Outcome::Deny) {
        Outcome::Deny
    } else {
        Outcome::Allow
    }
}
