//! The clock that a test sets.

use std::{
    thread,
    time::{Duration, Instant, SystemTime},
};

use sekisho_testkit::{
    clock_shim::ClockShim,
    redis_server::{Program, RedisServer},
};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;

/// How far the server's clock is from ours, in microseconds.
#[expect(clippy::disallowed_methods, reason = "the machine's clock is what is compared with")]
fn ahead(server: &RedisServer) -> i64 {
    let time = server.command(&["TIME"]);
    let its = time.array()[0].integer() * SECOND + time.array()[1].integer();
    let ours = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    its - i64::try_from(ours.as_micros()).unwrap()
}

fn check(server: &RedisServer, offset: i64) {
    // Microseconds between the two readings, or a second on a busy machine.
    let off = ahead(server) - offset;
    assert!((-SECOND / 2..=0).contains(&off), "{off} us off at {offset}");
}

#[expect(clippy::disallowed_methods, reason = "it measures a server that has nothing to do")]
fn follows(program: Program) {
    let clock = ClockShim::new();
    let server = RedisServer::builder().program(program).clock(&clock).start();
    check(&server, 0);
    for offset in [-HOUR * 8, -SECOND, HOUR * 24 * 400, -1_500_001, 999_999, 0, -HOUR * 8] {
        clock.set_offset(offset);
        check(&server, offset);
        assert_eq!(server.info("tcp_port"), server.port().to_string());
        server.command(&["SET", "key", "1", "PX", "60000"]);
        assert!((1..=60_000).contains(&server.command(&["PTTL", "key"]).integer()));
    }
    // A key expires by the clock that is set.
    clock.set_offset(-HOUR * 8 + 61 * SECOND);
    assert_eq!(server.command(&["EXISTS", "key"]).integer(), 0);
    clock.set_offset(-HOUR * 8);
    // No thread of the server waits for a time of day that does not come.
    let (start, before) = (Instant::now(), server.cpu());
    thread::sleep(Duration::from_millis(500));
    let (wall, used) = (start.elapsed(), server.cpu().saturating_sub(before));
    assert!(used < wall / 3, "{used:?} of {wall:?} for nothing");
}

#[test]
fn redis_follows_it() {
    follows(Program::Redis);
}

#[test]
fn valkey_follows_it() {
    follows(Program::Valkey);
}

#[test]
fn a_clock_is_the_servers_that_have_it_only() {
    let (one, other) = (ClockShim::new(), ClockShim::new());
    one.set_offset(-HOUR);
    let mut server = RedisServer::builder().clock(&one).start();
    let second = RedisServer::builder().clock(&other).start();
    let plain = RedisServer::start();
    check(&server, -HOUR);
    check(&second, 0);
    check(&plain, 0);
    server.restart();
    check(&server, -HOUR);
}
