//! Many callers on the server's own clock.

use std::sync::Arc;

use sekisho::{Ask, Mode, Now, Outcome, Span, Store};
use sekisho_redis::RedisStore;
use tokio::task::JoinSet;

use crate::support::{Counted, Pair, all_expire, check_now, patient};

/// Returns how many of as many callers as are wanted pass at once, over five connections.
async fn passed(pair: &Pair, counted: &Arc<Counted>, callers: usize) -> usize {
    let stores: Vec<_> = (0..5).map(|_| Arc::new(patient(&pair.server.url()))).collect();
    let mut all = JoinSet::new();
    for caller in 0..callers {
        let (store, counted) = (Arc::clone(&stores[caller % stores.len()]), Arc::clone(counted));
        all.spawn(async move { check_now(&store, &counted, 1).await.unwrap().joint().outcome });
    }
    all.join_all().await.into_iter().filter(|outcome| *outcome == Outcome::Allow).count()
}

/// Asks fifty times, one after the other; returns how often it passed.
async fn fifty(store: &RedisStore, counted: &[Counted]) -> u64 {
    let mut passed = 0;
    for _ in 0..50 {
        let charges: Vec<_> = counted.iter().map(|one| one.charge(1)).collect();
        let asks = [Ask::new(&charges, Mode::Check)];
        let answer = store.decide(&asks, Now::StoreClock).await.pop().unwrap().unwrap();
        passed += u64::from(answer.joint().outcome == Outcome::Allow);
    }
    passed
}

/// Eight callers ask fifty times each, one after the other, on a connection of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn of_8_callers_with_50_requests_each_exactly_the_limit_of_100_pass() {
    let pair = Pair::start();
    let mixed = ["100/week", "150/week sliding-log", "120/3650day sliding-window"];
    for limits in [
        &["100/week"][..],
        &["100/week fixed-window"],
        &["100/week anchored-window"],
        &["100/week sliding-window"],
        &["100/week sliding-log"],
        &["100/week burst 99 leaky-queue"],
        &["100/calendar-month"],
        &mixed,
    ] {
        let counted: Arc<Vec<_>> = Arc::new(
            limits.iter().map(|limit| Counted::new(limit, limit, &limits.concat())).collect(),
        );
        let mut all = JoinSet::new();
        for _ in 0..8 {
            let (store, counted) = (patient(&pair.server.url()), Arc::clone(&counted));
            all.spawn(async move { fifty(&store, &counted).await });
        }
        let passed: u64 = all.join_all().await.into_iter().sum();
        assert_eq!(passed, 100, "{limits:?}");
    }
    let _keys = all_expire(&mut pair.connection().await).await;
}

/// How often the server ran the script, and what else it was asked.
async fn script_calls(pair: &Pair) -> u64 {
    let mut connection = pair.connection().await;
    let text: String =
        redis::cmd("INFO").arg("commandstats").query_async(&mut connection).await.unwrap();
    let calls = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0,");
        line.split(',').next().unwrap().parse::<u64>().unwrap()
    };
    calls("cmdstat_evalsha:calls=") + calls("cmdstat_eval:calls=")
}

