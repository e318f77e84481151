//! Every key ends by itself, and not long after its state has stopped to matter.

use sekisho::{Ask, Charge, Mode, Now, Outcome, Store, Timestamp};
use sekisho_testkit::generate::Rng;

use crate::support::{Counted, Pair, all_expire, check_now};

/// Each with the longest that its key may live, in milliseconds: as long as its state matters.
const LIMITS: [(&str, i64); 8] = [
    ("5/20s", 20_000),
    ("5000/s burst 1", 1),
    ("5/20s fixed-window", 20_000),
    ("5/20s anchored-window", 20_000),
    ("5/20s sliding-window", 40_000),
    ("5/20s sliding-log", 20_000),
    ("5/20s burst 4 leaky-queue", 20_000),
    ("5/calendar-day", 90_000_000),
];

fn all() -> Vec<Counted> {
    LIMITS.iter().map(|(limit, _)| Counted::new(limit, limit, "u")).collect()
}

fn key(limit: &str) -> String {
    format!("sk1:{{=u}}test:{}", limit.replace(' ', "%20"))
}

#[tokio::test]
async fn p6_every_key_has_an_expiry_after_any_operations() {
    let pair = Pair::start();
    let mut connection = pair.connection().await;
    let counted = all();
    let mut rng = Rng::new(3);
    let mut forced = false;
    let mut last = Timestamp::EPOCH;
    for round in 0..600 {
        let mut charges: Vec<Charge<'_>> =
            counted.iter().map(|one| one.charge(rng.below(3))).collect();
        charges.retain(|_| rng.chance(1, 3));
        // No debts in the first half, as they last longer than what is allowed.
        let mode = match rng.below(8) {
            0 if round >= 300 => Mode::Force,
            1 => Mode::Refund { at: last },
            2 => Mode::Look,
            _ => Mode::Check,
        };
        forced |= mode == Mode::Force;
        let answer = pair.redis.decide(&[Ask::new(&charges, mode)], Now::StoreClock).await;
        last = answer[0].as_ref().unwrap().at;
        for (limit, most) in LIMITS {
            let left: i64 =
                redis::cmd("PTTL").arg(key(limit)).query_async(&mut connection).await.unwrap();
            assert_ne!(left, -1, "{limit}");
            assert!(forced || left <= most + 1, "{limit}: {left} ms");
        }
    }
    let _keys = all_expire(&mut connection).await;
}

#[tokio::test]
async fn b17_an_expiry_is_rounded_up_to_a_millisecond() {
    let pair = Pair::start();
    let mut connection = pair.connection().await;
    // What takes a fifth of a millisecond to come back.
    let fast = Counted::new("5000/s burst 1", "fast", "u");
    for _ in 0..200 {
        let _answer = check_now(&pair.redis, &fast, 1).await.unwrap();
        let key = "sk1:{=u}test:fast";
        let left: i64 = redis::cmd("PTTL").arg(key).query_async(&mut connection).await.unwrap();
        assert!(left == -2 || (0..=2).contains(&left), "{left}");
    }
}

#[tokio::test]
async fn b45_a_key_that_lost_its_expiry_gets_one_even_from_a_denial() {
    let pair = Pair::start();
    let mut connection = pair.connection().await;
    for (limit, most) in LIMITS.into_iter().filter(|(_, most)| *most > 1) {
        let counted = Counted::new(limit, limit, "u");
        assert_eq!(
            check_now(&pair.redis, &counted, 5).await.unwrap().joint().outcome,
            Outcome::Allow
        );
        let key = key(limit);
        let _: () = redis::cmd("PERSIST").arg(&key).query_async(&mut connection).await.unwrap();
        // A look stores nothing, not even that.
        let charges = [counted.charge(1)];
        let look = pair.redis.decide(&[Ask::new(&charges, Mode::Look)], Now::StoreClock).await;
        assert!(look[0].is_ok());
        let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.unwrap();
        assert_eq!(left, -1, "{limit}");
        assert_eq!(
            check_now(&pair.redis, &counted, 3).await.unwrap().joint().outcome,
            Outcome::Deny
        );
        let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.unwrap();
        assert!((1_000..=most + 1).contains(&left), "{limit}: {left}");
    }
}

#[tokio::test]
async fn what_charges_nothing_leaves_no_key() {
    let pair = Pair::start();
    let mut connection = pair.connection().await;
    let counted = all();
    for mode in [Mode::Look, Mode::Refund { at: Timestamp::from_secs(1_700_000_000) }] {
        let charges: Vec<_> = counted.iter().map(|one| one.charge(1)).collect();
        let answer = pair.redis.decide(&[Ask::new(&charges, mode)], Now::StoreClock).await;
        assert!(answer[0].is_ok());
    }
    // One of them can never be admitted, so none is charged; nor are costs of 0.
    for cost in [6, 0] {
        let charges: Vec<_> = counted.iter().map(|one| one.charge(cost)).collect();
        let answer = pair.redis.decide(&[Ask::new(&charges, Mode::Check)], Now::StoreClock).await;
        assert!(answer[0].is_ok());
    }
    let keys: u64 = redis::cmd("DBSIZE").query_async(&mut connection).await.unwrap();
    assert_eq!(keys, 0);
}

#[tokio::test]
async fn b25_an_expiry_of_a_year_is_a_year() {
    const YEAR_MS: i64 = 365 * 86_400_000;
    let pair = Pair::start();
    let mut connection = pair.connection().await;
    for limit in ["5/365day", "5/365day anchored-window", "5/365day sliding-log"] {
        let counted = Counted::new(limit, limit, "u");
        let _answer = check_now(&pair.redis, &counted, 5).await.unwrap();
        let left: i64 =
            redis::cmd("PTTL").arg(key(limit)).query_async(&mut connection).await.unwrap();
        assert!((YEAR_MS - 60_000..=YEAR_MS + 1).contains(&left), "{limit}: {left}");
    }
    // The longest period there is, and the longest debt.
    let ages = Counted::new("1/3650day sliding-window", "ages", "u");
    let debt = Counted::new("1/3650day", "debt", "u");
    let charges = [ages.charge(1), debt.charge(1_000)];
    let answer = pair.redis.decide(&[Ask::new(&charges, Mode::Force)], Now::StoreClock).await;
    assert!(answer[0].is_ok(), "{answer:?}");
    let left: i64 =
        redis::cmd("PTTL").arg("sk1:{=u}test:debt").query_async(&mut connection).await.unwrap();
    assert!((100 * YEAR_MS - 60_000..=100 * YEAR_MS + 1).contains(&left), "{left}");
    let _keys = all_expire(&mut connection).await;
}
