//! Servers that decide and clients that may come back: a run from arrival to arrival, on its own time.

mod servers;

use std::{cmp::Reverse, collections::BinaryHeap};

use sekisho::{Limit, Outcome, Span, StoreError, Timestamp, core::limits};

use self::servers::Dealer;
pub use self::servers::{Counting, Servers};
use crate::{
    pattern::{ARRIVALS_MAX, Request},
    random::Random,
    trace::Arrival,
};

/// What stands between the requests and the limit, and what clients do when they are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// Who decides.
    pub servers: Servers,
    /// What refused clients do.
    pub clients: Clients,
    /// What all chance is drawn from.
    pub seed: u64,
    /// How many requests end the run with an error, those that come back included.
    pub requests_max: u64,
}

/// What clients do that are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clients {
    /// When they come back.
    pub retry: Retry,
    /// The most that they wait on top, each a part of it at random.
    pub jitter: Span,
    /// How often one comes at most.
    pub tries: u32,
}

/// When refused clients come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// They do not.
    #[default]
    Never,
    /// After `Retry-After`: whole seconds, rounded up, as it stands in an answer.
    Obey,
    /// After a time of their own, whatever the answer says.
    Every(Span),
}

/// One request, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it came.
    pub at: Timestamp,
    /// When it came for the first time.
    pub first_at: Timestamp,
    /// Who it came from.
    pub key: u32,
    /// How many units it asked for.
    pub cost: u64,
    /// Whether it passed.
    pub outcome: Outcome,
    /// How long it waits for its slot when it passed.
    pub delay: Span,
}

/// Why a run stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// Too many requests, those that come back included.
    #[error(
        "{limit}: more than {most} requests, those that come back included: make the run shorter or slower, or lower `tries`"
    )]
    Arrivals {
        /// The row in which it happened.
        limit: String,
        /// How many there may be.
        most: u64,
    },
    /// A clock that would stand before the beginning of time.
    #[error(
        "a clock is behind by {behind}, and the first request comes at {first}: let them begin later, as in `even 2/s for 1min from {behind}`"
    )]
    Behind {
        /// How far it is behind.
        behind: Span,
        /// When the first request comes.
        first: Span,
    },
    /// A limit that cannot be split.
    #[error("{limit} cannot be split over {servers} servers: each needs at least 1 unit")]
    Split {
        /// The limit.
        limit: String,
        /// How many servers there are.
        servers: usize,
    },
    /// The store could not decide.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Default for World {
    /// One server, and clients that do not come back.
    fn default() -> Self {
        Self {
            servers: Servers::one(),
            clients: Clients { retry: Retry::Never, jitter: Span::ZERO, tries: 10 },
            seed: 1,
            requests_max: ARRIVALS_MAX,
        }
    }
}

/// A client that will come back. Ordered by time; of the same time, whoever was refused first comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Return {
    at: Timestamp,
    turn: u64,
    first_at: Timestamp,
    key: u32,
    cost: u64,
    tries: u32,
}

impl World {
    /// Sends the requests, which are in order, through limits that are decided together, and calls `see` for each, those that
    /// come back included.
    ///
    /// # Errors
    /// [`WorldError`].
    pub fn run(
        &self,
        limits: &[Limit],
        requests: &[Request],
        names: &[String],
        mut see: impl FnMut(&Event),
    ) -> Result<(), WorldError> {
        let simulations = self.servers.simulations(limits)?;
        let earliest = requests.iter().map(|request| request.at).min();
        let first = earliest.map_or(Span::ZERO, |at| at.since(Timestamp::EPOCH));
        let behind = Span::from_nanos(self.servers.behind_ns());
        if earliest.is_some() && behind > first {
            return Err(WorldError::Behind { behind, first });
        }
        let mut dealer = Dealer::new(&self.servers.shares);
        let mut random = Random::new(self.seed);
        let mut returns = BinaryHeap::new();
        let mut fresh = requests.iter().peekable();
        let mut turn = 0_u64;
        while let Some(now) = next(&mut fresh, &mut returns) {
            turn += 1;
            if turn > self.requests_max {
                return Err(WorldError::Arrivals { limit: title(limits), most: self.requests_max });
            }
            let server = dealer.deal();
            let simulation = &simulations[server % simulations.len()];
            let ahead = self.servers.ahead_ns.get(server).copied().unwrap_or_default();
            let at = Timestamp::from_nanos(now.at.as_nanos().saturating_add_signed(ahead));
            let key = names.get(now.key as usize).cloned().unwrap_or_default();
            let answer = simulation.decide(&Arrival { at, key, cost: now.cost })?;
            let joint = answer.joint();
            see(&Event {
                at: now.at,
                first_at: now.first_at,
                key: now.key,
                cost: now.cost,
                outcome: joint.outcome,
                delay: joint.delay,
            });
            let retry_after = answer.verdicts.get(joint.binding).and_then(|it| it.retry_after);
            let again = retry_after.filter(|_| joint.outcome == Outcome::Deny);
            if let Some(wait) =
                again.and_then(|wait| self.clients.wait(wait, now.tries, &mut random))
                && now.at.as_nanos().saturating_add(wait.as_nanos()) < limits::TIMESTAMP_NS_MAX
            {
                let at = now.at.plus(wait);
                returns.push(Reverse(Return { at, turn, tries: now.tries + 1, ..now }));
            }
        }
        Ok(())
    }
}

