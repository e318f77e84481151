//! P1 to P4: what the arithmetic promises, whatever keeps the state.

use sekisho_core::{Algorithm, Limit, Mode, Outcome, Span, limits};
use sekisho_testkit::{
    beside::core_limit,
    generate::Rng,
    model::{self, ModelLimit},
};

use crate::{Key, Step, calls, exists, traces};

/// P1: a denied request, alone, passes after the wait that it was told, and not a nanosecond before.
#[test]
fn p1_retry_after_is_honest() {
    let (mut alone, mut together) = (0, 0);
    traces(|seed, rng, of| {
        let (mut key, mut now) = (Key::new(&of), 0);
        for _ in 0..30 {
            let step = Step::random(rng, &of, now);
            now = step.at;
            let (joint, verdicts) = key.decide(&step);
            for verdict in &verdicts {
                let denied = verdict.outcome == Outcome::Deny;
                assert_eq!(verdict.retry_after.is_some(), denied, "seed {seed}: {verdict:?}");
            }
            let wait = verdicts[joint.binding].retry_after.map_or(0, Span::as_nanos);
            if joint.outcome != Outcome::Deny || !exists(now.saturating_add(wait)) {
                continue;
            }
            let shown = || format!("seed {seed}: {step:?} waits {wait}, {key:?}");
            assert!(wait > 0, "{}", shown());
            assert_eq!(key.judge_at(now + wait, &step).0.outcome, Outcome::Allow, "{}", shown());
            assert_eq!(key.judge_at(now + wait - 1, &step).0.outcome, Outcome::Deny, "{}", shown());
            *(if of.len() == 1 { &mut alone } else { &mut together }) += 1;
        }
        30
    });
    let enough = calls() / 50;
    assert!(alone > enough && together > enough, "{alone} and {together} denials prove little");
}

/// P2: what is refused, and what only looks, leaves every state as it was; its numbers are those of a look.
#[test]
fn p2_a_denial_is_free() {
    let mut refused = 0;
    traces(|seed, rng, of| {
        let (mut key, mut now) = (Key::new(&of), 0);
        for _ in 0..30 {
            let step = Step::random(rng, &of, now);
            now = step.at;
            let before = key.clone();
            let judged = match step.mode {
                Mode::Check => before.judge_at(now, &step).0.outcome,
                Mode::Look | Mode::Force | Mode::Refund { .. } => Outcome::Allow,
            };
            let (joint, verdicts) = key.decide(&step);
            assert_eq!(joint.outcome, judged, "seed {seed}: {step:?}");
            let costs_nothing = judged != Outcome::Allow
                || step.mode == Mode::Look
                || step.costs.iter().all(|cost| *cost == 0);
            if costs_nothing {
                refused += 1;
                assert_eq!(key, before, "seed {seed}: {step:?}");
                let told: Vec<_> = verdicts.iter().map(|of| of.remaining.unwrap()).collect();
                assert_eq!(told, before.remaining_at(now), "seed {seed}: {step:?}");
            }
        }
        30
    });
    assert!(refused > calls() / 10, "only {refused} refused");
}

/// P3: what remains is from 0 to the capacity after any jump of the clock, idle time or reload; and a clock that was set
/// back makes nobody wait longer than a full limit takes.
#[test]
fn p3_remaining_stays_within_the_limit() {
    traces(|seed, rng, mut of| {
        let (mut key, mut now) = (Key::new(&of), 0);
        for _ in 0..30 {
            if rng.chance(1, 5) {
                reload(rng, &mut of, &mut key);
            }
            let from = jump(rng, now);
            let step = Step::random(rng, &of, from);
            if step.at < now && rng.chance(1, 2) {
                key.repair(step.at);
            }
            now = step.at;
            let (_, verdicts) = key.decide(&step);
            for (verdict, limit) in verdicts.iter().zip(&key.limits) {
                let (capacity, remaining) = (limit.capacity().unwrap(), verdict.remaining.unwrap());
                assert_eq!(verdict.capacity, Some(capacity));
                assert!(remaining <= capacity, "seed {seed}: {step:?} of {limit}: {verdict:?}");
                let empty = remaining == 0;
                assert_eq!(!verdict.next_after.is_zero(), empty, "seed {seed}: {verdict:?}");
            }
        }
        30
    });
}

#[test]
fn p3_a_clock_set_back_locks_nobody_out() {
    let mut waited = 0;
    traces(|seed, rng, of| {
        let (mut key, mut now) = (Key::new(&of), 0);
        for _ in 0..30 {
            let from = jump(rng, now);
            let step = Step::random(rng, &of, from).check();
            if step.at < now {
                key.repair(step.at);
            }
            now = step.at;
            let (_, verdicts) = key.decide(&step);
            for (verdict, limit) in verdicts.iter().zip(&of) {
                let wait = verdict.retry_after.map_or(0, Span::as_nanos);
                waited += u64::from(wait > 0);
                assert!(u128::from(wait) <= full_wait(limit), "seed {seed}: {wait} of {limit:?}");
            }
        }
        30
    });
    assert!(waited > calls() / 20, "only {waited} waited");
}

