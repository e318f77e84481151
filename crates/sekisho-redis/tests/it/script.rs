//! The script by itself, told what no clock would say at the right moment.

use redis::{Value, aio::MultiplexedConnection};
use sekisho_testkit::redis_server::RedisServer;

use crate::support::connect;

const SOURCE: &str = concat!(
    include_str!("../../scripts/entry.lua"),
    include_str!("../../scripts/prelude.lua"),
    include_str!("../../scripts/windows.lua"),
    include_str!("../../scripts/log.lua"),
    include_str!("../../scripts/levels.lua"),
    include_str!("../../scripts/decide.lua"),
);

/// A call on the server's own clock, which the test sets: it may bring back to now what lies after it.
async fn call(
    connection: &mut MultiplexedConnection,
    now: u64,
    act: char,
    words: &str,
) -> Vec<Value> {
    // The clock is a local of the script's first lines.
    let set = format!("now, is_live, shortest = {now}, true, 1\nlocal plan");
    let source = SOURCE.replacen("local plan", &set, 1);
    let (letter, numbers) = words.split_once(' ').unwrap();
    let mut packed = letter.as_bytes().to_vec();
    for number in numbers.split(' ') {
        packed.extend(number.parse::<f64>().unwrap().to_le_bytes());
    }
    let mut plan = vec![u8::try_from(act).unwrap()];
    // One such request, of one key, with the first words.
    plan.extend([0, 1, 1, 0, 0]);
    let mut command = redis::cmd("EVAL");
    command.arg(source).arg(1).arg("key").arg("").arg(plan).arg(packed);
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
    for (now, resolution, wanted) in [
        (
            600,
            0,
            "l 0000000000000000 0000000000000500 0000000000000002 0000000000000600 0000000000000009",
        ),
        (
            650,
            0,
            "l 0000000000000000 0000000000000500 0000000000000002 0000000000000600 0000000000000005 \
             0000000000000650 0000000000000009",
        ),
        (400, 0, "l 0000000000000000 0000000000000400 0000000000000009"),
        // What is less than a resolution ahead is where a request of now is entered, and stays; so does the last of all.
        (
            550,
            100,
            "l 0000000000000000 0000000000000500 0000000000000002 0000000000000600 0000000000000009",
        ),
        (650, 100, log),
        (301, 100, "l 0000000000000000 0000000000000400 0000000000000009"),
    ] {
        let words = format!("l 1000000 9 1 1000000 {resolution}");
        keep(&mut connection, log).await;
        // It does not fit, and the repair is stored all the same; a look stores nothing.
        for (act, admitted, stored) in [('l', 1, log), ('c', 0, wanted)] {
            let reply = call(&mut connection, now, act, &words).await;
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
        let words = "b 10000500 1 1 10000500 0 10000500 0 10000500 0 1 10000500";
        let _reply = call(&mut connection, now, 'c', words).await;
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
    let reply = call(&mut connection, 250, 'c', "k 100 5 1 0 100").await;
    assert_eq!(reply, [Value::Int(250), ask, Value::Int(250)]);
    let exists: u64 = redis::cmd("EXISTS").arg("key").query_async(&mut connection).await.unwrap();
    assert_eq!(exists, 0);
    let words = "k 100 5 1 0 100 200 300";
    let reply = call(&mut connection, 250, 'c', words).await;
    assert_eq!(reply[1], Value::Int(1));
    assert_eq!(state(&mut connection).await, "w 200 1");
}
