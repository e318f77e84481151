//! The sliding log, with entries at every instant or at the multiples of a resolution.

use super::ModelLimit;
use super::rules::{Rules, until};

/// What was admitted at one instant.
#[derive(Clone, Copy, Debug)]
struct Entry {
    time: u64,
    cost: u64,
}

/// Every admitted request that has not yet left, the oldest first, one entry an instant.
#[derive(Clone, Debug, Default)]
pub(super) struct SlidingLog {
    entries: Vec<Entry>,
}

impl SlidingLog {
    /// When a call stamped `t` counts as made. One that would be entered before the newest entry is
    /// late: it counts as made at the first instant that is entered with that.
    fn effective(&self, limit: &ModelLimit, t: u64) -> u64 {
        match self.entries.last() {
            Some(newest) if entered(limit, t) < newest.time => {
                t.max(newest.time.saturating_sub(limit.resolution_ns) + 1).min(newest.time)
            }
            _ => t,
        }
    }

    /// The entries younger than the period.
    fn live(&self, limit: &ModelLimit, t: u64) -> impl Iterator<Item = Entry> {
        let (now, limit) = (u128::from(self.effective(limit, t)), *limit);
        self.entries.iter().copied().filter(move |entry| now < leaving(&limit, *entry))
    }

    /// What the live entries cost together. Forced entries may take this past any single count.
    fn used(&self, limit: &ModelLimit, t: u64) -> u128 {
        self.live(limit, t).map(|entry| u128::from(entry.cost)).sum()
    }

    /// Forgets what has left by `now`.
    fn drop_old(&mut self, limit: &ModelLimit, now: u64) {
        self.entries.retain(|entry| u128::from(now) < leaving(limit, *entry));
    }
}

/// The first multiple of the resolution that is not before `t`.
fn entered(limit: &ModelLimit, t: u64) -> u64 {
    let over = t % limit.resolution_ns;
    if over == 0 { t } else { t - over + limit.resolution_ns }
}

/// When an entry's age reaches the period.
fn leaving(limit: &ModelLimit, entry: Entry) -> u128 {
    u128::from(entry.time) + u128::from(limit.period_ns)
}

impl Rules for SlidingLog {
    fn admits(&self, limit: &ModelLimit, t: u64, n: u64) -> bool {
        self.used(limit, t) + u128::from(n) <= u128::from(limit.amount)
    }

    fn charge(&mut self, limit: &ModelLimit, t: u64, n: u64) {
        let now = self.effective(limit, t);
        // The newest entry's own time is no multiple if it was entered under another resolution.
        let time = self.entries.last().map_or(0, |newest| newest.time).max(entered(limit, now));
        self.drop_old(limit, now);
        match self.entries.last_mut().filter(|newest| newest.time == time) {
            Some(newest) => newest.cost = newest.cost.saturating_add(n),
            None => self.entries.push(Entry { time, cost: n }),
        }
    }

    fn refund(&mut self, limit: &ModelLimit, t: u64, n: u64, at: u64) {
        let at = entered(limit, at);
        if !self.live(limit, t).any(|entry| entry.time == at) {
            return;
        }
        self.drop_old(limit, self.effective(limit, t));
        for entry in self.entries.iter_mut().filter(|entry| entry.time == at) {
            entry.cost = entry.cost.saturating_sub(n);
        }
        self.entries.retain(|entry| entry.cost > 0);
    }

    fn remaining(&self, limit: &ModelLimit, t: u64) -> u64 {
        let left = u128::from(limit.amount).saturating_sub(self.used(limit, t));
        u64::try_from(left).unwrap_or(limit.amount) // never more than the amount, which fits
    }

    fn wait(&self, limit: &ModelLimit, t: u64, n: u64) -> u64 {
        let mut used = self.used(limit, t);
        let fits = |used: u128| used + u128::from(n) <= u128::from(limit.amount);
        if fits(used) {
            return 0;
        }
        for entry in self.live(limit, t) {
            used -= u128::from(entry.cost);
            if fits(used) {
                return until(leaving(limit, entry), t);
            }
        }
        unreachable!("an empty log has room for any cost up to the amount")
    }

    fn reset_after(&self, limit: &ModelLimit, t: u64) -> u64 {
        self.live(limit, t).last().map_or(0, |newest| until(leaving(limit, newest), t))
    }

    fn quota_after(&self, limit: &ModelLimit, t: u64) -> Option<u64> {
        let oldest = self.live(limit, t).next();
        Some(oldest.map_or(limit.period_ns, |oldest| until(leaving(limit, oldest), t)))
    }

    fn fresh_at(&self, limit: &ModelLimit, t: u64) -> bool {
        self.live(limit, t).next().is_none()
    }

    fn repair(&mut self, limit: &ModelLimit, now: u64) {
        let now = entered(limit, now);
        let ahead: Vec<Entry> = self.entries.extract_if(.., |entry| entry.time > now).collect();
        for Entry { cost, .. } in ahead {
            match self.entries.last_mut().filter(|newest| newest.time == now) {
                Some(newest) => newest.cost = newest.cost.saturating_add(cost),
                None => self.entries.push(Entry { time: now, cost }),
            }
        }
    }
}
