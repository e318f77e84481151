//! The token bucket beside other crates that count the same way: equal where the definitions are, and each known difference
//! as a test of its own. `docs/differences.md` has them in words.
#![expect(clippy::unwrap_used, reason = "a test may end early")]

use std::{
    env,
    num::NonZero,
    time::{Duration, SystemTime},
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, FakeRelativeClock},
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{InMemoryState, NotKeyed},
};
use sekisho_core::{
    Algorithm, Call, Limit, Mode, Outcome, Period, Rate, Span, State, Timestamp, Utc, Verdict,
};
use sekisho_testkit::generate::Rng;
use throttlecrab::PeriodicStore;

const SECOND: u64 = 1_000_000_000;

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// One key under one of our limits.
struct Ours {
    limit: Limit,
    state: State,
}

impl Ours {
    fn of(text: &str) -> Self {
        Self { limit: text.parse().unwrap(), state: State::Fresh }
    }

    fn check(&mut self, ns: u64, cost: u64) -> Verdict {
        let call = Call { now: Timestamp::from_nanos(ns), cost, mode: Mode::Check };
        self.limit.decide(&mut self.state, call, &Utc)
    }

    /// Returns how many of some requests at one instant pass.
    fn passed(&mut self, ns: u64, requests: u64) -> u64 {
        (0..requests).map(|_| u64::from(self.check(ns, 1).is_allowed())).sum()
    }
}

/// governor's direct limiter on a clock of ours.
struct Governor {
    clock: FakeRelativeClock,
    limiter: RateLimiter<NotKeyed, InMemoryState, FakeRelativeClock, NoOpMiddleware<Nanos>>,
    now: u64,
}

impl Governor {
    fn of(quota: Quota) -> Self {
        let clock = FakeRelativeClock::default();
        Self { limiter: RateLimiter::direct_with_clock(quota, clock.clone()), clock, now: 0 }
    }

    /// Returns the outcome, and the wait after a denial.
    fn check(&mut self, ns: u64, cost: u32) -> (Outcome, Option<u64>) {
        self.clock.advance(Duration::from_nanos(ns - self.now));
        self.now = ns;
        match self.limiter.check_n(NonZero::new(cost).unwrap()) {
            Ok(Ok(())) => (Outcome::Allow, None),
            Ok(Err(denied)) => {
                let wait = denied.wait_time_from(self.clock.now());
                (Outcome::Deny, Some(u64::try_from(wait.as_nanos()).unwrap()))
            }
            Err(_more_than_the_burst) => (Outcome::Never, None),
        }
    }
}

fn burst(of: u64) -> NonZero<u32> {
    NonZero::new(u32::try_from(of).unwrap()).unwrap()
}

/// Where the interval is a whole number of nanoseconds, both say the same of every request: the outcome, and how long to wait.
#[test]
fn governor_decides_the_same_where_the_interval_is_whole() {
    let long = env::var_os("SEKISHO_LONG").is_some();
    let decisions = setting("SEKISHO_DECISIONS", if long { 5_000_000 } else { 100_000 });
    let (mut made, mut denied, mut seed) = (0, 0, setting("SEKISHO_SEED", 0));
    while made < decisions {
        seed += 1;
        let mut rng = Rng::new(seed);
        let interval = *rng.pick(&[1, 2, 7, 1_000, 142_857_143, SECOND, 60 * SECOND]);
        let (amount, capacity) = (1 + rng.below(50), 1 + rng.below(50));
        let period = Period::fixed(Span::from_nanos(interval * amount)).unwrap();
        let rate = Rate::new(amount, period).unwrap();
        let limit = Limit::metered(rate, Algorithm::TokenBucket, Some(capacity)).unwrap();
        let mut ours = Ours { limit, state: State::Fresh };
        let quota = Quota::with_period(Duration::from_nanos(interval)).unwrap();
        let mut theirs = Governor::of(quota.allow_burst(burst(capacity)));
        let mut now = 0;
        for _ in 0..100 {
            now += match rng.below(10) {
                0..4 => 0,
                4..7 => rng.below(2 * interval),
                7 => interval,
                8 => interval * (1 + rng.below(capacity)) - rng.below(2),
                _ => rng.below(2 * interval * capacity),
            };
            let cost = if rng.chance(2, 3) { 1 } else { 1 + rng.below(capacity + 1) };
            let verdict = ours.check(now, cost);
            let seen = (verdict.outcome, verdict.retry_after.map(Span::as_nanos));
            let peer = theirs.check(now, u32::try_from(cost).unwrap());
            assert_eq!(seen, peer, "seed {seed}: {limit} at {now}, cost {cost}");
            denied += u64::from(verdict.outcome == Outcome::Deny);
            made += 1;
        }
    }
    assert!(denied > decisions / 10, "only {denied} denials");
}

