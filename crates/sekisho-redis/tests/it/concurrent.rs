//! Many callers on the server's own clock.

use std::sync::Arc;

use sekisho::{Ask, Mode, Now, Outcome, Span, Store};
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_25_at_once_exactly_the_limit_of_10_pass() {
    let pair = Pair::start();
    for limit in ["10/week", "10/week fixed-window"] {
        let counted = Arc::new(Counted::new(limit, limit, "u"));
        assert_eq!(passed(&pair, &counted, 25).await, 10, "{limit}");
    }
    assert_eq!(all_expire(&mut pair.connection().await).await, 2);
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
