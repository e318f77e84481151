//! nginx's own limiter, `limit_req`, beside ours: run for real, and its arithmetic as its source has it. What differs is in
//! `docs/differences.md`, each with a test here.
//!
//! nginx counts in milliseconds of its own clock, so the tests of the running one ask how long each step took and expect what
//! ours admits for the shortest and for the longest time that it can have been. On a machine that keeps up the two are one.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use sekisho::{
    FakeClock, KeyedLimiter, Limit, Mode, Outcome, Span, Timestamp,
    core::{Call, State, Utc},
};
use sekisho_testkit::{generate::Rng, redis_server::free_port};

use crate::{
    client::{Ask, Client},
    program::{Folder, Program},
    stack::Proxy,
};

/// Zones are keyed by the query, so that each test has keys of its own. `empty_gif` answers after the limiter has passed.
const CONFIGURATION: &str = "
pid       nginx.pid;
error_log stderr notice;
events { worker_connections 256; }
http {
    access_log            off;
    client_body_temp_path body;
    proxy_temp_path       proxy;
    fastcgi_temp_path     fastcgi;
    uwsgi_temp_path       uwsgi;
    scgi_temp_path        scgi;
    limit_req_zone $args zone=bucket:1m rate=2r/s;
    limit_req_zone $args zone=queue:1m  rate=10r/s;
    server {
        listen ADDRESS;
        location /bucket { limit_req zone=bucket burst=3 nodelay; empty_gif; }
        location /queue  { limit_req zone=queue burst=20;         empty_gif; }
    }
}
";

/// An nginx that limits by itself.
struct Limiting {
    _nginx: Program,
    _folder: Folder,
    address: SocketAddr,
}

impl Limiting {
    fn start() -> Self {
        let folder = Folder::new();
        let mut said = String::new();
        // Somebody may take a free port between our look and nginx's.
        for _ in 0..5 {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
            let text = CONFIGURATION.replace("ADDRESS", &address.to_string());
            fs::write(folder.path().join("nginx.conf"), text).unwrap();
            match Proxy::Nginx.launch(&folder) {
                Ok(nginx) => return Self { _nginx: nginx, _folder: folder, address },
                Err(words) => said += &words,
            }
        }
        panic!("nginx does not start; it said:\n{said}");
    }

    fn client(&self) -> Client {
        Client::new(2, self.address)
    }
}

#[expect(clippy::disallowed_methods, reason = "nginx counts by its own clock, which runs")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "nginx counts by its own clock, which runs")]
fn pause(of: Duration) {
    thread::sleep(of);
}

/// How many of some requests passed, and between which instants they were decided.
struct Seen {
    passed: u64,
    /// The first was decided between the two.
    first: (Instant, Instant),
    /// The last was.
    last: (Instant, Instant),
}

fn ask(client: &mut Client, target: &str, times: u64) -> Seen {
    let mut seen: Option<Seen> = None;
    for _ in 0..times {
        let before = now();
        let passed = u64::from(client.ask(Ask::get(target)).status == 200);
        let decided = (before, now());
        let so_far = seen.get_or_insert(Seen { passed: 0, first: decided, last: decided });
        so_far.passed += passed;
        so_far.last = decided;
    }
    seen.unwrap()
}

/// Returns how many of ours pass: some at once on a fresh key, and some after a time.
fn ours(limit: &str, at_once: u64, after: Duration, later: u64) -> u64 {
    let clock = Arc::new(FakeClock::default());
    let limiter = KeyedLimiter::with_clock(limit.parse().unwrap(), clock.clone());
    let pass =
        |times| (0..times).filter(|_| limiter.check("k").unwrap().is_allowed()).count() as u64;
    let first = pass(at_once);
    clock.advance(Span::from(after));
    first + pass(later)
}

/// What passes in the shortest and in the longest time that it can have taken, with what rounding to milliseconds may move.
fn between(limit: &str, seen: [&Seen; 2], requests: [u64; 2]) -> RangeInclusive<u64> {
    const ROUNDING: Duration = Duration::from_millis(2);
    let shortest = seen[1].last.0.duration_since(seen[0].first.1).saturating_sub(ROUNDING);
    let longest = seen[1].last.1.duration_since(seen[0].first.0) + ROUNDING;
    let pass = |after| ours(limit, requests[0], after, requests[1]);
    pass(shortest)..=pass(longest)
}

