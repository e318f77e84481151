//! *equivalence*: a bucket that is refilled and an instant that is moved are one algorithm.

use sekisho::{Outcome, Span, Timestamp};

use super::{Experiment, Figure, Row, limit};
use crate::{
    random::Random,
    simulate::Simulation,
    trace::{Arrival, NO_KEY},
    world::WorldError,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "equivalence",
    title: "Token bucket and GCRA",
    question: "Some limiters keep a bucket of tokens, some keep one instant (GCRA). Do they ever answer differently?",
    setting: "60,000 requests come at random times, 1,000 to each of 60 random limits and twice as \
              many as it lets through. Each request is decided twice: by this \
              limiter, which keeps one instant, and by a textbook bucket, which keeps its level as an exact fraction and is \
              refilled at each request.",
    reading: "No decision differs. They are two ways to write the same arithmetic, as long as nothing is rounded.",
    run,
};

/// How many requests are decided by both.
const REQUESTS: u64 = 60_000;
/// How many of them go to one limit.
const A_LIMIT: u64 = 1_000;

/// The bucket of the textbooks. Its level is in units of `1/period` tokens, in which both a nanosecond's refill (the amount)
/// and a token (the period) are whole numbers.
struct Textbook {
    amount: u128,
    period: u128,
    full: u128,
    level: u128,
    filled_at: u64,
}

impl Textbook {
    fn new(amount: u64, period: u64, burst: u64) -> Self {
        let full = u128::from(burst) * u128::from(period);
        let (amount, period) = (u128::from(amount), u128::from(period));
        Self { amount, period, full, level: full, filled_at: 0 }
    }

    fn admits(&mut self, now: u64) -> bool {
        let refill = u128::from(now - self.filled_at) * self.amount;
        self.level = (self.level + refill).min(self.full);
        self.filled_at = now;
        let enough = self.level >= self.period;
        if enough {
            self.level -= self.period;
        }
        enough
    }
}

fn run() -> Result<super::Outcome, WorldError> {
    let mut random = Random::new(REQUESTS);
    let (mut gcra, mut textbook, mut differ) = ([0_u64; 2], [0_u64; 2], [0_u64; 2]);
    for _ in 0..REQUESTS / A_LIMIT {
        let (amount, period) = (1 + random.below(100), 1_000_000_000 * (1 + random.below(60)));
        let burst = 1 + random.below(50);
        let simulation =
            Simulation::new(vec![limit(&format!("{amount}/{period}ns burst {burst} gcra"))]);
        let mut bucket = Textbook::new(amount, period, burst);
        let mut now = 0;
        for _ in 0..A_LIMIT {
            // Twice as many as the limit lets through, so that about as many pass as do not.
            now += random.below(period / amount);
            let at = Timestamp::from_nanos(now);
            let arrival = Arrival { at, key: NO_KEY.to_owned(), cost: 1 };
            let ours = simulation.decide(&arrival)?.joint().outcome == Outcome::Allow;
            let theirs = bucket.admits(now);
            gcra[usize::from(!ours)] += 1;
            textbook[usize::from(!theirs)] += 1;
            differ[usize::from(!ours)] += u64::from(ours != theirs);
        }
    }
    let row = |limit: &str, [passed, denied]: [u64; 2]| Row {
        limit: limit.to_owned(),
        method: None,
        passed,
        denied,
        most_in_window: None,
        longest_wait: Span::ZERO,
        published: None,
        published_for: Figure::Passed,
        trials: None,
        extras: Vec::new(),
    };
    Ok((
        vec![
            row("one instant (GCRA)", gcra),
            row("a bucket that is refilled", textbook),
            // What one passes and the other does not, and the other way round: the articles count both together.
            row("decisions that differ", [differ[0] + differ[1], 0]).published(0, Figure::Differ),
        ],
        Vec::new(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_textbook_bucket_is_a_bucket() {
        let mut bucket = Textbook::new(3, 10_000_000_000, 3);
        let passed = [0, 0, 0, 0, 3_333_333_333, 3_333_333_334].map(|now| bucket.admits(now));
        assert_eq!(passed, [true, true, true, false, false, true]);
    }
}
