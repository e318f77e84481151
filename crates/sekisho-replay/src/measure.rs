//! What got through: totals, and the most in any stretch.

use std::collections::{HashMap, VecDeque};

use sekisho::{Outcome, Span, Timestamp};

use crate::world::Event;

/// What a limit let through of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Units that were admitted.
    pub passed: u64,
    /// Units that were not. A request that comes back counts each time.
    pub denied: u64,
    /// The most units of one key that were admitted in any half-open stretch of the window's length.
    pub most_in_window: u64,
    /// The longest time from a request's first arrival to its start, of those that were admitted: in a queue, or for coming
    /// back.
    pub longest_wait: Span,
}

/// Counts while a run goes on. Requests come in the order of their times.
#[derive(Clone, Debug)]
pub struct Meter {
    window: Span,
    measured: Measured,
    // What each key was admitted in the last window: when and how much, and the sum. Looked up, never walked through.
    recent: HashMap<u32, (VecDeque<(Timestamp, u64)>, u64)>,
}

impl Meter {
    /// Returns one that looks at stretches of this length.
    pub fn new(window: Span) -> Self {
        Self { window, measured: Measured::default(), recent: HashMap::new() }
    }

    /// Counts a request.
    pub fn see(&mut self, event: &Event) {
        let measured = &mut self.measured;
        if event.outcome != Outcome::Allow {
            measured.denied = measured.denied.saturating_add(event.cost);
            return;
        }
        measured.passed = measured.passed.saturating_add(event.cost);
        let wait = event.at.plus(event.delay).since(event.first_at);
        measured.longest_wait = measured.longest_wait.max(wait);
        let (recent, sum) = self.recent.entry(event.key).or_default();
        recent.push_back((event.at, event.cost));
        *sum = sum.saturating_add(event.cost);
        while let Some((_, cost)) =
            recent.pop_front_if(|(at, _)| event.at.since(*at) >= self.window)
        {
            *sum = sum.saturating_sub(cost);
        }
        measured.most_in_window = measured.most_in_window.max(*sum);
    }

    /// Returns how many units a key was admitted in the stretch that ends now, `now` included.
    pub fn in_window(&mut self, key: u32, now: Timestamp) -> u64 {
        let (recent, sum) = self.recent.entry(key).or_default();
        while let Some((_, cost)) = recent.pop_front_if(|(at, _)| now.since(*at) >= self.window) {
            *sum = sum.saturating_sub(cost);
        }
        *sum
    }

    /// Returns the counts.
    pub const fn measured(&self) -> Measured {
        self.measured
    }
}
