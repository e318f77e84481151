//! What becomes of the fields of an upstream, golden strings first, then whatever bytes there are.

use proptest::prelude::*;
use sekisho::{Direct, Limiter, Mode, PolicySet};

use super::*;

const WALL: Timestamp = Timestamp::from_secs(1_700_000_000);
const OUR_POLICY: &str = r#""default";q=10;w=60"#;
const OUR_QUOTA: &str = r#""default";r=7;t=0"#;

/// Returns a decision of which seven of ten are left.
fn decision() -> Decision {
    let policies = "[[policy]]\nname = \"any\"\nkey = [\"ip\"]\nlimits = [\"1/s\"]\n";
    let limiter = Limiter::new(PolicySet::parse(policies).unwrap());
    let limits = ["10/min".parse().unwrap()];
    let ask = Direct { limits: &limits, key: b"k", cost: 3 };
    limiter.decide_direct_now(&ask, Mode::Check)
}

fn all_families() -> AnswerSettings {
    AnswerSettings {
        families: vec![HeaderFamily::RateLimit, HeaderFamily::XRateLimit],
        expose: true,
        ..AnswerSettings::default()
    }
}

fn merged_by(settings: &AnswerSettings, lines: &[(HeaderName, &[u8])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            let _first = headers.append(name, value);
        }
    }
    merge_into(&mut headers, &decision(), settings, WALL);
    headers
}

/// Returns what `RateLimit` is after ours has joined these lines.
fn quota(lines: &[&str]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| (RATELIMIT, line.as_bytes())).collect();
    one_line(&merged_by(&AnswerSettings::default(), &lines), &RATELIMIT).to_owned()
}

fn one_line<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    assert_eq!(headers.get_all(name).iter().count(), 1, "one line of {name}: {headers:?}");
    headers[name].to_str().unwrap()
}

