//! Sliding log: the time and cost of every request of the last period.
//!
//! With `L` per `P`: a request of cost n is admitted when the costs of the entries younger than P, and n, are at most L. An
//! entry leaves when its age is P.
//!
//! Worst case: L in every stretch of length P. It is the only algorithm of which that is true, and it keeps one entry a
//! request for it.

use alloc::collections::VecDeque;

use super::{Account, Context, Standing};
use crate::{Metered, Span, Timestamp, exact::narrow};

/// The requests of the last period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlidingLog {
    // Invariant: strictly ascending in time, no entry without units.
    entries: VecDeque<Entry>,
    // Invariant: the sum of the entries' units.
    total: u128,
}

/// Units that were used at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The instant.
    pub at: Timestamp,
    /// How many units, at least 1.
    pub units: u64,
}

/// How many entries a log makes room for at first; it doubles from there.
const SMALLEST: usize = 4;

impl SlidingLog {
    /// Returns the entries, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        self.entries.iter().copied()
    }

    /// Returns how many bytes the entries take.
    pub fn heap_bytes(&self) -> usize {
        self.entries.capacity().saturating_mul(size_of::<Entry>())
    }

    /// Returns how many more bytes the next charge may take, so that a bounded store can ask before it happens.
    pub fn next_growth(&self) -> usize {
        let full = self.entries.len() == self.entries.capacity();
        let grown = if full { self.entries.capacity().max(SMALLEST) } else { 0 };
        grown.saturating_mul(size_of::<Entry>())
    }

    fn newest(&self) -> Timestamp {
        self.entries.back().map_or(Timestamp::EPOCH, |entry| entry.at)
    }

    /// Returns the time at which a request is judged and entered: a late one at the newest entry's.
    fn effective(&self, context: &Context<'_>) -> Timestamp {
        context.now.max(self.newest())
    }

    /// Returns the units of the entries that are younger than a period, and how many entries are not.
    fn live(&self, context: &Context<'_>) -> (u128, usize) {
        let at = self.effective(context);
        let (mut units, mut left) = (self.total, 0_usize);
        for entry in &self.entries {
            if at < leaves_at(*entry, context.limit) {
                break;
            }
            units = units.saturating_sub(u128::from(entry.units));
            left = left.saturating_add(1);
        }
        (units, left)
    }

    /// Drops the oldest entries: whatever is charged later is judged now or after it, so they never count again.
    fn forget(&mut self, left: usize) {
        for entry in self.entries.drain(..left) {
            self.total = self.total.saturating_sub(u128::from(entry.units));
        }
    }

    /// Returns how long until `cost` units fit if nothing else comes. `cost` is at most the amount.
    fn wait(&self, context: &Context<'_>, cost: u64) -> Span {
        let (units, left) = self.live(context);
        let room = u128::from(context.limit.amount().get().saturating_sub(cost));
        let mut excess = units.saturating_sub(room);
        for entry in self.entries.iter().skip(left) {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(u128::from(entry.units));
            if excess == 0 {
                return leaves_at(*entry, context.limit).since(context.now);
            }
        }
        Span::ZERO
    }
}

/// Returns the instant at which the entry's age is a period.
const fn leaves_at(entry: Entry, limit: &Metered) -> Timestamp {
    Timestamp::beyond(entry.at.as_nanos().saturating_add(limit.period_ns().get()))
}

impl Account for SlidingLog {
    fn fresh(_: &Metered) -> Self {
        Self::default()
    }

    fn admit(&self, context: &Context<'_>, cost: u64) -> Result<Span, Span> {
        let units = self.live(context).0.saturating_add(u128::from(cost));
        if units <= u128::from(context.limit.amount().get()) {
            Ok(Span::ZERO)
        } else {
            Err(self.wait(context, cost))
        }
    }

