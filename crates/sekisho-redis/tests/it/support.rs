//! A server, a store on it and the memory to compare with.

use redis::aio::MultiplexedConnection;
use sekisho::{
    Answer, Ask, Charge, Key, Limit, Memory, MemoryOptions, Mode, Now, Scope, Seed, Span, Store,
    StoreError, Timestamp,
};
use sekisho_redis::{RedisOptions, RedisStore};
use sekisho_testkit::redis_server::RedisServer;

/// Two stores that are to say the same.
pub(crate) struct Pair {
    pub(crate) server: RedisServer,
    pub(crate) redis: RedisStore,
    pub(crate) memory: Memory,
}

/// A limit and what it is counted under.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) limit: Limit,
    pub(crate) scope: Scope,
    pub(crate) key: Key,
}

impl Counted {
    pub(crate) fn new(limit: &str, id: &str, key: &str) -> Self {
        let key = Key::plain(key.as_bytes(), &Seed::from_bytes([7; 16]));
        Self { limit: limit.parse().unwrap(), scope: Scope::new("test", id), key }
    }

    pub(crate) fn charge(&self, cost: u64) -> Charge<'_> {
        Charge { limit: &self.limit, scope: &self.scope, key: &self.key, cost }
    }
}

impl Pair {
    pub(crate) fn start() -> Self {
        let server = RedisServer::start();
        let redis = patient(&server.url());
        let memory = Memory::new(MemoryOptions { keep_all: true, ..MemoryOptions::default() });
        Self { server, redis, memory }
    }

    /// Asks both stores the same, which must answer the same.
    pub(crate) async fn ask(&self, charges: &[Charge<'_>], mode: Mode, us: u64) -> Answer {
        let now = Now::At(Timestamp::from_nanos(us * 1_000));
        self.decide(Ask::new(charges, mode), now).await.unwrap()
    }

    /// Asks both stores the same, which must answer the same, if Redis can tell at all.
    pub(crate) async fn decide(&self, ask: Ask<'_>, now: Now) -> Result<Answer, StoreError> {
        let shared = self.redis.decide(&[ask], now).await.pop().unwrap();
        if let Err(StoreError::Unsupported(_)) = shared {
            return shared;
        }
        let own = self.memory.decide_now(&[ask], now).pop().unwrap();
        assert_eq!(shared, own, "{ask:?} {now:?}");
        shared
    }

    /// Checks one charge.
    pub(crate) async fn check(&self, counted: &Counted, cost: u64, us: u64) -> Answer {
        self.ask(&[counted.charge(cost)], Mode::Check, us).await
    }

    pub(crate) async fn connection(&self) -> MultiplexedConnection {
        connect(&self.server).await
    }
}

/// Returns a store that waits out a busy machine.
pub(crate) fn patient(url: &str) -> RedisStore {
    let options = RedisOptions { timeout: Span::from_secs(20), ..RedisOptions::default() };
    RedisStore::new(url, options).unwrap()
}

pub(crate) async fn connect(server: &RedisServer) -> MultiplexedConnection {
    redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap()
}

/// Checks one charge on the store's own clock.
pub(crate) async fn check_now(
    store: &RedisStore,
    counted: &Counted,
    cost: u64,
) -> Result<Answer, StoreError> {
    let charges = [counted.charge(cost)];
    let asks = [Ask::new(&charges, Mode::Check)];
    store.decide(&asks, Now::StoreClock).await.pop().unwrap()
}

/// Fails unless there are keys and each of them will expire, or has just now; returns how many.
pub(crate) async fn all_expire(connection: &mut MultiplexedConnection) -> usize {
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(connection).await.unwrap();
    for key in &keys {
        let left: i64 = redis::cmd("PTTL").arg(key).query_async(connection).await.unwrap();
        assert!(left >= 0 || left == -2, "{key} expires in {left} ms");
    }
    assert!(!keys.is_empty());
    keys.len()
}
