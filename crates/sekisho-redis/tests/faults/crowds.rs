//! More callers than there is room for.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sekisho::StoreError;
use sekisho_redis::RedisStore;
use sekisho_testkit::{
    faulty_wire::{Fault, FaultyWire},
    redis_server::RedisServer,
};
use tokio::task::JoinSet;

use crate::{
    load::{Sample, percentile, sample},
    support::{Counted, beside, exact_again, now, patient, store_with, used},
    table::Row,
};

/// The most that wait, in the queue.
const WAITING: usize = 16_384;
/// How long each waits for a server that says nothing.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// The most that are on their way, or about to be.
const FLYING: usize = 3 * 1_024;

/// Everybody at once.
async fn all(store: &Arc<RedisStore>, counted: &[Arc<Counted>], count: usize) -> Vec<Sample> {
    let mut callers = JoinSet::new();
    for caller in 0..count {
        let (store, counted) = (Arc::clone(store), Arc::clone(&counted[caller % counted.len()]));
        callers.spawn(async move { sample(&store, &counted, 0).await });
    }
    callers.join_all().await
}

fn row(server: &RedisServer, samples: &[Sample], back: Duration) -> Row {
    let mut took: Vec<_> = samples.iter().map(|sample| sample.took).collect();
    took.sort();
    let count = |wanted: fn(&Sample) -> bool| samples.iter().filter(|one| wanted(one)).count();
    Row {
        how: String::new(),
        requests: samples.len() as u64,
        errors: count(|sample| sample.said.is_err()) as u64,
        admitted: count(|sample| sample.said == Ok(true)) as u64,
        most: 0,
        because: String::new(),
        back,
        p99: percentile(&took, 99),
        bare: beside(|| server.keys_without_expiry("sk1:").len() as u64),
    }
}

/// A thousand callers share one socket.
pub(crate) async fn thousand() -> Row {
    let server = RedisServer::start();
    let store = patient(&server.url());
    let counted: Vec<_> = (0..10)
        .map(|user| Arc::new(Counted::new("60/week anchored-window", "ten", &user.to_string())))
        .collect();
    let before = connections(&server);
    let samples = all(&store, &counted, 1_000).await;
    // Ours, and that of the second look.
    assert_eq!(connections(&server) - before, 1 + 1, "one socket for all");
    let row = row(&server, &samples, exact_again(&store, &counted[0].key, now()).await);
    assert_eq!((row.errors, row.admitted), (0, 600));
    Row {
        how: "1,000 callers at once, of 10 identities: one socket".to_owned(),
        most: 600,
        because: "the limits; exactly".to_owned(),
        ..row
    }
}

/// How many connections the server has had, with the one that asks.
fn connections(server: &RedisServer) -> u64 {
    beside(|| server.info("total_connections_received")).parse().unwrap()
}

/// More ask than may wait, of a server that does not answer any more, or of one that never did.
pub(crate) async fn too_many(connected: bool) -> Row {
    let server = RedisServer::start();
    let store = store_with(&server.url(), PATIENCE);
    let counted = [Arc::new(Counted::new("1000000/week anchored-window", "all", "u"))];
    if connected {
        exact_again(&store, &counted[0].key, now()).await;
    }
    beside(|| server.pause());
    let began = now();
    let samples = all(&store, &counted, 2 * WAITING).await;
    let (full, rest): (Vec<_>, Vec<_>) = samples.iter().partition(|sample| is_full(sample));
    assert!(samples.iter().all(|sample| sample.said.is_err()));
    println!("{} of {} are refused at once", full.len(), samples.len());
    let waited = rest.len();
    assert!(waited >= WAITING, "{waited} waited");
    // On a busy machine some come only when the time of the first is over.
    let late = samples.iter().any(|sample| sample.at - began > PATIENCE);
    assert!(late || waited <= WAITING + FLYING, "{waited} waited");
    check_at_once(&full, began);
    server.resume();
    let whole = now();
    let back = exact_again(&store, &counted[0].key, whole).await;
    let admitted = all(&store, &counted, 1).await;
    let charged = used(&store, &counted[0]).await;
    assert!(charged <= FLYING as u64 + 1, "{charged} were counted");
    let state = if connected { "is stopped" } else { "was stopped before it was dialled" };
    let row = row(&server, &samples, back);
    Row {
        how: format!(
            "{} callers at once with a timeout of 1.5 s, of a server that {state}: {} refused at once",
            samples.len(),
            full.len()
        ),
        requests: row.requests + admitted.len() as u64,
        admitted: admitted.len() as u64,
        most: 1,
        because: format!("one asked afterwards; {} counted and not told", charged - 1),
        ..row
    }
}

fn is_full(sample: &Sample) -> bool {
    matches!(&sample.said, Err(StoreError::Unavailable(why)) if why.contains("wait for it already"))
}

/// They are told before anybody else's time is over.
fn check_at_once(full: &[&Sample], began: Instant) {
    let last = full.iter().map(|sample| sample.took).max().unwrap();
    println!("the slowest refusal took {last:?}, all {:?}", began.elapsed());
    assert!(last < Duration::from_secs(1), "{last:?}");
}

/// Many more ask than fit into two writes, of a server that answers as late as it may. Wherever one stands in the queue, the
/// timeout is all that one waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b54_the_queue_of_a_slow_server_is_told_in_time() {
    let server = RedisServer::start();
    let wire = FaultyWire::to(server.port());
    let store = store_with(&wire.url(), Duration::from_millis(500));
    let names = (0..WAITING).map(|user| user.to_string());
    let counted: Vec<_> =
        names.map(|user| Arc::new(Counted::new("1/week anchored-window", "one", &user))).collect();
    exact_again(&store, &counted[0].key, now()).await;
    beside(|| wire.set(Fault::Delay(Duration::from_millis(200))));
    let mut took: Vec<_> =
        all(&store, &counted, WAITING).await.iter().map(|sample| sample.took).collect();
    took.sort();
    let half = percentile(&took, 50);
    println!("half waited at most {half:?}, all at most {:?}", took.last().unwrap());
    // Those who are told when the next write may go wait for 0.8 s. All share two processors with the wire.
    assert!(half < Duration::from_millis(700), "{half:?}");
}
