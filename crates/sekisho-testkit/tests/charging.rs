//! Force, refund and late stamps, case by case.

use sekisho_testkit::model::{Algorithm, Mode, Model, ModelLimit, Outcome};

const YEARS_100: u64 = 36_500 * 86_400 * 1_000_000_000;

fn model(algorithm: Algorithm, amount: u64, period_ns: u64, burst: u64) -> Model {
    Model::new(ModelLimit { algorithm, amount, period_ns, burst, resolution_ns: 1 })
}

/// Calls at `t`; gives outcome, remaining and reset.
fn call(model: &mut Model, t: u64, n: u64, mode: Mode) -> (Outcome, u64, u64) {
    let answer = model.call(t, n, mode);
    (answer.outcome, answer.remaining, answer.reset_after)
}

const ALLOW: Outcome = Outcome::Allow;

#[test]
fn forced_past_the_limit_is_paid_back() {
    // A window forgets at its end.
    let mut fixed = model(Algorithm::FixedWindow, 5, 100, 0);
    assert_eq!(call(&mut fixed, 10, 12, Mode::Force), (ALLOW, 0, 90));
    assert_eq!(fixed.call(20, 1, Mode::Check).retry_after, Some(80));
    assert_eq!(call(&mut fixed, 100, 1, Mode::Check), (ALLOW, 4, 100));

    // The estimate carries what was forced into the next window: 12·(100 − e)/100 + 1 <= 5.
    let mut sliding = model(Algorithm::SlidingWindow, 5, 100, 0);
    assert_eq!(call(&mut sliding, 10, 12, Mode::Force), (ALLOW, 0, 190));
    assert_eq!(sliding.call(20, 1, Mode::Check).retry_after, Some(80 + 67));

    // A log takes the entries, and each leaves in its turn.
    let mut log = model(Algorithm::SlidingLog, 5, 100, 0);
    log.call(0, 4, Mode::Check);
    assert_eq!(call(&mut log, 10, 12, Mode::Force), (ALLOW, 0, 100));
    assert_eq!(log.call(20, 1, Mode::Check).retry_after, Some(90));

    // 12 of 5 at one each 20: seven must come back before there is none owed.
    let mut bucket = model(Algorithm::TokenBucket, 5, 100, 5);
    assert_eq!(call(&mut bucket, 10, 12, Mode::Force), (ALLOW, 0, 240));
    assert_eq!(bucket.call(10, 1, Mode::Check).retry_after, Some(8 * 20));
    assert_eq!(bucket.call(10, 0, Mode::Look).next_after, 8 * 20);

    let mut queue = model(Algorithm::LeakyQueue, 5, 100, 4);
    assert_eq!(call(&mut queue, 10, 12, Mode::Force), (ALLOW, 0, 240));
    assert_eq!(queue.call(10, 1, Mode::Check).retry_after, Some(8 * 20));
    assert_eq!(queue.call(10, 1, Mode::Force).delay, 0);
}

#[test]
fn debts_and_counts_saturate() {
    let mut bucket = model(Algorithm::TokenBucket, 1, 1_000_000_000, 1);
    let t = 10_000_000_000_000_000_000;
    assert_eq!(call(&mut bucket, t, u64::MAX, Mode::Force), (ALLOW, 0, YEARS_100));
    assert_eq!(call(&mut bucket, t, u64::MAX, Mode::Force), (ALLOW, 0, YEARS_100));
    // An earlier call has its own limit, which never takes the debt back.
    assert_eq!(call(&mut bucket, t - 5, 1, Mode::Force), (ALLOW, 0, YEARS_100 + 5));

    let mut fixed = model(Algorithm::FixedWindow, u64::MAX, 100, 0);
    fixed.call(0, u64::MAX, Mode::Force);
    assert_eq!(call(&mut fixed, 0, 9, Mode::Force), (ALLOW, 0, 100));
    assert_eq!(call(&mut fixed, 0, 9, Mode::Refund { at: 0 }), (ALLOW, 9, 100));
}