#[test]
fn members_of_an_upstream_stay_in_front() {
    for golden in [
        r#""burst";r=0;t=7, "daily";r=412;t=36000"#,
        r#""a\"b\\c";r=1;t=2"#,
        r#""default";r=50;t=30"#,
        // A token for a name, parameters in any order, some unknown; a key that is not padded as it should be.
        "default;t=30;r=50",
        r#""peruser";acme-burst=?1;r=5;pk=:cHsdsRa894==:;x="y""#,
        r#""a";r=007"#,
    ] {
        assert_eq!(quota(&[golden]), format!("{golden}, {OUR_QUOTA}"));
    }
    assert_eq!(quota(&[r#""a";r=1"#, r#""b";r=2"#]), format!(r#""a";r=1, "b";r=2, {OUR_QUOTA}"#));
    assert_eq!(quota(&["", r#""b";r=2"#]), format!(r#""b";r=2, {OUR_QUOTA}"#));
    assert_eq!(quota(&["", ""]), OUR_QUOTA);
    let policies = [
        r#""burst";q=100;w=60, "daily";q=1000;w=86400"#,
        r#""peruser";q=65535;qu="content-bytes";w=10;pk=:dXNlcjo0Mg==:"#,
    ];
    for golden in policies {
        let lines = [(RATELIMIT_POLICY, golden.as_bytes())];
        let headers = merged_by(&AnswerSettings::default(), &lines);
        assert_eq!(one_line(&headers, &RATELIMIT_POLICY), format!("{golden}, {OUR_POLICY}"));
    }
}

#[test]
fn what_a_client_would_ignore_is_replaced() {
    for junk in [
        "limit=100, remaining=50, reset=30",
        "100;w=60",
        r#""a";r=1,"#,
        r#""a";r=1 "b";r=2"#,
        r#"("a" "b");r=1"#,
        r#""a";r=1.5"#,
        r#""a";r=-1"#,
        r#""a";r=1;T=2"#,
        r#""a"#,
        r#""a";r=9999999999999999"#,
        "?1;r=1",
    ] {
        assert_eq!(quota(&[junk]), OUR_QUOTA, "{junk}");
        assert_eq!(quota(&[r#""a";r=1"#, junk]), OUR_QUOTA, "{junk}");
    }
}

#[test]
fn a_wait_of_the_upstream_is_left_alone() {
    for line in ["Sun, 06 Nov 1994 08:49:37 GMT", "2.0", "-5", "120", "\u{7f}"] {
        let lines = [(RETRY_AFTER, line.as_bytes())];
        let headers = merged_by(&all_families(), &lines);
        assert_eq!(headers.get(RETRY_AFTER), HeaderValue::from_str(line).ok().as_ref());
    }
    assert!(!merged_by(&all_families(), &[]).contains_key(RETRY_AFTER), "no wait after a success");
}

#[test]
fn only_the_chosen_families_are_there() {
    let headers = merged_by(&AnswerSettings::default(), &[]);
    assert_eq!(headers.len(), 2, "{headers:?}");
    let none = AnswerSettings { families: vec![HeaderFamily::RetryAfter], ..all_families() };
    assert!(merged_by(&none, &[]).is_empty());
    let upstream = [(X_RATELIMIT_REMAINING, &b"1000,1000"[..])];
    let headers = merged_by(&AnswerSettings::default(), &upstream);
    assert_eq!(headers[X_RATELIMIT_REMAINING], "1000,1000", "not a family of ours");
}

#[test]
fn scripts_may_read_exactly_what_is_there() {
    let exposed = |lines: &[(HeaderName, &[u8])]| {
        let headers = merged_by(&all_families(), lines);
        one_line(&headers, &ACCESS_CONTROL_EXPOSE_HEADERS).to_owned()
    };
    let ours =
        "RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset";
    assert_eq!(exposed(&[]), ours);
    let upstream = [
        (ACCESS_CONTROL_EXPOSE_HEADERS, &b"X-Total, ratelimit"[..]),
        (ACCESS_CONTROL_EXPOSE_HEADERS, b"ETag"),
        (RETRY_AFTER, b"3"),
    ];
    assert_eq!(
        exposed(&upstream),
        "X-Total, ratelimit, ETag, RateLimit-Policy, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"
    );
    let closed = AnswerSettings { expose: false, ..all_families() };
    assert!(!merged_by(&closed, &[]).contains_key(ACCESS_CONTROL_EXPOSE_HEADERS));
}

/// Makes lines that are often nearly right: bytes alone hardly ever are.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(r#""a""#.to_owned()),
        Just(";r=1".to_owned()),
        Just(";w=:AA=:".to_owned()),
        Just(", ".to_owned()),
        Just("(".to_owned()),
        Just("1000".to_owned()),
        Just("\u{e9}".to_owned()),
        "[ -~]{0,6}",
    ];
    let pieces = prop::collection::vec(piece, 0..6).prop_map(|all| all.concat().into_bytes());
    prop_oneof![pieces, prop::collection::vec(any::<u8>(), 0..40)]
}

proptest! {
    #[test]
    fn ours_is_there_whatever_the_upstream_sent(
        lines in prop::collection::vec((0..EXPOSED.len(), line()), 0..8),
        exposed in prop::collection::vec(line(), 0..2),
    ) {
        let named = lines.iter().map(|(at, line)| (EXPOSED[*at].0.clone(), &line[..]));
        let exposed = exposed.iter().map(|line| (ACCESS_CONTROL_EXPOSE_HEADERS, &line[..]));
        let upstream: Vec<_> = named.chain(exposed).collect();
        let headers = merged_by(&all_families(), &upstream);
        for (name, ours) in [(&RATELIMIT, OUR_QUOTA), (&RATELIMIT_POLICY, OUR_POLICY)] {
            let told = one_line(&headers, name);
            prop_assert!(told.ends_with(ours), "{}", told);
            let list = Parser::new(told).parse::<List>();
            prop_assert!(list.is_ok_and(|list| list.iter().all(is_quota)), "{}", told);
        }
        for name in [&X_RATELIMIT_LIMIT, &X_RATELIMIT_REMAINING, &X_RATELIMIT_RESET] {
            prop_assert!(one_line(&headers, name).parse::<u64>().is_ok());
        }
        one_line(&headers, &ACCESS_CONTROL_EXPOSE_HEADERS);
        let waits = upstream.iter().filter(|(name, value)| {
            *name == RETRY_AFTER && HeaderValue::from_bytes(value).is_ok()
        });
        prop_assert_eq!(headers.get_all(RETRY_AFTER).iter().count(), waits.count());
    }
}
