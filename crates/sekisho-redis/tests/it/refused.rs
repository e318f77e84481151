//! What this store does not have, it says; and what is under its keys that is not its own.

use sekisho::{Ask, Mode, Now, Outcome, Store, StoreError, Timestamp};

use crate::support::{Counted, Pair, check_now};

#[tokio::test]
async fn what_is_not_there_is_named() {
    let pair = Pair::start();
    for limit in [
        "10/min sliding-log",
        "10/min sliding-window",
        "10/min anchored-window",
        "10/min leaky-queue",
        "10/calendar-day",
        "10/999ns",
    ] {
        let error = check_now(&pair.redis, &Counted::new(limit, "id", "u"), 1).await.unwrap_err();
        assert!(matches!(error, StoreError::Unsupported(_)), "{limit}: {error:?}");
    }
    let ten = Counted::new("10/min", "ten", "u");
    let charges = [ten.charge(1)];
    for (mode, at) in [
        (Mode::Force, 0),
        (Mode::Refund { at: Timestamp::EPOCH }, 0),
        (Mode::Check, 1),
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
    // What looks like ours and is not is an error, and is not overwritten.
    let _: () =
        redis::cmd("SET").arg(key).arg("b 1 nonsense").query_async(&mut connection).await.unwrap();
    let error = check_now(&pair.redis, &ten, 1).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Unavailable(why) if why.contains("never wrote")),
        "{error:?}"
    );
}
