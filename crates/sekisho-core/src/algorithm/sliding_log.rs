//! Sliding log: the time and cost of every request of the last period.
//!
//! With `L` per `P`: a request of cost n is admitted when the costs of the entries younger than P, and n, are at most L. An
//! entry leaves when its age is P. With a resolution `R` a request is entered at the first multiple of R at or after it: so it
//! counts for less than R longer, and the log has at most P / R, rounded up, entries and one more. Without one R is 1 ns.
//!
//! Worst case: L in every stretch of length P. It is the only algorithm of which that is true, and it keeps one entry a
//! request, or an instant of its resolution, for it.
//!
//! The newest entry stands by itself, because it is read and written most; all before it are [`packed`].

mod packed;

use alloc::boxed::Box;
use core::{fmt, mem};

use self::packed::{Packed, Pairs};
use super::{Account, Context, Standing};
use crate::{Metered, Span, Timestamp, exact::narrow};

/// The requests of the last period.
#[derive(Clone)]
pub struct SlidingLog {
    // Without units when the log is empty, and then at the epoch.
    newest: Entry,
    // Invariant: nothing when there are no entries before the newest.
    older: Option<Box<Older>>,
}

/// Units that were used at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The instant; under a limit with a resolution, a multiple of that.
    pub at: Timestamp,
    /// How many units, at least 1.
    pub units: u64,
}

/// The entries before the newest. Invariant: strictly ascending in time, none without units.
#[derive(Clone)]
struct Older {
    // Of each its units, and the time from it to the next: an entry is written when that is known.
    packed: Packed,
    // When the first of them is.
    oldest: Timestamp,
    // Invariant: the sum of their units.
    total: u128,
}

/// What an empty log has for its newest entry.
const NONE: Entry = Entry { at: Timestamp::EPOCH, units: 0 };

impl SlidingLog {
    /// How many bytes the first charge of a fresh state takes beside the state itself, which has room for one entry.
    pub const FIRST_BYTES: usize = 0;

    /// Returns the log of some entries, oldest first; nothing when they are not strictly ascending in time or one has no units.
    ///
    /// ```
    /// use sekisho_core::{Entry, SlidingLog, Timestamp};
    ///
    /// let entry = |seconds, units| Entry { at: Timestamp::from_secs(seconds), units };
    /// let log = SlidingLog::from_entries([entry(1, 5), entry(3, 1)]).unwrap();
    /// assert!(log.entries().eq([entry(1, 5), entry(3, 1)]));
    /// assert!(SlidingLog::from_entries([entry(3, 1), entry(1, 5)]).is_none());
    /// ```
    pub fn from_entries(entries: impl IntoIterator<Item = Entry>) -> Option<Self> {
        let mut log = Self::default();
        for entry in entries {
            let follows = log.newest.units == 0 || log.newest.at < entry.at;
            if entry.units == 0 || !follows {
                return None;
            }
            log.add(entry);
        }
        Some(log)
    }

