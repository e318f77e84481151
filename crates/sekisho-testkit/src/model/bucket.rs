//! The token bucket, which is GCRA: its time value is the theoretical arrival time.

use super::ModelLimit;
use super::ratio::Ratio;
use super::rules::Rules;
use super::time_value::{TimeValue, rate};

#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    tat: TimeValue,
}

impl TokenBucket {
    pub(super) fn fresh(limit: &ModelLimit) -> Self {
        Self { tat: TimeValue::fresh(limit) }
    }

    /// `B − (TAT − t)·r`, at most B; below zero in debt.
    fn tokens(&self, limit: &ModelLimit, t: u64) -> Ratio {
        Ratio::whole(limit.burst) - self.tat.ahead(limit, t) * rate(limit)
    }
}

impl Rules for TokenBucket {
    fn admits(&self, limit: &ModelLimit, t: u64, n: u64) -> bool {
        self.tokens(limit, t) >= Ratio::whole(n)
    }

    fn charge(&mut self, limit: &ModelLimit, t: u64, n: u64) {
        self.tat.charge(limit, t, n);
    }

    fn force(&mut self, limit: &ModelLimit, t: u64, n: u64) {
        self.tat.force(limit, t, n);
    }

    /// A bucket does not remember whose units they were.
    fn refund(&mut self, limit: &ModelLimit, t: u64, n: u64, _at: u64) {
        self.tat.refund(limit, t, n);
    }

    fn remaining(&self, limit: &ModelLimit, t: u64) -> u64 {
        self.tokens(limit, t).floor()
    }

    fn wait(&self, limit: &ModelLimit, t: u64, n: u64) -> u64 {
        self.tat.at_own_rate(limit, (Ratio::whole(n) - self.tokens(limit, t)) / rate(limit)).ceil()
    }

    fn reset_after(&self, limit: &ModelLimit, t: u64) -> u64 {
        let missing = Ratio::whole(limit.burst) - self.tokens(limit, t);
        self.tat.at_own_rate(limit, missing / rate(limit)).ceil()
    }

    fn fresh_at(&self, _limit: &ModelLimit, t: u64) -> bool {
        self.tat.paid_at(t)
    }

    fn repair(&mut self, limit: &ModelLimit, now: u64) {
        self.tat.repair(limit, now);
    }
}
