//! What most faults are seen with: a store, requests all the while, and what is said of both afterwards.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sekisho::StoreError;
use sekisho_redis::RedisStore;
use sekisho_testkit::redis_server::RedisServer;

use crate::{
    load::{Load, Samples, sample},
    support::{Counted, TIMEOUT, beside, exact_again, now, pass, store, used},
    table::Row,
};

/// How long it runs before the fault, and how long after it.
const CALM: Duration = Duration::from_millis(400);
/// What is promised of how soon a server that is whole again is used.
const BACK: Duration = Duration::from_secs(2);
/// What a caller may wait beyond the timeout.
const SLACK: Duration = Duration::from_millis(10);
/// What a call may take that asks nobody.
const AT_ONCE: Duration = Duration::from_millis(1);

/// The limit that is reached.
pub(crate) const TIGHT: usize = 0;
/// The limit that is not, so that everything charged can be seen.
pub(crate) const WIDE: usize = 1;

/// A store under requests: every other one is charged to a limit that is soon used up.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) store: Arc<RedisStore>,
    pub(crate) limits: [Arc<Counted>; 2],
    load: Load,
    /// When the fault began.
    pub(crate) began: Instant,
    whole: Option<(Instant, Duration)>,
}

/// The same after the fault, when nobody asks any more.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) samples: Samples,
    pub(crate) began: Instant,
    pub(crate) whole: Instant,
    pub(crate) back: Duration,
    /// What the servers have counted for the limit that is not reached.
    pub(crate) charged: u64,
    pub(crate) capacity: u64,
    pub(crate) bare: u64,
}

impl Scene {
    /// The tight limit is used up during the fault, or after it.
    pub(crate) async fn open(url: &str) -> Self {
        Self::of(store(url), 60, "u").await
    }

    /// The tight limit is used up before the fault.
    pub(crate) async fn used_up(url: &str) -> Self {
        Self::of(store(url), 15, "u").await
    }

    /// Begins, and waits a little.
    pub(crate) async fn of(store: Arc<RedisStore>, tight: u64, key: &str) -> Self {
        let limits = [(tight, "tight"), (100_000, "wide")].map(|(limit, id)| {
            Arc::new(Counted::new(&format!("{limit}/week anchored-window"), id, key))
        });
        // The first dial is not what is measured.
        let _exact = exact_again(&store, &limits[TIGHT].key, now()).await;
        let load = Load::start(&store, limits.to_vec());
        pass(CALM).await;
        Self { store, limits, load, began: now(), whole: None }
    }

    /// The fault begins about now.
    pub(crate) fn begins(&mut self) {
        self.began = now();
    }

    /// The server is whole since `whole`: waits for an exact decision, which must come soon.
    pub(crate) async fn is_whole_since(&mut self, whole: Instant) {
        let back = exact_again(&self.store, &self.limits[TIGHT].key, whole).await;
        println!("exact again after {back:?}");
        assert!(back < BACK, "exact again after {back:?} only");
        self.whole = Some((whole, back));
    }

    pub(crate) async fn is_whole(&mut self) {
        self.is_whole_since(now()).await;
    }

    /// Goes on a little, uses up the tight limit, and ends; what the servers keep must have an end too.
    pub(crate) async fn close(self, servers: &[&RedisServer]) -> Seen {
        let (whole, back) = self.whole.unwrap();
        pass(CALM).await;
        let mut samples = self.load.stop().await;
        let tight = &self.limits[TIGHT];
        loop {
            let more = sample(&self.store, tight, TIGHT).await;
            let is_used_up = more.said == Ok(false);
            samples.all.push(more);
            if is_used_up {
                break;
            }
            pass(Duration::from_millis(1)).await;
            assert!(samples.admitted(TIGHT) <= 3 * tight.capacity(), "nothing is counted");
        }
        let running = servers.iter().filter(|server| server.runs());
        let bare: usize =
            beside(|| running.map(|server| server.keys_without_expiry("sk1:").len()).sum());
        let charged = used(&self.store, &self.limits[WIDE]).await;
        let capacity = tight.capacity();
        let began = self.began;
        Seen { samples, began, whole, back, charged, capacity, bare: bare as u64 }
    }
}

