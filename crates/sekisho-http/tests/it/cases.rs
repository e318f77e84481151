//! The cases of other limiters' faults whose right values are HTTP's: what a decision says is what its fields say.

use std::{collections::BTreeSet, sync::Arc};

use http::{HeaderMap, HeaderValue};
use sekisho::{
    CanonicalPath, Clock, Decision, FakeClock, Limiter, Mode, Request, Span, Timestamp, Wait,
};
use sekisho_http::{Answer, HeaderLines, Profile};

use crate::support::policies;

const MINUTE: u64 = 1_700_000_040;
const ALL: &str = "[answer]\nheaders = [\"ratelimit\", \"x-ratelimit\"]\n";

fn file(limits: &str) -> String {
    format!("{ALL}[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"{limits}\"]\n")
}

fn at(text: &str, seconds: u64) -> (Arc<FakeClock>, Limiter) {
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(seconds)));
    let limiter = Limiter::with_clock(policies(text), Arc::clone(&clock) as Arc<dyn Clock>);
    (clock, limiter)
}

fn with(limiter: &Limiter, headers: &HeaderMap) -> Decision {
    let request = Request {
        method: "GET",
        host: None,
        path: &CanonicalPath::root(),
        query: None,
        client: Some([192, 0, 2, 7].into()),
        principal: None,
        headers: &HeaderLines(headers),
    };
    limiter.decide_now(&request, Mode::Check)
}

fn decide(limiter: &Limiter) -> Decision {
    with(limiter, &HeaderMap::new())
}

fn fields(limiter: &Limiter, decision: &Decision, wall: Timestamp) -> [Option<String>; 4] {
    let settings = &limiter.policies().settings().answer;
    let answer = Answer::new(decision, Profile::Standard, settings, wall);
    let field = |name| Some(answer.headers.get(name)?.to_str().expect("text").to_owned());
    ["retry-after", "ratelimit", "x-ratelimit-remaining", "x-ratelimit-reset"].map(field)
}

fn some(values: [&str; 4]) -> [Option<String>; 4] {
    values.map(|value| Some(value.to_owned()))
}

/// B02: the clock has gone on into the next window when the fields are written.
#[test]
fn all_fields_come_from_one_decision() {
    let (clock, limiter) = at(&file("2/60s fixed-window"), MINUTE);
    let _first = decide(&limiter);
    clock.advance(Span::from_secs(1));
    let _second = decide(&limiter);
    clock.advance(Span::from_nanos(58_999_000_000));
    let denied = decide(&limiter);
    clock.advance(Span::from_nanos(2_000_000));
    let seen = fields(&limiter, &denied, denied.at);
    assert_eq!(seen, some(["1", "\"api\";r=0;t=1", "0", "1700000100"]));
}

/// B04: five seconds after two within ten.
#[test]
fn every_algorithm_names_a_wait() {
    for (limit, wait) in [
        ("2/10s sliding-log", "5"),
        ("2/10s fixed-window", "5"),
        ("2/10s anchored-window", "5"),
        ("2/10s sliding-window", "10"),
        ("2/10s", "1"),
        ("2/10s burst 1 leaky-queue", "1"),
    ] {
        let (clock, limiter) = at(&file(limit), MINUTE);
        let mut last = decide(&limiter);
        clock.advance(Span::from_secs(4));
        let _second = decide(&limiter);
        clock.advance(Span::from_secs(1));
        for _ in 0..4 {
            last = decide(&limiter);
            if !last.is_allowed() {
                break;
            }
        }
        assert!(!last.is_allowed(), "{limit}");
        let [retry_after, ..] = fields(&limiter, &last, last.at);
        assert!(retry_after.is_some(), "{limit} names no wait");
        if limit.ends_with("log") || limit.ends_with("fixed-window") {
            assert_eq!(retry_after.as_deref(), Some(wait), "{limit}");
        }
    }
}

