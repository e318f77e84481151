//! The slow, obvious, exact model of every limit: what the fast implementations are compared with.
//!
//! Each algorithm is written from its definition, with unbounded rationals wherever the definition
//! has a fraction. Nothing here is clever, and nothing here is shared with the code under test.

mod bucket;
mod joint;
mod log;
mod queue;
mod ratio;
mod rules;
mod sliding;
mod time_value;
mod windows;

pub use joint::{Joint, JointAnswer};

use bucket::TokenBucket;
use log::SlidingLog;
use queue::LeakyQueue;
use rules::Rules;
use sliding::SlidingWindow;
use windows::{AnchoredWindow, FixedWindow};

/// Which definition a limit follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Windows at multiples of the period from the epoch.
    FixedWindow,
    /// A window that opens at the key's first counted request.
    AnchoredWindow,
    /// Every admitted request, remembered for one period.
    SlidingLog,
    /// The sliding window counter: this window and a share of the one before.
    SlidingWindow,
    /// Token bucket, which is GCRA.
    TokenBucket,
    /// Leaky bucket as a queue: requests wait for evenly spaced slots.
    LeakyQueue,
}

/// The numbers of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelLimit {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Units per period, at least 1.
    pub amount: u64,
    /// The period in nanoseconds, at least 1.
    pub period_ns: u64,
    /// Bucket: how many units it holds, at least 1. Queue: how many may wait behind the one in
    /// service. Else without meaning.
    pub burst: u64,
    /// Log: the instants that are multiples of so many nanoseconds have entries, at least 1 and at
    /// most the period. Else without meaning.
    pub resolution_ns: u64,
}

impl ModelLimit {
    /// The largest cost that can ever be admitted.
    pub fn capacity(&self) -> u128 {
        match self.algorithm {
            Algorithm::TokenBucket => u128::from(self.burst),
            Algorithm::LeakyQueue => u128::from(self.burst) + 1,
            _ => u128::from(self.amount),
        }
    }
}

/// How a call charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Charge the cost if the limit admits it.
    Check,
    /// Charge nothing; the cost is ignored.
    Look,
    /// Charge the cost whatever the limit says.
    Force,
    /// Give the cost back.
    Refund {
        /// When the units were charged.
        at: u64,
    },
}

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Admitted.
    Allow,
    /// Not now.
    Deny,
    /// The cost is more than the capacity: not at any time.
    Never,
}

/// A decision and its numbers. Times are nanoseconds from the call's own stamp, rounded up to whole
/// ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The decision.
    pub outcome: Outcome,
    /// Whole units left.
    pub remaining: u64,
    /// On a denial, how long until the same request alone would be admitted.
    pub retry_after: Option<u64>,
    /// How long until the key is as good as new.
    pub reset_after: u64,
    /// How long an admitted request waits for its start.
    pub delay: u64,
    /// How long until a cost of 1 would be admitted; 0 while anything remains.
    pub next_after: u64,
    /// What the wire shows as `t`.
    pub quota_after: u64,
}

/// One key under one limit.
#[derive(Clone, Debug)]
pub struct Model {
    limit: ModelLimit,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Fixed(FixedWindow),
    Anchored(AnchoredWindow),
    Log(SlidingLog),
    Sliding(SlidingWindow),
    Bucket(TokenBucket),
    Queue(LeakyQueue),
}

impl Model {
    /// A fresh key.
    pub fn new(limit: ModelLimit) -> Self {
        let state = match limit.algorithm {
            Algorithm::FixedWindow => State::Fixed(FixedWindow::default()),
            Algorithm::AnchoredWindow => State::Anchored(AnchoredWindow::default()),
            Algorithm::SlidingLog => State::Log(SlidingLog::default()),
            Algorithm::SlidingWindow => State::Sliding(SlidingWindow::default()),
            Algorithm::TokenBucket => State::Bucket(TokenBucket::fresh(&limit)),
            Algorithm::LeakyQueue => State::Queue(LeakyQueue::fresh(&limit)),
        };
        Self { limit, state }
    }

    /// The limit as it stands, after the last [`change`](Self::change).
    pub fn limit(&self) -> ModelLimit {
        self.limit
    }

    /// Decides a call of cost `n` stamped `t`.
    pub fn call(&mut self, t: u64, n: u64, mode: Mode) -> Answer {
        let limit = self.limit;
        match mode {
            Mode::Look => self.answer(t, 0, Outcome::Allow),
            Mode::Check => {
                let outcome = self.judge(t, n);
                let delay = match outcome {
                    Outcome::Allow if n > 0 => self.rules().delay(&limit, t, n),
                    _ => 0,
                };
                if outcome == Outcome::Allow && n > 0 {
                    self.rules_mut().charge(&limit, t, n);
                }
                Answer { delay, ..self.answer(t, n, outcome) }
            }
            Mode::Force => {
                if n > 0 {
                    self.rules_mut().force(&limit, t, n);
                }
                self.answer(t, n, Outcome::Allow)
            }
            Mode::Refund { at } => {
                if n > 0 {
                    self.rules_mut().refund(&limit, t, n, at);
                }
                self.answer(t, n, Outcome::Allow)
            }
        }
    }

    /// Whether no call stamped `t` or later could tell this key from a fresh one.
    pub fn is_fresh_at(&self, t: u64) -> bool {
        self.rules().fresh_at(&self.limit, t)
    }

    /// New numbers for the same period and algorithm. The usage is kept; a time value is converted
    /// by the first call that changes it.
    pub fn change(&mut self, amount: u64, burst: u64) {
        self.limit.amount = amount;
        self.limit.burst = burst;
    }

    /// A shared clock was set back to `now`: what lies further ahead than it can is moved to now.
    pub fn repair(&mut self, now: u64) {
        let limit = self.limit;
        self.rules_mut().repair(&limit, now);
    }

    /// What a check of `n` at `t` would be told; charges nothing.
    fn judge(&self, t: u64, n: u64) -> Outcome {
        if u128::from(n) > self.limit.capacity() {
            Outcome::Never
        } else if n == 0 || self.rules().admits(&self.limit, t, n) {
            Outcome::Allow
        } else {
            Outcome::Deny
        }
    }

    /// The numbers as they stand at `t`, for a call already decided and charged.
    fn answer(&self, t: u64, n: u64, outcome: Outcome) -> Answer {
        let (limit, rules) = (&self.limit, self.rules());
        let remaining = rules.remaining(limit, t);
        let next_after = if remaining > 0 { 0 } else { rules.wait(limit, t, 1) };
        let retry_after = (outcome == Outcome::Deny).then(|| rules.wait(limit, t, n));
        Answer {
            outcome,
            remaining,
            retry_after,
            reset_after: rules.reset_after(limit, t),
            delay: 0,
            next_after,
            quota_after: retry_after
                .unwrap_or_else(|| rules.quota_after(limit, t).unwrap_or(next_after)),
        }
    }

    fn rules(&self) -> &dyn Rules {
        match &self.state {
            State::Fixed(state) => state,
            State::Anchored(state) => state,
            State::Log(state) => state,
            State::Sliding(state) => state,
            State::Bucket(state) => state,
            State::Queue(state) => state,
        }
    }

    fn rules_mut(&mut self) -> &mut dyn Rules {
        match &mut self.state {
            State::Fixed(state) => state,
            State::Anchored(state) => state,
            State::Log(state) => state,
            State::Sliding(state) => state,
            State::Bucket(state) => state,
            State::Queue(state) => state,
        }
    }
}
