//! The script by itself, told what no clock would say at the right moment.

use redis::{Value, aio::MultiplexedConnection};
use sekisho_testkit::redis_server::RedisServer;

use crate::support::connect;

const SOURCE: &str = concat!(
    include_str!("../../scripts/prelude.lua"),
    include_str!("../../scripts/windows.lua"),
    include_str!("../../scripts/log.lua"),
    include_str!("../../scripts/levels.lua"),
    include_str!("../../scripts/decide.lua"),
);

/// A call that may bring back to now what lies after it.
async fn call(
    connection: &mut MultiplexedConnection,
    now: u64,
    act: &str,
    words: &str,
) -> Vec<Value> {
    let mut command = redis::cmd("EVAL");
    command.arg(SOURCE).arg(1).arg("key").arg(now).arg(1).arg(1).arg(act).arg("");
    for word in words.split(' ') {
        command.arg(word);
    }
    command.query_async(connection).await.unwrap()
}

async fn state(connection: &mut MultiplexedConnection) -> String {
    redis::cmd("GET").arg("key").query_async(connection).await.unwrap()
}

async fn keep(connection: &mut MultiplexedConnection, state: &str) {
    let _: () = redis::cmd("SET").arg("key").arg(state).query_async(connection).await.unwrap();
}

#[tokio::test]
async fn what_lies_after_now_meets_what_is_there() {
    let server = RedisServer::start();
    let mut connection = connect(&server).await;
    // Entries at 500, 600 and 700 with 2, 3 and 4 units; the clock says 600, or 650.
    let log = "l 0000000000000000 0000000000000500 0000000000000002 0000000000000600 0000000000000005 \
        0000000000000700 0000000000000009";
    let words = "log 1000000 3 9 1 1000000";
    for (now, wanted) in [
        (
            600,
            "l 0000000000000000 0000000000000500 0000000000000002 0000000000000600 0000000000000009",
        ),
        (
            650,
            "l 0000000000000000 0000000000000500 0000000000000002 0000000000000600 0000000000000005 \
             0000000000000650 0000000000000009",
        ),
        (400, "l 0000000000000000 0000000000000400 0000000000000009"),
    ] {
        keep(&mut connection, log).await;
        // It does not fit, and the repair is stored all the same; a look stores nothing.
        for (act, admitted, stored) in [("look", 1, log), ("check", 0, wanted)] {
            let reply = call(&mut connection, now, act, words).await;
            assert_eq!(reply[1], Value::Int(admitted), "{now} {act}");
            assert_eq!(state(&mut connection).await, stored, "{now} {act}");
        }
    }
}

#[tokio::test]
async fn a_state_is_there_as_long_as_it_matters() {
    let server = RedisServer::start();
    let mut connection = connect(&server).await;
    for _ in 0..20 {
        let now: (u64, u64) = redis::cmd("TIME").query_async(&mut connection).await.unwrap();
        let now = now.0 * 1_000_000 + now.1;
        keep(&mut connection, "").await;
        // One unit of a bucket takes 10.0005 s to come back.
        let words = "bucket 10000500 8 1 1 10000500 0 10000500 0 10000500 0";
        let _reply = call(&mut connection, now, "check", words).await;
        let ends: u64 =
            redis::cmd("PEXPIRETIME").arg("key").query_async(&mut connection).await.unwrap();
        assert!(ends * 1_000 >= now + 10_000_500, "{ends} ms, from {now} us");
    }
}

#[tokio::test]
async fn a_window_that_is_not_known_is_asked_for() {
    let server = RedisServer::start();
    let mut connection = connect(&server).await;
    let ask = Value::Int(-2);
    let reply = call(&mut connection, 250, "check", "calendar 100 4 5 1 0 100").await;
    assert_eq!(reply, [Value::Int(250), ask, Value::Int(250)]);
    let exists: u64 = redis::cmd("EXISTS").arg("key").query_async(&mut connection).await.unwrap();
    assert_eq!(exists, 0);
    let words = "calendar 100 6 5 1 0 100 200 300";
    let reply = call(&mut connection, 250, "check", words).await;
    assert_eq!(reply[1], Value::Int(1));
    assert_eq!(state(&mut connection).await, "w 200 1");
}
