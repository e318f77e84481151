//! The core beside its definitions: texts, bounds, vectors, and an independent model.
#![expect(clippy::unwrap_used, reason = "a test may end early")]

mod bounds;
mod differential;
mod logs;
mod parts;
mod texts;
mod vectors;
mod worlds;

use sekisho_core::{Call, Limit, Mode, State, Timestamp, Utc, Verdict};

/// One key under one limit.
struct Key {
    limit: Limit,
    state: State,
}

impl Key {
    fn new(limit: &str) -> Self {
        Self { limit: limit.parse().unwrap(), state: State::Fresh }
    }

    fn call(&mut self, ns: u64, cost: u64, mode: Mode) -> Verdict {
        let call = Call { now: Timestamp::from_nanos(ns), cost, mode };
        self.limit.decide(&mut self.state, call, &Utc)
    }

    fn check(&mut self, ns: u64, cost: u64) -> Verdict {
        self.call(ns, cost, Mode::Check)
    }
}