impl Seen {
    /// Fails unless the servers have counted everybody who was told to go, and nobody twice. Whoever was told nothing may have
    /// been counted.
    pub(crate) fn check_charges(&self) {
        let sent = self.samples.all.iter().filter(|sample| sample.limit == WIDE).count() as u64;
        let admitted = self.samples.admitted(WIDE);
        let charged = self.charged;
        assert!(admitted <= charged, "{admitted} went and {charged} were counted");
        assert!(charged <= sent, "{sent} were sent and {charged} were counted");
    }

    /// Returns how many of those who were told nothing were counted, of both limits.
    pub(crate) fn untold(&self) -> u64 {
        let tight = self.capacity.saturating_sub(self.samples.admitted(TIGHT));
        tight + self.charged.saturating_sub(self.samples.admitted(WIDE))
    }

    /// Fails when somebody waited for longer than the timeout and a little, unless the machine was too busy to tell.
    pub(crate) fn check_waits(&self) {
        self.check_times(self.began, |[_, p99]| p99 <= TIMEOUT + SLACK);
    }

    /// Fails when those who came after `since`, and before it was over, were not told at once; unless the machine was too busy
    /// to tell.
    pub(crate) fn check_at_once(&self, since: Duration) {
        self.check_times(self.began + since, |[p50, _]| p50 < AT_ONCE);
        let waited = self.samples.slowest(self.began + since, self.ended());
        println!("nobody waited longer than {waited:?} then");
        assert!(self.samples.had_a_stop() || waited < TIMEOUT / 2, "somebody waited {waited:?}");
    }

    /// The fault is over for callers when they are told again what holds.
    fn ended(&self) -> Instant {
        self.whole + self.back
    }

    fn check_times(&self, from: Instant, holds: impl FnOnce([Duration; 2]) -> bool) {
        let took = self.samples.latencies(from, self.ended());
        let starved = self.samples.is_starved(from, self.ended());
        println!("p50, p99 {took:?}; starved: {starved}");
        assert!(starved || holds(took), "p50, p99 {took:?}");
    }

    /// Fails when there was an error, unless the machine was too busy to tell.
    pub(crate) fn check_no_error(&self) {
        let starved = self.samples.had_a_stop();
        let errors = self.samples.errors();
        for (sample, error) in &errors {
            let at = sample.at.saturating_duration_since(self.began);
            println!("{at:?} after the fault: {error} (the machine stood still: {starved})");
        }
        assert!(starved || errors.is_empty(), "{} errors: {:?}", errors.len(), errors[0]);
    }

    /// Fails unless there were errors, and returns what they say, each once.
    pub(crate) fn errors(&self) -> Vec<StoreError> {
        let mut kinds: Vec<StoreError> = Vec::new();
        for (_, error) in self.samples.errors() {
            if !kinds.contains(error) {
                kinds.push(error.clone());
            }
        }
        println!("{kinds:#?}");
        assert!(!kinds.is_empty(), "nobody noticed the fault");
        kinds
    }

    /// Fails unless every error names what the server said. A busy machine may have been too slow as well.
    pub(crate) fn check_named(&self, word: &str) {
        let why = self.errors();
        let named = |error: &StoreError| error.to_string().contains(word);
        assert!(why.iter().any(named), "{word}: {why:?}");
        let rest = |error: &StoreError| matches!(error, StoreError::Timeout(_));
        assert!(why.iter().all(|error| named(error) || rest(error)), "{word}: {why:?}");
    }

    /// The row: the limit that is reached may have been used up so many times.
    pub(crate) fn row(self, how: &str, times: u64, because: &str) -> Row {
        let [_, p99] = self.samples.latencies(self.began, self.ended());
        let untold = self.untold();
        Row {
            how: how.to_owned(),
            requests: self.samples.all.len() as u64,
            errors: self.samples.errors().len() as u64,
            admitted: self.samples.admitted(TIGHT),
            most: times * self.capacity,
            because: match untold {
                0 => because.to_owned(),
                _ if times > 1 => because.to_owned(),
                _ => format!("{because}; {untold} counted and not told"),
            },
            back: self.back,
            p99,
            bare: self.bare,
        }
    }
}
