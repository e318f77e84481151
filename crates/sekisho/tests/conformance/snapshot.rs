//! One decision is one snapshot: its numbers, and the sums over many.

use std::sync::Arc;

use sekisho::{
    CanonicalPath, Clock, FakeClock, KeyedLimiter, Limiter, Mode, NoHeaders, Part, PolicySet, Request,
    Ruling, Span, Timestamp,
};

/// A full half hour, so that fixed windows begin with it.
const BEGIN: Timestamp = Timestamp::from_secs(1_800_000_000);

fn root() -> CanonicalPath {
    CanonicalPath::parse("/").unwrap()
}

fn request(path: &CanonicalPath) -> Request<'_> {
    Request {
        method: "GET",
        host: None,
        path,
        query: None,
        client: Some("192.0.2.1".parse().unwrap()),
        principal: None,
        headers: &NoHeaders,
    }
}

#[test]
pub(crate) fn numbers_do_not_move_with_the_clock() {
    let clock = Arc::new(FakeClock::at(BEGIN));
    let text = "[[policy]]\nname = \"a\"\nkey = [\"ip\"]\nlimits = [\"2/min anchored-window\"]\n";
    let limiter = Limiter::with_clock(PolicySet::parse(text).unwrap(), Arc::clone(&clock) as _);
    let path = root();
    let ask = || limiter.decide_now(&request(&path), Mode::Check);
    assert!(ask().is_allowed());
    clock.advance(Span::from_secs(1));
    assert!(ask().is_allowed());
    clock.advance(Span::from_nanos(58_999_000_000));
    let denied = ask();
    clock.advance(Span::from_nanos(2_000_000));
    assert!(clock.now() > BEGIN.plus(Span::from_secs(60)), "the window is over when it is read");
    let verdict = denied.binding().unwrap().verdict;
    assert_eq!(denied.ruling, Ruling::Deny);
    assert_eq!(denied.at, BEGIN.plus(Span::from_nanos(59_999_000_000)));
    assert_eq!(verdict.retry_after, Some(Span::from_nanos(1_000_000)));
    assert_eq!(verdict.retry_after.map(Span::as_secs_ceil), Some(1));
    assert_eq!(verdict.retry_after.map(Span::as_millis_ceil), Some(1));
    assert_eq!(verdict.reset_after.as_secs_ceil(), 1);
    assert_eq!(verdict.remaining, Some(0));
    // The key has gone meanwhile: a new decision has numbers of its own, and no leftover of the old ones.
    let allowed = ask();
    let verdict = allowed.binding().unwrap().verdict;
    assert_eq!((verdict.remaining, verdict.retry_after), (Some(1), None));
    assert_eq!(verdict.reset_after, Span::from_secs(60));
}

#[test]
pub(crate) fn sums_agree_with_the_store() {
    let clock = Arc::new(FakeClock::at(BEGIN));
    let text = "[[policy]]\nname = \"a\"\nkey = [\"ip\"]\n\
                limits = [\"10/min fixed-window\", \"30/30min fixed-window\"]\n";
    let limiter = Limiter::with_clock(PolicySet::parse(text).unwrap(), Arc::clone(&clock) as _);
    let path = root();
    let (mut allowed, mut denied, mut in_minutes) = (0_u64, 0_u64, Vec::new());
    for (minute, requests) in [16, 15, 15].into_iter().enumerate() {
        let before = allowed;
        for _ in 0..requests {
            let decision = limiter.decide_now(&request(&path), Mode::Check);
            let violated = decision.violated().count();
            match decision.ruling {
                Ruling::Allow => allowed += 1,
                Ruling::Deny => denied += 1,
                other => panic!("{other:?}"),
            }
            assert_eq!(violated > 0, decision.ruling == Ruling::Deny);
        }
        in_minutes.push(allowed - before);
        // The store's own counters, as a look shows them.
        let look = limiter.decide_now(&request(&path), Mode::Look);
        let used = |part: &Part| part.verdict.capacity.unwrap() - part.verdict.remaining.unwrap();
        let used: Vec<u64> = look.parts.iter().map(used).collect();
        assert_eq!(used, [allowed - before, allowed], "minute {minute}");
        clock.advance(Span::from_secs(60));
    }
    assert_eq!((allowed, denied), (30, 16));
    assert_eq!(in_minutes, [10, 10, 10]);
}

#[test]
pub(crate) fn each_process_counts_for_itself() {
    let text = "[[policy]]\nname = \"a\"\nkey = [\"ip\"]\nlimits = [\"10/day\"]\n";
    let gateways = [0; 3].map(|_| Limiter::new(PolicySet::parse(text).unwrap()));
    let path = root();
    let passed = (0..60).filter(|turn| {
        gateways[turn % 3].decide_now(&request(&path), Mode::Check).is_allowed()
    });
    assert_eq!(passed.count(), 30);
    // Direct limiters neither.
    let direct = [0; 3].map(|_| KeyedLimiter::new("10/day".parse().unwrap()));
    let passed = (0..60).filter(|turn| direct[turn % 3].check("a").unwrap().is_allowed());
    assert_eq!(passed.count(), 30);
}
