//! A cluster that changes under way: slots on their way to another server, slots that nobody serves, servers that die.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use sekisho::{Mode, Span, Store, StoreError};
use sekisho_redis::{RedisOptions, RedisStore};
use sekisho_testkit::{
    redis_cluster::{MASTERS, RedisCluster},
    redis_server::{RedisServer, free_port},
    wait,
};
use tokio::{
    task::{JoinSet, spawn_blocking},
    time::sleep,
};

use crate::common::{Counted, ask, check, is_allowed, left, patient, store};

const MANY: u64 = 100_000;

/// A cluster, somebody who is counted there, and between which servers their slot moves.
struct Home {
    cluster: RedisCluster,
    slot: u16,
    from: usize,
    to: usize,
}

impl Home {
    fn of(who: &Counted) -> Arc<Self> {
        let cluster = RedisCluster::start();
        let slot = cluster.slot_of(&who.stored());
        let from = cluster.master_of(slot);
        Arc::new(Self { cluster, slot, from, to: (from + 1) % MASTERS })
    }

    fn source(&self) -> &RedisServer {
        &self.cluster.nodes()[self.from]
    }

    fn target(&self) -> &RedisServer {
        &self.cluster.nodes()[self.to]
    }

    /// Does something to the cluster after a while, which a test spends asking.
    fn soon(
        self: &Arc<Self>,
        what: impl FnOnce(&Self) + Send + 'static,
    ) -> tokio::task::JoinHandle<()> {
        let home = Arc::clone(self);
        tokio::spawn(async move {
            sleep(Duration::from_millis(300)).await;
            spawn_blocking(move || what(&home)).await.unwrap();
        })
    }
}

