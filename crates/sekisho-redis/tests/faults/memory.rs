//! A server whose memory is full.

use std::time::Duration;

use sekisho::{Mode, StoreError};
use sekisho_redis::RedisStore;
use sekisho_testkit::redis_server::RedisServer;

use crate::{
    scene::Scene,
    support::{Counted, ask, beside, insist, pass, passes, patient, tell, used},
    table::Row,
};

/// Full for a while, and keeping all that it has: `maxmemory-policy noeviction`.
pub(crate) async fn full() -> Row {
    let server = RedisServer::builder().config("maxmemory-policy", "noeviction").start();
    // It has no denial of its own to repeat.
    let other = patient(&server.url());
    let two = [Counted::new("9/week", "one", "two"), Counted::new("9/week", "other", "two")];
    let none = Counted::new("1/week anchored-window", "none", "u");
    assert!(insist(|| passes(&other, &two[0])).await);
    let mut scene = Scene::open(&server.url()).await;
    assert_eq!(passes(&scene.store, &none).await, Ok(true));
    scene.begins();
    beside(|| tell(&server, &["CONFIG", "SET", "maxmemory", "1"]));
    all_or_none(&other, &two).await;
    assert_eq!(passes(&other, &none).await, Ok(false), "a denial writes nothing");
    pass(Duration::from_millis(500)).await;
    beside(|| tell(&server, &["CONFIG", "SET", "maxmemory", "0"]));
    scene.is_whole().await;
    for one in &two {
        assert!(insist(|| passes(&other, one)).await);
    }
    let seen = scene.close(&[&server]).await;
    seen.check_charges();
    seen.check_waits();
    seen.check_named("OOM");
    seen.row("`maxmemory` below what is used, `noeviction`, for 0.5 s", 1, "the limit")
}

/// One of two limits has a key already, so charging it might fit.
async fn all_or_none(store: &RedisStore, two: &[Counted; 2]) {
    let charges = two.each_ref().map(|one| one.charge(1));
    let error = ask(store, &charges, Mode::Check).await.unwrap_err();
    assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("OOM")), "{error:?}");
    // A look still works, and sees that nothing was charged.
    assert_eq!((used(store, &two[0]).await, used(store, &two[1]).await), (1, 0));
}
