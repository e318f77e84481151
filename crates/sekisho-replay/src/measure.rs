//! What got through: totals, and the most in any stretch.

use std::collections::VecDeque;

use sekisho::{Limit, Outcome, Span, StoreError, Timestamp};

use crate::{simulate::Simulation, trace::Arrival};

/// What a limit let through of a pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Units that were admitted.
    pub passed: u64,
    /// Units that were not.
    pub denied: u64,
    /// The most units that were admitted in any half-open stretch of the window's length.
    pub most_in_window: u64,
    /// The longest wait for a slot.
    pub longest_wait: Span,
    /// When each admitted request starts: its arrival and its delay.
    pub starts: Vec<Timestamp>,
}

/// Runs a pattern through one limit.
///
/// ```
/// use sekisho::Span;
/// use sekisho_replay::{arrivals, measure::measure};
///
/// let measured = measure("60/min fixed-window".parse()?, &arrivals::boundary(), Span::from_secs(60))?;
/// assert_eq!((measured.passed, measured.most_in_window), (120, 120));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the store says.
pub fn measure(limit: Limit, arrivals: &[Arrival], window: Span) -> Result<Measured, StoreError> {
    let simulation = Simulation::new(vec![limit]);
    let (mut measured, mut recent, mut in_window) = (Measured::default(), VecDeque::new(), 0);
    for arrival in arrivals {
        let joint = simulation.decide(arrival)?.joint();
        if joint.outcome != Outcome::Allow {
            measured.denied += arrival.cost;
            continue;
        }
        measured.passed += arrival.cost;
        measured.longest_wait = measured.longest_wait.max(joint.delay);
        measured.starts.push(arrival.at.plus(joint.delay));
        recent.push_back((arrival.at, arrival.cost));
        in_window += arrival.cost;
        while let Some((_, cost)) = recent.pop_front_if(|(at, _)| arrival.at.since(*at) >= window) {
            in_window -= cost;
        }
        measured.most_in_window = measured.most_in_window.max(in_window);
    }
    Ok(measured)
}
