//! Every body is taken or refused with its field.

use sekisho::{Mode, Timestamp};

use super::*;
use crate::door::check::Described;

fn refusal(body: &str) -> String {
    match parse_body(body.as_bytes()) {
        Ok(checks) => panic!("`{body}` was taken: {checks:?}"),
        Err(error) => error.to_string(),
    }
}

fn one(body: &str) -> Check {
    match parse_body(body.as_bytes()) {
        Ok(Checks::One(check)) => check,
        other => panic!("`{body}`: {other:?}"),
    }
}

fn described(body: &str) -> Described {
    match one(body).subject {
        Subject::Described { request, .. } => request,
        other @ Subject::Direct { .. } => panic!("`{body}`: {other:?}"),
    }
}

#[test]
fn a_raw_check_has_what_it_says() {
    let check = one(
        r#" {"limit": ["60/min", "1000/day sliding-log"], "key": "", "cost": 0, "mode": "look"} "#,
    );
    assert_eq!((check.cost, check.mode), (Some(0), Mode::Look));
    let Subject::Direct { limits, key } = check.subject else { panic!("not direct") };
    assert_eq!(
        limits.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["60/min token-bucket", "1000/day sliding-log"]
    );
    assert_eq!(key, "", "empty text is a key");
    let check = one(r#"{"limit": "unlimited", "key": "k", "cost": 18446744073709551615}"#);
    assert_eq!((check.cost, check.mode), (Some(u64::MAX), Mode::Check));
}

#[test]
fn a_described_request_has_defaults() {
    let request = described(r#"{"request": {}}"#);
    assert_eq!((request.method.as_str(), request.path.to_string()), ("GET", "/".to_owned()));
    assert_eq!((request.host, request.peer, request.query), (None, None, None));
    let request = described(
        r#"{"policy": "api", "request": {"method": "POST", "path": "/v1//x/?a=b#c", "host": "h", "peer": "::ffff:192.0.2.1",
            "headers": {"X-A": "1", "x-b": ["2", "3"], "x-a": "4"}}}"#,
    );
    assert_eq!(
        (request.path.to_string(), request.query.as_deref()),
        ("/v1/x".to_owned(), Some("a=b"))
    );
    assert_eq!(request.peer.unwrap().to_string(), "192.0.2.1");
    let mut lines = Vec::new();
    for name in ["x-A", "X-B", "x-c"] {
        sekisho::Headers::each(&request.headers, name, &mut |line| lines.push(line.to_vec()));
    }
    assert_eq!(lines, [b"1", b"4", b"2", b"3"]);
}

