//! Every number an answer gives is kept: what it says about later is what happens later.

use sekisho_testkit::generate::{Rng, random_call, random_limit};
use sekisho_testkit::model::{Algorithm, Answer, Mode, Model, ModelLimit, Outcome};

const START: u64 = 1_700_000_000_000_000_000;

/// Walks random traces, and shows each answer together with the model before and after it.
fn walk(seed: u64, mut each: impl FnMut(&Model, &Model, (u64, u64, Mode), &Answer)) {
    let mut rng = Rng::new(seed);
    for _ in 0..1_500 {
        let limit = random_limit(&mut rng);
        let mut model = Model::new(limit);
        let mut t = if rng.chance(1, 2) { 0 } else { START };
        for _ in 0..40 {
            let (time, n, mode) = random_call(&mut rng, &limit, t);
            let before = model.clone();
            let answer = model.call(time, n, mode);
            each(&before, &model, (time, n, mode), &answer);
            t = time;
        }
    }
}

fn check(model: &Model, t: u64, n: u64) -> Outcome {
    model.clone().call(t, n, Mode::Check).outcome
}

#[test]
fn retry_is_honest_to_the_nanosecond() {
    let mut denials = 0;
    walk(1, |_, after, (t, n, _), answer| {
        assert_eq!(answer.retry_after.is_some(), answer.outcome == Outcome::Deny);
        let Some(wait) = answer.retry_after else { return };
        denials += 1;
        assert!(wait > 0);
        let shown = || format!("{after:?} at {t} cost {n} wait {wait}");
        assert_eq!(check(after, t + wait, n), Outcome::Allow, "{}", shown());
        assert_eq!(check(after, t + wait - 1, n), Outcome::Deny, "{}", shown());
        assert_eq!(answer.quota_after, wait);
    });
    assert!(denials > 5_000, "only {denials} denials: the traces prove little");
}

#[test]
fn the_next_unit_comes_when_it_is_said_to() {
    walk(2, |_, after, (t, n, mode), answer| {
        let shown = || format!("{after:?} {mode:?} at {t} cost {n}: {answer:?}");
        if answer.next_after == 0 {
            assert!(answer.remaining > 0, "{}", shown());
            assert_eq!(check(after, t, answer.remaining), Outcome::Allow, "{}", shown());
        } else {
            assert_eq!(answer.remaining, 0, "{}", shown());
            assert_eq!(check(after, t + answer.next_after, 1), Outcome::Allow, "{}", shown());
            assert_eq!(check(after, t + answer.next_after - 1, 1), Outcome::Deny, "{}", shown());
        }
        if let Some(more) = answer.remaining.checked_add(1) {
            assert_ne!(check(after, t, more), Outcome::Allow, "{}", shown());
        }
    });
}

#[test]
fn a_reset_key_is_fresh_and_was_not_before() {
    walk(3, |_, after, (t, n, mode), answer| {
        let shown = || format!("{after:?} {mode:?} at {t} cost {n}: {answer:?}");
        let fresh = Model::new(after.limit()).call(t, 0, Mode::Look);
        if answer.reset_after > 0 {
            assert!(after.is_fresh_at(t + answer.reset_after), "{}", shown());
            assert!(!after.is_fresh_at(t + answer.reset_after - 1), "{}", shown());
        } else {
            assert_eq!(u128::from(answer.remaining), after.limit().capacity(), "{}", shown());
            assert_eq!(answer.next_after, fresh.next_after, "{}", shown());
        }
    });
}

/// A key that calls itself fresh answers everything that follows as a new key does.
#[test]
fn fresh_means_indistinguishable() {
    let mut rng = Rng::new(4);
    let mut compared = 0;
    walk(5, |_, after, (t, _, _), answer| {
        let from = t + answer.reset_after;
        if !after.is_fresh_at(from) || !rng.chance(1, 20) {
            return;
        }
        compared += 1;
        let (mut old, mut new) = (after.clone(), Model::new(after.limit()));
        let mut t = from;
        for _ in 0..12 {
            let (time, n, mode) = random_call(&mut rng, &after.limit(), t);
            t = time.max(from);
            assert_eq!(old.call(t, n, mode), new.call(t, n, mode), "{after:?} {mode:?} {t} {n}");
        }
    });
    assert!(compared > 500, "only {compared} compared");
}

/// Only an admitted request, a force and a refund store anything.
#[test]
fn what_is_not_charged_leaves_no_trace() {
    walk(6, |before, after, (t, n, mode), answer| {
        let charged = match mode {
            Mode::Check => answer.outcome == Outcome::Allow && n > 0,
            Mode::Look => false,
            Mode::Force | Mode::Refund { .. } => n > 0,
        };
        if !charged {
            assert_eq!(format!("{before:?}"), format!("{after:?}"), "{mode:?} {t} {n}");
        }
        let allowed = u128::from(n) <= before.limit().capacity();
        assert_eq!(mode == Mode::Check && !allowed, answer.outcome == Outcome::Never);
    });
}

/// A queue's starts are never closer than the interval, and never further away than the burst
/// allows.
#[test]
fn a_queue_keeps_its_distance() {
    let mut rng = Rng::new(8);
    for _ in 0..500 {
        let (amount, period_ns, burst) = (1 + rng.below(9), 1 + rng.below(100), rng.below(6));
        let limit = ModelLimit {
            algorithm: Algorithm::LeakyQueue,
            amount,
            period_ns,
            burst,
            resolution_ns: 1,
        };
        let (mut model, mut t, mut last) = (Model::new(limit), 0, None);
        for _ in 0..100 {
            t += rng.below(2 * period_ns / amount + 2);
            let answer = model.call(t, 1, Mode::Check);
            if answer.outcome == Outcome::Allow {
                assert!(answer.delay <= (burst * period_ns).div_ceil(amount));
                let start = t + answer.delay;
                // Both starts are rounded up, so their distance may be one nanosecond short of the
                // interval's ceiling.
                if let Some(last) = last.replace(start) {
                    assert!(start - last >= period_ns / amount, "{limit:?} {last} {start}");
                }
            }
        }
    }
}

/// The sliding window's wait, found by asking at every nanosecond, with the estimate worked out on
/// paper.
#[test]
fn the_sliding_estimate_by_hand_and_step_by_step() {
    let mut rng = Rng::new(9);
    for _ in 0..2_000 {
        let (amount, period_ns) = (1 + rng.below(12), 1 + rng.below(40));
        let limit = ModelLimit {
            algorithm: Algorithm::SlidingWindow,
            amount,
            period_ns,
            burst: 0,
            resolution_ns: 1,
        };
        let mut model = Model::new(limit);
        let (previous, current) = (rng.below(2 * amount), rng.below(2 * amount));
        let e = rng.below(period_ns);
        model.call(0, previous, Mode::Force);
        model.call(period_ns, current, Mode::Force);
        let n = 1 + rng.below(amount);
        let t = period_ns + e;
        let fits = previous * (period_ns - e) + (current + n) * period_ns <= amount * period_ns;
        let answer = model.clone().call(t, n, Mode::Check);
        assert_eq!(
            answer.outcome == Outcome::Allow,
            fits,
            "{previous} {current} {e} {n} {limit:?}"
        );
        if !fits {
            let first =
                (1..=2 * period_ns).find(|&wait| check(&model, t + wait, n) == Outcome::Allow);
            assert_eq!(answer.retry_after, first, "{previous} {current} {e} {n} {limit:?}");
        }
    }
}