#[tokio::test]
async fn any_mix_of_limits_is_one_script_call() {
    let pair = Pair::start();
    let limits = [
        "9/min",
        "9/min fixed-window",
        "9/min anchored-window",
        "9/min sliding-window",
        "9/min sliding-log",
        "9/min burst 8 leaky-queue",
        "9/calendar-day zone Asia/Tokyo",
        "9/calendar-month",
        "9/calendar-day zone Europe/Berlin",
        "9/calendar-month zone America/New_York",
        "9/calendar-day",
    ];
    let counted: Vec<_> = limits.iter().map(|limit| Counted::new(limit, limit, "u")).collect();
    let charges: Vec<_> = counted.iter().map(|one| one.charge(1)).collect();
    for left in 0..9 {
        let before = script_calls(&pair).await;
        let asks = [Ask::new(&charges, Mode::Check)];
        let answer = pair.redis.decide(&asks, Now::StoreClock).await.pop().unwrap().unwrap();
        assert_eq!(answer.joint().outcome, Outcome::Allow);
        let wanted = vec![Some(8 - left); limits.len()];
        // All but the buckets, which may get some back while this runs.
        let seen: Vec<_> = answer.verdicts.iter().map(|verdict| verdict.remaining).collect();
        assert_eq!(seen[1..5], wanted[1..5]);
        assert_eq!(seen[6..], wanted[6..]);
        let calls = script_calls(&pair).await - before;
        // A new connection tries the script first: by its digest, and in full where it is not known.
        assert_eq!(calls, if left == 0 { 3 } else { 1 });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b47_a_forgotten_script_counts_nobody_twice_and_lets_nobody_by() {
    let pair = Pair::start();
    let mut connection = pair.connection().await;
    let warm = Counted::new("10/week", "warm", "u");
    check_now(&pair.redis, &warm, 1).await.unwrap();
    let _: () = redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut connection).await.unwrap();
    let counted = Arc::new(Counted::new("10/week fixed-window", "cold", "u"));
    assert_eq!(passed(&pair, &counted, 100).await, 10);
}

#[tokio::test]
async fn b76_three_gateways_share_a_limit_and_a_restart_of_one_gives_nothing_back() {
    let pair = Pair::start();
    let ten = Counted::new("10/week", "ten", "u");
    let mut gateways: Vec<_> = (0..3).map(|_| patient(&pair.server.url())).collect();
    let mut passed = 0;
    for request in 0..60 {
        let at = request % gateways.len();
        if request % 7 == 6 {
            gateways[at] = patient(&pair.server.url());
        }
        let answer = check_now(&gateways[at], &ten, 1).await.unwrap();
        passed += u64::from(answer.joint().outcome == Outcome::Allow);
    }
    assert_eq!(passed, 10);
}

#[tokio::test]
async fn a_batch_is_answered_in_order_even_when_the_script_is_forgotten() {
    let pair = Pair::start();
    let ten = Counted::new("10/week fixed-window", "ten", "u");
    let charges = [ten.charge(1)];
    let asks = [Ask::new(&charges, Mode::Check); 300];
    let answers = pair.redis.decide(&asks, Now::StoreClock).await;
    let left: Vec<_> =
        answers.iter().map(|answer| answer.as_ref().unwrap().verdicts[0].remaining).collect();
    let wanted: Vec<_> = (0..300).map(|index| Some(9_u64.saturating_sub(index))).collect();
    assert_eq!(left, wanted);
}

#[tokio::test]
async fn a_clock_set_back_locks_nobody_out() {
    let pair = Pair::start();
    let mut connection = pair.connection().await;
    let bucket = Counted::new("10/min", "bucket", "u");
    let window = Counted::new("10/week fixed-window", "window", "u");
    // Written two hours and two windows from now by a clock that has since been set back.
    let now = check_now(&pair.redis, &bucket, 0).await.unwrap().at.as_nanos() / 1_000;
    let ahead = [
        ("bucket", format!("b {} 0 10", now + 7_200_000_000)),
        ("window", format!("w {} 4", now * 2)),
    ];
    for (id, state) in ahead {
        let key = format!("sk1:{{=u}}test:{id}");
        let _: () =
            redis::cmd("SET").arg(key).arg(state).query_async(&mut connection).await.unwrap();
    }
    let denied = check_now(&pair.redis, &bucket, 1).await.unwrap().verdicts[0];
    assert_eq!(
        (denied.retry_after, denied.reset_after),
        (Some(Span::from_secs(6)), Span::from_secs(60))
    );
    let allowed = check_now(&pair.redis, &window, 1).await.unwrap().verdicts[0];
    assert_eq!((allowed.outcome, allowed.remaining), (Outcome::Allow, Some(5)));
    // Both repairs were stored, the one by a denial.
    let again = check_now(&pair.redis, &bucket, 1).await.unwrap().verdicts[0];
    assert!(again.reset_after < Span::from_secs(60), "{again:?}");
    assert_eq!(check_now(&pair.redis, &window, 1).await.unwrap().verdicts[0].remaining, Some(4));
    assert_eq!(all_expire(&mut connection).await, 2);
}
