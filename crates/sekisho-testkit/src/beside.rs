//! The core beside its model: the same limits and calls for both, and both their answers in one form.

use sekisho::core::{
    Algorithm, Limit, Mode, Outcome, Period, Rate, Slot, Span, State, Timestamp, Utc, Verdict,
    decide, limits::TIMESTAMP_NS_MAX,
};

use crate::model::{self, Answer, Joint, JointAnswer, ModelLimit};

/// Returns the core's limit with these numbers.
///
/// # Panics
///
/// When there is no such limit.
pub fn core_limit(of: &ModelLimit) -> Limit {
    let (algorithm, burst) = match of.algorithm {
        model::Algorithm::FixedWindow => (Algorithm::FixedWindow, None),
        model::Algorithm::AnchoredWindow => (Algorithm::AnchoredWindow, None),
        model::Algorithm::SlidingLog => (Algorithm::SlidingLog, None),
        model::Algorithm::SlidingWindow => (Algorithm::SlidingWindow, None),
        model::Algorithm::TokenBucket => (Algorithm::TokenBucket, Some(of.burst)),
        model::Algorithm::LeakyQueue => (Algorithm::LeakyQueue, Some(of.burst)),
    };
    let limit = Period::fixed(Span::from_nanos(of.period_ns))
        .and_then(|period| Rate::new(of.amount, period))
        .and_then(|rate| Limit::metered(rate, algorithm, burst))
        .and_then(|limit| match algorithm {
            Algorithm::SlidingLog => limit.with_resolution(Span::from_nanos(of.resolution_ns)),
            _ => Ok(limit),
        });
    limit.unwrap_or_else(|error| panic!("{of:?}: {error}"))
}

/// Returns the model's numbers of a limit in text.
///
/// # Panics
///
/// When the text is no limit of a fixed period.
pub fn model_limit(text: &str) -> ModelLimit {
    let limit = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    numbers(&limit).unwrap_or_else(|| panic!("{text} does not count, or has no fixed period"))
}

/// Returns the model's numbers of a limit; `None` when it does not count or its period is a calendar's.
pub fn numbers(of: &Limit) -> Option<ModelLimit> {
    let metered = of.as_metered()?;
    let Period::Fixed(period) = metered.period() else { return None };
    let algorithm = match metered.algorithm() {
        Algorithm::FixedWindow => model::Algorithm::FixedWindow,
        Algorithm::AnchoredWindow => model::Algorithm::AnchoredWindow,
        Algorithm::SlidingLog => model::Algorithm::SlidingLog,
        Algorithm::SlidingWindow => model::Algorithm::SlidingWindow,
        Algorithm::TokenBucket => model::Algorithm::TokenBucket,
        Algorithm::LeakyQueue => model::Algorithm::LeakyQueue,
    };
    Some(ModelLimit {
        algorithm,
        amount: metered.amount().get(),
        period_ns: period.get(),
        burst: metered.burst(),
        resolution_ns: metered.resolution().as_nanos(),
    })
}

/// Returns the core's mode. A refund of a charge after the end of time cannot be asked for.
pub fn core_mode(of: model::Mode) -> Mode {
    match of {
        model::Mode::Check => Mode::Check,
        model::Mode::Look => Mode::Look,
        model::Mode::Force => Mode::Force,
        model::Mode::Refund { at } => Mode::Refund { at: Timestamp::from_nanos(at) },
    }
}

/// Returns a mode that the core can be asked for.
pub fn in_time(mode: model::Mode) -> model::Mode {
    match mode {
        model::Mode::Refund { at } => model::Mode::Refund { at: at.min(TIMESTAMP_NS_MAX) },
        other => other,
    }
}

/// Returns the outcome in the model's words.
pub fn outcome(of: Outcome) -> model::Outcome {
    match of {
        Outcome::Allow => model::Outcome::Allow,
        Outcome::Deny => model::Outcome::Deny,
        Outcome::Never => model::Outcome::Never,
    }
}

/// Returns a verdict of a limit that counts in the model's words.
///
/// # Panics
///
/// When the limit does not count.
pub fn answer(of: &Verdict) -> Answer {
    let Some(remaining) = of.remaining else { panic!("{of:?} is of no limit that counts") };
    Answer {
        outcome: outcome(of.outcome),
        remaining,
        retry_after: of.retry_after.map(Span::as_nanos),
        reset_after: of.reset_after.as_nanos(),
        delay: of.delay.as_nanos(),
        next_after: of.next_after.as_nanos(),
        quota_after: of.quota_after.as_nanos(),
    }
}

/// One key under some limits, in the core and in the model.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The numbers of the limits.
    pub limits: Vec<ModelLimit>,
    /// The core's limits, with the state of the key under each.
    pub core: Vec<(Limit, State)>,
    model: Joint,
}

impl Pair {
    /// Returns a fresh key under some limits.
    pub fn new(limits: Vec<ModelLimit>) -> Self {
        let core = limits.iter().map(|of| (core_limit(of), State::Fresh)).collect();
        Self { model: Joint::new(limits.clone()), limits, core }
    }

    /// Asks both, and returns what the core says and what the model does.
    pub fn call(
        &mut self,
        now: u64,
        costs: &[u64],
        mode: model::Mode,
    ) -> (JointAnswer, JointAnswer) {
        let expected = self.model.call(now, costs, mode);
        let mut slots: Vec<_> = self
            .core
            .iter_mut()
            .zip(costs)
            .map(|((limit, state), cost)| Slot { limit, state, cost: *cost })
            .collect();
        let mut verdicts = vec![Verdict::UNLIMITED; slots.len()];
        let now = Timestamp::from_nanos(now);
        let joint = decide(&mut slots, &mut verdicts, now, core_mode(mode), &Utc);
        let seen = JointAnswer {
            outcome: outcome(joint.outcome),
            binding: joint.binding,
            delay: joint.delay.as_nanos(),
            answers: verdicts.iter().map(answer).collect(),
        };
        (seen, expected)
    }
}
