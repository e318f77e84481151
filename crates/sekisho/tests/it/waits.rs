//! Waiting for a place: in order, no longer than the deadline, and given back when nobody waits any more.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use sekisho::{Checked, FakeClock, KeyedLimiter, Span, Timestamp, WAITERS_MAX, WaitError};

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Checked, WaitError>> + 'a>>;

fn limiter(limit: &str) -> (Arc<FakeClock>, KeyedLimiter) {
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1_000)));
    (clock.clone(), KeyedLimiter::with_clock(limit.parse().unwrap(), clock))
}

fn wait<'a>(limiter: &'a KeyedLimiter, key: &'a str, seconds: u64) -> Waiting<'a> {
    Box::pin(limiter.until_ready(key, Duration::from_secs(seconds)))
}

fn poll(waiting: &mut Waiting<'_>) -> Poll<Result<Checked, WaitError>> {
    waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls all of them and returns the indexes of those that are done for the first time.
fn done(waiting: &mut [Option<Waiting<'_>>]) -> Vec<usize> {
    let mut done = Vec::new();
    for (index, slot) in waiting.iter_mut().enumerate() {
        if let Some(Poll::Ready(result)) = slot.as_mut().map(poll) {
            assert!(result.unwrap().is_allowed());
            *slot = None;
            done.push(index);
        }
    }
    done
}

#[test]
fn those_who_wait_get_their_places_in_order() {
    for limit in ["1/s burst 1", "1/s sliding-log"] {
        let (clock, limiter) = limiter(limit);
        let mut waiting: Vec<_> = (0..5).map(|_| Some(wait(&limiter, "a", 10))).collect();
        let mut order = vec![done(&mut waiting)];
        for _ in 0..4 {
            clock.advance(Span::from_nanos(999_999_999));
            assert_eq!(done(&mut waiting), [] as [usize; 0], "{limit}: nobody before time");
            clock.advance(Span::from_nanos(1));
            // The one that finishes makes way for the next, which may be polled only in the next turn.
            order.push(done(&mut waiting));
        }
        assert_eq!(order, [[0], [1], [2], [3], [4]], "{limit}");
    }
}

#[test]
fn a_queue_starts_one_a_second_and_takes_back_abandoned_slots() {
    let (clock, limiter) = limiter("1/s burst 4 leaky-queue");
    let mut waiting: Vec<_> = (0..5).map(|_| Some(wait(&limiter, "a", 10))).collect();
    assert_eq!(done(&mut waiting), [0]);
    assert_eq!(limiter.look("a").unwrap().remaining, Some(0));
    assert!(!limiter.check("a").unwrap().is_allowed(), "as many wait as may");
    // The last one gives up: its slot is free again.
    waiting.pop();
    assert_eq!(limiter.look("a").unwrap().remaining, Some(1));
    for index in 1..4 {
        clock.advance(Span::from_secs(1));
        assert_eq!(done(&mut waiting), [index]);
    }
}

#[test]
fn who_cannot_be_served_in_time_is_told_at_once_and_charged_nothing() {
    let (_, limiter) = limiter("1/min burst 1");
    assert!(limiter.check("a").unwrap().is_allowed());
    assert_eq!(poll(&mut wait(&limiter, "a", 59)), Poll::Ready(Err(WaitError::TooLate)));
    assert!(poll(&mut wait(&limiter, "a", 60)).is_pending());
    assert!(matches!(
        poll(
            &mut (Box::pin(limiter.until_n_ready("a", 2, Duration::from_secs(600))) as Waiting<'_>)
        ),
        Poll::Ready(Err(WaitError::Never(_)))
    ));
    let (_, queue) = self::limiter("1/s burst 4 leaky-queue");
    for _ in 0..3 {
        assert!(queue.check("a").unwrap().is_allowed());
    }
    assert_eq!(poll(&mut wait(&queue, "a", 2)), Poll::Ready(Err(WaitError::TooLate)));
    assert_eq!(queue.look("a").unwrap().remaining, Some(2), "its slot is given back");
}

#[test]
fn who_waits_behind_another_leaves_at_the_deadline() {
    let (clock, limiter) = limiter("1/min burst 1");
    assert!(limiter.check("a").unwrap().is_allowed());
    let mut first = wait(&limiter, "a", 600);
    let mut second = wait(&limiter, "a", 5);
    assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
    clock.advance(Span::from_secs(5));
    assert!(poll(&mut second).is_pending(), "its last instant still counts");
    clock.advance(Span::from_nanos(1));
    assert_eq!(poll(&mut second), Poll::Ready(Err(WaitError::TooLate)));
    // One that gives up at the head lets the next one move up.
    let mut third = wait(&limiter, "a", 600);
    assert!(poll(&mut third).is_pending());
    drop(first);
    clock.advance(Span::from_secs(60));
    assert!(poll(&mut third).is_ready());
}

#[test]
fn lines_are_bounded_and_leave_nothing_behind() {
    let (_, limiter) = limiter("1/min burst 1");
    assert!(limiter.check("a").unwrap().is_allowed());
    let mut waiting: Vec<_> = (0..WAITERS_MAX).map(|_| wait(&limiter, "a", 600)).collect();
    assert!(waiting.iter_mut().all(|waiting| poll(waiting).is_pending()));
    assert_eq!(poll(&mut wait(&limiter, "a", 600)), Poll::Ready(Err(WaitError::LineFull)));
    assert!(poll(&mut wait(&limiter, "b", 600)).is_ready());
    drop(waiting);
    assert!(poll(&mut wait(&limiter, "a", 600)).is_pending());
}

#[test]
fn the_machines_clock_waits_for_real() {
    let limiter = KeyedLimiter::new("100/s burst 1".parse().unwrap());
    assert!(limiter.check("a").unwrap().is_allowed());
    let runtime = std::thread::current();
    let waker = Waker::from(Arc::new(Unpark(runtime)));
    let mut waiting = wait(&limiter, "a", 5);
    let mut context = Context::from_waker(&waker);
    let checked = loop {
        match waiting.as_mut().poll(&mut context) {
            Poll::Ready(checked) => break checked.unwrap(),
            Poll::Pending => std::thread::park(),
        }
    };
    assert!(checked.is_allowed());
}

struct Unpark(std::thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
