//! Sentinels: they name the master, and a new one when it is gone.
#![expect(clippy::disallowed_methods, reason = "it says how long things take")]

use std::time::{Duration, Instant};

use sekisho_testkit::{
    redis_sentinels::RedisSentinels,
    redis_server::{Program, RedisServer, Reply},
    wait,
};

fn check(program: Program) {
    let start = Instant::now();
    let mut all = RedisSentinels::start_with(&RedisServer::builder().program(program));
    println!("sentinels of {program:?} in {:?}", start.elapsed());
    let ports: Vec<String> =
        all.sentinels().iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port())).collect();
    assert_eq!(all.url(), format!("redis-sentinel://{}/mymaster", ports.join(",")));
    let first = all.servers()[0].port();
    assert_eq!(all.master_port(), first);
    let master = all.server(first);
    master.command(&["SET", "key", "1"]);
    assert_eq!(master.command(&["WAIT", "2", "10000"]), Reply::Integer(2));
    let start = Instant::now();
    assert_eq!(all.kill_master(), first);
    let second = all.await_new_master();
    println!("a new master in {:?}", start.elapsed());
    assert_eq!((second != first, all.master_port()), (true, second));
    assert_eq!(all.server(second).command(&["INCR", "key"]), Reply::Integer(2));
    // The old one comes back as a replica.
    let start = Instant::now();
    all.server(first).restart();
    wait::until("it follows", || {
        let link = all.server(first).try_info("master_link_status", Duration::from_secs(1))?;
        (link == "up").then_some(())
    });
    println!("the old one follows after {:?}", start.elapsed());
    assert_eq!(all.server(first).command(&["GET", "key"]).text(), "2");
}

#[test]
fn a_new_master_is_named_when_the_first_is_gone() {
    check(Program::Redis);
}

#[test]
fn valkey_has_sentinels_too() {
    check(Program::Valkey);
}
