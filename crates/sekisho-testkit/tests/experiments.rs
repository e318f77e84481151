//! The published experiments' figures.

use sekisho_testkit::generate::Rng;
use sekisho_testkit::model::{Algorithm, Mode, Model, ModelLimit, Outcome};

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;

fn limit(algorithm: Algorithm, amount: u64, period_ns: u64, burst: u64) -> ModelLimit {
    ModelLimit { algorithm, amount, period_ns, burst, resolution_ns: 1 }
}

fn per_minute(algorithm: Algorithm, burst: u64) -> ModelLimit {
    limit(algorithm, 60, MINUTE, burst)
}

fn passed(limit: ModelLimit, times: &[u64]) -> Vec<u64> {
    let mut model = Model::new(limit);
    let allowed = |t: &&u64| model.call(**t, 1, Mode::Check).outcome == Outcome::Allow;
    times.iter().filter(allowed).copied().collect()
}

/// The most in any half-open stretch of a minute.
fn most_in_a_minute(times: &[u64]) -> usize {
    let within = |from: u64| times.iter().filter(|&&t| t >= from && t < from + MINUTE).count();
    times.iter().map(|&t| within(t)).max().unwrap_or(0)
}

#[test]
fn boundary() {
    let times: Vec<u64> =
        (0..120)
            .map(|i| {
                if i < 60 { 59 * SECOND + i * SECOND / 60 } else { MINUTE + (i - 60) * SECOND / 60 }
            })
            .collect();
    let count = |limit| passed(limit, &times).len();
    assert_eq!(count(per_minute(Algorithm::FixedWindow, 0)), 120);
    assert_eq!(count(per_minute(Algorithm::SlidingLog, 0)), 60);
    assert_eq!(count(per_minute(Algorithm::SlidingWindow, 0)), 60);
    assert_eq!(count(per_minute(Algorithm::TokenBucket, 60)), 61);
    assert_eq!(count(per_minute(Algorithm::TokenBucket, 10)), 11);
}

#[test]
fn steady() {
    let times: Vec<u64> = (0..240).map(|i| 100 * SECOND + i * SECOND / 2).collect();
    let most = |limit| most_in_a_minute(&passed(limit, &times));
    assert_eq!(most(per_minute(Algorithm::FixedWindow, 0)), 100);
    assert_eq!(most(per_minute(Algorithm::SlidingLog, 0)), 60);
    assert_eq!(most(per_minute(Algorithm::SlidingWindow, 0)), 86);
    assert_eq!(most(per_minute(Algorithm::TokenBucket, 10)), 69);
    assert_eq!(most(per_minute(Algorithm::TokenBucket, 60)), 119);
}

#[test]
fn steady_through_a_queue_starts_a_second_apart() {
    let mut model = Model::new(limit(Algorithm::LeakyQueue, 1, SECOND, 10));
    let mut starts = Vec::new();
    let mut longest = 0;
    for t in (0..240).map(|i| 100 * SECOND + i * SECOND / 2) {
        let answer = model.call(t, 1, Mode::Check);
        if answer.outcome == Outcome::Allow {
            starts.push(t + answer.delay);
            longest = longest.max(answer.delay);
        }
    }
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == SECOND), "{starts:?}");
    assert_eq!(longest, 10 * SECOND);
}

#[test]
fn estimate() {
    let at = MINUTE + 15 * SECOND;
    let mut model = Model::new(limit(Algorithm::SlidingWindow, 50, MINUTE, 0));
    model.call(0, 42, Mode::Check);
    assert_eq!(model.call(at, 18, Mode::Check).outcome, Outcome::Allow, "49.5");
    assert_eq!(model.call(at, 1, Mode::Check).outcome, Outcome::Deny, "50.5");

    let mut model = Model::new(limit(Algorithm::SlidingWindow, 100, MINUTE, 0));
    model.call(0, 80, Mode::Check);
    let answer = model.call(at, 40, Mode::Check);
    assert_eq!((answer.outcome, answer.remaining), (Outcome::Allow, 0), "100, exactly");
    let denied = model.call(at, 1, Mode::Check);
    // One of the 80 leaves the estimate every 60/80 s.
    assert_eq!((denied.outcome, denied.retry_after), (Outcome::Deny, Some(750_000_000)));
}

#[test]
fn burst() {
    let mut model = Model::new(limit(Algorithm::TokenBucket, 100, MINUTE, 20));
    assert_eq!(model.call(0, 20, Mode::Check).remaining, 0);
    assert_eq!(model.call(10 * SECOND, 0, Mode::Look).remaining, 16);
    let answer = model.call(10 * SECOND, 15, Mode::Check);
    assert_eq!((answer.outcome, answer.remaining), (Outcome::Allow, 1));
}

/// No algorithm lets more through than its printed bound, on traffic that tries to.
#[test]
fn bounds_hold_under_pressure() {
    let mut rng = Rng::new(11);
    for _ in 0..300 {
        let (amount, period) = (1 + rng.below(6), 20 + rng.below(80));
        let burst = 1 + rng.below(6);
        let bounds = [
            (Algorithm::FixedWindow, 2 * amount),
            (Algorithm::AnchoredWindow, 2 * amount - 1),
            (Algorithm::SlidingLog, amount),
            (Algorithm::SlidingWindow, 2 * amount - 1),
            (Algorithm::TokenBucket, burst + amount - 1),
            (Algorithm::LeakyQueue, burst + amount),
        ];
        let mut t = 0;
        let times: Vec<u64> = (0..200)
            .map(|_| {
                t += if rng.chance(1, 3) { rng.below(period / amount + 2) } else { 0 };
                t
            })
            .collect();
        for (algorithm, bound) in bounds {
            let passed = passed(limit(algorithm, amount, period, burst), &times);
            let within =
                |from: u64| passed.iter().filter(|&&t| t >= from && t < from + period).count();
            let most = passed.iter().map(|&t| within(t) as u64).max().unwrap_or(0);
            assert!(
                most <= bound,
                "{algorithm:?} {amount}/{period} burst {burst}: {most} > {bound}"
            );
        }
    }
}
