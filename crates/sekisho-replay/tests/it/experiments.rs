//! *boundary*, *steady*, *estimate*, *equivalence* and *burst*.

use sekisho::{KeyedLimiter, Limit, Memory, MemoryOptions, Outcome, Span, Timestamp};
use sekisho_replay::{
    arrivals,
    measure::{Measured, measure},
    simulate::Simulation,
    trace::Arrival,
};
use sekisho_testkit::{
    generate::Rng,
    model::{Algorithm, Mode, Model, ModelLimit, Outcome as ModelOutcome},
};

fn minute(limit: &str, arrivals: &[Arrival]) -> Measured {
    measure(limit.parse().unwrap(), arrivals, Span::from_secs(60)).unwrap()
}

#[test]
fn boundary() {
    for (limit, passed) in [
        ("60/min fixed-window", 120),
        ("60/min sliding-log", 60),
        ("60/min sliding-window", 60),
        ("60/min burst 60 token-bucket", 61),
        ("60/min burst 10 token-bucket", 11),
    ] {
        let measured = minute(limit, &arrivals::boundary());
        assert_eq!((measured.passed, measured.denied), (passed, 120 - passed), "{limit}");
    }
}

#[test]
fn steady() {
    for (limit, most) in [
        ("60/min fixed-window", 100),
        ("60/min sliding-log", 60),
        ("60/min sliding-window", 86),
        ("60/min burst 10 token-bucket", 69),
        ("60/min burst 60 token-bucket", 119),
    ] {
        assert_eq!(minute(limit, &arrivals::steady()).most_in_window, most, "{limit}");
    }
    let queue = minute("1/s burst 10 leaky-queue", &arrivals::steady());
    let apart = queue.starts.windows(2).all(|pair| pair[1].since(pair[0]) == Span::from_secs(1));
    assert!(apart, "the queue starts its requests exactly one second apart");
    assert_eq!(queue.longest_wait, Span::from_secs(10));
}

#[test]
fn estimate() {
    let window = 60 * 1_000;
    for (limit, previous, current) in
        [("50/min sliding-window", 42, 18), ("100/min sliding-window", 80, 40)]
    {
        let simulation = Simulation::new(vec![limit.parse().unwrap()]);
        let ask = |at, cost| {
            let arrival = Arrival { at: Timestamp::from_secs(at), key: "-".to_owned(), cost };
            let answer = simulation.decide(&arrival).unwrap();
            (answer.joint().outcome, answer.verdicts[0].remaining)
        };
        assert_eq!(ask(window, previous).0, Outcome::Allow);
        let (outcome, remaining) = ask(window + 60 + 15, current);
        // 42·45/60 + 18 = 49.5 leaves half a unit, 80·45/60 + 40 = 100 leaves none.
        assert_eq!((outcome, remaining), (Outcome::Allow, Some(0)), "{limit}");
        assert_eq!(ask(window + 60 + 15, 1).0, Outcome::Deny, "{limit}");
    }
}

/// A token bucket that is refilled, in exact rationals, beside GCRA: no decision differs in 60,000.
#[test]
fn equivalence() {
    let mut rng = Rng::new(60_000);
    let mut decided = 0;
    while decided < 60_000 {
        let (amount, period_ns) = (1 + rng.below(100), 1_000_000_000 * (1 + rng.below(60)));
        let burst = 1 + rng.below(50);
        let text = format!("{amount}/{period_ns}ns burst {burst} gcra");
        let simulation = Simulation::new(vec![text.parse().unwrap()]);
        let of = ModelLimit { algorithm: Algorithm::TokenBucket, amount, period_ns, burst };
        let mut bucket = Model::new(of);
        let mut now = 0;
        for _ in 0..1_000 {
            now += rng.below(2 * period_ns / amount);
            let arrival = Arrival { at: Timestamp::from_nanos(now), key: "-".to_owned(), cost: 1 };
            let gcra = simulation.decide(&arrival).unwrap().joint().outcome == Outcome::Allow;
            let refilled = bucket.call(now, 1, Mode::Check).outcome == ModelOutcome::Allow;
            assert_eq!(gcra, refilled, "{text} at {now}");
            decided += 1;
        }
    }
}

#[test]
fn burst() {
    let limit: Limit = "100/min burst 20".parse().unwrap();
    let clock = std::sync::Arc::new(sekisho::FakeClock::at(Timestamp::from_secs(1_000)));
    let store = Memory::with_clock(MemoryOptions::default(), clock.clone());
    let limiter = KeyedLimiter::with_store(limit, store);
    assert_eq!(limiter.check_n("a", 20).unwrap().remaining, Some(0));
    clock.advance(Span::from_secs(10));
    assert_eq!(limiter.look("a").unwrap().remaining, Some(16));
    let passed = limiter.check_n("a", 15).unwrap();
    assert_eq!((passed.outcome, passed.remaining), (Outcome::Allow, Some(1)));
}
