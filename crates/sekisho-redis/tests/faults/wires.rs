//! Wires that fail.

use std::time::Duration;

use sekisho::StoreError;
use sekisho_testkit::{
    faulty_wire::{Fault, FaultyWire},
    redis_server::RedisServer,
};

use crate::{
    scene::{Scene, Seen},
    support::{Counted, TIMEOUT, beside, exact_again, now, pass, passes, store_with, used},
    table::Row,
};

const LIMIT: &str = "the limit";
const WHILE: Duration = Duration::from_secs(1);

/// Requests over a wire that fails in one way for a second.
async fn over(fault: Fault) -> Seen {
    let server = RedisServer::start();
    let wire = FaultyWire::to(server.port());
    let mut scene = Scene::open(&wire.url()).await;
    scene.begins();
    beside(|| wire.set(fault));
    if fault == Fault::Refuse {
        beside(|| wire.cut());
    }
    pass(WHILE).await;
    beside(|| wire.set(Fault::Pass));
    scene.is_whole().await;
    let seen = scene.close(&[&server]).await;
    seen.check_charges();
    seen.check_waits();
    seen
}

/// Returns what is charged for one request that is sent under a fault and told an error.
async fn charged_for_one(fault: impl FnOnce(&FaultyWire)) -> u64 {
    let server = RedisServer::start();
    let wire = FaultyWire::to(server.port());
    let store = store_with(&wire.url(), 4 * TIMEOUT);
    let one = Counted::new("9/week anchored-window", "one", "u");
    exact_again(&store, &one.key, now()).await;
    beside(|| fault(&wire));
    let error = passes(&store, &one).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    beside(|| wire.set(Fault::Pass));
    exact_again(&store, &one.key, now()).await;
    used(&store, &one).await
}

/// Late, but in time: nobody is told an error.
pub(crate) async fn late() -> Row {
    let seen = over(Fault::Delay(Duration::from_millis(10))).await;
    seen.check_no_error();
    seen.row("each direction takes 10 ms longer, for 1 s", 1, LIMIT)
}

/// Later than anybody waits.
pub(crate) async fn too_late() -> Row {
    let seen = over(Fault::Delay(Duration::from_millis(100))).await;
    seen.check_at_once(3 * TIMEOUT);
    let _why = seen.errors();
    seen.row("each direction takes 100 ms longer, for 1 s", 1, LIMIT)
}

pub(crate) async fn stalled() -> Row {
    let seen = over(Fault::Stall).await;
    seen.check_at_once(3 * TIMEOUT);
    let why = seen.errors();
    assert!(why.iter().all(|error| matches!(error, StoreError::Timeout(_))), "{why:?}");
    seen.row("nothing goes through for 1 s, then everything", 1, LIMIT)
}

/// The server does what it is asked, and nobody hears.
pub(crate) async fn half_open() -> Row {
    assert_eq!(charged_for_one(|wire| wire.set(Fault::HalfOpen)).await, 1, "it is not sent again");
    let seen = over(Fault::HalfOpen).await;
    seen.check_at_once(3 * TIMEOUT);
    let _why = seen.errors();
    assert!(seen.untold() > 0, "the server did nothing that was not told");
    seen.row("replies are lost for 1 s", 1, LIMIT)
}

pub(crate) async fn refused() -> Row {
    let seen = over(Fault::Refuse).await;
    seen.check_at_once(2 * TIMEOUT);
    let _why = seen.errors();
    seen.row("the connection is cut, and new ones are refused for 1 s", 1, LIMIT)
}

/// The connection breaks in the middle of a reply, again and again.
pub(crate) async fn cut() -> Row {
    for bytes in [0, 1, 10] {
        assert_eq!(charged_for_one(|wire| wire.cut_after(bytes)).await, 1, "it is not sent again");
    }
    let server = RedisServer::start();
    let wire = FaultyWire::to(server.port());
    let mut scene = Scene::open(&wire.url()).await;
    scene.begins();
    for bytes in 0..20 {
        wire.cut_after(10 * bytes);
        pass(Duration::from_millis(50)).await;
    }
    // The last one may not have been used.
    beside(|| wire.cut());
    scene.is_whole().await;
    let seen = scene.close(&[&server]).await;
    seen.check_charges();
    seen.check_waits();
    let why = seen.errors();
    let broke =
        |error: &StoreError| matches!(error, StoreError::Unavailable(why) if why.contains("broke"));
    assert!(why.iter().all(broke), "{why:?}");
    seen.row("the connection is cut within a reply, 20 times in 1 s", 1, LIMIT)
}
