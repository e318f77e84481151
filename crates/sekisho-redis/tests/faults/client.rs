//! Clients that go away in the middle of a call.

use std::{sync::Arc, thread, time::Duration};

use sekisho_redis::RedisStore;
use sekisho_testkit::{
    faulty_wire::{Fault, FaultyWire},
    generate::Rng,
    redis_server::RedisServer,
};
use tokio::{runtime, task::JoinSet, time::timeout};

use crate::{
    load::sample,
    scene::{Scene, TIGHT},
    support::{Counted, beside, exact_again, now, pass, patient},
    table::Row,
};

const GONE: &str = "the limit";
/// A call takes twice as long, so many are on their way.
const WAY: Duration = Duration::from_millis(5);

/// Calls are dropped before they are answered; some before they are sent, some after.
pub(crate) async fn dropped_calls() -> Row {
    let server = RedisServer::start();
    let wire = FaultyWire::to(server.port());
    wire.set(Fault::Delay(WAY));
    let mut scene = Scene::of(patient(&wire.url()), 100, "u").await;
    scene.begins();
    let mut rng = Rng::new(9);
    let mut calls = JoinSet::new();
    for _ in 0..300 {
        let (store, tight) = (Arc::clone(&scene.store), Arc::clone(&scene.limits[TIGHT]));
        let most = Duration::from_millis(rng.below(25));
        calls.spawn(async move { timeout(most, sample(&store, &tight, TIGHT)).await });
        if rng.chance(1, 4) {
            pass(Duration::from_millis(1)).await;
        }
    }
    let calls = calls.join_all().await;
    let dropped = calls.iter().filter(|call| call.is_err()).count();
    assert!((30..300).contains(&dropped), "{dropped} of 300 were dropped");
    scene.is_whole().await;
    let mut seen = scene.close(&[&server]).await;
    seen.check_charges();
    seen.check_no_error();
    seen.samples.all.extend(calls.into_iter().flatten());
    seen.row(&format!("{dropped} of 300 calls are dropped on their way"), 1, GONE)
}

/// A whole runtime is dropped with its calls; its sockets are closed, as those of a killed process are.
pub(crate) async fn dropped_runtime() -> Row {
    let server = RedisServer::start();
    let wire = FaultyWire::to(server.port());
    wire.set(Fault::Delay(WAY));
    let mut scene = Scene::of(patient(&wire.url()), 100, "u").await;
    let other = patient(&wire.url());
    scene.begins();
    for _ in 0..5 {
        let (other, tight) = (Arc::clone(&other), Arc::clone(&scene.limits[TIGHT]));
        beside(|| thread::spawn(move || die_with_calls(&other, &tight)).join().unwrap());
    }
    // The same store serves another runtime.
    exact_again(&other, &scene.limits[TIGHT].key, now()).await;
    scene.is_whole().await;
    let seen = scene.close(&[&server]).await;
    seen.check_charges();
    seen.check_no_error();
    // Nobody was left to be told.
    let told = seen.samples.admitted(TIGHT);
    let starved = seen.samples.had_a_stop();
    assert!(starved || told < seen.capacity, "{told}: nothing was on its way");
    seen.row("five times a runtime is dropped with 10 calls on their way", 1, GONE)
}

fn die_with_calls(store: &Arc<RedisStore>, counted: &Arc<Counted>) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // Connected, so that what follows is on its way and not waiting for a dial.
        exact_again(store, &counted.key, now()).await;
        for _ in 0..10 {
            let (store, counted) = (Arc::clone(store), Arc::clone(counted));
            drop(tokio::spawn(async move { sample(&store, &counted, TIGHT).await }));
        }
        pass(WAY).await;
    });
}