#[test]
fn a_window_takes_back_what_was_charged_while_it_is_open() {
    for algorithm in [Algorithm::FixedWindow, Algorithm::SlidingWindow] {
        let mut model = model(algorithm, 5, 100, 0);
        model.call(110, 4, Mode::Check);
        assert_eq!(model.call(150, 3, Mode::Refund { at: 99 }).remaining, 1, "another window's");
        assert_eq!(model.call(150, 3, Mode::Refund { at: 199 }).remaining, 4);
        assert_eq!(model.call(150, 3, Mode::Refund { at: 100 }).remaining, 5, "never above fresh");
        model.call(160, 4, Mode::Check);
        let before = model.call(205, 0, Mode::Look);
        assert_eq!(model.call(205, 1, Mode::Refund { at: 160 }), before, "closed");
        // The window of the state is the open one for a late refund too.
        assert_eq!(model.call(50, 1, Mode::Refund { at: 160 }).remaining, 2);
    }
}

#[test]
fn an_anchored_window_opens_counts_and_closes() {
    let mut model = model(Algorithm::AnchoredWindow, 3, 100, 0);
    assert_eq!(model.call(7, 0, Mode::Look).quota_after, 100);
    assert_eq!(call(&mut model, 7, 1, Mode::Check), (ALLOW, 2, 100));
    assert_eq!(call(&mut model, 50, 2, Mode::Check), (ALLOW, 0, 57));
    assert_eq!(model.call(106, 1, Mode::Check).retry_after, Some(1));
    assert_eq!(call(&mut model, 107, 0, Mode::Look), (ALLOW, 3, 0));
    assert_eq!(call(&mut model, 3, 0, Mode::Look), (ALLOW, 0, 104), "late: in the open window");
    assert_eq!(model.call(50, 1, Mode::Refund { at: 6 }).remaining, 0, "before the start");
    assert_eq!(model.call(50, 1, Mode::Refund { at: 107 }).remaining, 0, "after the end");
    assert_eq!(model.call(107, 1, Mode::Refund { at: 50 }).remaining, 3, "no longer open: void");
    assert_eq!(model.call(60, 1, Mode::Refund { at: 106 }).remaining, 1);
    assert_eq!(call(&mut model, 60, 9, Mode::Refund { at: 7 }), (ALLOW, 3, 0));
    assert!(model.is_fresh_at(0));
    assert_eq!(call(&mut model, 60, 1, Mode::Check), (ALLOW, 2, 100), "opens anew");
}

#[test]
fn a_log_gives_back_only_what_is_stamped_so() {
    let mut model = model(Algorithm::SlidingLog, 5, 100, 0);
    model.call(10, 2, Mode::Check);
    model.call(20, 2, Mode::Check);
    assert_eq!(model.call(30, 1, Mode::Refund { at: 15 }).remaining, 1);
    assert_eq!(model.call(30, 1, Mode::Refund { at: 10 }).remaining, 2);
    assert_eq!(model.call(30, 9, Mode::Refund { at: 10 }).remaining, 3);
    // A late request is entered at the newest entry's time, and refunded at that.
    let late = model.call(5, 3, Mode::Check);
    assert_eq!((late.outcome, late.remaining, late.reset_after), (ALLOW, 0, 115));
    assert_eq!(late.quota_after, 115);
    assert_eq!(model.call(30, 3, Mode::Refund { at: 5 }).remaining, 0);
    assert_eq!(model.call(30, 3, Mode::Refund { at: 20 }).remaining, 3);
    assert_eq!(model.call(120, 9, Mode::Refund { at: 20 }).remaining, 5, "has left");
    assert_eq!(model.call(119, 0, Mode::Look).remaining, 3, "and the void refund took nothing");
}

#[test]
fn a_bucket_takes_back_up_to_full() {
    let mut model = model(Algorithm::TokenBucket, 3, 10, 3);
    model.call(0, 3, Mode::Check);
    assert_eq!(call(&mut model, 0, 1, Mode::Refund { at: 77 }), (ALLOW, 1, 7));
    assert_eq!(call(&mut model, 3, 5, Mode::Refund { at: 0 }), (ALLOW, 3, 0));
    assert_eq!(call(&mut model, 0, 0, Mode::Look), (ALLOW, 2, 3), "not before its own time");
    assert_eq!(call(&mut model, 900, 1, Mode::Refund { at: 0 }), (ALLOW, 3, 0));
    assert_eq!(
        call(&mut model, 0, 0, Mode::Look),
        (ALLOW, 2, 3),
        "nothing to give back: nothing moves"
    );
}

