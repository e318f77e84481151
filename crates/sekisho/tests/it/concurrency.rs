//! Exactly L under concurrency, on real threads: whatever the threads do to each other, the total is the one number that the
//! definitions give. Each algorithm alone and all of them on one request; units in batches, forced, given back; and a clock
//! that goes on meanwhile.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

use sekisho::{
    CanonicalPath, FakeClock, KeyedLimiter, Limiter, Mode, NoHeaders, PolicySet, Request, Span,
};

const THREADS: usize = 8;
const CALLS: usize = 200;
const ROUNDS: u32 = 100;

/// Runs 200 calls from 8 threads that start together, and returns how many passed.
fn passed(call: impl Fn() -> bool + Sync) -> u64 {
    let (barrier, passed) = (Barrier::new(THREADS), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let _thread = scope.spawn(|| {
                let _leader = barrier.wait();
                let own = (0..CALLS / THREADS).filter(|_| call()).count();
                passed.fetch_add(own as u64, Relaxed)
            });
        }
    });
    passed.into_inner()
}

#[test]
fn two_hundred_at_once_on_a_fresh_key_admit_exactly_fifty() {
    for limit in [
        "50/365d fixed-window",
        "50/365d anchored-window",
        "50/365d sliding-log",
        "50/365d sliding-window",
        "50/h token-bucket",
        "50/h burst 49 leaky-queue",
    ] {
        let limiter = KeyedLimiter::new(limit.parse().unwrap());
        for round in 0..ROUNDS {
            let admitted = passed(|| limiter.check(round.to_be_bytes()).unwrap().is_allowed());
            assert!(admitted == 50, "{limit}, round {round}: {admitted}");
        }
    }
}

#[test]
fn several_limits_together_admit_exactly_the_smallest() {
    let policies = r#"
        [[policy]]
        name = "p"
        key = ["ip"]
        limits = [
            "50/365d fixed-window", "70/365d sliding-log", "60/364d fixed-window", "80/365d anchored-window",
            "90/365d sliding-window", "100/365d token-bucket", "110/365d burst 109 leaky-queue",
        ]
        [[policy]]
        name = "q"
        key = [{ constant = "all" }]
        limits = ["1000000/365d sliding-window"]
    "#;
    let limiter = Limiter::new(PolicySet::parse(policies).unwrap());
    for round in 0..ROUNDS {
        let path = CanonicalPath::root();
        let request = Request {
            method: "GET",
            host: None,
            path: &path,
            query: None,
            client: Some(round.to_be_bytes().into()),
            principal: None,
            headers: &NoHeaders,
        };
        let ask = |mode| limiter.decide_now(&request, mode);
        let admitted = passed(|| {
            let path = CanonicalPath::root();
            let request = Request {
                method: "GET",
                host: None,
                path: &path,
                query: None,
                client: Some(round.to_be_bytes().into()),
                principal: None,
                headers: &NoHeaders,
            };
            limiter.decide_now(&request, Mode::Check).is_allowed()
        });
        assert_eq!(admitted, 50, "round {round}");
        // What was refused was charged to none of them.
        let left: Vec<_> =
            ask(Mode::Look).parts.iter().map(|part| part.verdict.remaining.unwrap()).collect();
        assert_eq!(left, [0, 20, 10, 30, 40, 50, 60, 1_000_000 - 50 * u64::from(round + 1)]);
    }
}

/// Sixteen threes fit fifty, and two are left for a smaller request.
#[test]
fn units_in_batches_admit_exactly_what_fits() {
    for limit in [
        "50/365d fixed-window",
        "50/365d anchored-window",
        "50/365d sliding-log",
        "50/365d sliding-window",
        "50/365d token-bucket",
        "50/365d burst 49 leaky-queue",
    ] {
        let limiter = KeyedLimiter::new(limit.parse().unwrap());
        for round in 0..ROUNDS {
            let key = round.to_be_bytes();
            let admitted = passed(|| limiter.check_n(key, 3).unwrap().is_allowed());
            let left = limiter.look(key).unwrap().remaining;
            assert_eq!((admitted, left), (16, Some(2)), "{limit}, round {round}");
        }
    }
}

/// Every force counts, and so does every refund of one. A queue is left out: it takes back only what nobody stands behind.
#[test]
fn what_is_forced_and_given_back_adds_up() {
    for limit in [
        "1000/365d fixed-window",
        "1000/365d anchored-window",
        "1000/365d sliding-log",
        "1000/365d sliding-window",
        "1000/365d token-bucket",
    ] {
        let limiter = KeyedLimiter::new(limit.parse().unwrap());
        for round in 0..ROUNDS {
            let key = round.to_be_bytes();
            let forced = passed(|| {
                let at = limiter.force(key, 3).unwrap().at;
                limiter.refund(key, 1, at).unwrap().is_allowed()
            });
            let left = limiter.look(key).unwrap().remaining;
            assert_eq!((forced, left), (200, Some(1_000 - 2 * 200)), "{limit}, round {round}");
        }
    }
}

/// What comes back while others ask is given out once: a thousand units at first, and one for each of five hundred seconds.
#[test]
fn a_clock_that_goes_on_gives_each_unit_once() {
    for limit in ["1/s burst 1000 token-bucket", "1/s burst 999 leaky-queue"] {
        let clock = Arc::new(FakeClock::default());
        let limiter = KeyedLimiter::with_clock(limit.parse().unwrap(), clock.clone());
        // So that it is never full again, and nothing that comes back is lost.
        assert!(limiter.check_n("k", 600).unwrap().is_allowed(), "{limit}");
        let while_it_goes = thread::scope(|scope| {
            let clock = scope.spawn(|| (0..500).for_each(|_| clock.advance(Span::from_secs(1))));
            let admitted = passed(|| limiter.check("k").unwrap().is_allowed());
            clock.join().unwrap();
            admitted
        });
        let after = (0..1_500).filter(|_| limiter.check("k").unwrap().is_allowed()).count() as u64;
        assert_eq!(600 + while_it_goes + after, 1_500, "{limit}");
    }
}
