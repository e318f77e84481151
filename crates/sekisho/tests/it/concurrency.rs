//! Exactly L under concurrency: many simultaneous calls on a fresh key admit exactly L, on real threads.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

use sekisho::{CanonicalPath, KeyedLimiter, Limiter, Mode, NoHeaders, PolicySet, Request};

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
        limits = ["50/365d fixed-window", "70/365d sliding-log", "60/364d fixed-window"]
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
        assert_eq!(left, [0, 20, 10, 1_000_000 - 50 * u64::from(round + 1)]);
    }
}