/// `rate=2r/s burst=3 nodelay` passes as many as `2/s burst 4`: its burst is what comes on top of the one in service.
#[test]
fn a_burst_and_what_a_pause_brings_back_are_ours() {
    let nginx = Limiting::start();
    let mut client = nginx.client();
    let burst = ask(&mut client, "/bucket?burst", 10);
    let range = between("2/s burst 4", [&burst, &burst], [0, 10]);
    assert!(*range.start() == 4 && range.contains(&burst.passed), "{} of {range:?}", burst.passed);
    // Two and a half intervals: the middle between two steps.
    pause(Duration::from_millis(1_250));
    let later = ask(&mut client, "/bucket?burst", 10);
    let range = between("2/s burst 4", [&burst, &later], [10, 10]);
    let passed = burst.passed + later.passed;
    assert!(range.contains(&passed), "{passed} of {range:?}");
}

/// Without `nodelay` it is our `leaky-queue`: as many wait, and they start an interval apart.
#[test]
fn its_queue_spaces_starts_as_ours_does() {
    const AT_ONCE: u32 = 8;
    let nginx = Limiting::start();
    let begin = now();
    let statuses: Vec<u16> = thread::scope(|scope| {
        let spawn = |mut client: Client| scope.spawn(move || client.ask(Ask::get("/queue?a")));
        let asking: Vec<_> = (0..AT_ONCE).map(|_| spawn(nginx.client())).collect();
        asking.into_iter().map(|asked| asked.join().unwrap().status).collect()
    });
    let took = now().duration_since(begin);
    assert_eq!(statuses, [200; AT_ONCE as usize]);
    let limiter = KeyedLimiter::new("10/s burst 20 leaky-queue".parse().unwrap());
    let delays = (0..AT_ONCE).map(|_| limiter.check("k").unwrap().delay.as_nanos());
    let ours = Duration::from_nanos(delays.max().unwrap());
    assert!(ours > Duration::from_millis(600), "{ours:?}");
    // Its clock may be a millisecond behind at each start.
    assert!(took + Duration::from_millis(10) >= Duration::from_millis(700), "{took:?}");
}

/// It refuses with 503 and tells no time. Ours says 429 and `Retry-After`.
#[test]
fn its_refusal_tells_no_wait() {
    let nginx = Limiting::start();
    let mut client = nginx.client();
    let answers = (0..50).map(|_| client.ask(Ask::get("/bucket?refused")));
    let refused = answers.filter(|answer| answer.status != 200).last().unwrap();
    assert_eq!((refused.status, refused.field("retry-after")), (503, ""));
}

/// The arithmetic of nginx's source: `excess` in thousandths of a request, times in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Arithmetic {
    /// Thousandths of a request a second; a rate a minute is divided without a remainder.
    rate: i64,
    burst: i64,
    state: Option<(i64, i64)>,
}

impl Arithmetic {
    fn per_second(rate: i64, burst: i64) -> Self {
        Self { rate: rate * 1_000, burst, state: None }
    }

    fn per_minute(rate: i64, burst: i64) -> Self {
        Self { rate: rate * 1_000 / 60, burst, state: None }
    }

    fn passes(&mut self, now: i64) -> bool {
        let Some((excess, last)) = self.state else {
            self.state = Some((0, now));
            return true;
        };
        let ms = match now - last {
            far if far < -60_000 => 1,
            ms => ms.max(0),
        };
        let excess = (excess - self.rate * ms / 1_000 + 1_000).max(0);
        if excess > self.burst * 1_000 {
            return false;
        }
        self.state = Some((excess, if ms > 0 { now } else { last }));
        true
    }
}

/// The vectors that a running nginx gave: 1 a second, burst 3.
#[test]
fn its_arithmetic_is_written_down_right() {
    let mut nginx = Arithmetic::per_second(1, 3);
    let passed = [0, 0, 0, 0, 0, 500, 1_000, 1_001, 5_000].map(|at| nginx.passes(at));
    assert_eq!(passed, [true, true, true, true, false, false, true, false, true]);
}

