//! Numbers that change and clocks that are set back.

use sekisho_testkit::model::{Algorithm, Mode, Model, ModelLimit, Outcome};

const ALL: [Algorithm; 6] = [
    Algorithm::FixedWindow,
    Algorithm::AnchoredWindow,
    Algorithm::SlidingLog,
    Algorithm::SlidingWindow,
    Algorithm::TokenBucket,
    Algorithm::LeakyQueue,
];

fn model(algorithm: Algorithm, amount: u64, period_ns: u64, burst: u64) -> Model {
    Model::new(ModelLimit { algorithm, amount, period_ns, burst, resolution_ns: 1 })
}

fn look(model: &mut Model, t: u64) -> (u64, u64) {
    let answer = model.call(t, 0, Mode::Look);
    (answer.remaining, answer.reset_after)
}

#[test]
fn an_upgrade_gives_exactly_the_difference() {
    for algorithm in ALL {
        let queue = u64::from(algorithm == Algorithm::LeakyQueue);
        let mut model = model(algorithm, 100, 6_000, 100 - queue);
        model.call(6_000, 30, Mode::Check);
        model.change(1_000, 200 - queue);
        let capacity = if model.limit().capacity() == 200 { 200 } else { 1_000 };
        assert_eq!(look(&mut model, 6_000).0, capacity - 30, "{algorithm:?}");
        model.call(6_000, 120, Mode::Check);
        // Down again: 150 used of 100.
        model.change(100, 100 - queue);
        assert_eq!(look(&mut model, 6_000).0, 0, "{algorithm:?}");
        assert_eq!(model.call(6_000, 1, Mode::Check).outcome, Outcome::Deny, "{algorithm:?}");
    }
}

#[test]
fn a_time_value_is_converted_by_the_first_charge_under_the_new_numbers() {
    // 10 a 100: ten units are 100 ahead, and drain as they were written until something is charged.
    let mut bucket = model(Algorithm::TokenBucket, 10, 100, 10);
    bucket.call(0, 10, Mode::Check);
    bucket.change(2, 20);
    assert_eq!(look(&mut bucket, 0), (10, 100));
    // Neither a look nor a denial converts: until then it drains as the old numbers had it.
    assert_eq!(bucket.call(50, 16, Mode::Check).outcome, Outcome::Deny);
    assert_eq!(look(&mut bucket, 90), (19, 10));
    assert!(bucket.is_fresh_at(100) && !bucket.is_fresh_at(99));
    // A charge does: 5 used and 5 more, at 50 each from now on.
    assert_eq!(bucket.call(50, 5, Mode::Check).reset_after, 500);
    assert_eq!(look(&mut bucket, 90), (10, 460));
    bucket.change(3, 20);
    // 460 of 2 a 100 is 9.2 units, which at 3 a 100 take 306⅔: 340 with the next one.
    assert_eq!(look(&mut bucket, 90), (10, 460));
    assert_eq!(bucket.call(90, 1, Mode::Check).reset_after, 340);
}

#[test]
fn more_burst_alone_leaves_the_instant() {
    let mut bucket = model(Algorithm::TokenBucket, 10, 100, 10);
    bucket.call(0, 10, Mode::Check);
    bucket.change(10, 15);
    assert_eq!(look(&mut bucket, 0), (5, 100));
    bucket.change(10, 4);
    assert_eq!(look(&mut bucket, 0), (0, 100));
    assert_eq!(bucket.call(0, 1, Mode::Check).retry_after, Some(70));
}

#[test]
fn a_conversion_keeps_the_queues_last_charge() {
    let mut queue = model(Algorithm::LeakyQueue, 10, 100, 9);
    queue.call(0, 4, Mode::Check);
    queue.change(5, 9);
    assert_eq!(look(&mut queue, 0), (6, 40));
    let answer = queue.call(0, 3, Mode::Refund { at: 0 });
    assert_eq!((answer.remaining, answer.reset_after), (9, 20));
}

#[test]
fn a_clock_set_back_keeps_the_usage_and_moves_it_to_now() {
    for algorithm in ALL {
        let queue = u64::from(algorithm == Algorithm::LeakyQueue);
        let mut model = model(algorithm, 10, 100, 10 - queue);
        model.call(100_050, 10, Mode::Check);
        model.repair(450);
        let answer = model.call(450, 1, Mode::Check);
        assert_eq!((answer.outcome, answer.remaining), (Outcome::Deny, 0), "{algorithm:?}");
        assert!(answer.retry_after.is_some_and(|wait| wait <= 200), "{algorithm:?} {answer:?}");
        let before = format!("{model:?}");
        model.repair(450);
        model.repair(100_000);
        assert_eq!(format!("{model:?}"), before, "{algorithm:?}: nothing is ahead of now");
    }
}

#[test]
fn a_full_wait_is_the_most_a_repair_leaves() {
    let mut bucket = model(Algorithm::TokenBucket, 10, 100, 5);
    bucket.call(1_000, 2, Mode::Check);
    bucket.repair(995);
    assert_eq!(look(&mut bucket, 995), (2, 25), "within a full wait: left alone");
    bucket.repair(950);
    assert_eq!(look(&mut bucket, 950), (0, 50));
    let mut queue = model(Algorithm::LeakyQueue, 10, 100, 5);
    queue.call(1_000, 2, Mode::Check);
    queue.repair(900);
    assert_eq!(look(&mut queue, 900), (0, 60));
    assert_eq!(
        queue.call(900, 1, Mode::Refund { at: 1_000 }).reset_after,
        60,
        "not its doing any more"
    );
}

#[test]
fn a_debt_moves_with_the_clock() {
    let mut bucket = model(Algorithm::TokenBucket, 10, 100, 5);
    bucket.call(1_000, 20, Mode::Force);
    bucket.repair(1_000);
    assert_eq!(look(&mut bucket, 1_000), (0, 200));
    bucket.repair(300);
    assert_eq!(look(&mut bucket, 300), (0, 200));
    // The clock has been at 400 since the force was made (now at 300): the debt is as it should be.
    bucket.repair(400);
    assert_eq!(look(&mut bucket, 400), (0, 100));
    bucket.repair(290);
    assert_eq!(look(&mut bucket, 290), (0, 200));
    // Once something is admitted there is no debt: the usual bound holds.
    assert_eq!(bucket.call(480, 1, Mode::Check).outcome, Outcome::Allow);
    bucket.repair(200);
    assert_eq!(look(&mut bucket, 200), (0, 50));
    // A force within the limit leaves no debt either.
    let mut bucket = model(Algorithm::TokenBucket, 10, 100, 5);
    bucket.call(1_000, 5, Mode::Force);
    bucket.repair(700);
    assert_eq!(look(&mut bucket, 700), (0, 50));
}

#[test]
fn a_log_set_back_has_one_entry_now() {
    let mut log = model(Algorithm::SlidingLog, 10, 100, 0);
    for t in [40, 60, 80] {
        log.call(t, 2, Mode::Check);
    }
    log.repair(50);
    assert_eq!(log.call(50, 5, Mode::Check).retry_after, Some(90));
    assert_eq!(
        log.call(50, 1, Mode::Refund { at: 80 }).remaining,
        4,
        "no entry is stamped so any more"
    );
    assert_eq!(log.call(50, 9, Mode::Refund { at: 50 }).remaining, 8);
}
