//! Published vectors and the worked examples of the documentation.

use sekisho_core::{Mode, Outcome, Span, Timestamp};

use crate::Key;

#[test]
fn seven_fields_of_three_per_ten_seconds() {
    let mut key = Key::new("3/10s burst 3 token-bucket");
    let answers: Vec<_> = [0, 0, 0, 0, 3_333_333_333, 3_333_333_334]
        .into_iter()
        .map(|at| {
            let verdict = key.check(at, 1);
            (verdict.outcome, verdict.remaining.unwrap(), verdict.retry_after.map(Span::as_nanos))
        })
        .collect();
    let (allow, deny) = (Outcome::Allow, Outcome::Deny);
    assert_eq!(
        answers,
        [
            (allow, 2, None),
            (allow, 1, None),
            (allow, 0, None),
            (deny, 0, Some(3_333_333_334)),
            (deny, 0, Some(1)),
            (allow, 0, None),
        ]
    );
}

/// T = 10, b = 3, in nanoseconds: now, cost, then outcome, TAT, remaining, retry, reset.
#[test]
fn gcra_as_the_fact_sheets_give_it() {
    let mut key = Key::new("1/10ns burst 3");
    for (now, cost, outcome, remaining, retry, reset) in [
        (0, 1, Outcome::Allow, 2, None, 10),
        (0, 1, Outcome::Allow, 1, None, 20),
        (0, 1, Outcome::Allow, 0, None, 30),
        (0, 1, Outcome::Deny, 0, Some(10), 30),
        (9, 1, Outcome::Deny, 0, Some(1), 21),
        (10, 1, Outcome::Allow, 0, None, 30),
        (25, 2, Outcome::Deny, 1, Some(5), 15),
        (30, 2, Outcome::Allow, 0, None, 30),
        (100, 0, Outcome::Allow, 3, None, 0),
        (100, 3, Outcome::Allow, 0, None, 30),
        (130, 4, Outcome::Never, 3, None, 0),
        (125, 1, Outcome::Allow, 1, None, 15),
    ] {
        let verdict = key.check(now, cost);
        let seen = (
            verdict.outcome,
            verdict.remaining.unwrap(),
            verdict.retry_after.map(Span::as_nanos),
            verdict.reset_after.as_nanos(),
        );
        assert_eq!(seen, (outcome, remaining, retry, reset), "at {now}, cost {cost}");
    }
}

#[test]
fn the_estimates_of_a_sliding_window_at_its_limit() {
    let minute = 60_000_000_000_u64;
    let at = |into: u64| 100 * minute + into * 1_000_000_000;
    let mut key = Key::new("50/min sliding-window");
    assert!(key.check(at(0) - minute, 42).is_allowed());
    assert!(key.check(at(15), 18).is_allowed());
    assert_eq!(key.check(at(15), 1).outcome, Outcome::Deny);

    let mut key = Key::new("100/min sliding-window");
    assert!(key.check(at(0) - minute, 80).is_allowed());
    assert_eq!(key.check(at(15), 40).remaining, Some(0));
    assert_eq!(key.check(at(15), 1).outcome, Outcome::Deny);
}

#[test]
fn a_force_runs_into_debt_and_a_refund_pays_it_back() {
    let mut key = Key::new("1/s burst 3");
    let forced = key.call(0, 5, Mode::Force);
    assert_eq!((forced.outcome, forced.remaining), (Outcome::Allow, Some(0)));
    assert_eq!(forced.reset_after.as_nanos(), 5_000_000_000);
    assert_eq!(key.check(0, 1).retry_after.unwrap().as_nanos(), 3_000_000_000);
    let back = key.call(0, 4, Mode::Refund { at: Timestamp::EPOCH });
    assert_eq!((back.remaining, back.reset_after.as_nanos()), (Some(2), 1_000_000_000));
}

#[test]
fn a_queue_gives_back_only_the_last_slots() {
    let mut key = Key::new("1/s burst 3 leaky-queue");
    let delays: Vec<_> = [0, 1, 2].map(|at| key.check(at, 1).delay.as_nanos()).into();
    assert_eq!(delays, [0, 999_999_999, 1_999_999_998]);
    let refund = |at| Mode::Refund { at: Timestamp::from_nanos(at) };
    assert_eq!(
        key.call(3, 1, refund(1)).reset_after.as_nanos(),
        2_999_999_997,
        "not the last: void"
    );
    assert_eq!(key.call(3, 1, refund(2)).reset_after.as_nanos(), 1_999_999_997);
    assert_eq!(
        key.call(3, 1, refund(2)).reset_after.as_nanos(),
        1_999_999_997,
        "given back already"
    );
}

#[test]
fn a_changed_amount_keeps_the_usage() {
    let mut key = Key::new("100/min");
    assert_eq!(key.check(0, 60).remaining, Some(40));
    key.limit = "1000/min burst 200".parse().unwrap();
    assert_eq!(key.check(0, 0).remaining, Some(140));
    assert_eq!(key.check(0, 140).remaining, Some(0));
    key.limit = "100/min".parse().unwrap();
    assert_eq!(key.check(0, 0).remaining, Some(0));
}

#[test]
fn a_clock_set_back_locks_nobody_out() {
    let hours = 8 * 3_600 * 1_000_000_000_u64;
    let mut key = Key::new("10/s burst 1");
    assert!(key.check(hours * 2, 1).is_allowed());
    let now = Timestamp::from_nanos(hours + 100_000_000);
    key.limit.repair(&mut key.state, now, &sekisho_core::Utc);
    let verdict = key.check(now.as_nanos(), 1);
    assert_eq!(verdict.retry_after.unwrap().as_nanos(), 100_000_000);
}

#[test]
fn years_of_idling_and_enormous_rates_are_exact() {
    let ten_years = 315_000_000_000_000_000;
    let mut key = Key::new("1000000/s");
    assert!(key.check(0, 1_000_000).is_allowed());
    assert_eq!(key.check(ten_years, 1).remaining, Some(999_999));

    let mut key = Key::new("18446744073709551615/ns");
    assert_eq!(key.check(ten_years, 1).remaining, Some(u64::MAX - 1));
    assert_eq!(key.check(ten_years, u64::MAX).retry_after.unwrap().as_nanos(), 1);

    let mut key = Key::new("3000000000/s burst 1");
    assert!(key.check(0, 1).is_allowed());
    assert_eq!(key.check(0, 1).retry_after.unwrap().as_nanos(), 1);
    assert!(key.check(1, 1).is_allowed());
}
