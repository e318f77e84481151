//! Denials that are repeated without asking: what is full stays full until its wait ends, whoever asks.
//!
//! Kept are the states that a denial was made of, and the answer is made of them again at the time that it is by then. That
//! time is counted from when the question was sent, which was before the server looked at its clock; so it is never behind
//! the server's, and nobody is denied here whom the server would let through, unless somebody gave units back: a denial is
//! asked for again after a second at most. What this process charges or gives back itself is seen at once.

use std::{
    collections::{HashMap, hash_map::RandomState},
    fmt,
    hash::BuildHasher as _,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use parking_lot::Mutex;
use sekisho::{Answer, Limit, Timestamp};
use sekisho_core::{Metered, Period, State};
use tokio::time::Instant;

use crate::{
    instant,
    question::{Question, Told},
};

/// How long a denial is repeated at most.
const REPEATED: Duration = Duration::from_secs(1);
/// The most states that are kept.
const KEPT_MAX: usize = 8_192;
/// How often a full table is searched for what is too old.
const SEARCHED: Duration = Duration::from_millis(100);
/// How many times of changes are kept: of all keys whose hashes fall together, the last.
const CHANGES: usize = 8_192;

/// The denials of the last second.
#[derive(Debug)]
pub(crate) struct Denials {
    kept: Mutex<Kept>,
    /// How many are kept, for those who only want to know whether there are any.
    count: AtomicUsize,
    repeated: AtomicU64,
    changes: Changes,
}

/// When this process last heard that keys were changed. Answers may be read in another order than they were given, so a denial
/// that was asked for before that may be older than the change.
struct Changes {
    began: Instant,
    at: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl Changes {
    fn new() -> Self {
        let at = (0..CHANGES).map(|_| AtomicU64::new(0)).collect();
        Self { began: instant::now(), at, hasher: RandomState::new() }
    }

    fn heard(&self, key: &str) {
        self.of(key).fetch_max(self.time(instant::now()), Relaxed);
    }

    fn is_after(&self, key: &str, sent: Instant) -> bool {
        self.of(key).load(Relaxed) >= self.time(sent)
    }

    fn of(&self, key: &str) -> &AtomicU64 {
        let place = self.hasher.hash_one(key) % CHANGES as u64;
        // Less than there are.
        &self.at[usize::try_from(place).unwrap_or(0)]
    }

    /// Nanoseconds since the beginning, and never 0.
    fn time(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.began).as_nanos();
        u64::try_from(since).unwrap_or(u64::MAX).max(1)
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Kept {
    by_key: HashMap<String, Denied>,
    searched: Instant,
}

#[derive(Debug)]
struct Denied {
    limit: Limit,
    cost: u64,
    state: State,
    at: Timestamp,
    sent: Instant,
}

impl Denied {
    /// Returns the server's time by now, or a little more.
    fn time(&self, now: Instant) -> Timestamp {
        let since = now.saturating_duration_since(self.sent).as_nanos();
        let us = u64::try_from(since / 1_000).unwrap_or(u64::MAX);
        Timestamp::from_nanos(self.at.as_nanos().saturating_add(us.saturating_mul(1_000)))
    }

    /// Returns whether the state still says what the server's would.
    fn holds(&self, limit: &Limit, cost: u64, now: Instant) -> bool {
        let young = now.saturating_duration_since(self.sent) < REPEATED;
        young
            && self.limit == *limit
            && match &self.state {
                // Of a log is told what its answer needs: for this cost, while nothing has left it.
                State::SlidingLog(log) => {
                    let period = limit.as_metered().map(Metered::period);
                    let first = log.entries().next();
                    let leaves = match (first, period) {
                        (Some(first), Some(Period::Fixed(period))) => {
                            first.at.as_nanos().saturating_add(period.get())
                        }
                        _ => 0,
                    };
                    self.cost == cost && self.time(now).as_nanos() < leaves
                }
                _ => true,
            }
    }
}

impl Denials {
    pub(crate) fn new() -> Self {
        let kept = Kept { by_key: HashMap::new(), searched: instant::now() };
        Self {
            kept: Mutex::new(kept),
            count: AtomicUsize::new(0),
            repeated: AtomicU64::new(0),
            changes: Changes::new(),
        }
    }

    /// Returns how often a denial was repeated.
    pub(crate) fn repeated(&self) -> u64 {
        self.repeated.load(Relaxed)
    }

    /// Returns the denial of a question, if it is known without asking.
    pub(crate) fn repeat(&self, question: &Question) -> Option<Answer> {
        if self.count.load(Relaxed) == 0 || !question.may_be_repeated() {
            return None;
        }
        let now = instant::now();
        let mut at = Timestamp::EPOCH;
        let mut states = Vec::with_capacity(question.keys.len());
        {
            let kept = self.kept.lock();
            for (key, (limit, cost)) in question.keys.iter().zip(question.metered()) {
                let denied = kept.by_key.get(key).filter(|of| of.holds(limit, cost, now))?;
                at = at.max(denied.time(now));
                states.push(denied.state.clone());
            }
        }
        let told = question.tell(at, &mut states, None);
        if told.is_allowed() {
            return None;
        }
        self.repeated.fetch_add(1, Relaxed);
        Some(told.answer)
    }

    /// Learns from what the server said of a question that was sent then.
    pub(crate) fn learn(&self, question: &Question, told: &mut Told, sent: Instant) {
        match told.denying.take() {
            Some(states) if question.may_be_repeated() => {
                self.keep(question, states, told.answer.at, sent);
            }
            _ => {
                question.keys.iter().for_each(|key| self.changes.heard(key));
                self.drop_all(&question.keys);
            }
        }
    }

    fn keep(&self, question: &Question, states: Vec<State>, at: Timestamp, sent: Instant) {
        let mut kept = self.kept.lock();
        // Under the lock: who hears of a change says so before it drops what is kept of the key.
        if question.keys.iter().any(|key| self.changes.is_after(key, sent)) {
            return;
        }
        if kept.by_key.len() + question.keys.len() > KEPT_MAX {
            if sent.saturating_duration_since(kept.searched) < SEARCHED {
                return;
            }
            kept.searched = sent;
            kept.by_key.retain(|_, of| sent.saturating_duration_since(of.sent) < REPEATED);
            if kept.by_key.len() + question.keys.len() > KEPT_MAX {
                return;
            }
        }
        for ((key, (limit, cost)), state) in
            question.keys.iter().zip(question.metered()).zip(states)
        {
            let denied = Denied { limit: *limit, cost, state, at, sent };
            kept.by_key.insert(key.clone(), denied);
        }
        self.count.store(kept.by_key.len(), Relaxed);
    }

    /// Drops what is known of some keys: somebody has charged them, or is about to.
    pub(crate) fn drop_all(&self, keys: &[String]) {
        if self.count.load(Relaxed) == 0 {
            return;
        }
        let mut kept = self.kept.lock();
        for key in keys {
            kept.by_key.remove(key);
        }
        self.count.store(kept.by_key.len(), Relaxed);
    }
}
