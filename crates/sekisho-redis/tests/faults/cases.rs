//! What has gone wrong for others, and costs nothing here: no rows of the table.

use std::sync::Arc;

use sekisho::{Ask, Mode, Now, Outcome, Span, Store, StoreError, Timestamp};
use sekisho_testkit::{redis_cluster::RedisCluster, redis_server::RedisServer};

use crate::support::{Counted, ask, beside, insist, passes, patient, tell, used};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b49_keys_of_one_request_share_a_slot_whatever_the_user_is_called() {
    let cluster = beside(RedisCluster::start);
    let store = patient(&cluster.url());
    for name in ["a{b}c", "{}", "}{", "{", "", "{a}{b}", "日本"] {
        let limits = ["3/week anchored-window", "5/week sliding-log", "4/week"];
        let counted = limits.map(|limit| Counted::new(limit, limit, name));
        let charges = counted.each_ref().map(|one| one.charge(1));
        let mut passed = 0;
        for _ in 0..5 {
            let answer = ask(&store, &charges, Mode::Check).await.unwrap();
            passed += u64::from(answer.joint().outcome == Outcome::Allow);
        }
        assert_eq!(passed, 3, "{name}");
    }
    for node in cluster.nodes() {
        let said = beside(|| node.command(&["INFO", "errorstats"])).text();
        assert!(!said.contains("CROSSSLOT"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b49_a_key_of_another_type_is_an_error_that_is_counted() {
    let server = RedisServer::start();
    let store = patient(&server.url());
    let counted = Counted::new("9/week", "list", "u");
    beside(|| tell(&server, &["RPUSH", "sk1:{=u}fault:list", "1"]));
    let error = passes(&store, &counted).await.unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    let stats = store.stats();
    assert_eq!(
        stats.servers[0].errors.iter().find(|(kind, _)| *kind == "script"),
        Some(&("script", 1))
    );
    // Whoever shares a call with it is decided.
    let other = Arc::new(Counted::new("9/week", "other", "u"));
    assert_eq!(passes(&store, &other).await, Ok(true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b55_numbers_come_back_as_they_went() {
    let server = RedisServer::start();
    let store = patient(&server.url());
    // 0.4 s before a unit comes back, which is not 0.
    let counted = Counted::new("1/s", "tenths", "u");
    let start = Timestamp::from_nanos(1_700_000_000_123_456_000);
    let at = |us: u64| Now::At(Timestamp::from_nanos(start.as_nanos() + us * 1_000));
    let check = async |us: u64, cost: u64| {
        let charges = [counted.charge(cost)];
        store.decide(&[Ask::new(&charges, Mode::Check)], at(us)).await.pop().unwrap()
    };
    let first = insist(|| check(0, 1)).await;
    assert_eq!((first.joint().outcome, first.at), (Outcome::Allow, start));
    let denied = check(600_000, 1).await.unwrap();
    let verdict = denied.verdicts[0];
    assert_eq!((verdict.outcome, verdict.remaining), (Outcome::Deny, Some(0)));
    assert_eq!(verdict.retry_after, Some(Span::from_nanos(400_000_000)));
    // A look costs nothing, too much never passes, and neither changes anything.
    assert_eq!(check(600_000, 0).await.unwrap().joint().outcome, Outcome::Allow);
    for cost in [2, 1 << 53, 1 << 63, u64::MAX] {
        let never = check(600_000, cost).await.unwrap().verdicts[0];
        assert_eq!((never.outcome, never.retry_after), (Outcome::Never, None), "{cost}");
    }
    assert_eq!(check(1_000_000, 1).await.unwrap().joint().outcome, Outcome::Allow);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b55_what_lua_cannot_count_is_refused_before_it_is_sent() {
    let server = RedisServer::start();
    let store = patient(&server.url());
    let counted = Counted::new("9/week anchored-window", "forced", "u");
    let error = ask(&store, &[counted.charge(1 << 63)], Mode::Force).await.unwrap_err();
    assert!(matches!(error, StoreError::Unsupported(_)), "{error:?}");
    let charges = [counted.charge(1)];
    let now = Now::At(Timestamp::from_nanos(1_700_000_000_123_456_789));
    let asked = store.decide(&[Ask::new(&charges, Mode::Check)], now).await.pop().unwrap();
    assert!(matches!(asked, Err(StoreError::Unsupported(_))), "{asked:?}");
    assert_eq!(used(&store, &counted).await, 0);
}
