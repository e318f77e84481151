//! Requests of several identities that are counted apart: all or none in the end, and never above a limit on the way.

use std::sync::Arc;

use sekisho::{Answer, Ask, Charge, Mode, Now, Outcome, Store};
use sekisho_redis::RedisStore;
use sekisho_testkit::{
    clock_shim::ClockShim, generate::Rng, redis_cluster::RedisCluster, redis_server::RedisServer,
};
use tokio::task::JoinSet;

use crate::common::{Counted, ask, check, is_allowed, left, shards, slow, store};

const UNITS: u64 = 20;
const PEOPLE: usize = 6;

/// Asks for a pair of people, over and over; returns how often each passed.
async fn pairs(store: Arc<RedisStore>, people: Arc<[Counted]>, seed: u64) -> Vec<u64> {
    let (mut rng, mut passed) = (Rng::new(seed), vec![0; PEOPLE]);
    for _ in 0..40 {
        let first = usize::try_from(rng.below(PEOPLE as u64)).unwrap();
        let other = (first + 1 + usize::try_from(rng.below(PEOPLE as u64 - 1)).unwrap()) % PEOPLE;
        let charges = [people[first].charge(1), people[other].charge(1)];
        let answer = ask(&store, &charges, Mode::Check).await.unwrap();
        if is_allowed(&answer) {
            passed[first] += 1;
            passed[other] += 1;
        }
    }
    passed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pairs_that_meet_never_exceed_a_limit_and_leave_nothing_behind() {
    let cluster = RedisCluster::start();
    let stores = [store(&cluster.url()), store(&cluster.url())].map(Arc::new);
    for limit in slow(UNITS) {
        let one = |who| Counted::new(&limit, &limit, &format!("u{who}"));
        let people: Arc<[_]> = (0..PEOPLE).map(one).collect();
        let mut all = JoinSet::new();
        for (caller, seed) in (0..8).zip(1..) {
            all.spawn(pairs(Arc::clone(&stores[caller % 2]), Arc::clone(&people), seed));
        }
        let mut passed = vec![0; PEOPLE];
        for theirs in all.join_all().await {
            passed.iter_mut().zip(theirs).for_each(|(sum, more)| *sum += more);
        }
        // Who was denied for units that came back may repeat that for a second.
        let fresh = store(&cluster.url());
        for (who, passed) in people.iter().zip(passed) {
            let left = left(&fresh, who).await;
            // Of a queue only the last slots can be given back, so some may be lost until they are over.
            let lost = UNITS - passed - left;
            assert!(lost == 0 || limit.contains("queue"), "{who:?}: {passed} passed, {left} left");
            for more in (0..=left).rev() {
                let answer = check(&fresh, who, 1).await.unwrap();
                assert_eq!(is_allowed(&answer), more > 0, "{who:?}");
            }
        }
    }
}

/// Asks for one unit of each of some limits.
async fn each(store: &RedisStore, limits: &[&Counted]) -> Answer {
    let charges: Vec<Charge<'_>> = limits.iter().map(|one| one.charge(1)).collect();
    ask(store, &charges, Mode::Check).await.unwrap()
}

#[tokio::test]
async fn a_denied_request_says_of_each_limit_what_it_would_have_said_alone() {
    let cluster = RedisCluster::start();
    let store = store(&cluster.url());
    for limit in slow(3) {
        let [full, free, other] =
            ["full", "free", "other"].map(|who| Counted::new(&limit, &limit, who));
        for _ in 0..3 {
            assert!(is_allowed(&check(&store, &full, 1).await.unwrap()));
        }
        for _ in 0..4 {
            let answer = each(&store, &[&free, &full, &other]).await;
            assert_eq!((answer.joint().outcome, answer.joint().binding), (Outcome::Deny, 1));
            assert_eq!(answer.verdicts.len(), 3);
            let remaining: Vec<_> = answer.verdicts.iter().map(|of| of.remaining).collect();
            assert_eq!(remaining, [Some(3), Some(0), Some(3)], "{limit}");
            assert!(answer.verdicts.iter().all(|verdict| verdict.delay.is_zero()));
        }
        // What never passes charges nobody, and gives nothing back that was not charged.
        assert!(is_allowed(&check(&store, &free, 2).await.unwrap()));
        for _ in 0..3 {
            let charges = [free.charge(1), other.charge(4)];
            let answer = ask(&store, &charges, Mode::Check).await.unwrap();
            assert_eq!(answer.joint().outcome, Outcome::Never);
        }
        let all =
            (left(&store, &free).await, left(&store, &full).await, left(&store, &other).await);
        assert_eq!(all, (1, 0, 3), "{limit}");
    }
}

#[tokio::test]
async fn block_and_unlimited_go_with_any_part() {
    let cluster = RedisCluster::start();
    let store = store(&cluster.url());
    let [first, other] = ["u", "v"].map(|who| Counted::new("10/week", "ten", who));
    let [block, unlimited] = ["block", "unlimited"].map(|limit| Counted::new(limit, limit, "w"));
    let answer = each(&store, &[&unlimited, &first, &other]).await;
    assert_eq!((answer.joint().outcome, answer.joint().binding), (Outcome::Allow, 1));
    let answer = each(&store, &[&first, &other, &block]).await;
    assert_eq!((answer.joint().outcome, answer.joint().binding), (Outcome::Never, 2));
    assert_eq!((left(&store, &first).await, left(&store, &other).await), (9, 9));
}

#[tokio::test]
async fn each_charge_has_the_time_of_its_server_and_is_given_back_by_it() {
    let clock = ClockShim::new();
    let ahead = RedisServer::builder().clock(&clock).start();
    let servers = [RedisServer::start(), ahead];
    clock.set_offset(7_200_000_000);
    let store = shards(&servers);
    // Two who are counted on each.
    let mut names: [Vec<String>; 2] = Default::default();
    for name in (0..).map(|who| format!("u{who}")) {
        let probe = Counted::new("9/week", "probe", &name);
        assert!(is_allowed(&check(&store, &probe, 1).await.unwrap()));
        let there = servers[1].command(&["EXISTS", &probe.stored()]).integer() == 1;
        names[usize::from(there)].push(name);
        if names.iter().all(|some| some.len() >= 2) {
            break;
        }
    }
    let names = names.iter().flat_map(|some| &some[..2]);
    for limit in slow(9) {
        let people: Vec<_> = names.clone().map(|name| Counted::new(&limit, &limit, name)).collect();
        let charges: Vec<_> = people.iter().map(|who| who.charge(2)).collect();
        let answer = ask(&store, &charges, Mode::Check).await.unwrap();
        let (first, last) =
            (answer.apart.iter().min().unwrap(), answer.apart.iter().max().unwrap());
        assert_eq!((answer.apart.len(), answer.at), (4, *last));
        let apart = (last.as_nanos() - first.as_nanos()) / 1_000_000_000;
        assert!((7_190..7_210).contains(&apart), "{apart} s");
        for (at, charge) in charges.iter().enumerate() {
            let asks = [Ask::new(&charges[at..=at], Mode::Refund { at: answer.time_of(at) })];
            let back = store.decide(&asks, Now::StoreClock).await.pop().unwrap().unwrap();
            assert_eq!(back.verdicts[0].remaining, Some(9), "{limit} {charge:?}");
        }
    }
}