    /// Returns the entries, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        Entries {
            pairs: self.older.as_ref().map(|older| older.packed.pairs()),
            at: self.older.as_ref().map_or(Timestamp::EPOCH, |older| older.oldest),
            newest: Some(self.newest).filter(|newest| newest.units > 0),
        }
    }

    /// Returns how many bytes the entries take beside the state itself: at most 10.4 for each unit that was admitted and 1,100
    /// more, and of a log of up to 50 units at most 100 more. Most entries are of one unit and take 4 to 6.
    pub fn heap_bytes(&self) -> usize {
        self.older
            .as_ref()
            .map_or(0, |older| older.packed.heap_bytes().saturating_add(size_of::<Older>()))
    }

    /// Returns the most bytes that the next charge may add, so that a bounded store can ask before it happens.
    pub fn next_growth(&self) -> usize {
        match &self.older {
            _ if self.newest.units == 0 => 0,
            Some(older) => older.packed.next_growth(self.newest.units),
            None => {
                let packed = Packed::default().next_growth(self.newest.units);
                packed.saturating_add(size_of::<Older>())
            }
        }
    }

    fn total(&self) -> u128 {
        let older = self.older.as_ref().map_or(0, |older| older.total);
        older.saturating_add(u128::from(self.newest.units))
    }

    /// Returns the time at which a request is judged: now, and one that would be entered before the newest entry is late, and
    /// judged at the first instant that is entered there. So a log never goes back behind its newest charge, and one that is
    /// rounded up to an instant after now makes nobody late.
    fn judged_at(&self, context: &Context<'_>) -> Timestamp {
        context.now.max(first_entered_at(self.newest.at, context.limit))
    }

    /// Returns the units of the entries that are younger than a period, and how many entries are not.
    fn live(&self, context: &Context<'_>) -> (u128, usize) {
        let at = self.judged_at(context);
        let (mut units, mut left) = (self.total(), 0_usize);
        // Mostly nothing has, which the time of the first says without reading it.
        let oldest = self.older.as_ref().map_or(self.newest.at, |older| older.oldest);
        if at < later(oldest, context.limit.period_ns().get()) {
            return (units, left);
        }
        for entry in self.entries() {
            if at < leaves_at(entry, context.limit) {
                break;
            }
            units = units.saturating_sub(u128::from(entry.units));
            left = left.saturating_add(1);
        }
        (units, left)
    }

    /// Drops the oldest entries: whatever is charged later is judged now or after it, so they never count again.
    fn forget(&mut self, left: usize) {
        let mut gone = 0_usize;
        if let Some(older) = self.older.as_mut().filter(|_| left > 0) {
            let mut pairs = older.packed.pairs();
            for (units, until_next) in pairs.by_ref().take(left) {
                older.oldest = later(older.oldest, until_next);
                older.total = older.total.saturating_sub(u128::from(units));
                gone = gone.saturating_add(1);
            }
            let bytes = pairs.read();
            older.packed.take_away(bytes);
        }
        if gone < left {
            self.newest = NONE;
        }
    }

    /// Adds an entry, or its units to the newest where that is of the same instant. It is not before that.
    fn add(&mut self, entry: Entry) {
        let newest = &mut self.newest;
        if newest.units > 0 && newest.at == entry.at {
            newest.units = newest.units.saturating_add(entry.units);
            return;
        }
        if newest.units > 0 {
            let oldest = newest.at;
            let older = self.older.get_or_insert_with(|| {
                Box::new(Older { packed: Packed::default(), oldest, total: 0 })
            });
            if older.packed.is_empty() {
                older.oldest = oldest;
            }
            older.packed.push((newest.units, entry.at.since(newest.at).as_nanos()));
            older.total = older.total.saturating_add(u128::from(newest.units));
        }
        self.newest = entry;
    }

    /// Gives back what an empty rest holds.
    fn tidy(&mut self) {
        self.older.take_if(|older| older.packed.is_empty());
    }

    fn take_first(&mut self) -> Option<Entry> {
        let first = self.entries().next()?;
        self.forget(1);
        Some(first)
    }

    /// Makes every entry another, in order; one without units is left out. What has been read of the log is given back while
    /// the new one grows, so the two are never more than a chunk or two larger than one.
    fn rebuild(&mut self, changed: impl Fn(Entry) -> Entry) {
        let mut before = mem::take(self);
        while let Some(entry) = before.take_first() {
            let entry = changed(entry);
            if entry.units > 0 {
                self.add(entry);
            }
        }
    }

    /// Returns how long until `cost` units fit if nothing else comes. `cost` is at most the amount.
    fn wait(&self, context: &Context<'_>, cost: u64) -> Span {
        let (units, left) = self.live(context);
        let room = u128::from(context.limit.amount().get().saturating_sub(cost));
        let mut excess = units.saturating_sub(room);
        for entry in self.entries().skip(left) {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(u128::from(entry.units));
            if excess == 0 {
                return leaves_at(entry, context.limit).since(context.now);
            }
        }
        Span::ZERO
    }
}

