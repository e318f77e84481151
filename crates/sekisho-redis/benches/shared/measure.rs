//! One client at a time against a real server, and what it did.

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use redis::{Cmd, aio::MultiplexedConnection};
use sekisho::{Ask, Charge, Key, Limit, Mode, Now, Scope, Seed, Store};
use sekisho_redis::RedisStore;
use sekisho_testkit::redis_server::RedisServer;
use tokio::sync::Barrier;

pub(crate) const SOURCE: &str = concat!(
    include_str!("../../scripts/entry.lua"),
    include_str!("../../scripts/prelude.lua"),
    include_str!("../../scripts/windows.lua"),
    include_str!("../../scripts/log.lua"),
    include_str!("../../scripts/levels.lua"),
    include_str!("../../scripts/decide.lua"),
);
/// What somebody writes by hand who wants GCRA and nothing else.
pub(crate) const BARE: &str = include_str!("bare_gcra.lua");
pub(crate) const KEYS: u64 = 100_000;
const LIMIT: &str = "1000000/min";

/// What one round gave.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) rate: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) cpu_us: f64,
    pub(crate) own_cpu_us: f64,
}

/// Who decides.
pub(crate) enum Client {
    /// A connection a caller, a script call a decision.
    Alone { calls: fn(&str, &str) -> Cmd, digest: String },
    /// One store for all, over so many keys.
    Store { store: Arc<RedisStore>, keys: u64 },
}

pub(crate) fn our_call(digest: &str, key: &str) -> Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(digest).arg(1).arg(key).arg("").arg(b"c\x00\x01\x01\x00\x00").arg(words());
    command
}

pub(crate) fn bare_call(digest: &str, key: &str) -> Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(digest).arg(1).arg(key).arg(60).arg(60_000_000).arg(1);
    command
}

/// The words of a bucket of a million a minute.
fn words() -> Vec<u8> {
    let mut words = vec![b'b'];
    for number in [6e7, 1e6, 1.0, 60.0, 0.0, 6e7, 0.0, 6e7, 0.0, 1e6, 6e7_f64] {
        words.extend(number.to_le_bytes());
    }
    words
}

fn key_of(number: u64) -> String {
    format!("sk1:{{=u{number}}}api:60s-token-bucket")
}

async fn connect(server: &RedisServer) -> MultiplexedConnection {
    redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap()
}

pub(crate) async fn load(server: &RedisServer, source: &str) -> String {
    let mut connection = connect(server).await;
    redis::cmd("SCRIPT").arg("LOAD").arg(source).query_async(&mut connection).await.unwrap()
}

/// Returns the processor time of this program.
fn own_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // After the name, which stands in parentheses: user and system time are the 12th and 13th, in hundredths of a second.
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let ticks = |at: usize| rest.split_whitespace().nth(at).unwrap().parse::<u64>().unwrap();
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

/// A number a caller: any will do that does not repeat soon.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

