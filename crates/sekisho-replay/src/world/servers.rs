//! Several servers: where they count, and how requests are dealt out to them.

use sekisho::{Algorithm, Limit, Metered};

use super::WorldError;
use crate::simulate::Simulation;

/// Some servers behind which the requests are shared out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    /// Where they count.
    pub counting: Counting,
    /// The share of the requests that each gets, dealt out as evenly as can be. One number a server.
    pub shares: Vec<u64>,
    /// How far each server's clock is ahead, in nanoseconds. One number a server.
    pub ahead_ns: Vec<i64>,
}

/// Where several servers count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// In one place, each by its own clock.
    #[default]
    Shared,
    /// Each alone, with its part of the limit.
    Split,
    /// Each alone, with the whole limit.
    Alone,
}

impl Servers {
    /// Returns how far the slowest clock is behind, in nanoseconds.
    pub(super) fn behind_ns(&self) -> u64 {
        let behind = self.ahead_ns.iter().filter(|ns| **ns < 0).map(|ns| ns.unsigned_abs());
        behind.max().unwrap_or_default()
    }

    /// Returns one server with the right time.
    pub fn one() -> Self {
        Self::several(Counting::Shared, vec![1])
    }

    /// Returns servers with the right time.
    pub fn several(counting: Counting, shares: Vec<u64>) -> Self {
        let ahead_ns = vec![0; shares.len()];
        Self { counting, shares, ahead_ns }
    }

    /// Returns what each server counts by; one for all when they count in one place.
    pub(super) fn simulations(&self, limits: &[Limit]) -> Result<Vec<Simulation>, WorldError> {
        let count = self.shares.len();
        let whole = || Simulation::new(limits.to_vec());
        match self.counting {
            Counting::Shared => Ok(vec![whole()]),
            Counting::Alone => Ok((0..count).map(|_| whole()).collect()),
            Counting::Split => (0..count)
                .map(|server| {
                    let parts = limits.iter().map(|limit| {
                        part(limit, server, count).ok_or_else(|| WorldError::Split {
                            limit: limit.to_string(),
                            servers: count,
                        })
                    });
                    Ok(Simulation::new(parts.collect::<Result<_, _>>()?))
                })
                .collect(),
        }
    }
}

/// Returns a server's part of a limit: amount and burst divided, what is left over to the first servers.
fn part(limit: &Limit, server: usize, servers: usize) -> Option<Limit> {
    let Some(metered) = limit.as_metered() else { return Some(*limit) };
    let (server, servers) = (server as u64, servers as u64);
    let divided = |units: u64| units / servers + u64::from(server < units % servers);
    let burst = match metered.algorithm() {
        Algorithm::TokenBucket => Some(divided(Metered::burst(metered)).max(1)),
        Algorithm::LeakyQueue => Some(divided(Metered::burst(metered))),
        _ => None,
    };
    metered.with_numbers(divided(metered.amount().get()), burst).ok()
}

/// Deals requests out by shares, as evenly as can be: each turn every server gains its share, and the one that has gained most
/// pays with the sum of all. No chance is in it.
pub(super) struct Dealer<'a> {
    shares: &'a [u64],
    gained: Vec<i128>,
}

impl<'a> Dealer<'a> {
    pub(super) fn new(shares: &'a [u64]) -> Self {
        Self { shares, gained: vec![0; shares.len()] }
    }

    pub(super) fn deal(&mut self) -> usize {
        let mut most = 0;
        for (server, share) in self.shares.iter().enumerate() {
            self.gained[server] += i128::from(*share);
            if self.gained[server] > self.gained[most] {
                most = server;
            }
        }
        if let Some(gained) = self.gained.get_mut(most) {
            *gained -= self.shares.iter().map(|share| i128::from(*share)).sum::<i128>();
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_dealt_out_by_shares() {
        let mut dealer = Dealer::new(&[80, 20]);
        let dealt: Vec<_> = (0..10).map(|_| dealer.deal()).collect();
        assert_eq!(dealt, [0, 0, 1, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_part_is_never_more_than_its_share() {
        let parts = |limit: &str, servers| {
            let limit: Limit = limit.parse().unwrap();
            (0..servers)
                .map(|server| part(&limit, server, servers).map(|part| part.to_string()))
                .collect::<Option<Vec<_>>>()
        };
        assert_eq!(
            parts("7/min burst 5", 2).unwrap(),
            ["4/min burst 3 token-bucket", "3/min burst 2 token-bucket"]
        );
        assert_eq!(parts("block", 2).unwrap(), ["block", "block"]);
        assert_eq!(parts("1/min sliding-log", 2), None);
    }
}