    fn charge(&mut self, context: &Context<'_>, cost: u64) {
        let (at, (units, left)) = (self.effective(context), self.live(context));
        self.forget(left);
        match self.entries.back_mut() {
            Some(newest) if newest.at == at => {
                let sum = newest.units.saturating_add(cost);
                self.total = units.saturating_add(u128::from(sum.saturating_sub(newest.units)));
                newest.units = sum;
            }
            Some(_) | None => {
                if self.entries.len() == self.entries.capacity() {
                    self.entries.reserve_exact(self.entries.capacity().max(SMALLEST));
                }
                self.entries.push_back(Entry { at, units: cost });
                self.total = units.saturating_add(u128::from(cost));
            }
        }
    }

    fn refund(&mut self, context: &Context<'_>, cost: u64, at: Timestamp) {
        let (_, left) = self.live(context);
        let found = self.entries.binary_search_by_key(&at, |entry| entry.at);
        // What has left has been given back already.
        let Ok(index) = found.map_err(drop).and_then(|index| index.checked_sub(left).ok_or(()))
        else {
            return;
        };
        self.forget(left);
        let Some(entry) = self.entries.get_mut(index) else { return };
        let back = cost.min(entry.units);
        entry.units = entry.units.saturating_sub(back);
        self.total = self.total.saturating_sub(u128::from(back));
        if entry.units == 0 {
            self.entries.remove(index);
        }
    }

    fn standing(&self, context: &Context<'_>) -> Standing {
        let (units, left) = self.live(context);
        let remaining = narrow(u128::from(context.limit.amount().get()).saturating_sub(units));
        let oldest = self.entries.get(left);
        Standing {
            remaining,
            reset_after: oldest.map_or(Span::ZERO, |_| self.fresh_at(context).since(context.now)),
            next_after: if remaining > 0 { Span::ZERO } else { self.wait(context, 1) },
            quota_after: oldest
                .map_or(Span::from_nanos(context.limit.period_ns().get()), |entry| {
                    leaves_at(*entry, context.limit).since(context.now)
                }),
        }
    }

    fn repair(&mut self, context: &Context<'_>) {
        let later = self.entries.partition_point(|entry| entry.at <= context.now);
        let moved =
            self.entries.drain(later..).fold(0_u64, |sum, entry| sum.saturating_add(entry.units));
        if moved == 0 {
            return;
        }
        // What lay after now meets at now, where an entry may be already.
        match self.entries.back_mut() {
            Some(newest) if newest.at == context.now => {
                newest.units = newest.units.saturating_add(moved);
            }
            Some(_) | None => self.entries.push_back(Entry { at: context.now, units: moved }),
        }
        self.total = self.entries.iter().map(|entry| u128::from(entry.units)).sum();
    }

    fn fresh_at(&self, context: &Context<'_>) -> Timestamp {
        self.entries.back().map_or(Timestamp::EPOCH, |entry| leaves_at(*entry, context.limit))
    }
}

impl SlidingLog {
    /// Returns the log that [`entries`](Self::entries) has shown; `None` when the entries are not strictly ascending in time, or
    /// one has no units: then no log has shown them.
    ///
    /// ```
    /// use sekisho_core::{Entry, SlidingLog, Timestamp};
    ///
    /// let entry = |second, units| Entry { at: Timestamp::from_secs(second), units };
    /// let log = SlidingLog::from_entries([entry(1, 2), entry(5, 1)]).unwrap();
    /// assert_eq!(log.entries().map(|entry| entry.units).sum::<u64>(), 3);
    /// assert!(SlidingLog::from_entries([entry(5, 1), entry(1, 2)]).is_none());
    /// ```
    pub fn from_entries(entries: impl IntoIterator<Item = Entry>) -> Option<Self> {
        let mut log = Self::default();
        for entry in entries {
            if entry.units == 0 || log.entries.back().is_some_and(|newest| newest.at >= entry.at) {
                return None;
            }
            // As a charge does, so that it takes no more than it took before.
            if log.entries.len() == log.entries.capacity() {
                log.entries.reserve_exact(log.entries.capacity().max(SMALLEST));
            }
            log.entries.push_back(entry);
            log.total = log.total.saturating_add(u128::from(entry.units));
        }
        Some(log)
    }
}