/// The entries of a log, oldest first.
struct Entries<'a> {
    pairs: Option<Pairs<'a>>,
    // When the next is, until it is the newest's turn.
    at: Timestamp,
    newest: Option<Entry>,
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if let Some((units, until_next)) = self.pairs.as_mut().and_then(Iterator::next) {
            let entry = Entry { at: self.at, units };
            self.at = later(self.at, until_next);
            return Some(entry);
        }
        self.newest.take()
    }
}

/// Returns the instant so many nanoseconds later, which may be after the end of time.
const fn later(at: Timestamp, ns: u64) -> Timestamp {
    Timestamp::beyond(at.as_nanos().saturating_add(ns))
}

/// Returns the instant at which a request is entered: the first multiple of the resolution at or after it.
const fn entered_at(at: Timestamp, limit: &Metered) -> Timestamp {
    match at.as_nanos().checked_next_multiple_of(limit.resolution().as_nanos()) {
        Some(ns) => Timestamp::beyond(ns),
        // No instant is within a period of the end of the numbers.
        None => Timestamp::NEVER,
    }
}

/// Returns the first instant at which a request is entered then, if that is one of the resolution's.
const fn first_entered_at(entered: Timestamp, limit: &Metered) -> Timestamp {
    let before = limit.resolution().as_nanos().saturating_sub(1);
    Timestamp::beyond(entered.as_nanos().saturating_sub(before))
}

/// Returns the instant at which the entry's age is a period.
const fn leaves_at(entry: Entry, limit: &Metered) -> Timestamp {
    later(entry.at, limit.period_ns().get())
}

impl Default for SlidingLog {
    fn default() -> Self {
        Self { newest: NONE, older: None }
    }
}

impl PartialEq for SlidingLog {
    /// Compares the entries, not how they lie in memory.
    fn eq(&self, other: &Self) -> bool {
        self.entries().eq(other.entries())
    }
}

impl Eq for SlidingLog {}

impl fmt::Debug for SlidingLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries()).finish()
    }
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
        // Before anything leaves: a late one is entered at the newest's time.
        let at = entered_at(context.now, context.limit).max(self.newest.at);
        self.forget(self.live(context).1);
        self.add(Entry { at, units: cost });
        self.tidy();
    }

    fn refund(&mut self, context: &Context<'_>, cost: u64, at: Timestamp) {
        let (_, left) = self.live(context);
        let at = entered_at(at, context.limit);
        // What has left has been given back already.
        let found = self.entries().skip(left).find(|entry| entry.at >= at);
        let Some(found) = found.filter(|entry| entry.at == at) else { return };
        self.forget(left);
        let back = cost.min(found.units);
        if self.newest.at == at && back < self.newest.units {
            self.newest.units = self.newest.units.saturating_sub(back);
        } else {
            self.rebuild(|entry| {
                let back = if entry.at == at { back } else { 0 };
                Entry { units: entry.units.saturating_sub(back), ..entry }
            });
        }
        self.tidy();
    }

    fn standing(&self, context: &Context<'_>) -> Standing {
        let (units, left) = self.live(context);
        let remaining = narrow(u128::from(context.limit.amount().get()).saturating_sub(units));
        let oldest = self.entries().nth(left);
        Standing {
            remaining,
            reset_after: oldest.map_or(Span::ZERO, |_| self.fresh_at(context).since(context.now)),
            next_after: if remaining > 0 { Span::ZERO } else { self.wait(context, 1) },
            quota_after: oldest
                .map_or(Span::from_nanos(context.limit.period_ns().get()), |entry| {
                    leaves_at(entry, context.limit).since(context.now)
                }),
        }
    }

    fn repair(&mut self, context: &Context<'_>) {
        // No request of now or before it is entered after this.
        let newest = entered_at(context.now, context.limit);
        if self.newest.at > newest {
            // What lay after it meets there, where an entry may be already.
            self.rebuild(|entry| Entry { at: entry.at.min(newest), ..entry });
        }
    }

    fn fresh_at(&self, context: &Context<'_>) -> Timestamp {
        if self.newest.units == 0 {
            return Timestamp::EPOCH;
        }
        leaves_at(self.newest, context.limit)
    }
}
