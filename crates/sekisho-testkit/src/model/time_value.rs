//! The one number a bucket and a queue keep: the instant at which all that was charged is paid.

use super::ModelLimit;
use super::ratio::Ratio;
use super::rules::LONGEST_DEBT;

/// An instant, and what is needed to read it under other numbers or another clock.
#[derive(Clone, Debug)]
pub(super) struct TimeValue {
    /// The epoch for a fresh key: paid at every stamp there is.
    instant: Ratio,
    /// The amount it was counted with.
    amount: u64,
    /// The stamp of the force that left a debt.
    forced: Option<u64>,
}

/// How long `n` units take: `n·P/L`.
pub(super) fn taking(limit: &ModelLimit, n: u64) -> Ratio {
    Ratio::new(u128::from(n) * u128::from(limit.period_ns), limit.amount)
}

/// `r = L/P`.
pub(super) fn rate(limit: &ModelLimit) -> Ratio {
    Ratio::new(limit.amount, limit.period_ns)
}

/// How far ahead of now the instant of a full limit is.
fn full(limit: &ModelLimit) -> Ratio {
    Ratio::new(limit.capacity() * u128::from(limit.period_ns), limit.amount)
}

impl TimeValue {
    pub(super) fn fresh(limit: &ModelLimit) -> Self {
        Self { instant: Ratio::whole(0), amount: limit.amount, forced: None }
    }

    /// The instant under the limit's present numbers. When those are new, the usage `(instant −
    /// t)·L` is the same under both.
    pub(super) fn seen(&self, limit: &ModelLimit, t: u64) -> Ratio {
        let now = Ratio::whole(t);
        if self.amount == limit.amount || self.instant <= now {
            return self.instant.clone();
        }
        let ahead = self.instant.clone() - now.clone();
        now + ahead * Ratio::whole(self.amount) / Ratio::whole(limit.amount)
    }

    /// The same as it is stored at a conversion, which makes no debt longer than the longest.
    fn converted(&self, limit: &ModelLimit, t: u64) -> Ratio {
        let seen = self.seen(limit, t);
        if self.amount == limit.amount {
            return seen;
        }
        seen.min(Ratio::whole(t) + Ratio::whole(LONGEST_DEBT))
    }

    /// How long from `t` until all is paid, at least 0.
    pub(super) fn ahead(&self, limit: &ModelLimit, t: u64) -> Ratio {
        (self.seen(limit, t) - Ratio::whole(t)).max(Ratio::whole(0))
    }

    /// A wait that was counted at the limit's present rate, at the rate this was written with: until a charge converts it,
    /// that is how fast it goes.
    pub(super) fn at_own_rate(&self, limit: &ModelLimit, wait: Ratio) -> Ratio {
        wait * Ratio::whole(limit.amount) / Ratio::whole(self.amount)
    }

    /// `n` units more, which were admitted: that is never a debt.
    pub(super) fn charge(&mut self, limit: &ModelLimit, t: u64, n: u64) {
        let instant = self.converted(limit, t).max(Ratio::whole(t)) + taking(limit, n);
        self.store(limit, instant, None);
    }

    /// `n` units more, whatever it comes to, up to the longest debt.
    pub(super) fn force(&mut self, limit: &ModelLimit, t: u64, n: u64) {
        let (old, now) = (self.converted(limit, t), Ratio::whole(t));
        let charged = old.clone().max(now.clone()) + taking(limit, n);
        let instant = old.max(charged.min(now.clone() + Ratio::whole(LONGEST_DEBT)));
        let debt = instant > now + full(limit);
        self.store(limit, instant, debt.then_some(t));
    }

    /// `n` units less, not before `t`. What is paid already is left alone: giving back never takes.
    pub(super) fn refund(&mut self, limit: &ModelLimit, t: u64, n: u64) {
        let (old, now) = (self.converted(limit, t), Ratio::whole(t));
        if old <= now {
            return;
        }
        let instant = now.clone().max(old - taking(limit, n));
        let debt = instant > now + full(limit);
        let forced = self.forced.filter(|_| debt);
        self.store(limit, instant, forced);
    }

    /// Whether all is paid at `t`.
    pub(super) fn paid_at(&self, t: u64) -> bool {
        self.instant <= Ratio::whole(t)
    }

    /// The clock was set back to `now`. A debt moves with the clock, if it was made after now;
    /// anything else is at most a full limit. Tells whether the instant moved.
    pub(super) fn repair(&mut self, limit: &ModelLimit, now: u64) -> bool {
        match self.forced {
            Some(at) if at > now => {
                self.instant = self.instant.clone() - Ratio::whole(at - now);
                self.forced = Some(now);
                true
            }
            Some(_) => false,
            None => {
                let most = Ratio::whole(now) + full(limit);
                let moves = self.seen(limit, now) > most;
                if moves {
                    self.store(limit, most, None);
                }
                moves
            }
        }
    }

    fn store(&mut self, limit: &ModelLimit, instant: Ratio, forced: Option<u64>) {
        *self = Self { instant, amount: limit.amount, forced };
    }
}
