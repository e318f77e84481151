//! Clocks: set back, asleep, and read by many.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

use sekisho::{
    Clock, FakeClock, KeyedLimiter, Limit, Memory, MemoryOptions, Mode, Outcome, Span, SystemClock,
    Timestamp, Wait, Zones,
    core::{Call, State},
};

/// One limit of each algorithm; each lets 5 through at once, and a full wait is no longer than a minute.
const LIMITS: [(&str, u64); 6] = [
    ("5/min fixed-window", 60),
    ("5/min anchored-window", 60),
    ("5/min sliding-window", 120),
    ("5/min sliding-log", 60),
    ("5/min", 60),
    ("5/min burst 4 leaky-queue", 60),
];

const EIGHT_HOURS: u64 = 8 * 3_600;
/// Within a window of a minute, not at its beginning.
const THEN: u64 = 1_700_000_010;

fn ask(limit: &Limit, state: &mut State, now: Timestamp) -> (Outcome, Option<Span>) {
    let verdict = limit.decide(state, Call { now, cost: 1, mode: Mode::Check }, &Zones);
    (verdict.outcome, verdict.retry_after)
}

#[test]
pub(crate) fn a_clock_set_back_costs_at_most_one_wait() {
    // One in a tenth of a second: a tenth later it passes again.
    let limit: Limit = "10/s burst 1".parse().unwrap();
    let (mut state, then) = (State::Fresh, Timestamp::from_secs(THEN));
    assert_eq!(ask(&limit, &mut state, then).0, Outcome::Allow);
    let back = Timestamp::from_secs(THEN - EIGHT_HOURS);
    limit.repair(&mut state, back, &Zones);
    assert_eq!(ask(&limit, &mut state, back), (Outcome::Deny, Some(Span::from_nanos(100_000_000))));
    let later = back.plus(Span::from_nanos(100_000_000));
    assert_eq!(ask(&limit, &mut state, later).0, Outcome::Allow);
    for (text, full_wait) in LIMITS {
        let limit: Limit = text.parse().unwrap();
        let mut state = State::Fresh;
        assert!((0..5).all(|_| ask(&limit, &mut state, then).0 == Outcome::Allow), "{text}");
        // Without the repair it would be hours.
        let (_, wait) = ask(&limit, &mut state.clone(), back);
        assert!(wait.is_some_and(|wait| wait.as_secs_ceil() >= EIGHT_HOURS), "{text}");
        limit.repair(&mut state, back, &Zones);
        let (outcome, wait) = ask(&limit, &mut state, back);
        let wait = wait.unwrap_or_default();
        assert_eq!(outcome, Outcome::Deny, "{text}: nothing is given for free");
        assert!(wait <= Span::from_secs(full_wait), "{text}: {wait}");
        assert_eq!(ask(&limit, &mut state, back.plus(wait)).0, Outcome::Allow, "{text}");
    }
}

#[test]
pub(crate) fn the_machines_clock_never_goes_back() {
    let clock = SystemClock::new();
    let mut before = clock.now();
    for _ in 0..100_000 {
        let now = clock.now();
        assert!(now >= before);
        before = now;
    }
    assert!(before > Timestamp::from_secs(THEN), "it begins with the wall clock's time");
    // It counts what the machine's clock counts that goes on in suspend.
    #[cfg(target_os = "linux")]
    {
        let boottime = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
            u64::try_from(time.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap()
        };
        let (low, at, high) = (boottime(), clock.now(), boottime());
        let (low_later, at_later, high_later) = (boottime(), clock.now(), boottime());
        let passed = at_later.since(at).as_nanos();
        assert!(passed >= low_later - high && passed <= high_later - low);
    }
}

#[test]
pub(crate) fn a_clock_that_stood_still_is_honest() {
    // The machine slept an hour, and the deciding clock did not count it.
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(THEN)));
    let limit = "5/min anchored-window".parse().unwrap();
    let limiter = KeyedLimiter::with_clock(limit, Arc::clone(&clock) as _);
    assert!((0..5).all(|_| limiter.check("a").unwrap().is_allowed()));
    let denied = limiter.check("a").unwrap();
    let wait = denied.retry_after.unwrap();
    assert!(wait <= Span::from_secs(60));
    assert_eq!(denied.reset_after, wait);
    clock.advance(Span::from_nanos(wait.as_nanos() - 1));
    assert_eq!(limiter.check("a").unwrap().retry_after, Some(Span::from_nanos(1)));
    clock.advance(Span::from_nanos(1));
    assert_eq!((0..10).filter(|_| limiter.check("a").unwrap().is_allowed()).count(), 5);
}

#[test]
pub(crate) fn a_sleeper_gets_the_capacity_and_no_more() {
    for (text, full_wait) in LIMITS {
        let clock = Arc::new(FakeClock::at(Timestamp::from_secs(THEN)));
        let limiter = KeyedLimiter::with_clock(text.parse().unwrap(), Arc::clone(&clock) as _);
        let passed = || (0..20).filter(|_| limiter.check("a").unwrap().is_allowed()).count();
        assert_eq!(passed(), 5, "{text}");
        clock.advance(Span::from_secs(3_600));
        assert_eq!(passed(), 5, "{text}");
        let wait = limiter.check("a").unwrap().retry_after.unwrap();
        assert!(wait <= Span::from_secs(full_wait), "{text}: {wait}");
    }
}

/// A clock that tells the first who asks an early time, and that late: after the second has been told a later one and has used it.
#[derive(Debug)]
struct Slow {
    asked: AtomicUsize,
    second_is_done: Barrier,
}

impl Clock for Slow {
    fn now(&self) -> Timestamp {
        match self.asked.fetch_add(1, SeqCst) {
            0 => Timestamp::from_secs(THEN),
            1 => {
                let _both = self.second_is_done.wait();
                Timestamp::from_secs(THEN + 1)
            }
            2 => Timestamp::from_secs(THEN + 60),
            _ => Timestamp::from_secs(THEN + 61),
        }
    }

    fn wait_until(&self, _: Timestamp) -> Wait {
        Box::pin(std::future::ready(()))
    }
}

#[test]
pub(crate) fn nobody_is_judged_at_a_time_before_the_last_decisions() {
    // Threads that read the clock may overtake each other on their way to the state. The one that comes second is not late.
    for (text, _) in LIMITS {
        let clock = Slow { asked: AtomicUsize::new(0), second_is_done: Barrier::new(2) };
        let clock = Arc::new(clock);
        let store = Memory::with_clock(MemoryOptions::default(), Arc::clone(&clock) as _);
        let limiter = KeyedLimiter::with_store(text.parse().unwrap(), store);
        let first = limiter.check("a").unwrap();
        thread::scope(|scope| {
            let slow = scope.spawn(|| limiter.check("a").unwrap());
            while clock.asked.load(SeqCst) < 2 {
                thread::yield_now();
            }
            let quick = limiter.check("a").unwrap();
            assert_eq!(quick.at, first.at.plus(Span::from_secs(60)), "{text}");
            let _both = clock.second_is_done.wait();
            assert_eq!(slow.join().unwrap().at, quick.at, "{text}");
        });
        assert!(limiter.check("a").unwrap().at > first.at.plus(Span::from_secs(60)), "{text}");
    }
}
