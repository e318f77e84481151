//! What this store does not have, it says; and what is under its keys that is not its own.

use sekisho::{Ask, Mode, Now, Outcome, Store, StoreError, Timestamp};
use sekisho_redis::RedisStore;

use crate::support::{Counted, Pair, check_now};

#[tokio::test]
async fn what_is_not_there_is_named() {
    let pair = Pair::start();
    for limit in [
        "10/999ns",
        "10/1500ns sliding-log",
        "10/s sliding-log resolution 1500ns",
        "2251799813685249/s",
        "2251799813685249/s fixed-window",
    ] {
        let counted = Counted::new(limit, "id", "u");
        let error = check_now(&pair.redis, &counted, 1).await.unwrap_err();
        assert!(matches!(error, StoreError::Unsupported(_)), "{limit}: {error:?}");
        // And before anybody asks.
        assert_eq!(RedisStore::supports(&counted.limit), Err(error));
    }
    for limit in [
        "10/min",
        "10/calendar-day",
        "block",
        "unlimited",
        "2251799813685248/us sliding-log",
        "9/s sliding-log resolution 1ns",
    ] {
        assert_eq!(RedisStore::supports(&limit.parse().unwrap()), Ok(()));
    }
    let ten = Counted::new("10/min", "ten", "u");
    let charges = [ten.charge(1)];
    for (mode, at) in [
        (Mode::Refund { at: Timestamp::from_nanos(1) }, 0),
        (Mode::Check, 1),
        (Mode::Force, 6_000_000_000_000_000_000),
        (Mode::Check, u64::MAX),
    ] {
        let now = Now::At(Timestamp::from_nanos(at));
        let answer = pair.redis.decide(&[Ask::new(&charges, mode)], now).await.pop().unwrap();
        assert!(matches!(answer, Err(StoreError::Unsupported(_))), "{mode:?} at {at}: {answer:?}");
    }
    let twice = [ten.charge(1), ten.charge(1)];
    let asks = [Ask::new(&twice, Mode::Check)];
    let answer = pair.redis.decide(&asks, Now::StoreClock).await.pop().unwrap();
    assert_eq!(answer, Err(StoreError::Twice));
}

#[tokio::test]
async fn block_and_unlimited_need_no_state() {
    let pair = Pair::start();
    let ten = Counted::new("10/min", "ten", "u");
    let (block, unlimited) = (Counted::new("block", "b", "u"), Counted::new("unlimited", "n", "u"));
    for charges in
        [vec![&block], vec![&unlimited], vec![&ten, &block], vec![&unlimited, &ten], vec![]]
    {
        let charges: Vec<_> = charges.into_iter().map(|counted| counted.charge(1)).collect();
        for mode in [Mode::Check, Mode::Look] {
            pair.ask(&charges, mode, 1_700_000_000_000_000).await;
        }
    }
    // The clock is the server's even then.
    let answer = check_now(&pair.redis, &unlimited, 1).await.unwrap();
    assert!(answer.at > Timestamp::from_secs(1_700_000_000), "{answer:?}");
}

#[tokio::test]
async fn a_key_forgotten_is_fresh() {
    let pair = Pair::start();
    let ten = Counted::new("10/min", "ten", "u");
    assert_eq!(pair.redis.forget(&ten.scope, &ten.key).await, Ok(false));
    check_now(&pair.redis, &ten, 10).await.unwrap();
    assert_eq!(check_now(&pair.redis, &ten, 9).await.unwrap().joint().outcome, Outcome::Deny);
    assert_eq!(pair.redis.forget(&ten.scope, &ten.key).await, Ok(true));
    assert_eq!(check_now(&pair.redis, &ten, 10).await.unwrap().joint().outcome, Outcome::Allow);
}

#[tokio::test]
async fn b45_what_others_left_without_an_expiry_blocks_nobody() {
    let pair = Pair::start();
    let mut connection = pair.connection().await;
    let ten = Counted::new("10/min", "ten", "u");
    let key = "sk1:{=u}test:ten";
    let _: () = redis::cmd("SET").arg(key).arg(101).query_async(&mut connection).await.unwrap();
    assert_eq!(check_now(&pair.redis, &ten, 1).await.unwrap().verdicts[0].remaining, Some(9));
    let left: i64 = redis::cmd("PTTL").arg(key).query_async(&mut connection).await.unwrap();
    assert!((1..=6_001).contains(&left), "{left}");
}

