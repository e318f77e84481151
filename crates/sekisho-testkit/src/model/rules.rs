//! What every algorithm has to say for itself.

use super::ModelLimit;

/// The longest a forced debt may be: 36,500 days, in nanoseconds.
pub(super) const LONGEST_DEBT: u64 = 36_500 * 86_400 * 1_000_000_000;

/// One algorithm with its state for one key. Costs are at least 1, and at most the capacity where
/// something is asked about admission. All waits are whole nanoseconds from `t`, rounded up.
pub(super) trait Rules {
    /// Whether cost `n` is admitted at `t`.
    fn admits(&self, limit: &ModelLimit, t: u64, n: u64) -> bool;
    /// Records an admitted cost.
    fn charge(&mut self, limit: &ModelLimit, t: u64, n: u64);
    /// Records a cost that nobody asked about.
    fn force(&mut self, limit: &ModelLimit, t: u64, n: u64) {
        self.charge(limit, t, n);
    }
    /// Gives back `n` units charged at `at`.
    fn refund(&mut self, limit: &ModelLimit, t: u64, n: u64, at: u64);
    /// Whole units left.
    fn remaining(&self, limit: &ModelLimit, t: u64) -> u64;
    /// How long until cost `n` is admitted, with no other traffic.
    fn wait(&self, limit: &ModelLimit, t: u64, n: u64) -> u64;
    /// How long until nothing is left of what was charged.
    fn reset_after(&self, limit: &ModelLimit, t: u64) -> u64;
    /// How long an admitted cost waits for its start.
    fn delay(&self, _limit: &ModelLimit, _t: u64, _n: u64) -> u64 {
        0
    }
    /// The wire's `t` when nothing was denied; none where that is the time until one more unit.
    fn quota_after(&self, _limit: &ModelLimit, _t: u64) -> Option<u64> {
        None
    }
    /// Whether no call at `t` or later can tell this from a fresh key.
    fn fresh_at(&self, limit: &ModelLimit, t: u64) -> bool;
    /// The shared clock was set back to `now`.
    fn repair(&mut self, limit: &ModelLimit, now: u64);
}

/// The nearest `u64`: answers and counts saturate.
pub(super) fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// From `t` to `instant`, none if that has passed.
pub(super) fn until(instant: u128, t: u64) -> u64 {
    saturate(instant.saturating_sub(u128::from(t)))
}
