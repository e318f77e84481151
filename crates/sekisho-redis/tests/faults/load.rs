//! Requests that keep coming whatever becomes of them, and a clock beside them that tells whether the machine kept up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use sekisho::StoreError;
use sekisho_redis::RedisStore;
use tokio::task::{JoinHandle, JoinSet};

use crate::support::{Counted, now, passes};

/// A hundred requests in a second.
const EVERY: Duration = Duration::from_millis(10);
/// How late one in a hundred short sleeps may be on a machine whose times are worth a promise.
const LATE: Duration = Duration::from_millis(5);
/// How late a single one may be: a little less than what a caller may wait beyond the timeout.
const STOP: Duration = Duration::from_millis(8);
const TICK: Duration = Duration::from_millis(1);

/// One request.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Which of the limits it was charged to.
    pub(crate) limit: usize,
    pub(crate) at: Instant,
    pub(crate) took: Duration,
    /// Whether it passed.
    pub(crate) said: Result<bool, StoreError>,
}

/// Requests that are being sent.
#[derive(Debug)]
pub(crate) struct Load {
    ended: Arc<AtomicBool>,
    samples: JoinHandle<Vec<Sample>>,
    sleeps: JoinHandle<Vec<(Instant, Duration)>>,
}

/// What became of them.
#[derive(Debug)]
pub(crate) struct Samples {
    pub(crate) all: Vec<Sample>,
    /// When short sleeps began, and how late each ended.
    sleeps: Vec<(Instant, Duration)>,
}

impl Load {
    /// Sends a request every 10 ms to one limit after the other. None waits for the one before.
    pub(crate) fn start(store: &Arc<RedisStore>, limits: Vec<Arc<Counted>>) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let samples = tokio::spawn(send(Arc::clone(store), limits, Arc::clone(&ended)));
        let sleeps = tokio::spawn(sleep_again(Arc::clone(&ended)));
        Self { ended, samples, sleeps }
    }

    pub(crate) async fn stop(self) -> Samples {
        self.ended.store(true, Ordering::Relaxed);
        Samples { all: self.samples.await.unwrap(), sleeps: self.sleeps.await.unwrap() }
    }
}

async fn send(
    store: Arc<RedisStore>,
    limits: Vec<Arc<Counted>>,
    ended: Arc<AtomicBool>,
) -> Vec<Sample> {
    let mut sent = JoinSet::new();
    let mut ticks = tokio::time::interval(EVERY);
    for limit in (0..limits.len()).cycle() {
        ticks.tick().await;
        if ended.load(Ordering::Relaxed) {
            break;
        }
        let (store, counted) = (Arc::clone(&store), Arc::clone(&limits[limit]));
        sent.spawn(async move { sample(&store, &counted, limit).await });
    }
    let mut all = sent.join_all().await;
    all.sort_by_key(|sample| sample.at);
    all
}

/// Sends one request.
pub(crate) async fn sample(store: &RedisStore, counted: &Counted, limit: usize) -> Sample {
    let at = now();
    let said = passes(store, counted).await;
    Sample { limit, at, took: at.elapsed(), said }
}

async fn sleep_again(ended: Arc<AtomicBool>) -> Vec<(Instant, Duration)> {
    let mut sleeps = Vec::new();
    while !ended.load(Ordering::Relaxed) {
        let at = now();
        tokio::time::sleep(TICK).await;
        sleeps.push((at, at.elapsed().saturating_sub(TICK)));
    }
    sleeps
}

impl Samples {
    pub(crate) fn admitted(&self, limit: usize) -> u64 {
        let of = self.all.iter().filter(|sample| sample.limit == limit);
        of.filter(|sample| sample.said == Ok(true)).count() as u64
    }

    pub(crate) fn errors(&self) -> Vec<(&Sample, &StoreError)> {
        self.all.iter().filter_map(|sample| Some((sample, sample.said.as_ref().err()?))).collect()
    }

    /// Returns how long those took that were sent between two times: half of them at most the first, all but one in a
    /// hundred at most the second.
    pub(crate) fn latencies(&self, from: Instant, to: Instant) -> [Duration; 2] {
        let within = self.all.iter().filter(|sample| (from..to).contains(&sample.at));
        let took = sorted(within.map(|sample| sample.took));
        assert!(!took.is_empty(), "nothing was sent during the fault");
        [50, 99].map(|percent| percentile(&took, percent))
    }

    /// Returns how long the slowest took of those that were sent between two times.
    pub(crate) fn slowest(&self, from: Instant, to: Instant) -> Duration {
        let within = self.all.iter().filter(|sample| (from..to).contains(&sample.at));
        within.map(|sample| sample.took).max().unwrap_or_default()
    }

    /// Returns whether the machine stood still for a while at any time, so that who had no time left was told so.
    pub(crate) fn had_a_stop(&self) -> bool {
        self.sleeps.iter().any(|(_, late)| *late > STOP)
    }

    /// Returns for how long the machine stood still.
    pub(crate) fn time_lost(&self) -> Duration {
        self.sleeps.iter().map(|(_, late)| *late).filter(|late| *late > STOP).sum()
    }

    /// Returns whether the machine was too busy between two times for what was measured to say anything about us.
    pub(crate) fn is_starved(&self, from: Instant, to: Instant) -> bool {
        let within = self.sleeps.iter().filter(|(at, _)| (from..to).contains(at));
        let late = sorted(within.map(|(_, late)| *late));
        late.last().is_none_or(|most| *most > STOP) || percentile(&late, 99) > LATE
    }
}

fn sorted(of: impl Iterator<Item = Duration>) -> Vec<Duration> {
    let mut all: Vec<_> = of.collect();
    all.sort_unstable();
    all
}

/// Returns the smallest that so many in a hundred are at most.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

/// Callers of whom each asks again as soon as it is told.
#[derive(Debug)]
pub(crate) struct Crowd {
    ended: Arc<AtomicBool>,
    callers: JoinSet<Vec<Sample>>,
}

impl Crowd {
    pub(crate) fn start(store: &Arc<RedisStore>, counted: &Arc<Counted>, callers: usize) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let mut all = JoinSet::new();
        for _ in 0..callers {
            let (store, counted) = (Arc::clone(store), Arc::clone(counted));
            let ended = Arc::clone(&ended);
            all.spawn(async move {
                let mut samples = Vec::new();
                while !ended.load(Ordering::Relaxed) {
                    samples.push(sample(&store, &counted, 0).await);
                    // Else those who are told at once would keep the processor from all others.
                    tokio::time::sleep(EVERY).await;
                }
                samples
            });
        }
        Self { ended, callers: all }
    }

    pub(crate) async fn stop(self) -> Samples {
        self.ended.store(true, Ordering::Relaxed);
        let all = self.callers.join_all().await.into_iter().flatten().collect();
        Samples { all, sleeps: Vec::new() }
    }
}
