//! A cluster: it serves, fails over, and moves slots.
#![expect(clippy::disallowed_methods, reason = "it says how long things take")]

use std::time::Instant;

use sekisho_testkit::{
    redis_cluster::{MASTERS, RedisCluster},
    redis_server::{Program, RedisServer, Reply},
};

fn error(reply: &Reply) -> &str {
    reply.error().unwrap_or_else(|| panic!("no error but {reply:?}"))
}

#[test]
fn it_serves_from_the_start_and_every_replica_follows() {
    let start = Instant::now();
    let cluster = RedisCluster::start();
    println!("a cluster in {:?}", start.elapsed());
    assert_eq!(cluster.nodes().len(), 2 * MASTERS);
    let ports: Vec<String> =
        cluster.nodes().iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
    assert_eq!(cluster.url(), format!("redis-cluster://{}", ports.join(",")));
    for (at, slot) in [(0, 0), (0, 5_460), (1, 5_461), (2, 16_383)] {
        assert_eq!(cluster.master_of(slot), at);
    }
    let slot = cluster.slot_of("key");
    let master = cluster.master_of(slot);
    for (at, node) in cluster.nodes().iter().enumerate() {
        let reply = node.command(&["SET", "key", "1"]);
        if at == master {
            assert_eq!(reply.text(), "OK");
            assert_eq!(node.command(&["WAIT", "1", "10000"]), Reply::Integer(1));
        } else {
            let moved = format!("MOVED {slot} {}", ports[master]);
            assert_eq!(error(&reply), moved);
        }
    }
}

#[test]
fn a_replica_takes_over_from_a_killed_master_which_comes_back_as_its_replica() {
    let mut cluster = RedisCluster::start();
    let slot = cluster.slot_of("key");
    let master = cluster.master_of(slot);
    let node = &cluster.nodes()[master];
    node.command(&["SET", "key", "1"]);
    assert_eq!(node.command(&["WAIT", "1", "10000"]), Reply::Integer(1));
    let start = Instant::now();
    let heir = cluster.fail_over(master);
    println!("failed over in {:?}", start.elapsed());
    assert_eq!((heir, cluster.master_of(slot)), (master + MASTERS, heir));
    assert!(!cluster.nodes()[master].runs());
    assert_eq!(cluster.nodes()[heir].command(&["INCR", "key"]), Reply::Integer(2));
    let start = Instant::now();
    cluster.restart(master);
    println!("a node back in {:?}", start.elapsed());
    assert_eq!(cluster.nodes()[master].info("role"), "slave");
    assert_eq!(cluster.master_of(slot), heir);
}

#[test]
fn a_slot_moves_by_way_of_ask_to_moved() {
    let cluster = RedisCluster::start();
    let slot = cluster.slot_of("{user}");
    let from = cluster.master_of(slot);
    let to = (from + 1) % MASTERS;
    let (source, target) = (&cluster.nodes()[from], &cluster.nodes()[to]);
    source.command(&["SET", "{user}here", "1", "PX", "60000"]);
    let address = format!("{slot} 127.0.0.1:{}", target.port());
    cluster.begin_move(slot, from, to);
    assert_eq!(cluster.master_of(slot), from);
    assert_eq!(source.command(&["GET", "{user}here"]).text(), "1");
    assert_eq!(error(&source.command(&["GET", "{user}new"])), format!("ASK {address}"));
    let both = source.command(&["MGET", "{user}here", "{user}new"]);
    assert!(error(&both).starts_with("TRYAGAIN"), "{both:?}");
    cluster.move_keys(slot, from, to);
    assert_eq!(error(&source.command(&["GET", "{user}here"])), format!("ASK {address}"));
    let there = target.command(&["GET", "{user}here"]);
    assert!(error(&there).starts_with("MOVED"), "{there:?}");
    cluster.finish_move(slot, from, to);
    assert_eq!(error(&source.command(&["GET", "{user}here"])), format!("MOVED {address}"));
    assert_eq!(target.command(&["GET", "{user}here"]).text(), "1");
    assert_eq!(target.keys_without_expiry(""), [""; 0]);
    cluster.move_slot(slot, to, from);
    assert_eq!(source.command(&["GET", "{user}here"]).text(), "1");
}

#[test]
fn valkey_makes_a_cluster_too() {
    let start = Instant::now();
    let cluster = RedisCluster::start_with(&RedisServer::builder().program(Program::Valkey));
    println!("a cluster of Valkeys in {:?}", start.elapsed());
    let slot = cluster.slot_of("key");
    let from = cluster.master_of(slot);
    cluster.move_slot(slot, from, (from + 1) % MASTERS);
}