pub(crate) async fn measure(
    server: &RedisServer,
    client: &Client,
    callers: usize,
    length: Duration,
) -> Measured {
    let over = Arc::new(AtomicBool::new(false));
    let begun = Arc::new(Barrier::new(callers + 1));
    let mut tasks = Vec::with_capacity(callers);
    for caller in 0..callers {
        let (over, begun) = (Arc::clone(&over), Arc::clone(&begun));
        let mut random = caller as u64 + 1;
        let mut latencies = Vec::new();
        tasks.push(match client {
            Client::Alone { calls, digest } => {
                let (calls, digest) = (*calls, digest.clone());
                let mut connection = connect(server).await;
                tokio::spawn(async move {
                    begun.wait().await;
                    while !over.load(Relaxed) {
                        let began = Instant::now();
                        let call = calls(&digest, &key_of(next(&mut random) % KEYS));
                        let reply: redis::Value = call.query_async(&mut connection).await.unwrap();
                        let _kept = black_box(reply);
                        latencies.push(began.elapsed());
                    }
                    latencies
                })
            }
            Client::Store { store, keys } => {
                let (store, keys) = (Arc::clone(store), *keys);
                let limit: Limit = LIMIT.parse().unwrap();
                let scope = Scope::new("api", "60s-token-bucket");
                let seed = Seed::from_bytes([7; 16]);
                tokio::spawn(async move {
                    begun.wait().await;
                    while !over.load(Relaxed) {
                        let began = Instant::now();
                        let who = format!("u{}", next(&mut random) % keys);
                        let key = Key::plain(who.as_bytes(), &seed);
                        let charges = [Charge { limit: &limit, scope: &scope, key: &key, cost: 1 }];
                        let asks = [Ask::new(&charges, Mode::Check)];
                        let answer = store.decide(&asks, Now::StoreClock).await.pop().unwrap();
                        let _kept = black_box(answer.unwrap());
                        latencies.push(began.elapsed());
                    }
                    latencies
                })
            }
        });
    }
    begun.wait().await;
    let (began, cpu, own) = (Instant::now(), server.cpu(), own_cpu());
    tokio::time::sleep(length).await;
    over.store(true, Relaxed);
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    let own = own_cpu().saturating_sub(own);
    let (took, cpu) = (began.elapsed(), server.cpu().saturating_sub(cpu));
    latencies.sort_unstable();
    let count = latencies.len().max(1);
    let at = |part: f64| {
        let place = ((count as f64) * part) as usize;
        latencies.get(place).map_or(0.0, |latency| latency.as_secs_f64() * 1e6)
    };
    Measured {
        rate: count as f64 / took.as_secs_f64(),
        p50_us: at(0.5),
        p99_us: at(0.99),
        cpu_us: cpu.as_secs_f64() * 1e6 / count as f64,
        own_cpu_us: own.as_secs_f64() * 1e6 / count as f64,
    }
}

/// What calls of 64 keys reach that are made beforehand, two on their way.
pub(crate) async fn ceiling(server: &RedisServer, digest: &str, length: Duration) -> Measured {
    let mut random = 7;
    let calls: Vec<Cmd> = (0..500)
        .map(|_| {
            let mut keys: Vec<String> = (0..64).map(|_| key_of(next(&mut random) % KEYS)).collect();
            keys.sort();
            keys.dedup();
            let mut command = redis::cmd("EVALSHA");
            command.arg(digest).arg(keys.len()).arg(&keys).arg("");
            command.arg(b"c\x00\x01\x01\x00\x00".repeat(keys.len())).arg(words());
            command
        })
        .collect();
    let calls = Arc::new(calls);
    let count = Arc::new(AtomicU64::new(0));
    let (began, cpu) = (Instant::now(), server.cpu());
    let connection = connect(server).await;
    let tasks: Vec<_> = (0..2)
        .map(|task| {
            let (calls, count, mut connection) =
                (Arc::clone(&calls), Arc::clone(&count), connection.clone());
            tokio::spawn(async move {
                for call in calls.iter().cycle().skip(task * 250) {
                    if began.elapsed() > length {
                        break;
                    }
                    let reply: redis::Value = call.query_async(&mut connection).await.unwrap();
                    let redis::Value::Array(items) = reply else { panic!("a strange reply") };
                    count.fetch_add((items.len() as u64 - 1) / 2, Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let count = count.load(Relaxed) as f64;
    let cpu_us = (server.cpu().saturating_sub(cpu)).as_secs_f64() * 1e6 / count;
    Measured { rate: count / began.elapsed().as_secs_f64(), cpu_us, ..Measured::default() }
}

/// The bytes that so many keys with such values take.
pub(crate) async fn memory(value: impl Fn(u64) -> String) -> f64 {
    const COUNT: u64 = 100_000;
    let server = RedisServer::start();
    let mut connection = connect(&server).await;
    let used = async |connection: &mut MultiplexedConnection| -> f64 {
        let info: String = redis::cmd("INFO").arg("memory").query_async(connection).await.unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        line.unwrap().trim().parse().unwrap()
    };
    let before = used(&mut connection).await;
    let mut pipe = redis::pipe();
    for number in 0..COUNT {
        pipe.cmd("SET").arg(key_of(number)).arg(value(number)).arg("PX").arg(3_600_000).ignore();
        if number % 1_000 == 999 {
            let _: () = pipe.query_async(&mut connection).await.unwrap();
            pipe.clear();
        }
    }
    (used(&mut connection).await - before) / COUNT as f64
}