#[test]
fn a_queue_takes_back_only_the_last_stamp() {
    let mut model = model(Algorithm::LeakyQueue, 1, 10, 9);
    assert_eq!(model.call(0, 1, Mode::Check).delay, 0);
    assert_eq!(model.call(0, 2, Mode::Check).delay, 20);
    assert_eq!(model.call(5, 2, Mode::Check).delay, 35);
    assert_eq!(
        call(&mut model, 5, 1, Mode::Refund { at: 0 }),
        (ALLOW, 5, 45),
        "not the last: void"
    );
    assert_eq!(
        call(&mut model, 5, 3, Mode::Refund { at: 5 }),
        (ALLOW, 5, 45),
        "more than it was: void"
    );
    assert_eq!(call(&mut model, 5, 1, Mode::Refund { at: 5 }), (ALLOW, 6, 35));
    assert_eq!(call(&mut model, 5, 1, Mode::Check), (ALLOW, 5, 45), "same stamp: adds up");
    assert_eq!(call(&mut model, 5, 2, Mode::Refund { at: 5 }), (ALLOW, 7, 25));
    assert_eq!(call(&mut model, 5, 1, Mode::Refund { at: 5 }), (ALLOW, 7, 25), "all given back");
    // Not before now: of two slots only what lies ahead comes back.
    model.call(25, 2, Mode::Check);
    assert_eq!(call(&mut model, 48, 2, Mode::Refund { at: 25 }), (ALLOW, 10, 0));
    assert_eq!(call(&mut model, 40, 0, Mode::Look), (ALLOW, 9, 8));
}

#[test]
fn late_stamps_never_rewind() {
    let mut fixed = model(Algorithm::FixedWindow, 2, 100, 0);
    fixed.call(250, 1, Mode::Check);
    assert_eq!(call(&mut fixed, 90, 1, Mode::Check), (ALLOW, 0, 210));
    assert_eq!(fixed.call(90, 1, Mode::Check).retry_after, Some(210));
    assert_eq!(call(&mut fixed, 299, 0, Mode::Look), (ALLOW, 0, 1));

    let mut sliding = model(Algorithm::SlidingWindow, 4, 100, 0);
    sliding.call(150, 2, Mode::Check);
    sliding.call(250, 1, Mode::Check);
    // e = 0: 2 + 1, and one more makes 4.
    assert_eq!(call(&mut sliding, 150, 1, Mode::Check), (ALLOW, 0, 250));
    // 2·(100 − e)/100 + 2 + 1 <= 4 from e = 50 in the window from 200.
    assert_eq!(sliding.call(150, 1, Mode::Check).retry_after, Some(100));

    let mut log = model(Algorithm::SlidingLog, 2, 100, 0);
    log.call(50, 1, Mode::Check);
    log.call(250, 1, Mode::Check);
    assert_eq!(call(&mut log, 60, 1, Mode::Check), (ALLOW, 0, 290), "the first has left at 250");
    assert_eq!(log.call(60, 1, Mode::Check).retry_after, Some(290));

    let mut bucket = model(Algorithm::TokenBucket, 1, 10, 5);
    bucket.call(100, 1, Mode::Check);
    assert_eq!(call(&mut bucket, 80, 0, Mode::Look), (ALLOW, 2, 30));
    assert_eq!(bucket.call(80, 3, Mode::Check).retry_after, Some(10));
    assert_eq!(bucket.call(9, 1, Mode::Check).retry_after, Some(61), "tokens below zero count");
}

#[test]
fn looks_and_costs_of_nothing_are_free_whatever_is_owed() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::LeakyQueue, Algorithm::FixedWindow] {
        let mut model = model(algorithm, 2, 100, 2);
        model.call(0, 50, Mode::Force);
        for mode in [Mode::Check, Mode::Look, Mode::Force, Mode::Refund { at: 0 }] {
            let answer = model.call(1, 0, mode);
            assert_eq!((answer.outcome, answer.remaining, answer.delay), (ALLOW, 0, 0));
        }
        assert_eq!(model.call(1, 4, Mode::Check).outcome, Outcome::Never);
        assert_eq!(model.call(1, 4, Mode::Look).outcome, ALLOW, "a look has no cost");
    }
}
