//! What each outcome becomes, byte for byte.

use std::sync::Arc;

use sekisho::{
    CanonicalPath, Clock, Direct, FakeClock, Limit, Limiter, Memory, MemoryOptions, Mode, Overflow,
    PolicySet, Request, Span,
};

use super::*;

/// Returns status, header lines in order, and body.
fn shown(decision: &Decision, profile: Profile) -> (u16, Vec<String>, String) {
    let answer = Answer::of(decision, profile);
    let mut lines: Vec<String> = answer
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    (answer.status.as_u16(), lines, String::from_utf8(answer.body).unwrap())
}

/// Returns policies that no test of this file asks: it names its limits itself.
fn policies() -> PolicySet {
    PolicySet::parse("[[policy]]\nname = \"any\"\nkey = [\"ip\"]\nlimits = [\"1/s\"]\n").unwrap()
}

fn limits(texts: &[&str]) -> Vec<Limit> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn raw(clock: &Arc<FakeClock>) -> Limiter<Memory> {
    Limiter::with_clock(policies(), Arc::clone(clock) as Arc<dyn Clock>)
}

fn ask(limiter: &Limiter<Memory>, limits: &[Limit], cost: u64) -> Decision {
    limiter.decide_direct_now(&Direct { limits, key: b"k", cost }, Mode::Check)
}