/// governor rounds the interval down to whole nanoseconds: 7 a minute are a little more than 7 a minute, and it adds up.
#[test]
fn governor_rounds_the_interval_and_we_do_not() {
    let mut ours = Ours::of("7/min burst 1");
    let mut theirs = Governor::of(Quota::per_minute(burst(7)).allow_burst(burst(1)));
    assert!(ours.check(0, 1).is_allowed());
    assert_eq!(theirs.check(0, 1).0, Outcome::Allow);
    // The interval is 8,571,428,571 and 3/7 ns.
    assert_eq!(ours.check(8_571_428_571, 1).retry_after, Some(Span::from_nanos(1)));
    assert_eq!(theirs.check(8_571_428_571, 1).0, Outcome::Allow);

    // 999,999 a second: 1000.001 ns each. Asked every 1000 ns for three seconds, all of governor's pass: one in a million too many.
    let mut ours = Ours::of("999999/s burst 2");
    let mut theirs = Governor::of(Quota::per_second(burst(999_999)).allow_burst(burst(2)));
    let (mut passed, mut peers) = (0_u64, 0_u64);
    for at in (0..3_000_000).map(|step| step * 1_000) {
        passed += u64::from(ours.check(at, 1).is_allowed());
        peers += u64::from(theirs.check(at, 1).0 == Outcome::Allow);
    }
    // B + r·T over 2.999999 s; and all of them.
    assert_eq!((passed, peers), (2_999_998, 3_000_000));
}

/// governor knows no interval below a nanosecond: three billion a second are one billion there.
#[test]
fn governor_stops_at_one_a_nanosecond_and_we_do_not() {
    let mut ours = Ours::of("3000000000/s burst 3");
    let mut theirs = Governor::of(Quota::per_second(burst(3_000_000_000)).allow_burst(burst(3)));
    assert_eq!((ours.passed(0, 4), peers(&mut theirs, 0, 4)), (3, 3));
    assert_eq!((ours.passed(1, 4), peers(&mut theirs, 1, 4)), (3, 1));
}

fn peers(of: &mut Governor, ns: u64, requests: u64) -> u64 {
    (0..requests).map(|_| u64::from(of.check(ns, 1).0 == Outcome::Allow)).sum()
}

/// throttlecrab clamps its time value to a full burst before now instead of to now, so that an idle key may gain nearly a
/// second burst: 17 of 10 at once. Ours never passes more than its burst at once.
#[test]
fn throttlecrab_admits_seventeen_of_ten_and_we_do_not() {
    let mut theirs = throttlecrab::RateLimiter::new(PeriodicStore::new());
    let mut passed = |key: &str, most: i64, (count, period): (i64, i64), ns: u64, requests: u64| {
        let now = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_700_000_000 * SECOND + ns);
        let mut one = || theirs.rate_limit(key, most, count, period, 1, now).unwrap().0;
        (0..requests).map(|_| u64::from(one())).sum::<u64>()
    };
    // 10 in 10 s and a burst of 10: one request, 8.9 s of silence, then everything at once.
    let mut ours = Ours::of("10/10s burst 10");
    assert_eq!((ours.passed(0, 1), passed("a", 10, (10, 10), 0, 1)), (1, 1));
    let idle = 8_900_000_000;
    assert_eq!((ours.passed(idle, 50), passed("a", 10, (10, 10), idle, 50)), (10, 17));

    // 60 a minute: 117 of 60.
    let mut ours = Ours::of("60/min");
    assert_eq!((ours.passed(0, 1), passed("b", 60, (60, 60), 0, 1)), (1, 1));
    let idle = 58_900_000_000;
    assert_eq!((ours.passed(idle, 200), passed("b", 60, (60, 60), idle, 200)), (60, 117));

    // A burst of 1 never limits anything there.
    let mut ours = Ours::of("1/h burst 1");
    assert_eq!((ours.passed(0, 100), passed("c", 1, (1, 3_600), 0, 100)), (1, 100));
}