#[tokio::test]
async fn what_looks_like_ours_and_is_not_is_an_error_and_stays() {
    let pair = Pair::start();
    let mut connection = pair.connection().await;
    let key = "sk1:{=u}test:ten";
    for (algorithm, bad) in [
        ("token-bucket", "b 1 nonsense"),
        ("token-bucket", "b"),
        ("token-bucket", "b 1 7 7"),
        ("token-bucket", "b 1 0 0"),
        ("token-bucket", "b -1 0 7"),
        ("token-bucket", "b 1 0 7 "),
        ("token-bucket", "b 9007199254740993 0 7"),
        ("token-bucket", "b 1 0 7 1 1 1"),
        ("token-bucket", "b 1 0 7 0"),
        ("token-bucket", "banana"),
        ("leaky-queue", "q 1 0 7"),
        ("leaky-queue", "q 1 0 7 0 1 1e3"),
        ("fixed-window", "w 1"),
        ("fixed-window", "w 0x10 1"),
        ("anchored-window", "a 1 2 3"),
        ("sliding-window", "s 1 2"),
        ("sliding-log", "l 1"),
        ("sliding-log", "l 0 1 1"),
        ("sliding-log", "l 000000000000000x"),
        ("sliding-log", "l 0000000000000000 1700000000000000 nonsense-of-ours"),
        ("sliding-log", "l 0000000000000009 9000000000000000 0000000000000003"),
        ("sliding-log", "l 0000000000000000 9999999999999999 0000000000000003"),
    ] {
        let ten = Counted::new(&format!("10/min {algorithm}"), "ten", "u");
        let good = Counted::new("10/min", "good", "u");
        let _: () = redis::cmd("SET").arg(key).arg(bad).query_async(&mut connection).await.unwrap();
        let charges = [good.charge(1), ten.charge(1)];
        let asks = [Ask::new(&charges, Mode::Check)];
        let error = pair.redis.decide(&asks, Now::StoreClock).await.pop().unwrap().unwrap_err();
        assert!(
            matches!(&error, StoreError::Unavailable(why) if why.contains("never wrote")),
            "{bad}: {error:?}"
        );
        let kept: String = redis::cmd("GET").arg(key).query_async(&mut connection).await.unwrap();
        assert_eq!(kept, bad);
        // Nor was the limit charged that had nothing wrong.
        assert_eq!(check_now(&pair.redis, &good, 0).await.unwrap().verdicts[0].remaining, Some(10));
    }
    let _: () = redis::cmd("DEL").arg(key).query_async(&mut connection).await.unwrap();
    let _: () =
        redis::cmd("LPUSH").arg(key).arg("w 1 1").query_async(&mut connection).await.unwrap();
    let ten = Counted::new("10/min", "ten", "u");
    let error = check_now(&pair.redis, &ten, 1).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Unavailable(why) if why.contains("WRONGTYPE")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_count_beyond_what_lua_counts_is_refused_and_charges_nothing() {
    const MOST: u64 = (1 << 53) - 1;
    let pair = Pair::start();
    let at = Now::At(Timestamp::from_secs(1_700_000_000));
    let minute = Counted::new("10/min", "minute", "u");
    for algorithm in
        ["fixed-window", "anchored-window", "sliding-window", "sliding-log", "leaky-queue"]
    {
        let ten = Counted::new(&format!("10/s {algorithm}"), algorithm, "u");
        let ask = async |cost| {
            let charges = [minute.charge(1), ten.charge(cost)];
            pair.decide(Ask::new(&charges, Mode::Force), at).await
        };
        let before = ask(MOST - 1).await.unwrap().verdicts[0];
        for cost in [2, MOST, u64::MAX] {
            assert!(matches!(ask(cost).await, Err(StoreError::Unsupported(_))), "{algorithm}");
        }
        let after = ask(1).await.unwrap().verdicts[0];
        assert!(after.reset_after > before.reset_after, "{before:?} {after:?}");
    }
}
