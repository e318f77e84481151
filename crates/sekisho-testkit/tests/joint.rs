//! Several limits on one request.

use sekisho_testkit::generate::{Rng, random_call, random_limit};
use sekisho_testkit::model::{Algorithm, Joint, Mode, Model, ModelLimit, Outcome};

fn limit(algorithm: Algorithm, amount: u64, period_ns: u64, burst: u64) -> ModelLimit {
    ModelLimit { algorithm, amount, period_ns, burst, resolution_ns: 1 }
}

#[test]
fn one_denial_charges_none() {
    let mut joint = Joint::new(vec![
        limit(Algorithm::TokenBucket, 10, 100, 10),
        limit(Algorithm::FixedWindow, 2, 100, 0),
        limit(Algorithm::SlidingLog, 1, 1_000, 0),
    ]);
    let first = joint.call(0, &[1, 1, 1], Mode::Check);
    assert_eq!((first.outcome, first.binding), (Outcome::Allow, 2), "0 of 1 is the least");
    let second = joint.call(5, &[1, 2, 1], Mode::Check);
    assert_eq!((second.outcome, second.binding), (Outcome::Deny, 2), "995 is longer than 95");
    let outcomes: Vec<_> = second.answers.iter().map(|answer| answer.outcome).collect();
    assert_eq!(outcomes, [Outcome::Allow, Outcome::Deny, Outcome::Deny]);
    let waits: Vec<_> = second.answers.iter().map(|answer| answer.retry_after).collect();
    assert_eq!(waits, [None, Some(95), Some(995)]);
    assert_eq!(second.answers[0].remaining, 9, "uncharged");
    let third = joint.call(5, &[1, 3, 1], Mode::Check);
    assert_eq!((third.outcome, third.binding), (Outcome::Never, 1), "never before deny");
}

#[test]
fn ties_go_to_the_first_listed() {
    let same = limit(Algorithm::TokenBucket, 2, 10, 2);
    // 5 of 10 and 1 of 2 are the same share.
    let wide = limit(Algorithm::FixedWindow, 10, 10, 0);
    let mut joint = Joint::new(vec![wide, same, same]);
    assert_eq!(joint.call(0, &[5, 1, 1], Mode::Check).binding, 0);
    assert_eq!(joint.call(0, &[0, 1, 1], Mode::Check).binding, 1);
    let denied = joint.call(0, &[0, 1, 1], Mode::Check);
    assert_eq!((denied.outcome, denied.binding), (Outcome::Deny, 1));
    let never = joint.call(0, &[11, 3, 3], Mode::Check);
    assert_eq!((never.outcome, never.binding), (Outcome::Never, 0));
}

#[test]
fn the_longest_delay_is_the_requests() {
    let mut joint = Joint::new(vec![
        limit(Algorithm::LeakyQueue, 1, 10, 5),
        limit(Algorithm::LeakyQueue, 1, 30, 5),
        limit(Algorithm::TokenBucket, 10, 10, 3),
    ]);
    assert_eq!(joint.call(0, &[1, 1, 1], Mode::Check).delay, 0);
    assert_eq!(joint.call(0, &[1, 1, 1], Mode::Check).delay, 30);
    assert_eq!(joint.call(0, &[1, 1, 4], Mode::Check).delay, 0, "never");
    assert_eq!(joint.call(0, &[1, 1, 1], Mode::Force).delay, 0);
    assert_eq!(joint.call(0, &[1, 9, 1], Mode::Look).delay, 0);
}

/// The order of the limits never changes an outcome or a charge; and each limit keeps what it would
/// keep alone, of what was charged.
#[test]
fn order_breaks_ties_and_nothing_else() {
    let mut rng = Rng::new(21);
    let mut mixed = 0;
    for _ in 0..600 {
        let limits: Vec<ModelLimit> = (0..3).map(|_| random_limit(&mut rng)).collect();
        let mut joint = Joint::new(limits.clone());
        let mut reversed = Joint::new(limits.iter().rev().copied().collect());
        let mut alone: Vec<Model> = limits.iter().copied().map(Model::new).collect();
        let mut t = 0;
        for _ in 0..30 {
            let chosen = *rng.pick(&limits);
            let (time, _, mode) = random_call(&mut rng, &chosen, t);
            let costs: Vec<u64> =
                limits.iter().map(|limit| random_call(&mut rng, limit, t).1).collect();
            t = time;
            let backwards: Vec<u64> = costs.iter().rev().copied().collect();
            let one = joint.call(t, &costs, mode);
            let mut other = reversed.call(t, &backwards, mode);
            other.answers.reverse();
            assert_eq!(
                (one.outcome, one.delay, &one.answers),
                (other.outcome, other.delay, &other.answers)
            );
            assert_eq!(one.answers[one.binding].outcome, one.outcome);
            mixed += usize::from(one.outcome == Outcome::Deny);

            for ((model, &n), answer) in alone.iter_mut().zip(&costs).zip(&one.answers) {
                let own = model.clone().call(t, n, mode);
                if mode != Mode::Check
                    || one.outcome == Outcome::Allow
                    || own.outcome != Outcome::Allow
                {
                    assert_eq!(&model.call(t, n, mode), answer);
                } else {
                    assert_eq!(&model.call(t, 0, Mode::Look), answer);
                }
            }
        }
    }
    assert!(mixed > 1_000, "only {mixed} denials");
}
