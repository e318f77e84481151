//! Callers that wait for a slot for so long and no longer: a slot that is too far away costs nothing, however many ask.

use std::{sync::Arc, thread};

use sekisho::{
    Asked, CanonicalPath, Decision, FakeClock, Limiter, NoHeaders, PolicySet, Request, Ruling,
    Span, Timestamp,
};

const BEGIN: u64 = 1_000_000_000;

fn limiter(limits: &str) -> (Arc<FakeClock>, Limiter) {
    let file = format!("[[policy]]\nname = \"q\"\nkey = [\"ip\"]\nlimits = [{limits}]\n");
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(BEGIN)));
    (clock.clone(), Limiter::with_clock(PolicySet::parse(&file).unwrap(), clock))
}

fn ask(limiter: &Limiter, longest: Span) -> Decision {
    let path = CanonicalPath::root();
    let request = Request {
        method: "GET",
        host: None,
        path: &path,
        query: None,
        client: Some([203, 0, 113, 9].into()),
        principal: None,
        headers: &NoHeaders,
    };
    limiter.decide_now(&request, Asked { longest: Some(longest), ..Asked::default() })
}

#[test]
fn a_crowd_that_is_refused_takes_no_slot() {
    let (clock, limiter) = limiter("\"1/s burst 10 leaky-queue\"");
    let two_seconds = Span::from_secs(2);
    for second in 0..20 {
        let passed: usize = thread::scope(|scope| {
            let hammer = || (0..200).filter(|_| ask(&limiter, two_seconds).is_allowed()).count();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(hammer)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(passed, if second == 0 { 3 } else { 1 }, "second {second}");
        clock.advance(Span::from_secs(1));
    }
}

#[test]
fn the_wait_of_such_a_denial_is_true_to_the_nanosecond() {
    let (clock, limiter) = limiter("\"7/min burst 10 leaky-queue\", \"100/h\"");
    let longest = Span::from_nanos(20_000_000_000);
    let mut passed = 0;
    for _ in 0..200 {
        let decision = ask(&limiter, longest);
        if decision.is_allowed() {
            assert!(decision.delay <= longest);
            passed += 1;
            clock.advance(Span::from_nanos(123_456_789));
            continue;
        }
        assert_eq!(decision.ruling, Ruling::Deny);
        let queue = decision.binding().unwrap();
        assert!(queue.verdict.remaining > Some(0) && queue.verdict.delay.is_zero());
        let wait = queue.verdict.retry_after.unwrap();
        assert_eq!(queue.verdict.quota_after, wait);
        clock.advance(Span::from_nanos(wait.as_nanos() - 1));
        assert!(!ask(&limiter, longest).is_allowed(), "a nanosecond before");
        clock.advance(Span::from_nanos(1));
        let next = ask(&limiter, longest);
        assert!(next.is_allowed() && next.delay <= longest, "{next:?}");
        passed += 1;
        if passed == 60 {
            return;
        }
    }
    panic!("only {passed} passed");
}

#[test]
fn nobody_waits_at_all_with_no_patience() {
    let (clock, limiter) = limiter("\"1/s burst 10 leaky-queue\"");
    for _ in 0..3 {
        assert!(ask(&limiter, Span::ZERO).is_allowed());
        let refused = ask(&limiter, Span::ZERO);
        assert_eq!(refused.binding().unwrap().verdict.retry_after, Some(Span::from_secs(1)));
        clock.advance(Span::from_secs(1));
    }
}