fn get(limiter: &Limiter<Memory>, headers: &[(&str, &str)]) -> Decision {
    let map: HeaderMap = headers
        .iter()
        .map(|(name, value)| {
            (name.parse::<http::HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        })
        .collect();
    let request = Request {
        method: "GET",
        host: None,
        path: &CanonicalPath::root(),
        query: None,
        client: Some([192, 0, 2, 7].into()),
        principal: None,
        headers: &crate::HeaderLines(&map),
    };
    limiter.decide_now(&request, Mode::Check)
}

const QUOTA: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

#[test]
fn allowed_requests_show_their_quota_and_nothing_else() {
    let limiter = raw(&Arc::default());
    let (status, lines, body) = shown(&ask(&limiter, &limits(&["60/min"]), 1), Profile::Standard);
    assert_eq!((status, body.as_str()), (200, ""));
    assert_eq!(
        lines,
        [r#"ratelimit-policy: "default";q=60;w=60"#, r#"ratelimit: "default";r=59;t=0"#]
    );
}

#[test]
fn a_denial_has_all_fields_and_a_wait_of_at_least_a_second() {
    // A tenth of a second is left of the wait.
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1_700_000_000)));
    let limiter = raw(&clock);
    let tenth = limits(&["10/s burst 1"]);
    assert!(ask(&limiter, &tenth, 1).is_allowed());
    clock.advance(Span::from_nanos(10_000_000));
    let (status, lines, body) = shown(&ask(&limiter, &tenth, 1), Profile::Standard);
    assert_eq!(status, 429);
    assert_eq!(
        lines,
        [
            "cache-control: no-store",
            "content-type: application/problem+json",
            r#"ratelimit-policy: "default";q=1"#,
            r#"ratelimit: "default";r=0;t=1"#,
            "retry-after: 1",
        ]
    );
    assert_eq!(
        body,
        format!(
            concat!(
                r#"{{"type":"{}","title":"Quota Exceeded","status":429,"#,
                r#""detail":"the quota `default` is used up; the same request passes in 1 s","#,
                r#""violated-policies":["default"]}}"#
            ),
            QUOTA
        )
    );
    let (status, nginx, body) = shown(&ask(&limiter, &tenth, 1), Profile::Nginx);
    assert_eq!((status, nginx), (403, lines));
    assert!(body.contains(r#""status":403"#), "the body tells the status it is sent with: {body}");
}

#[test]
fn fields_come_from_the_decision_whatever_the_clock_says_later() {
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1_700_000_040)));
    let limiter = raw(&clock);
    let window = limits(&["2/min fixed-window"]);
    assert!(ask(&limiter, &window, 2).is_allowed());
    clock.advance(Span::from_nanos(59_999_000_000));
    let denied = ask(&limiter, &window, 1);
    clock.advance(Span::from_secs(2));
    let (_, lines, _) = shown(&denied, Profile::Standard);
    assert!(lines.contains(&"retry-after: 1".to_owned()), "{lines:?}");
    assert!(lines.contains(&r#"ratelimit: "default";r=0;t=1"#.to_owned()), "{lines:?}");
}

#[test]
fn the_limit_that_refuses_is_the_one_that_is_shown() {
    let limiter = raw(&Arc::default());
    let hour = limits(&["10/h sliding-log"]);
    assert!(ask(&limiter, &hour, 10).is_allowed());
    let both = limits(&["60/min", "10/h sliding-log"]);
    let (status, lines, body) = shown(&ask(&limiter, &both, 1), Profile::Standard);
    assert_eq!(status, 429);
    assert_eq!(
        lines[2],
        r#"ratelimit-policy: "60s-token-bucket";q=60;w=60, "3600s-sliding-log";q=10;w=3600"#
    );
    assert_eq!(lines[3], r#"ratelimit: "3600s-sliding-log";r=0;t=3600"#);
    assert_eq!(lines[4], "retry-after: 3600");
    assert!(body.ends_with(r#""violated-policies":["3600s-sliding-log"]}"#), "{body}");
}

#[test]
fn what_can_never_pass_is_not_told_to_wait() {
    let limiter = raw(&Arc::default());
    for (profile, wanted) in [(Profile::Standard, 429), (Profile::Nginx, 403)] {
        let (status, lines, body) = shown(&ask(&limiter, &limits(&["10/min"]), 11), profile);
        assert_eq!(status, wanted);
        assert!(!lines.iter().any(|line| line.starts_with("retry-after")), "{lines:?}");
        assert!(
            body.starts_with(r#"{"type":"https://sekisho.dev/problems/never-admissible""#),
            "{body}"
        );
        assert!(body.contains("costs 11, and `default` never holds more than 10"), "{body}");
    }
}

#[test]
fn block_and_unlimited_have_no_member() {
    let limiter = raw(&Arc::default());
    let (status, lines, body) = shown(&ask(&limiter, &limits(&["block"]), 1), Profile::Standard);
    assert_eq!(status, 403);
    assert_eq!(lines, ["cache-control: no-store", "content-type: application/problem+json"]);
    assert!(
        body.starts_with(r#"{"type":"about:blank","title":"Forbidden","status":403"#),
        "{body}"
    );
    assert_eq!(
        shown(&ask(&limiter, &limits(&["unlimited"]), 1), Profile::Standard),
        (200, vec![], String::new())
    );
    let (_, lines, _) =
        shown(&ask(&limiter, &limits(&["unlimited", "5/min"]), 1), Profile::Standard);
    assert_eq!(lines[0], r#"ratelimit-policy: "60s-token-bucket";q=5;w=60"#);
}

#[test]
fn refusals_before_any_limit_have_no_quota() {
    let file = r#"
                [[policy]]
        name = "api"
        key = [{ header = "x-api-key" }]
        on_missing_key = "deny"
        cost = { header = "x-cost", min = 1, max = 5 }
        limits = ["10/min"]
    "#;
    let limiter =
        Limiter::new(PolicySet::parse(file).unwrap_or_else(|errors| panic!("{errors:?}")));
    let missing = get(&limiter, &[]);
    for profile in [Profile::Standard, Profile::Nginx] {
        let (status, lines, body) = shown(&missing, profile);
        assert_eq!(status, 401);
        assert_eq!(
            lines,
            [
                "cache-control: no-store",
                "content-type: application/problem+json",
                "www-authenticate: Key realm=\"sekisho\"",
            ]
        );
        assert!(body.contains("lacks what policy `api` counts by"), "{body}");
    }
    let bad = get(&limiter, &[("x-api-key", "k"), ("x-cost", "9")]);
    let (status, _, body) = shown(&bad, Profile::Standard);
    assert_eq!(status, 400);
    assert!(body.contains("header `x-cost` is a whole number from 1 to 5"), "{body}");
    assert_eq!(shown(&bad, Profile::Nginx).0, 403);
}

#[test]
fn a_full_store_is_no_denial() {
    let options = MemoryOptions { max_entries: 2, overflow: Overflow::Deny, ..Default::default() };
    let limiter = Limiter::with_store(policies(), Memory::new(options));
    let limits = limits(&["1/h"]);
    let asks =
        ["a", "b", "c", "d"].map(|key| Direct { limits: &limits, key: key.as_bytes(), cost: 1 });
    let last = asks
        .map(|ask| limiter.decide_direct_now(&ask, Mode::Check))
        .into_iter()
        .next_back()
        .unwrap();
    for profile in [Profile::Standard, Profile::Nginx] {
        let (status, lines, body) = shown(&last, profile);
        assert_eq!(status, 503);
        assert_eq!(
            lines,
            ["cache-control: no-store", "content-type: application/problem+json", "retry-after: 1"]
        );
        assert!(body.contains("#temporary-reduced-capacity"), "{body}");
        assert!(!body.contains("overflow"), "nothing of the inside: {body}");
    }
}

#[test]
fn numbers_that_no_field_can_carry_are_clamped() {
    let limiter = raw(&Arc::default());
    let (_, lines, _) = shown(
        &ask(&limiter, &limits(&["18446744073709551615/h fixed-window"]), 1),
        Profile::Standard,
    );
    assert_eq!(lines[0], r#"ratelimit-policy: "default";q=999999999999999;w=3600"#);
    assert!(lines[1].starts_with(r#"ratelimit: "default";r=999999999999999;t="#), "{lines:?}");
}
