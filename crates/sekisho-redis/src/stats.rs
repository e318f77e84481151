//! What is counted of the servers: round trips, how long they took, how much they carried, and what went wrong.

use std::{
    array,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// The upper bounds of a round trip's time, in microseconds.
const LATENCY_US: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000];
/// The upper bounds of how many decisions one round trip carried.
const SIZES: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 1_024];

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// No answer in time.
    Timeout,
    /// It could not be reached.
    Connect,
    /// The connection broke.
    Io,
    /// Too many wait already.
    Full,
    /// It does not write, or not here.
    Refused,
    /// User, password or rights.
    Rights,
    /// Anything else that it said.
    Script,
}

impl Trouble {
    const ALL: [Self; 7] = [
        Self::Timeout,
        Self::Connect,
        Self::Io,
        Self::Full,
        Self::Refused,
        Self::Rights,
        Self::Script,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Connect => "connect",
            Self::Io => "io",
            Self::Full => "full",
            Self::Refused => "refused",
            Self::Rights => "rights",
            Self::Script => "script",
        }
    }
}

/// The counters of one server.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    up: AtomicBool,
    decisions: AtomicU64,
    errors: [AtomicU64; Trouble::ALL.len()],
    latency: Buckets<{ LATENCY_US.len() + 1 }>,
    sizes: Buckets<{ SIZES.len() + 1 }>,
}

#[derive(Debug)]
struct Buckets<const N: usize> {
    counts: [AtomicU64; N],
    sum: AtomicU64,
}

impl<const N: usize> Default for Buckets<N> {
    fn default() -> Self {
        Self { counts: array::from_fn(|_| AtomicU64::new(0)), sum: AtomicU64::new(0) }
    }
}

impl<const N: usize> Buckets<N> {
    fn add(&self, bounds: &[u64], value: u64) {
        let place = bounds.partition_point(|bound| *bound < value);
        self.counts[place].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    fn histogram(&self, bounds: &[u64]) -> Histogram {
        let counts: Vec<u64> = self.counts.iter().map(|count| count.load(Relaxed)).collect();
        let mut below = 0;
        let buckets = bounds.iter().zip(&counts).map(|(bound, count)| {
            below += count;
            (*bound, below)
        });
        let buckets = buckets.collect();
        Histogram { buckets, count: counts.iter().sum(), sum: self.sum.load(Relaxed) }
    }
}

/// How often a value was at most so large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// An upper bound, and how many values were at most that; ascending.
    pub buckets: Vec<(u64, u64)>,
    /// How many values there were.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
}

/// What is counted of one server since the store was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStats {
    /// The server: its host and port or its socket, never a password.
    pub name: String,
    /// Whether it can be asked now. False before the first request.
    pub up: bool,
    /// Decisions that it made.
    pub decisions: u64,
    /// Round trips that brought no answer, by kind.
    pub errors: Vec<(&'static str, u64)>,
    /// How long round trips took, in microseconds.
    pub latency: Histogram,
    /// How many decisions a round trip carried.
    pub sizes: Histogram,
}

/// What is counted of a store since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Each server that was asked, in the order of their names.
    pub servers: Vec<ServerStats>,
    /// Denials that were repeated without asking.
    pub cached_denials: u64,
}

impl Counts {
    pub(crate) fn set_up(&self, up: bool) {
        self.up.store(up, Relaxed);
    }

    pub(crate) fn trouble(&self, trouble: Trouble, times: usize) {
        let place = Trouble::ALL.iter().position(|of| *of == trouble).unwrap_or(0);
        self.errors[place].fetch_add(times as u64, Relaxed);
    }

    pub(crate) fn round_trip(&self, took: Duration, decisions: usize) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.latency.add(&LATENCY_US, us);
        self.sizes.add(&SIZES, decisions as u64);
        self.decisions.fetch_add(decisions as u64, Relaxed);
    }

    pub(crate) fn stats(&self, name: String) -> ServerStats {
        let errors = Trouble::ALL.iter().zip(&self.errors);
        ServerStats {
            name,
            up: self.up.load(Relaxed),
            decisions: self.decisions.load(Relaxed),
            errors: errors.map(|(kind, count)| (kind.as_str(), count.load(Relaxed))).collect(),
            latency: self.latency.histogram(&LATENCY_US),
            sizes: self.sizes.histogram(&SIZES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_what_is_at_most_its_bounds() {
        let counts = Counts::default();
        counts.round_trip(Duration::from_micros(100), 1);
        counts.round_trip(Duration::from_micros(101), 128);
        counts.round_trip(Duration::from_secs(9), 5_000);
        counts.trouble(Trouble::Io, 3);
        let stats = counts.stats("a:1".to_owned());
        assert_eq!(stats.latency.buckets[..2], [(100, 1), (250, 2)]);
        assert_eq!((stats.latency.count, stats.latency.sum), (3, 9_000_201));
        assert_eq!(stats.sizes.buckets.last(), Some(&(1_024, 2)));
        assert_eq!((stats.decisions, stats.sizes.count), (5_129, 3));
        assert_eq!(stats.errors[2], ("io", 3));
    }
}