/// Asks both at whole milliseconds; returns how often each passed.
fn both(nginx: &mut Arithmetic, limit: &str, times: impl Iterator<Item = u64>) -> (u64, u64) {
    let clock = Arc::new(FakeClock::default());
    let limiter = KeyedLimiter::with_clock(limit.parse().unwrap(), clock.clone());
    let (mut now, mut passed) = (0, (0, 0));
    for at in times {
        clock.advance(Span::from_nanos((at - now) * 1_000_000));
        now = at;
        passed.0 += u64::from(nginx.passes(i64::try_from(at).unwrap()));
        passed.1 += u64::from(limiter.check("k").unwrap().outcome == Outcome::Allow);
    }
    passed
}

/// At whole milliseconds and a rate a second, each decision is the same, also where the interval is no whole millisecond.
#[test]
fn its_arithmetic_decides_as_ours_at_whole_milliseconds() {
    for seed in 1..=300 {
        let mut rng = Rng::new(seed);
        let (rate, burst) = (rng.between(1, 40), rng.below(8));
        let limit = format!("{rate}/s burst {}", burst + 1);
        let mut nginx =
            Arithmetic::per_second(i64::try_from(rate).unwrap(), i64::try_from(burst).unwrap());
        let (clock, mut now) = (Arc::new(FakeClock::default()), 0);
        let limiter = KeyedLimiter::with_clock(limit.parse().unwrap(), clock.clone());
        for _ in 0..200 {
            let step = if rng.chance(1, 2) { rng.below(3) } else { rng.below(2_000 / rate) };
            now += step;
            clock.advance(Span::from_nanos(step * 1_000_000));
            let seen = nginx.passes(i64::try_from(now).unwrap());
            let ours = limiter.check("k").unwrap().is_allowed();
            assert_eq!(seen, ours, "seed {seed}: {limit} at {now} ms, {nginx:?}");
        }
    }
}

/// One a minute is one in 62.5 s there: the rate is rounded down to thousandths of a request a second.
#[test]
fn its_rates_a_minute_are_lower_than_written() {
    let hour = || (0..3_600).map(|second| second * 1_000);
    assert_eq!(both(&mut Arithmetic::per_minute(1, 0), "1/min burst 1", hour()), (58, 60));
    assert_eq!(both(&mut Arithmetic::per_minute(60, 0), "60/min burst 1", hour()), (3_600, 3_600));
}

/// A millisecond is its smallest step: two requests within one are at the same time to it.
#[test]
fn its_clock_has_no_nanoseconds() {
    // At 0.9 ms and 1.0 ms, as nginx sees them: 0 and 1. It passes the second after a tenth of the interval.
    let mut nginx = Arithmetic::per_second(1_000, 0);
    assert!(nginx.passes(0) && nginx.passes(1));
    let clock = Arc::new(FakeClock::default());
    let limiter = KeyedLimiter::with_clock("1000/s burst 1".parse().unwrap(), clock.clone());
    clock.advance(Span::from_nanos(900_000));
    assert!(limiter.check("k").unwrap().is_allowed());
    clock.advance(Span::from_nanos(100_000));
    let denied = limiter.check("k").unwrap();
    assert_eq!(denied.retry_after, Some(Span::from_nanos(900_000)));
}

/// A stamp from before the last one counts at the last one's time there. In a trace ours counts from its own, when there was
/// less.
#[test]
fn its_late_stamps_count_as_now() {
    let mut nginx = Arithmetic::per_second(1, 1);
    assert_eq!([10_000, 9_000, 8_000].map(|at| nginx.passes(at)), [true, true, false]);
    let limit: Limit = "1/s burst 2".parse().unwrap();
    let mut state = State::Fresh;
    let ours = [10, 9].map(|at| {
        let call = Call { now: Timestamp::from_secs(at), cost: 1, mode: Mode::Check };
        limit.decide(&mut state, call, &Utc).is_allowed()
    });
    assert_eq!(ours, [true, false]);
}
