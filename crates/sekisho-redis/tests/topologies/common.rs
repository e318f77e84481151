//! What the tests of all topologies share.

use std::env;

use sekisho::{
    Answer, Ask, Charge, Key, Limit, Memory, MemoryOptions, Mode, Now, Outcome, Scope, Seed, Span,
    Store, StoreError, Timestamp,
};
use sekisho_redis::{RedisOptions, RedisStore};
use sekisho_testkit::redis_server::RedisServer;

/// One limit of each algorithm whose units do not come back while a test runs; each admits so many units.
pub(crate) fn slow(units: u64) -> Vec<String> {
    let queue = format!("{units}/week burst {} leaky-queue", units - 1);
    let others = [
        "week",
        "week fixed-window",
        "week anchored-window",
        "week sliding-window",
        "week sliding-log",
        "calendar-month",
    ];
    others.iter().map(|period| format!("{units}/{period}")).chain([queue]).collect()
}

/// A limit, and whose.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) limit: Limit,
    pub(crate) scope: Scope,
    pub(crate) key: Key,
}

impl Counted {
    /// Returns a limit of somebody, under an id.
    pub(crate) fn new(limit: &str, id: &str, who: &str) -> Self {
        let key = Key::plain(who.as_bytes(), &Seed::from_bytes([7; 16]));
        Self { limit: limit.parse().unwrap(), scope: Scope::new("test", id), key }
    }

    pub(crate) fn charge(&self, cost: u64) -> Charge<'_> {
        Charge { limit: &self.limit, scope: &self.scope, key: &self.key, cost }
    }

    /// Returns the key under which a server has it.
    pub(crate) fn stored(&self) -> String {
        let id = self.scope.limit().replace(' ', "%20");
        format!("sk1:{{{}}}test:{id}", self.key)
    }
}

/// Returns options of who waits out a busy machine.
pub(crate) fn patient() -> RedisOptions {
    RedisOptions { timeout: Span::from_secs(20), ..RedisOptions::default() }
}

/// Returns a store that waits out a busy machine.
pub(crate) fn store(url: &str) -> RedisStore {
    RedisStore::new(url, patient()).unwrap()
}

/// Returns a store over several servers.
pub(crate) fn shards<'s>(servers: impl IntoIterator<Item = &'s RedisServer>) -> RedisStore {
    let addresses: Vec<_> =
        servers.into_iter().map(|server| server.url().parse().unwrap()).collect();
    RedisStore::at(&addresses, patient()).unwrap()
}

/// Returns a memory that forgets nothing.
pub(crate) fn memory() -> Memory {
    Memory::new(MemoryOptions { keep_all: true, ..MemoryOptions::default() })
}

/// Asks on the server's clock.
pub(crate) async fn ask(
    store: &RedisStore,
    charges: &[Charge<'_>],
    mode: Mode,
) -> Result<Answer, StoreError> {
    store.decide(&[Ask::new(charges, mode)], Now::StoreClock).await.pop().unwrap()
}

/// Checks one charge on the server's clock.
pub(crate) async fn check(
    store: &RedisStore,
    counted: &Counted,
    cost: u64,
) -> Result<Answer, StoreError> {
    ask(store, &[counted.charge(cost)], Mode::Check).await
}

/// Returns how many units are left.
pub(crate) async fn left(store: &RedisStore, counted: &Counted) -> u64 {
    let look = ask(store, &[counted.charge(0)], Mode::Look).await.unwrap();
    look.verdicts[0].remaining.unwrap()
}

pub(crate) fn is_allowed(answer: &Answer) -> bool {
    answer.joint().outcome == Outcome::Allow
}

/// Returns how often a server was asked to run a script that it knows.
pub(crate) fn evalshas(server: &RedisServer) -> u64 {
    let Some(text) = server.try_info("cmdstat_evalsha", sekisho_testkit::wait::PATIENCE) else {
        return 0;
    };
    let calls = text.strip_prefix("calls=").unwrap().split(',').next().unwrap();
    calls.parse().unwrap()
}

/// Returns how many keys a server has.
pub(crate) fn keys(server: &RedisServer) -> i64 {
    server.command(&["DBSIZE"]).integer()
}

/// Returns a setting.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Asks memory at the times at which a store decided, in the order of what it left; both must have said the same.
pub(crate) async fn as_one_after_the_other(counted: &Counted, cost: u64, answers: &[Answer]) {
    let memory = memory();
    let mut answers: Vec<&Answer> = answers.iter().collect();
    answers.sort_by_key(|answer| {
        let verdict = answer.verdicts[0];
        (answer.at, !verdict.is_allowed(), u64::MAX - verdict.remaining.unwrap())
    });
    for answer in answers {
        let charges = [counted.charge(cost)];
        let asks = [Ask::new(&charges, Mode::Check)];
        let own = memory.decide_now(&asks, Now::At(answer.at)).pop().unwrap().unwrap();
        assert_eq!(*answer, own, "{counted:?}");
    }
}

/// Returns a time of a trace.
pub(crate) fn at(us: u64) -> Timestamp {
    Timestamp::from_nanos(us * 1_000)
}
