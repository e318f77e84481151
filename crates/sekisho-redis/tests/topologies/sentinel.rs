//! Servers whose master changes: sentinels name it, and a server that has become a replica is left.

use std::time::{Duration, Instant};

use sekisho::{Answer, Charge, Mode, Span, StoreError};
use sekisho_redis::{RedisOptions, RedisStore};
use sekisho_testkit::{
    redis_sentinels::{NAME, RedisSentinels},
    redis_server::{RedisServer, free_port},
    wait,
};
use tokio::{task::spawn_blocking, time::sleep};

use crate::{
    common::{Counted, ask, check, is_allowed, store},
    rights::{PASSWORD, RIGHTS, rules},
};

/// Returns a store that gives each sentinel half a second.
fn hasty(url: &str) -> RedisStore {
    let timeout = Span::from_nanos(500_000_000);
    RedisStore::new(url, RedisOptions { timeout, ..RedisOptions::default() }).unwrap()
}

/// Asks until there is an answer, for as long as a failover may take on a busy machine.
async fn in_the_end(store: &RedisStore, charges: &[Charge<'_>]) -> Answer {
    let began = Instant::now();
    loop {
        match ask(store, charges, Mode::Check).await {
            Ok(answer) => return answer,
            Err(StoreError::Unavailable(_) | StoreError::Timeout(_)) => {
                assert!(began.elapsed() < Duration::from_secs(10), "nobody answers");
            }
            Err(error) => panic!("{error}"),
        }
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_master_is_found_and_followed_without_a_new_store() {
    // Who has the least rights on the servers; the sentinels have no users.
    let mut all = RedisSentinels::start_with(&RedisServer::builder().user(&rules(&RIGHTS)));
    let [ten, log] = ["10/week fixed-window", "10/week sliding-log"]
        .map(|limit| Counted::new(limit, limit, "u"));
    let both = [ten.charge(1), log.charge(1)];
    // The first host is down, and the next does not answer.
    let hosts = all.url().replace("redis-sentinel://", "");
    all.sentinels()[0].pause();
    let down = free_port();
    let url = format!("redis-sentinel://app:{PASSWORD}@127.0.0.1:{down},{hosts}");
    let store = hasty(&url);
    assert!(is_allowed(&ask(&store, &both, Mode::Check).await.unwrap()));
    assert!(is_allowed(&check(&store, &ten, 1).await.unwrap()));
    all.sentinels()[0].resume();
    let first = all.master_port();
    assert_eq!(crate::common::keys(all.server(first)), 2);

    // A change that is planned: the old master goes on as a replica.
    assert_eq!(all.sentinels()[1].command(&["SENTINEL", "FAILOVER", NAME]).error(), None);
    let all = spawn_blocking(move || {
        wait::until("another master is named", || (all.master_port() != first).then_some(()));
        all
    });
    let mut all = all.await.unwrap();
    let answer = in_the_end(&store, &both).await;
    assert_eq!(answer.verdicts[0].remaining, Some(7));
    assert_eq!(answer.verdicts[1].remaining, Some(8));
    let second = all.master_port();
    assert_eq!(all.server(second).command(&["WAIT", "1", "10000"]).integer(), 1);

    // And one that is not.
    let all = spawn_blocking(move || {
        assert_eq!(all.kill_master(), second);
        all.await_new_master();
        all
    });
    let all = all.await.unwrap();
    let began = Instant::now();
    let answer = in_the_end(&store, &both).await;
    println!("followed {:?} after the sentinels agreed", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(3));
    assert!(answer.verdicts[0].remaining >= Some(6), "{answer:?}");
    drop(all);
}

#[tokio::test]
async fn who_does_not_find_a_master_says_whom_it_asked() {
    let sentinel = RedisServer::start();
    let ten = Counted::new("10/week", "ten", "u");
    // No sentinel at all; one that does not know the name, as a server that is none.
    let dead = free_port();
    for (url, wanted) in [
        (
            format!("redis-sentinel://127.0.0.1:{dead}/x"),
            format!("the sentinel at 127.0.0.1:{dead}"),
        ),
        (
            format!("redis-sentinel://127.0.0.1:{}/x", sentinel.port()),
            format!("the sentinel at 127.0.0.1:{}", sentinel.port()),
        ),
    ] {
        let error = check(&store(&url), &ten, 1).await.unwrap_err().to_string();
        assert!(error.contains(&wanted), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_no_sentinel_knows_is_named() {
    let all = RedisSentinels::start();
    let ten = Counted::new("10/week", "ten", "u");
    let error = check(&store(&all.url().replace(NAME, "other")), &ten, 1).await.unwrap_err();
    assert!(error.to_string().contains("it knows no master `other`"), "{error}");
}

/// The clients of a server over TCP, by their numbers.
fn clients(server: &RedisServer) -> Vec<String> {
    let list = server.command(&["CLIENT", "LIST"]).text();
    let over_tcp = list.lines().filter(|line| line.contains(" addr=127.0.0.1:"));
    over_tcp.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

/// Somebody else may have that address by now, so it is dialled anew.
async fn left_when_it_becomes_a_replica(limits: &[&str]) {
    let server = RedisServer::start();
    let store = store(&server.url());
    let counted: Vec<_> = limits.iter().map(|limit| Counted::new(limit, limit, "u")).collect();
    let charges: Vec<_> = counted.iter().map(|one| one.charge(1)).collect();
    assert!(is_allowed(&ask(&store, &charges, Mode::Check).await.unwrap()));
    let before = clients(&server);
    assert_eq!(before.len(), 1);
    server.command(&["REPLICAOF", "127.0.0.1", &free_port().to_string()]);
    let error = ask(&store, &charges, Mode::Check).await.unwrap_err();
    assert!(error.to_string().contains("READONLY"), "{error}");
    server.command(&["REPLICAOF", "NO", "ONE"]);
    let answer = in_the_end(&store, &charges).await;
    assert!(is_allowed(&answer) && answer.verdicts[0].remaining == Some(8), "{answer:?}");
    assert_ne!(clients(&server), before);
}

#[tokio::test]
async fn b48_a_replica_is_left_by_who_asks_under_one_limit() {
    left_when_it_becomes_a_replica(&["10/week"]).await;
}

#[tokio::test]
async fn b48_a_replica_is_left_by_who_asks_under_several_limits() {
    left_when_it_becomes_a_replica(&["10/week", "10/week sliding-log"]).await;
}
