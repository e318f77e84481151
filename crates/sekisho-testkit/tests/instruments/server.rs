//! One server: how it is started, what it is asked, and what is done to it.

use std::{
    io,
    time::{Duration, Instant},
};

use sekisho_testkit::redis_server::{Program, RedisServer, Reply};

const SHORT: Duration = Duration::from_millis(200);

#[test]
fn a_server_answers_starts_again_and_goes_with_its_test() {
    let mut one = RedisServer::start();
    let other = RedisServer::start();
    assert_ne!(one.port(), other.port());
    one.command(&["SET", "key", "1"]);
    one.stop();
    assert!(!one.runs());
    one.try_command(&["PING"], SHORT).unwrap_err();
    assert_eq!(other.command(&["PING"]), Reply::Status("PONG".into()));
    let port = one.port();
    one.restart();
    assert_eq!((one.port(), one.command(&["GET", "key"])), (port, Reply::Nil));
    let folder = one.socket().parent().unwrap().to_owned();
    assert!(folder.exists());
    drop(one);
    assert!(!folder.exists());
}

#[test]
fn a_paused_server_holds_what_it_is_sent_until_it_goes_on() {
    let server = RedisServer::start();
    server.pause();
    assert!(server.runs());
    let error = server.try_command(&["INCR", "key"], SHORT).unwrap_err();
    let kinds = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
    assert!(kinds.contains(&error.kind()), "{error}");
    server.resume();
    assert_eq!(server.command(&["PING"]).text(), "PONG");
    // And one that is paused goes with its test too.
    server.pause();
}

#[test]
fn settings_arguments_and_users_are_the_servers() {
    let mut server = RedisServer::builder()
        .config("maxmemory", "20mb")
        .config("client-output-buffer-limit", "normal 1mb 1mb 5")
        .arg("--maxmemory-policy")
        .arg("volatile-lru")
        .user("reader on >secret ~a* -@all +get")
        .password("a \"quoted\" word")
        .env("SOME_VARIABLE", "1")
        .start();
    for _ in 0..2 {
        assert_eq!(server.command(&["CONFIG", "GET", "maxmemory"]).array()[1].text(), "20971520");
        let policy = server.command(&["CONFIG", "GET", "maxmemory-policy"]);
        assert_eq!(policy.array()[1].text(), "volatile-lru");
        let users = server.command(&["ACL", "USERS"]);
        let users: Vec<String> = users.array().iter().map(Reply::text).collect();
        assert_eq!(users, ["default", "reader", "testkit"]);
        let denied = server.command(&["ACL", "DRYRUN", "reader", "SET", "a", "1"]).text();
        assert!(denied.contains("no permissions"), "{denied}");
        assert_eq!(server.command(&["AUTH", "a \"quoted\" word"]).text(), "OK");
        assert!(server.command(&["AUTH", "wrong"]).error().unwrap().starts_with("WRONGPASS"));
        // As it was started, so it starts again.
        server.restart();
    }
    assert!(server.url().starts_with("redis://:a \"quoted\" word@127.0.0.1:"));
}

#[test]
fn a_setting_that_is_wrong_fails_with_what_the_server_said() {
    let started = std::panic::catch_unwind(|| RedisServer::builder().config("wat", "1").start());
    let said = *started.unwrap_err().downcast::<String>().unwrap();
    assert!(said.contains("does not start") && said.contains("'wat 1'"), "{said}");
}

#[test]
fn keys_that_stay_for_ever_are_found() {
    let server = RedisServer::start();
    for number in 0..2_500 {
        let key = format!("kept:{number}");
        server.command(&["SET", &key, "1", "PX", "60000"]);
    }
    server.command(&["SET", "other", "1"]);
    assert_eq!(server.keys_without_expiry("kept:"), [""; 0]);
    server.command(&["PERSIST", "kept:77"]);
    server.command(&["HSET", "kept:hash", "field", "1"]);
    assert_eq!(server.keys_without_expiry("kept:"), ["kept:77", "kept:hash"]);
    assert_eq!(server.keys_without_expiry(""), ["kept:77", "kept:hash", "other"]);
}

#[test]
fn work_costs_time_on_a_processor() {
    let server = RedisServer::start();
    let before = server.cpu();
    let loop_of = "local x = 0 for i = 1, 3e7 do x = x + i end return x";
    server.command(&["EVAL", loop_of, "0"]);
    let used = server.cpu().saturating_sub(before);
    assert!(used >= Duration::from_millis(30), "{used:?}");
    assert!(used < Duration::from_secs(20), "{used:?}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it says how long a start takes")]
fn valkey_is_started_as_well() {
    let start = Instant::now();
    let mut server = RedisServer::builder().program(Program::Valkey).config("hz", "50").start();
    println!("valkey {} in {:?}", server.info("valkey_version"), start.elapsed());
    assert_eq!(server.info("server_name"), "valkey");
    assert_eq!(server.command(&["EVAL", "return 7", "0"]), Reply::Integer(7));
    server.restart();
    assert_eq!(server.info("server_name"), "valkey");
}