#[test]
fn instants_are_exact() {
    for (text, ns) in [
        (r#""1700000000.5""#, 1_700_000_000_500_000_000),
        (r#""1700000000.000000001""#, 1_700_000_000_000_000_001),
        (r#""0""#, 0),
        ("1700000000", 1_700_000_000_000_000_000),
        (r#""10000000000""#, 10_000_000_000_000_000_000),
    ] {
        let check =
            one(&format!(r#"{{"limit": "1/s", "key": "k", "mode": "refund", "at": {text}}}"#));
        assert_eq!(check.mode, Mode::Refund { at: Timestamp::from_nanos(ns) }, "{text}");
    }
    for text in [
        "1700000000.5",
        "-1",
        "1e3",
        "null",
        "true",
        r#""""#,
        r#"".5""#,
        r#""1.""#,
        r#""1.0000000001""#,
        r#""+1""#,
        r#"" 1""#,
        r#""1e3""#,
        r#""10000000000.000000001""#,
        "18446744073709551615",
        r#""99999999999999999999""#,
    ] {
        let said =
            refusal(&format!(r#"{{"limit": "1/s", "key": "k", "mode": "refund", "at": {text}}}"#));
        assert!(said.starts_with("at: "), "{text}: {said}");
    }
}

#[test]
fn a_cost_is_a_whole_number_or_refused_by_name() {
    for cost in [
        "-1",
        "-0",
        "1.5",
        "1.0",
        "1e2",
        "NaN",
        "Infinity",
        "18446744073709551616",
        "1e400",
        "null",
        r#""1""#,
        "true",
        "[1]",
        "{}",
        "-18446744073709551616",
        "+1",
        "",
    ] {
        let check = format!(r#"{{"limit": "1/s", "key": "k", "cost": {cost}}}"#);
        let said = refusal(&check);
        assert!(said.starts_with("cost"), "{cost}: {said}");
        let said = refusal(&format!(r#"[{{"limit": "1/s", "key": "k"}}, {check}]"#));
        assert!(said.starts_with("[1].cost"), "{cost}: {said}");
    }
    assert!(parse_body(br#"{"limit": "1/s", "key": "k", "cost": 01}"#).is_err());
    assert!(
        refusal(r#"{"limit": "1/s", "key": "k", "cost": -1}"#)
            .contains("a whole number from 0 to 18446744073709551615")
    );
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (body, wanted) in [
        ("", "the body is not JSON: "),
        ("{", "the body is not JSON: "),
        ("\u{feff}{}", "the body is not JSON: "),
        (r#"{"limit": "1/s", "key": "k"} x"#, "the body is not JSON: "),
        ("5", "invalid type: integer `5`, expected a check, which is an object"),
        ("null", "invalid type: null"),
        ("{}", "a check has a `limit` and a `key`, or a `request`"),
        ("[{}]", "[0]: a check has a `limit` and a `key`, or a `request`"),
        (r#"[[{"limit": "1/s", "key": "k"}]]"#, "[0]: invalid type: sequence"),
        (r#"[["1/s", "k"]]"#, "[0]: invalid type: sequence"),
        (r#"{"limit": "1/s"}"#, "`key` is missing"),
        (r#"{"key": "k"}"#, "`key` goes with a `limit`"),
        (
            r#"{"limit": "1/s", "key": "k", "request": {}}"#,
            "a check has a `limit` or a `request`, not both",
        ),
        (r#"{"limit": "1/s", "key": "k", "policy": "api"}"#, "`policy` goes with a `request`"),
        (r#"{"policy": "api"}"#, "a check has a `limit` and a `key`, or a `request`"),
        (r#"{"request": {}, "key": "k"}"#, "`key` goes with a `limit`"),
        (r#"{"limit": "1/s", "key": 5}"#, "key: invalid type: integer `5`"),
        (r#"{"limit": "1/s", "key": null}"#, "key: invalid type: null"),
        (r#"{"limit": "0/min", "key": "k"}"#, "limit: an amount of 0 could mean two things"),
        (r#"{"limit": [], "key": "k"}"#, "limit: there is at least one limit"),
        (
            r#"{"limit": ["1/s", "2/s"], "key": "k"}"#,
            "limit: `2/s token-bucket` counts in the same place",
        ),
        (r#"{"limit": ["1/s", "x"], "key": "k"}"#, "limit[1]: a limit is"),
        (r#"{"limit": ["block", "block"], "key": "k"}"#, "limit: `block` counts in the same place"),
        (
            r#"{"limit": ["1/calendar-day", "1/calendar-day zone Asia/Tokyo"], "key": "k"}"#,
            "limit: `1/calendar-day zone Asia/Tokyo fixed-window` counts in the same place",
        ),
        (
            r#"{"limit": "1/calendar-day zone Mars/Base", "key": "k"}"#,
            "limit: there is no time zone `Mars/Base`",
        ),
        (r#"{"limit": {"a": 1}, "key": "k"}"#, "limit: invalid type: map"),
        (r#"{"limit": "1/s", "key": "k", "mode": "peek"}"#, "mode: unknown variant `peek`"),
        (r#"{"limit": "1/s", "key": "k", "mode": "refund"}"#, "`at` is missing"),
        (r#"{"limit": "1/s", "key": "k", "at": 1}"#, "`at` goes with the mode `refund` alone"),
        (r#"{"limit": "1/s", "key": "k", "kay": 1}"#, "kay: unknown field `kay`"),
        (r#"{"limit": "1/s", "key": "k", "key": "l"}"#, "duplicate field `key`"),
        (r#"{"request": []}"#, "request: invalid type: sequence"),
        (r#"{"request": {"path": "/a%2fb"}}"#, "request.path: a path has no encoded slash"),
        (r#"{"request": {"path": "a"}}"#, "request.path: a path begins with `/`"),
        (r#"{"request": {"peer": "192.0.2.1:80"}}"#, "request.peer: invalid IP address syntax"),
        (r#"{"request": {"headers": {"a": 1}}}"#, "request.headers.a: invalid type: integer `1`"),
        (
            r#"{"request": {"headers": {"a": ["b", null]}}}"#,
            "request.headers.a[1]: invalid type: null",
        ),
        (r#"{"request": {"headers": null}}"#, "request.headers: invalid type: null"),
        (r#"{"request": {"query": "a"}}"#, "request.query: unknown field `query`"),
    ] {
        let said = refusal(body);
        assert!(said.starts_with(wanted), "`{body}`: {said}");
    }
    assert!(parse_body(b"\"\xff\"").is_err());
    assert!(parse_body(b"{\"limit\": \"1/s\", \"key\": \"\xff\"}").is_err());
}

#[test]
fn arrays_limits_and_messages_are_bounded() {
    let check = r#"{"limit":"1/s","key":"k"}"#;
    assert!(parse_body(format!("[{}]", [check; CHECKS_MAX].join(",")).as_bytes()).is_ok());
    let said = refusal(&format!("[{}]", [check; CHECKS_MAX + 1].join(",")));
    assert!(said.starts_with("an array has at most 1000 checks"), "{said}");
    assert_eq!(parse_body(b"[]"), Ok(Checks::Many(Vec::new())));

    let limits = |count: u64| {
        (1..=count).map(|period| format!("\"1/{period}s\"")).collect::<Vec<_>>().join(",")
    };
    assert!(parse_body(format!(r#"{{"limit":[{}],"key":"k"}}"#, limits(16)).as_bytes()).is_ok());
    let said = refusal(&format!(r#"{{"limit":[{}],"key":"k"}}"#, limits(17)));
    assert!(said.starts_with("limit: there are at most 16 limits"), "{said}");

    let said = refusal(&format!(r#"{{"{}": 1}}"#, "é".repeat(10_000)));
    assert!(said.len() <= DETAIL_BYTES_MAX + '…'.len_utf8(), "{}", said.len());
    assert!(
        refusal(&"[".repeat(100_000)).len() < 200,
        "deep nesting is refused before it is followed"
    );
}
