//! Waits: those that never end, those that are long, and nobody left in them.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use sekisho::{Clock, FakeClock, KeyedLimiter, Outcome, Span, SystemClock, Timestamp, WaitError};

const DAY: u64 = 86_400;

/// Asks a future once.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
pub(crate) fn nobody_waits_for_what_never_comes() {
    let clock = Arc::new(FakeClock::default());
    let limiter = KeyedLimiter::with_clock("3/2s".parse().unwrap(), Arc::clone(&clock) as _);
    let mut never = pin!(limiter.until_n_ready("a", 4, Duration::MAX));
    let Poll::Ready(Err(WaitError::Never(verdict))) = poll_once(&mut never) else {
        panic!("it is known at once");
    };
    assert_eq!((verdict.outcome, verdict.retry_after), (Outcome::Never, None));
    assert_eq!(limiter.store().occupancy().entries, 0);
    // Dear ones in the line do not keep cheap ones from passing.
    assert!(limiter.check_n("a", 3).unwrap().is_allowed());
    let mut first = pin!(limiter.until_n_ready("a", 1, Duration::MAX));
    let mut dear = pin!(limiter.until_n_ready("a", 4, Duration::MAX));
    let mut last = pin!(limiter.until_n_ready("a", 1, Duration::MAX));
    assert!(poll_once(&mut first).is_pending());
    assert!(poll_once(&mut dear).is_pending() && poll_once(&mut last).is_pending());
    clock.advance(Span::from_secs(2));
    assert!(matches!(poll_once(&mut first), Poll::Ready(Ok(_))));
    assert!(matches!(poll_once(&mut dear), Poll::Ready(Err(WaitError::Never(_)))));
    assert!(matches!(poll_once(&mut last), Poll::Ready(Ok(_))));
    assert_eq!(limiter.look("a").unwrap().remaining, Some(1));
}

#[test]
pub(crate) fn a_year_is_a_wait_like_any_other() {
    let clock = Arc::new(FakeClock::default());
    let limit = "5/365day anchored-window".parse().unwrap();
    let limiter = KeyedLimiter::with_clock(limit, Arc::clone(&clock) as _);
    assert!((0..5).all(|_| limiter.check("a").unwrap().is_allowed()));
    let mut waiting = pin!(limiter.until_ready("a", Duration::from_secs(366 * DAY)));
    for _ in 0..30 {
        clock.advance(Span::from_secs(DAY));
        assert!(poll_once(&mut waiting).is_pending());
        assert_eq!(limiter.store().sweep(), 0);
    }
    let denied = limiter.check("a").unwrap();
    assert_eq!(denied.retry_after.map(Span::as_secs_ceil), Some(28_944_000));
    clock.advance(Span::from_secs(335 * DAY));
    assert!(matches!(poll_once(&mut waiting), Poll::Ready(Ok(_))));
    clock.advance(Span::from_secs(365 * DAY));
    assert_eq!((limiter.store().sweep(), limiter.store().occupancy().entries), (1, 0));
    // On the machine's clock too: no timer takes a year, or the end of time, for none at all.
    let machine = SystemClock::new();
    for until in [machine.now().plus(Span::from_secs(365 * DAY)), Timestamp::MAX] {
        assert!(poll_once(&mut machine.wait_until(until)).is_pending());
    }
}
