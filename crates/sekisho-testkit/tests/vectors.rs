//! The published vectors: the definitions' own examples, number for number.

use sekisho_testkit::model::{Algorithm, Answer, Mode, Model, ModelLimit, Outcome};

fn bucket(amount: u64, period_ns: u64, burst: u64) -> Model {
    Model::new(ModelLimit {
        algorithm: Algorithm::TokenBucket,
        amount,
        period_ns,
        burst,
        resolution_ns: 1,
    })
}

/// Outcome, remaining, retry and reset.
fn seen(answer: &Answer) -> (Outcome, u64, Option<u64>, u64) {
    (answer.outcome, answer.remaining, answer.retry_after, answer.reset_after)
}

#[test]
fn three_in_ten_seconds() {
    let mut model = bucket(3, 10_000_000_000, 3);
    let times = [0, 0, 0, 0, 3_333_333_333, 3_333_333_334];
    let got: Vec<_> = times
        .iter()
        .map(|&t| model.call(t, 1, Mode::Check))
        .map(|answer| (answer.outcome, answer.remaining, answer.retry_after))
        .collect();
    let want = [
        (Outcome::Allow, 2, None),
        (Outcome::Allow, 1, None),
        (Outcome::Allow, 0, None),
        (Outcome::Deny, 0, Some(3_333_333_334)),
        (Outcome::Deny, 0, Some(1)),
        (Outcome::Allow, 0, None),
    ];
    assert_eq!(got, want);
}

#[test]
fn gcra_of_increment_10_and_limit_15() {
    // The tolerance is not a multiple of the increment; in units of half an increment it is: 5
    // units of 5, each cell costs 2.
    let mut model = bucket(1, 5, 5);
    let mut tats = Vec::new();
    let mut verdicts = Vec::new();
    for t in [0, 12, 18, 20, 25] {
        let answer = model.call(t, 2, Mode::Check);
        verdicts.push(answer.outcome == Outcome::Allow);
        tats.push(t + answer.reset_after);
    }
    assert_eq!(verdicts, [true, true, true, true, false]);
    assert_eq!(tats, [10, 22, 32, 42, 42]);
}

#[test]
fn gcra_of_three_units_ten_apart() {
    use Outcome::{Allow, Deny, Never};
    let mut model = bucket(1, 10, 3);
    // now, n, outcome, TAT after, remaining, retry, reset
    let rows = [
        (0, 1, Allow, 10, 2, None, 10),
        (0, 1, Allow, 20, 1, None, 20),
        (0, 1, Allow, 30, 0, None, 30),
        (0, 1, Deny, 30, 0, Some(10), 30),
        (9, 1, Deny, 30, 0, Some(1), 21),
        (10, 1, Allow, 40, 0, None, 30),
        (25, 2, Deny, 40, 1, Some(5), 15),
        (30, 2, Allow, 60, 0, None, 30),
        (100, 0, Allow, 60, 3, None, 0),
        (100, 3, Allow, 130, 0, None, 30),
        (130, 4, Never, 130, 3, None, 0),
        (125, 1, Allow, 140, 1, None, 15),
    ];
    for (now, n, outcome, tat, remaining, retry, reset) in rows {
        let answer = model.call(now, n, Mode::Check);
        assert_eq!(seen(&answer), (outcome, remaining, retry, reset), "at {now}");
        if tat > now {
            assert_eq!(now + answer.reset_after, tat, "at {now}");
        }
    }
}

/// Virtual scheduling as the standard words it, with times multiplied by the amount.
struct VirtualScheduling {
    tat: Option<u128>,
    increment: u128,
    limit: u128,
}

impl VirtualScheduling {
    fn conforms(&mut self, ta: u128) -> bool {
        let tat = self.tat.unwrap_or(ta);
        let conforms = ta + self.limit >= tat;
        if conforms {
            self.tat = Some(ta.max(tat) + self.increment);
        }
        conforms
    }
}

#[test]
fn token_bucket_and_gcra_agree_on_random_intervals() {
    let mut rng = sekisho_testkit::generate::Rng::new(60_000);
    for (amount, period_ns, burst) in [(7_u64, 60_000_u64, 7_u64), (3, 10, 1), (11, 13, 4)] {
        let mut model = bucket(amount, period_ns, burst);
        let increment = u128::from(period_ns);
        let limit = u128::from(burst - 1) * increment;
        let mut gcra = VirtualScheduling { tat: None, increment, limit };
        let mut t = 0;
        for _ in 0..20_000 {
            t += rng.below(2 * period_ns / amount + 1);
            let allowed = model.call(t, 1, Mode::Check).outcome == Outcome::Allow;
            assert_eq!(allowed, gcra.conforms(u128::from(t) * u128::from(amount)), "at {t}");
        }
    }
}

#[test]
fn three_billion_a_second_is_exact() {
    let mut model = bucket(3_000_000_000, 1_000_000_000, 3);
    let passed =
        (0..1_000).filter(|t| model.call(*t, 4, Mode::Check).outcome == Outcome::Allow).count();
    assert_eq!(passed, 0, "more than the capacity");
    let passed: u64 = (0..1_000)
        .map(|t| (0..5).filter(|_| model.call(t, 1, Mode::Check).outcome == Outcome::Allow).count())
        .map(|count| count as u64)
        .sum();
    assert_eq!(passed, 3 * 1_000, "three each nanosecond");
}

#[test]
fn seven_a_minute_never_drifts() {
    // One at a time, as soon as each may pass: after seven periods' worth the clock is on the
    // minute again.
    let mut model = bucket(7, 60_000_000_000, 1);
    let mut t = 0;
    for k in 0..700_u128 {
        assert_eq!(model.call(t, 1, Mode::Check).outcome, Outcome::Allow);
        let answer = model.call(t, 1, Mode::Check);
        t += answer.retry_after.expect("a bucket of one is empty now");
        let due = u64::try_from(((k + 1) * 60_000_000_000).div_ceil(7)).expect("small");
        // A start is on a whole nanosecond, so each may be late by less than one, and the next is
        // counted from there.
        assert!(t >= due && u128::from(t - due) <= k, "{t} {due}");
    }
}