/// P4: stamps in any order admit no more than the same stretch of time in order could.
#[test]
fn p4_late_stamps_mint_nothing() {
    traces(|seed, rng, of| {
        let (mut key, mut now) = (Key::new(&of), 0);
        let (mut first, mut last, mut admitted) = (u64::MAX, 0, vec![0_u128; of.len()]);
        for _ in 0..40 {
            let step = Step::random(rng, &of, now).check();
            now = step.at;
            if key.decide(&step).0.outcome == Outcome::Allow {
                (first, last) = (first.min(now), last.max(now));
                add(&mut admitted, &step.costs);
            }
        }
        let span = Span::from_nanos(last.saturating_sub(first));
        for (limit, sum) in key.limits.iter().zip(&admitted) {
            let most = limit.bound(span).closed.unwrap();
            assert!(*sum <= most, "seed {seed}: {limit} admitted {sum} of {most} in {span}");
        }
        40
    });
}

/// P4: however the clock jumped before, and however long the key lay idle, no stretch of time admits more than the worst
/// case; and setting the clock back gives nothing back.
///
/// A sliding window is left out of the last: its older count weighs less later in a window, so that a clock set back to the
/// end of one may weigh it less. What it gives is still less than a full limit.
#[test]
fn p4_a_jump_of_the_clock_mints_nothing() {
    traces(|seed, rng, of| {
        let (mut key, mut now) = (Key::new(&of), 0);
        // What was admitted since the clock was last set back: time and costs.
        let mut since: Vec<(u64, Vec<u64>)> = Vec::new();
        for _ in 0..40 {
            let from = jump(rng, now);
            let step = Step::random(rng, &of, from).check();
            if step.at < now {
                let before = key.remaining_at(now);
                key.repair(step.at);
                let after = key.remaining_at(step.at);
                for ((limit, before), after) in of.iter().zip(before).zip(after) {
                    let weighed = limit.algorithm == model::Algorithm::SlidingWindow;
                    assert!(weighed || after <= before, "seed {seed}: {limit:?} at {step:?}");
                }
                since.clear();
            }
            now = step.at;
            if key.decide(&step).0.outcome == Outcome::Allow {
                since.push((now, step.costs));
                within_the_bound(seed, &key.limits, &since);
            }
        }
        40
    });
}

/// Fails if some stretch that ends now has admitted more than any may.
fn within_the_bound(seed: u64, limits: &[Limit], since: &[(u64, Vec<u64>)]) {
    let now = since.last().map_or(0, |(at, _)| *at);
    let mut sums = vec![0_u128; limits.len()];
    for (at, costs) in since.iter().rev() {
        add(&mut sums, costs);
        let span = Span::from_nanos(now - at);
        for (limit, sum) in limits.iter().zip(&sums) {
            let most = limit.bound(span).closed.unwrap();
            assert!(*sum <= most, "seed {seed}: {limit} admitted {sum} of {most} in {span}");
        }
    }
}

fn add(sums: &mut [u128], costs: &[u64]) {
    for (sum, cost) in sums.iter_mut().zip(costs) {
        *sum += u128::from(*cost);
    }
}

/// Returns a time to go on from: mostly the last one, sometimes far from it.
fn jump(rng: &mut Rng, now: u64) -> u64 {
    match rng.below(20) {
        0 => 0,
        1 => limits::TIMESTAMP_NS_MAX,
        2 => now.saturating_sub(rng.below(limits::PERIOD_NS_MAX)),
        3 => now.saturating_add(rng.below(limits::PERIOD_NS_MAX)).min(limits::TIMESTAMP_NS_MAX),
        _ => now,
    }
}

/// Gives a limit other numbers, as a reload does, and keeps the state.
fn reload(rng: &mut Rng, of: &mut [ModelLimit], key: &mut Key) {
    let index = usize::try_from(rng.below(of.len() as u64)).unwrap();
    let now = of[index];
    let amount = 1 + rng.below(now.amount.saturating_mul(2));
    let changed = ModelLimit { amount, ..now };
    let longest = u128::from(limits::WAIT_NS_MAX) * u128::from(amount);
    if u128::from(changed.burst) * u128::from(changed.period_ns) <= longest {
        of[index] = changed;
        key.limits[index] = core_limit(&changed);
    }
}

/// Returns the longest that a request of a limit that nobody forced may wait, in nanoseconds.
fn full_wait(of: &ModelLimit) -> u128 {
    let period = u128::from(of.period_ns);
    match core_limit(of).as_metered().unwrap().algorithm() {
        Algorithm::FixedWindow | Algorithm::AnchoredWindow => period,
        Algorithm::SlidingLog => period + u128::from(of.resolution_ns) - 1,
        Algorithm::SlidingWindow => 2 * period,
        Algorithm::TokenBucket | Algorithm::LeakyQueue => {
            (of.capacity() * period).div_ceil(u128::from(of.amount))
        }
    }
}
