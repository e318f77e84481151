//! Callers that come at once share what goes over the wire, and are answered as if each had come alone.

use std::{collections::BTreeSet, sync::Arc};

use sekisho::{Answer, Ask, Charge, Mode, Now, Store};
use sekisho_redis::RedisStore;
use sekisho_testkit::redis_server::RedisServer;
use tokio::task::JoinSet;

use crate::common::{Counted, as_one_after_the_other, check, evalshas, is_allowed, slow, store};

/// Lets each of some people ask at once, all on a connection that is there already.
async fn at_once(
    store: &Arc<RedisStore>,
    people: impl IntoIterator<Item = Arc<Counted>>,
) -> Vec<Answer> {
    let _warm = check(store, &Counted::new("10/week", "warm", "u"), 0).await.unwrap();
    let mut all = JoinSet::new();
    for counted in people {
        let store = Arc::clone(store);
        all.spawn(async move { check(&store, &counted, 1).await.unwrap() });
    }
    all.join_all().await
}

#[tokio::test]
async fn a_hundred_at_once_are_told_what_a_hundred_in_a_row_are() {
    let server = RedisServer::start();
    for limit in slow(60) {
        let store = Arc::new(store(&server.url()));
        let counted = Arc::new(Counted::new(&limit, &limit, "u"));
        let before = evalshas(&server);
        let answers = at_once(&store, (0..100).map(|_| Arc::clone(&counted))).await;
        let calls = evalshas(&server) - before;
        println!("{limit}: {calls} calls");
        // One to try the connection, one to warm it, and few for a hundred.
        assert!(calls <= 6, "{limit}: {calls} calls");
        let passed = answers.iter().filter(|answer| is_allowed(answer));
        let remaining: BTreeSet<_> = passed.clone().map(|of| of.verdicts[0].remaining).collect();
        assert_eq!(passed.count(), 60, "{limit}");
        assert_eq!(remaining, (0..60).map(Some).collect(), "{limit}");
        as_one_after_the_other(&counted, 1, &answers).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_and_two_threads_change_nothing() {
    let server = RedisServer::start();
    let stores = [store(&server.url()), store(&server.url())].map(Arc::new);
    for limit in slow(60) {
        let counted = Arc::new(Counted::new(&limit, &limit, "u"));
        let half = || (0..50).map(|_| Arc::clone(&counted));
        let (first, second) =
            tokio::join!(at_once(&stores[0], half()), at_once(&stores[1], half()));
        let answers = [first, second].concat();
        assert_eq!(answers.iter().filter(|answer| is_allowed(answer)).count(), 60, "{limit}");
        as_one_after_the_other(&counted, 1, &answers).await;
    }
}

#[tokio::test]
async fn a_thousand_people_share_a_few_round_trips() {
    let server = RedisServer::start();
    let store = Arc::new(store(&server.url()));
    let limits = slow(60);
    let people = (0..1_000).map(|who: usize| {
        let limit = &limits[who % limits.len()];
        Arc::new(Counted::new(limit, limit, &format!("u{who}")))
    });
    let before = evalshas(&server);
    let answers = at_once(&store, people).await;
    let calls = evalshas(&server) - before;
    println!("{calls} calls");
    assert!(answers.iter().all(|answer| answer.verdicts[0].remaining == Some(59)));
    // 128 keys go into one.
    assert!(calls <= 16, "{calls} calls");
    let stats = &store.stats().servers[0];
    assert_eq!(
        (stats.decisions, stats.errors.iter().map(|(_, count)| count).sum::<u64>()),
        (1_001, 0)
    );
}

#[tokio::test]
async fn asks_of_one_call_are_decided_in_their_order() {
    let server = RedisServer::start();
    let store = store(&server.url());
    for limit in slow(60) {
        let counted = Counted::new(&limit, &limit, "u");
        let other = Counted::new(&limit, &limit, "v");
        // What costs the same could be decided together, but for what comes in between.
        let cost = |ask| if ask % 2 == 0 { 2 } else { 3 };
        let charges: Vec<Charge<'_>> = (0..60)
            .map(|ask| if ask % 3 == 2 { other.charge(1) } else { counted.charge(cost(ask)) })
            .collect();
        let asks: Vec<_> = charges.chunks(1).map(|charge| Ask::new(charge, Mode::Check)).collect();
        let answers = store.decide(&asks, Now::StoreClock).await;
        let (mut left, mut others) = (60, 60);
        for (ask, answer) in answers.iter().enumerate() {
            let (left, cost) = if ask % 3 == 2 { (&mut others, 1) } else { (&mut left, cost(ask)) };
            *left -= if *left >= cost { cost } else { 0 };
            let remaining = answer.as_ref().unwrap().verdicts[0].remaining;
            assert_eq!(remaining, Some(*left), "{limit} {ask}");
        }
    }
}
