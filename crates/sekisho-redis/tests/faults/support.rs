//! Limits, keys and single questions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use sekisho::{
    Answer, Ask, Charge, Key, Limit, Mode, Now, Outcome, Scope, Seed, Span, Store, StoreError,
};
use sekisho_redis::{RedisOptions, RedisStore};
use sekisho_testkit::{redis_server::RedisServer, wait::PATIENCE};

/// How long a caller waits, where nothing else is said.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(50);

/// A limit and what it is counted under.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) limit: Limit,
    pub(crate) scope: Scope,
    pub(crate) key: Key,
}

impl Counted {
    /// Its key on the server is `sk1:{=<key>}fault:<id>`.
    pub(crate) fn new(limit: &str, id: &str, key: &str) -> Self {
        let key = Key::plain(key.as_bytes(), &Seed::from_bytes([7; 16]));
        Self { limit: limit.parse().unwrap(), scope: Scope::new("fault", id), key }
    }

    /// A limit under which nobody has come yet, counted where the same identity's others are.
    fn fresh(limit: &str, key: &Key) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let scope = Scope::new("fault", &format!("fresh-{count}"));
        Self { limit: limit.parse().unwrap(), scope, key: key.clone() }
    }

    pub(crate) fn charge(&self, cost: u64) -> Charge<'_> {
        Charge { limit: &self.limit, scope: &self.scope, key: &self.key, cost }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.limit.capacity().unwrap()
    }
}

pub(crate) fn store(url: &str) -> Arc<RedisStore> {
    store_with(url, TIMEOUT)
}

/// For what is to be counted, and not to be measured.
pub(crate) fn patient(url: &str) -> Arc<RedisStore> {
    store_with(url, PATIENCE)
}

pub(crate) fn store_with(url: &str, timeout: Duration) -> Arc<RedisStore> {
    let timeout = Span::from_nanos(u64::try_from(timeout.as_nanos()).unwrap());
    let options = RedisOptions { timeout, ..RedisOptions::default() };
    Arc::new(RedisStore::new(url, options).unwrap())
}

/// Asks on the server's own clock.
pub(crate) async fn ask(
    store: &RedisStore,
    charges: &[Charge<'_>],
    mode: Mode,
) -> Result<Answer, StoreError> {
    store.decide(&[Ask::new(charges, mode)], Now::StoreClock).await.pop().unwrap()
}

/// Returns whether one unit passes.
pub(crate) async fn passes(store: &RedisStore, counted: &Counted) -> Result<bool, StoreError> {
    let answer = ask(store, &[counted.charge(1)], Mode::Check).await?;
    Ok(answer.joint().outcome == Outcome::Allow)
}

/// Returns what is used of a limit whose units do not come back during a test.
pub(crate) async fn used(store: &RedisStore, counted: &Counted) -> u64 {
    let charges = [counted.charge(0)];
    let answer = insist(|| ask(store, &charges, Mode::Look)).await;
    counted.capacity() - answer.verdicts[0].remaining.unwrap()
}

/// Asks until there is an answer: a busy machine may need more than one try.
pub(crate) async fn insist<T>(mut ask: impl AsyncFnMut() -> Result<T, StoreError>) -> T {
    let began = now();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(began.elapsed() < PATIENCE, "asked in vain: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a new limit is exact for somebody, and returns how long after `whole` the first of those answers came.
pub(crate) async fn exact_again(store: &RedisStore, key: &Key, whole: Instant) -> Duration {
    loop {
        match two_of_four(store, key, whole).await {
            Ok(first) => return first,
            Err(error) => assert!(whole.elapsed() < PATIENCE, "it does not come back: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn two_of_four(
    store: &RedisStore,
    key: &Key,
    whole: Instant,
) -> Result<Duration, StoreError> {
    let two = Counted::fresh("2/week anchored-window", key);
    let first = passes(store, &two).await?;
    let came = whole.elapsed();
    let mut passed = vec![first];
    for _ in 0..3 {
        passed.push(passes(store, &two).await?);
    }
    assert_eq!(passed, [true, true, false, false], "a new limit of 2");
    Ok(came)
}

/// Fails when a server refuses a command of the test's own.
#[track_caller]
pub(crate) fn tell(server: &RedisServer, words: &[&str]) {
    assert_eq!(server.command(words).error(), None, "{words:?}");
}

/// Lets something block that is not async, beside all else.
pub(crate) fn beside<T>(block: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(block)
}

pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

#[expect(clippy::disallowed_methods, reason = "faults are measured in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Whether the long form is wanted.
pub(crate) fn is_long() -> bool {
    std::env::var_os("SEKISHO_LONG").is_some_and(|value| value == "1")
}
