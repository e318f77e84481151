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

/// A clock that counts who is reading it, and lets others run meanwhile.
#[derive(Debug, Default)]
struct Watched {
    reading: AtomicUsize,
    most: AtomicUsize,
}

impl Clock for Watched {
    fn now(&self) -> Timestamp {
        let reading = self.reading.fetch_add(1, SeqCst) + 1;
        let _before = self.most.fetch_max(reading, SeqCst);
        (0..20).for_each(|_| thread::yield_now());
        let _before = self.reading.fetch_sub(1, SeqCst);
        Timestamp::from_secs(THEN)
    }

    fn wait_until(&self, _: Timestamp) -> Wait {
        Box::pin(std::future::ready(()))
    }
}

#[test]
pub(crate) fn the_time_is_taken_while_the_state_is_held() {
    // Were it taken before, two threads could take it at once, and the later one decide first.
    let watched = Arc::new(Watched::default());
    let store = Memory::with_clock(MemoryOptions::default(), Arc::clone(&watched) as _);
    let limiter = KeyedLimiter::with_store("1000000/min".parse().unwrap(), store);
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let _all_are_here = barrier.wait();
                assert!((0..500).all(|_| limiter.check("a").unwrap().is_allowed()));
            });
        }
    });
    assert_eq!(watched.most.load(SeqCst), 1);
}