/// Returns the next request. Of the same time, whoever comes back is before whoever is new.
fn next<'a>(
    fresh: &mut std::iter::Peekable<impl Iterator<Item = &'a Request>>,
    returns: &mut BinaryHeap<Reverse<Return>>,
) -> Option<Return> {
    let new = fresh.peek().map(|request| request.at);
    if let Some(Reverse(back)) = returns.peek()
        && new.is_none_or(|at| back.at <= at)
    {
        return returns.pop().map(|Reverse(back)| back);
    }
    let Request { at, key, cost } = *fresh.next()?;
    Some(Return { at, turn: 0, first_at: at, key, cost, tries: 1 })
}

impl Clients {
    /// Returns how long a refused client stays away; `None` when it does not come back.
    fn wait(&self, retry_after: Span, tries: u32, random: &mut Random) -> Option<Span> {
        if tries >= self.tries {
            return None;
        }
        let wait = match self.retry {
            Retry::Never => return None,
            Retry::Obey => Span::from_secs(retry_after.as_secs_ceil().max(1)),
            Retry::Every(span) => span,
        };
        let jitter = match self.jitter.as_nanos() {
            0 => 0,
            most => random.below(most.saturating_add(1)),
        };
        Some(Span::from_nanos(wait.as_nanos().saturating_add(jitter)))
    }
}

/// Returns the canonical text of limits that are decided together.
pub fn title(limits: &[Limit]) -> String {
    limits.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_come_back_when_they_are_told_or_when_they_like() {
        let request = |second| Request { at: Timestamp::from_secs(second), key: 0, cost: 1 };
        let requests = [request(10), request(11)];
        let limits = ["1/min fixed-window".parse().unwrap()];
        let times = |retry, tries| {
            let world =
                World { clients: Clients { retry, jitter: Span::ZERO, tries }, ..World::default() };
            let mut times = Vec::new();
            let see = |event: &Event| {
                times.push((event.at.as_nanos() / 1_000_000_000, event.outcome.as_str()));
            };
            world.run(&limits, &requests, &["-".to_owned()], see).unwrap();
            times
        };
        assert_eq!(times(Retry::Never, 9), [(10, "allow"), (11, "deny")]);
        assert_eq!(times(Retry::Obey, 9), [(10, "allow"), (11, "deny"), (60, "allow")]);
        let every = times(Retry::Every(Span::from_secs(20)), 3);
        assert_eq!(every, [(10, "allow"), (11, "deny"), (31, "deny"), (51, "deny")]);
    }

    #[test]
    fn a_clock_that_is_ahead_opens_the_next_window_early() {
        let request = |second| Request { at: Timestamp::from_secs(second), key: 0, cost: 1 };
        let requests = [request(58), request(59), request(61)];
        let limits = ["1/min fixed-window".parse().unwrap()];
        let mut servers = Servers::several(Counting::Shared, vec![1, 1]);
        servers.ahead_ns = vec![0, 2_000_000_000];
        let world = World { servers, ..World::default() };
        let mut passed = Vec::new();
        let see = |event: &Event| passed.push(event.outcome == Outcome::Allow);
        world.run(&limits, &requests, &["-".to_owned()], see).unwrap();
        assert_eq!(passed, [true, true, false]);
    }

    #[test]
    fn a_run_that_would_not_end_is_stopped() {
        let requests = [0, 1].map(|ns| Request { at: Timestamp::from_nanos(ns), key: 0, cost: 1 });
        let limits = ["1/week".parse().unwrap()];
        let retry = Retry::Every(Span::from_nanos(1));
        let clients = Clients { retry, jitter: Span::ZERO, tries: u32::MAX };
        let world = World { clients, requests_max: 1_000, ..World::default() };
        let mut seen = 0;
        let error = world.run(&limits, &requests, &["-".to_owned()], |_| seen += 1).unwrap_err();
        assert!(error.to_string().starts_with("1/week token-bucket: more than 1000 requests"));
        assert_eq!(seen, 1_000);
    }
}