/// Asks for all of some limits at once, until it is told to stop; returns how often they passed, and what went wrong.
async fn busy(
    store: Arc<RedisStore>,
    limits: Arc<[Counted]>,
    stop: Arc<AtomicBool>,
) -> (u64, Vec<StoreError>) {
    let (mut passed, mut errors) = (0, Vec::new());
    while !stop.load(SeqCst) {
        let charges: Vec<_> = limits.iter().map(|one| one.charge(1)).collect();
        match ask(&store, &charges, Mode::Check).await {
            Ok(answer) => passed += u64::from(is_allowed(&answer)),
            Err(error) => errors.push(error),
        }
        sleep(Duration::from_millis(1)).await;
    }
    (passed, errors)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves_under_load_fails_nobody_and_counts_everybody_once() {
    let limits = ["fixed-window", "sliding-log"]
        .map(|algorithm| Counted::new(&format!("{MANY}/week {algorithm}"), algorithm, "u"));
    let home = Home::of(&limits[0]);
    let (one, both) = (Arc::from([limits[0].clone()]), Arc::from(limits.clone()));
    let stop = Arc::new(AtomicBool::new(false));
    let mut all = JoinSet::new();
    for caller in 0..4 {
        let limits = Arc::clone(if caller % 2 == 0 { &one } else { &both });
        let (store, stop) = (Arc::new(store(&home.cluster.url())), Arc::clone(&stop));
        all.spawn(async move { (caller % 2, busy(store, limits, stop).await) });
    }
    let moving = home.soon(|home| {
        for (from, to) in [(home.from, home.to), (home.to, home.from), (home.from, home.to)] {
            home.cluster.move_slot(home.slot, from, to);
        }
    });
    moving.await.unwrap();
    stop.store(true, SeqCst);
    let (mut passed, mut of_both) = (0, 0);
    for (asks_both, (count, errors)) in all.join_all().await {
        assert_eq!(errors, []);
        passed += count;
        of_both += count * asks_both;
    }
    println!("{passed} passed, {of_both} of them under two limits");
    assert!(of_both > 50 && passed > 2 * of_both / 3);
    // A store that has only just come finds what all of them have left.
    let other = store(&home.cluster.url());
    assert_eq!(left(&other, &limits[0]).await, MANY - passed);
    assert_eq!(left(&other, &limits[1]).await, MANY - of_both);
}

#[tokio::test]
async fn halfway_what_has_moved_is_asked_there_and_what_has_not_here() {
    let [old, new] = ["old", "new"].map(|id| Counted::new("10/week fixed-window", id, "u"));
    let home = Home::of(&old);
    let store = store(&home.cluster.url());
    assert!(is_allowed(&check(&store, &old, 1).await.unwrap()));
    home.cluster.begin_move(home.slot, home.from, home.to);
    for remaining in [8, 7] {
        let answer = check(&store, &old, 1).await.unwrap();
        assert_eq!(answer.verdicts[0].remaining, Some(remaining));
    }
    for remaining in [9, 8] {
        let answer = check(&store, &new, 1).await.unwrap();
        assert_eq!(answer.verdicts[0].remaining, Some(remaining));
    }
    assert_eq!(
        home.target().command(&["CLUSTER", "COUNTKEYSINSLOT", &home.slot.to_string()]).integer(),
        1
    );
    home.cluster.move_keys(home.slot, home.from, home.to);
    for counted in [&old, &new] {
        let before = left(&store, counted).await;
        assert!(is_allowed(&check(&store, counted, 1).await.unwrap()));
        assert_eq!(left(&store, counted).await, before - 1);
    }
    // Forgetting goes the same way.
    assert_eq!(store.forget(&old.scope, &old.key).await, Ok(true));
    assert_eq!(left(&store, &old).await, 10);
    home.cluster.finish_move(home.slot, home.from, home.to);
    assert_eq!((left(&store, &old).await, left(&store, &new).await), (10, 7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_keys_are_torn_apart_waits_as_long_as_its_caller_does() {
    let [old, new] = ["old", "new"].map(|id| Counted::new("10/week fixed-window", id, "u"));
    let both = [old.charge(1), new.charge(1)];
    let home = Home::of(&old);
    let patient = store(&home.cluster.url());
    let hasty = RedisOptions { timeout: Span::from_nanos(100_000_000), ..RedisOptions::default() };
    let hasty = RedisStore::new(&home.cluster.url(), hasty).unwrap();
    for store in [&patient, &hasty] {
        assert!(is_allowed(&check(store, &old, 1).await.unwrap()));
    }
    home.cluster.begin_move(home.slot, home.from, home.to);
    let error = ask(&hasty, &both, Mode::Check).await.unwrap_err();
    assert!(error.to_string().contains("TRYAGAIN"), "{error}");
    let moved = home.soon(|home| {
        home.cluster.move_keys(home.slot, home.from, home.to);
        home.cluster.finish_move(home.slot, home.from, home.to);
    });
    assert!(is_allowed(&ask(&patient, &both, Mode::Check).await.unwrap()));
    moved.await.unwrap();
    assert_eq!((left(&patient, &old).await, left(&patient, &new).await), (7, 9));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_nobody_serves_is_waited_for() {
    let ten = Counted::new("10/week fixed-window", "ten", "u");
    let home = Home::of(&ten);
    let (patient, slot) = (store(&home.cluster.url()), home.slot.to_string());
    assert!(is_allowed(&check(&patient, &ten, 1).await.unwrap()));
    home.source().command(&["CLUSTER", "DELSLOTS", &slot]);
    let hasty = RedisStore::new(&home.cluster.url(), RedisOptions::default()).unwrap();
    let error = check(&hasty, &ten, 1).await.unwrap_err();
    assert!(error.to_string().contains("CLUSTERDOWN"), "{error}");
    let served = home.soon(move |home| {
        home.source().command(&["CLUSTER", "ADDSLOTS", &slot]);
    });
    assert!(is_allowed(&check(&patient, &ten, 1).await.unwrap()));
    served.await.unwrap();
    assert_eq!(left(&patient, &ten).await, 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_costs_those_of_one_server_a_while_and_the_others_nothing() {
    let mut cluster = RedisCluster::start();
    let of = |master: usize| {
        let who = (0..).map(|who| {
            Counted::new(&format!("{MANY}/week fixed-window"), "many", &format!("u{who}"))
        });
        let mut theirs =
            who.filter(|who| cluster.master_of(cluster.slot_of(&who.stored())) == master);
        theirs.next().unwrap()
    };
    let people = [of(0), of(1), of(2)];
    let store = Arc::new(store(&cluster.url()));
    let stop = Arc::new(AtomicBool::new(false));
    let after = Arc::new(AtomicU64::new(0));
    let mut all = JoinSet::new();
    for (master, who) in people.iter().enumerate() {
        let (store, stop, limits) =
            (Arc::clone(&store), Arc::clone(&stop), Arc::from([who.clone()]));
        all.spawn(async move { (master, busy(store, limits, stop).await) });
    }
    sleep(Duration::from_millis(200)).await;
    let cluster = spawn_blocking(move || {
        cluster.fail_over(0);
        cluster
    });
    let _cluster = cluster.await.unwrap();
    // No new store is needed, and not much time.
    let back = Duration::from_secs(2);
    tokio::time::timeout(back, async {
        while check(&store, &people[0], 1).await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
        after.fetch_add(1, SeqCst);
    })
    .await
    .unwrap();
    stop.store(true, SeqCst);
    for (master, (passed, errors)) in all.join_all().await {
        println!("{master}: {passed} passed, {} errors: {:?}", errors.len(), errors.first());
        let left = left(&store, &people[master]).await;
        if master == 0 {
            // What the replica had not heard of yet is lost; what was on its way may have been charged.
            assert!(left >= MANY - passed - after.load(SeqCst) - errors.len() as u64);
            assert!(!errors.is_empty());
        } else {
            assert_eq!((errors, left), (vec![], MANY - passed));
        }
    }
}

#[tokio::test]
async fn some_of_the_hosts_to_begin_with_may_be_down() {
    let cluster = RedisCluster::start();
    let ports = [free_port(), free_port(), cluster.nodes()[1].port()];
    let hosts = ports.map(|port| format!("127.0.0.1:{port}")).join(",");
    for who in 0..6 {
        let store = RedisStore::new(&format!("redis-cluster://{hosts}"), patient()).unwrap();
        let ten = Counted::new("10/week", "ten", &format!("u{who}"));
        assert!(is_allowed(&check(&store, &ten, 1).await.unwrap()), "u{who}");
    }
    wait::until("all have counted", || {
        let counted: i64 = cluster.nodes()[..3].iter().map(crate::common::keys).sum();
        (counted == 6).then_some(())
    });
}