/// B07: when the next one passes, and when all are back, are two numbers.
#[test]
fn a_wait_is_not_a_reset() {
    let (_, limiter) = at(&file("30/60s burst 16"), MINUTE);
    let first = decide(&limiter);
    let [_, _, remaining, reset] = fields(&limiter, &first, first.at);
    assert_eq!((remaining.as_deref(), reset.as_deref()), (Some("15"), Some("1700000042")));
    let (_, limiter) = at(&file("3/60s burst 3"), MINUTE);
    let resets: Vec<_> = (0..3)
        .map(|_| decide(&limiter))
        .map(|decision| fields(&limiter, &decision, decision.at)[3].clone().expect("a reset"))
        .collect();
    assert_eq!(resets, ["1700000060", "1700000080", "1700000100"]);
    let denied = decide(&limiter);
    let seen = fields(&limiter, &denied, denied.at);
    assert_eq!(seen, some(["20", "\"api\";r=0;t=20", "0", "1700000100"]));
}

/// B26: a tenth of a second before the minute is full.
#[test]
fn the_rest_of_a_window_is_rounded_up() {
    let (clock, limiter) = at(&file("3/min fixed-window"), MINUTE + 10);
    let _three = [decide(&limiter), decide(&limiter), decide(&limiter)];
    clock.advance(Span::from_nanos(49_900_000_000));
    let denied = decide(&limiter);
    let seen = fields(&limiter, &denied, denied.at);
    assert_eq!(seen, some(["1", "\"api\";r=0;t=1", "0", "1700000100"]));
    clock.advance(Span::from_nanos(100_000_000));
    assert!(decide(&limiter).is_allowed());
}

/// A machine that slept: the clock that decides stood still, the wall's went on by an hour.
#[derive(Debug)]
struct Slept(Arc<FakeClock>);

const HOUR: Span = Span::from_secs(3_600);

impl Clock for Slept {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn wall(&self) -> Timestamp {
        self.0.now().plus(HOUR)
    }

    fn wait_until(&self, at: Timestamp) -> Wait {
        self.0.wait_until(at)
    }
}

/// B43: a point in time is the wall's, a wait the deciding clock's.
#[test]
fn a_reset_is_of_the_wall_clock_and_a_wait_of_the_deciding_one() {
    let fake = Arc::new(FakeClock::at(Timestamp::from_secs(MINUTE)));
    let limiter =
        Limiter::with_clock(policies(&file("5/60s fixed-window")), Arc::new(Slept(fake.clone())));
    let _five: Vec<_> = (0..5).map(|_| decide(&limiter)).collect();
    fake.advance(Span::from_secs(20));
    let denied = decide(&limiter);
    let seen = fields(&limiter, &denied, limiter.store().clock().wall());
    assert_eq!(seen, some(["40", "\"api\";r=0;t=40", "0", "1700003700"]));
}

/// B60: what a header line may hold is a key, each its own; an empty one is none.
#[test]
fn odd_bytes_in_header_lines_are_keys_of_their_own() {
    let text = "[[policy]]\nname = \"api\"\nkey = [{ header = \"x-key\" }]\non_missing_key = \"deny\"\n\
                limits = [\"1/365d sliding-log\"]\n";
    let (_, limiter) = at(text, MINUTE);
    let long = [b'a'; 10_000];
    let odd: [&[u8]; 9] = [
        b"a b",
        b"\xff",
        b"\xff\xff",
        "用户".as_bytes(),
        "🦀".as_bytes(),
        &long,
        &long[1..],
        b"a,b",
        b"a\tb",
    ];
    let mut keys = BTreeSet::new();
    for bytes in odd {
        let mut headers = HeaderMap::new();
        let _before = headers.insert("x-key", HeaderValue::from_bytes(bytes).expect("a value"));
        let first = with(&limiter, &headers);
        assert!(first.is_allowed(), "{bytes:?}");
        assert!(keys.insert(first.parts[0].key.clone()), "{bytes:?} is another's key");
        assert!(!with(&limiter, &headers).is_allowed(), "{bytes:?}");
    }
    let mut headers = HeaderMap::new();
    let _before = headers.insert("x-key", HeaderValue::from_static(""));
    assert_eq!(with(&limiter, &headers).ruling, sekisho::Ruling::MissingKey);
    // These cannot be in a line at all.
    for bytes in [&b"a\r\nb"[..], b"a\nb", b"a\0b"] {
        assert!(HeaderValue::from_bytes(bytes).is_err());
    }
}
