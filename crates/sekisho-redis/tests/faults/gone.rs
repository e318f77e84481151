//! Servers that are gone, slow, or come back with nothing.

use std::{sync::Arc, time::Duration};

use sekisho::StoreError;
use sekisho_testkit::redis_server::RedisServer;

use crate::{
    load::Crowd,
    scene::Scene,
    support::{Counted, TIMEOUT, beside, exact_again, is_long, now, pass, store, used},
    table::Row,
};

const FORGOT: &str = "the limit, and once more, as all was forgotten once";
const LIMIT: &str = "the limit";

/// Killed, away for a while, and back.
pub(crate) async fn killed() -> Row {
    let mut server = RedisServer::start();
    let mut scene = Scene::used_up(&server.url()).await;
    scene.begins();
    beside(|| server.stop());
    pass(Duration::from_millis(700)).await;
    beside(|| server.restart());
    scene.is_whole().await;
    let seen = scene.close(&[&server]).await;
    seen.check_waits();
    seen.check_at_once(2 * TIMEOUT);
    let _why = seen.errors();
    seen.row("`kill -9`; started again after 0.7 s, empty", 2, FORGOT)
}

/// Killed and back at once, while a hundred callers wait for it.
pub(crate) async fn restarted() -> Row {
    let mut server = RedisServer::start();
    let store = store(&server.url());
    let counted = Arc::new(Counted::new("2000/week anchored-window", "crowded", "u"));
    exact_again(&store, &counted.key, now()).await;
    let crowd = Crowd::start(&store, &counted, 100);
    // A denial would be repeated without the server.
    while used(&store, &counted).await < counted.capacity() / 2 {
        pass(Duration::from_millis(1)).await;
    }
    let began = now();
    beside(|| server.restart());
    let whole = now();
    let back = exact_again(&store, &counted.key, whole).await;
    assert!(back < Duration::from_secs(2), "exact again after {back:?}");
    while used(&store, &counted).await < counted.capacity() {
        pass(Duration::from_millis(1)).await;
    }
    let samples = crowd.stop().await;
    assert!(!samples.errors().is_empty(), "nobody noticed");
    let [_, p99] = samples.latencies(began, whole + back);
    let capacity = counted.capacity();
    let admitted = samples.admitted(0);
    assert!(admitted > capacity, "it was used up once more, or nearly: {admitted}");
    Row {
        how: "`kill -9` and started again at once, empty, under 100 callers".to_owned(),
        requests: samples.all.len() as u64,
        errors: samples.errors().len() as u64,
        admitted,
        most: 2 * capacity,
        because: FORGOT.to_owned(),
        back,
        p99,
        bare: beside(|| server.keys_without_expiry("sk1:").len() as u64),
    }
}

/// Stopped, with every connection open: a slow server is worse than a dead one.
pub(crate) async fn frozen() -> Row {
    let seconds = if is_long() { 10 } else { 2 };
    let server = RedisServer::start();
    let mut scene = Scene::open(&server.url()).await;
    let store = Arc::clone(&scene.store);
    scene.begins();
    beside(|| server.pause());
    pass(Duration::from_secs(seconds)).await;
    assert!(!store.stats().servers[0].up);
    server.resume();
    scene.is_whole().await;
    let seen = scene.close(&[&server]).await;
    seen.check_charges();
    seen.check_waits();
    // One timeout for those who came first, one for a dial that is made at once, and a little.
    seen.check_at_once(3 * TIMEOUT);
    let why = seen.errors();
    assert!(why.iter().all(|error| matches!(error, StoreError::Timeout(_))), "{why:?}");
    let errors = store.stats().servers[0].errors.clone();
    assert!(errors.iter().any(|(kind, count)| *kind == "timeout" && *count > 0), "{errors:?}");
    seen.row(&format!("`SIGSTOP`, {seconds} s later `SIGCONT`"), 1, LIMIT)
}
