//! Several servers that know nothing of each other: who is counted where, and what the end of one costs.

use std::time::{Duration, Instant};

use sekisho::{Mode, Span, StoreError};
use sekisho_redis::{RedisOptions, RedisStore};
use sekisho_testkit::redis_server::RedisServer;

use crate::common::{Counted, ask, check, is_allowed, keys, left, patient, shards};

const PEOPLE: usize = 60;

fn servers<const N: usize>() -> [RedisServer; N] {
    std::array::from_fn(|_| RedisServer::start())
}

fn people() -> Vec<Counted> {
    (0..PEOPLE).map(|who| Counted::new("10/week fixed-window", "ten", &format!("u{who}"))).collect()
}

/// Returns on which server somebody is counted.
fn home(servers: &[RedisServer], who: &Counted) -> usize {
    let has = |server: &RedisServer| server.command(&["EXISTS", &who.stored()]).integer() == 1;
    servers.iter().position(has).unwrap()
}

#[tokio::test]
async fn everybody_is_on_one_server_and_only_who_lived_there_moves() {
    let servers = servers::<3>();
    let (all, people) = (shards(&servers), people());
    for who in &people {
        assert!(is_allowed(&check(&all, who, 3).await.unwrap()));
    }
    let counts = servers.each_ref().map(keys);
    assert_eq!(counts.iter().sum::<i64>(), 60);
    assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
    // The order of the list says nothing.
    let turned = shards(servers.iter().rev());
    let fewer = shards(&servers[..2]);
    for who in &people {
        assert_eq!(left(&turned, who).await, 7);
        let moves = home(&servers, who) == 2;
        assert_eq!(left(&fewer, who).await, if moves { 10 } else { 7 });
    }
}

/// Asks for everybody nine times, after something has befallen the second of three servers.
async fn only_its_own_people_lose(befalls: impl Fn(&mut RedisServer)) {
    let mut servers = servers::<3>();
    let timeout = Span::from_nanos(400_000_000);
    let addresses: Vec<_> = servers.iter().map(|server| server.url().parse().unwrap()).collect();
    let all = RedisStore::at(&addresses, RedisOptions { timeout, ..patient() }).unwrap();
    let people = people();
    for who in &people {
        assert!(is_allowed(&check(&all, who, 1).await.unwrap()));
    }
    let homes: Vec<usize> = people.iter().map(|who| home(&servers, who)).collect();
    befalls(&mut servers[1]);
    let (mut failed, began) = (0, Instant::now());
    for remaining in (0..9).rev() {
        for (who, home) in people.iter().zip(&homes) {
            match check(&all, who, 1).await {
                Ok(answer) => {
                    assert_eq!((answer.verdicts[0].remaining, *home != 1), (Some(remaining), true));
                }
                Err(error) => {
                    assert!(error.is_transient() && *home == 1, "{error}");
                    failed += 1;
                }
            }
        }
    }
    let wanted = 9 * homes.iter().filter(|home| **home == 1).count();
    println!("{failed} failed, in {:?} with all others", began.elapsed());
    assert_eq!(failed, wanted);
    // Nobody waits for what is known to be down: else each of them would.
    assert!(began.elapsed() < Duration::from_millis(50) * u32::try_from(wanted).unwrap());
}

#[tokio::test]
async fn a_dead_server_costs_only_its_own_people_anything() {
    only_its_own_people_lose(RedisServer::stop).await;
}

#[tokio::test]
async fn a_silent_server_costs_only_its_own_people_anything() {
    only_its_own_people_lose(|server| server.pause()).await;
}

#[tokio::test]
async fn what_is_charged_beside_a_dead_server_is_given_back() {
    let mut servers = servers::<2>();
    let (all, people) = (shards(&servers), people());
    for who in &people {
        assert!(is_allowed(&check(&all, who, 1).await.unwrap()));
    }
    let on = |wanted| people.iter().find(|who| home(&servers, who) == wanted).unwrap();
    let (alive, dead) = (on(0), on(1));
    servers[1].stop();
    for _ in 0..3 {
        let charges = [alive.charge(1), dead.charge(1)];
        let error = ask(&all, &charges, Mode::Check).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    }
    assert_eq!(left(&all, alive).await, 9);
}

#[test]
fn what_is_no_list_of_servers_is_refused() {
    let at = |list: &[&str]| {
        let list: Vec<_> = list.iter().map(|address| address.parse().unwrap()).collect();
        RedisStore::at(&list, patient()).map(drop).map_err(|error| error.to_string())
    };
    assert!(at(&[]).unwrap_err().contains("at least one address"));
    let mixed = ["redis://a", "redis-cluster://b,c"];
    assert!(at(&mixed).unwrap_err().contains("redis-cluster://b:6379,c:6379 is none"));
    let sentinels = ["redis://a", "redis-sentinel://:secret@b/x"];
    assert!(at(&sentinels).unwrap_err().contains("redis-sentinel://:***@b:26379/x is none"));
    assert!(at(&["redis://a", "redis://b", "redis://a"]).unwrap_err().contains("twice"));
    assert_eq!(at(&["redis://a", "redis://a/1"]), Ok(()));
}
