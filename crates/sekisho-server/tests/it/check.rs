//! The check API.

use sekisho::Span;
use serde_json::{Value, json};

use crate::harness::{Client, Running};

const FILE: &str = r#"
    [[policy]]
    name = "api"
    match = { path = "/v1/**" }
    key = [{ header = "x-api-key" }, "ip"]
    on_missing_key = "deny"
    cost = 2
    limits = ["10/min", "1000/day sliding-log"]

    [[policy]]
    name = "exports"
    match = { path = "/exports", method = "POST" }
    key = ["ip"]
    limits = ["1/1500us burst 2 leaky-queue"]

    [[policy]]
    name = "gone"
    match = { path = "/gone" }
    key = ["ip"]
    limits = ["block"]

    [[policy]]
    name = "paid"
    match = { path = "/paid" }
    key = ["ip"]
    cost = { header = "x-cost", min = 1, max = 5 }
    limits = ["unlimited"]
"#;

#[tokio::test]
async fn a_raw_limit_is_charged_looked_at_forced_and_refunded() {
    let server = Running::start(FILE).await;
    let ask = async |more: &str| {
        server.answer(&format!(r#"{{"limit": "10/min", "key": "a b,c=é"{more}}}"#)).await
    };
    assert_eq!(
        ask("").await,
        json!({
            "t": "1700000000", "key": "a b,c=é", "cost": 1, "outcome": "allow", "remaining": 9, "retry_after_ns": null,
            "reset_after_ns": 6_000_000_000_u64, "delay_ns": 0, "policy": null, "limit": "10/min token-bucket", "delay_ms": 0,
        })
    );
    server.clock.advance(Span::from_nanos(500_000_000));
    let charged = ask(r#", "cost": 8"#).await;
    assert_eq!((&charged["t"], &charged["remaining"]), (&json!("1700000000.5"), &json!(1)));
    let denied = ask(r#", "cost": 2"#).await;
    assert_eq!((&denied["outcome"], &denied["remaining"]), (&json!("deny"), &json!(1)));
    assert_eq!(denied["retry_after_ns"], 5_500_000_000_u64);
    let looked = ask(r#", "cost": 2, "mode": "look""#).await;
    assert_eq!(
        (&looked["outcome"], &looked["remaining"], &looked["cost"]),
        (&json!("allow"), &json!(1), &json!(2))
    );
    let never = ask(r#", "cost": 11"#).await;
    assert_eq!((&never["outcome"], &never["retry_after_ns"]), (&json!("never"), &Value::Null));
    let forced = ask(r#", "cost": 3, "mode": "force""#).await;
    assert_eq!((&forced["outcome"], &forced["remaining"]), (&json!("allow"), &json!(0)));
    let refunded = ask(r#", "cost": 8, "mode": "refund", "at": "1700000000.5""#).await;
    assert_eq!((&refunded["outcome"], &refunded["remaining"]), (&json!("allow"), &json!(6)));
    let zero = ask(r#", "cost": 0, "mode": "check""#).await;
    assert_eq!((&zero["remaining"], &zero["cost"]), (&json!(6), &json!(0)));
}

#[tokio::test]
async fn several_limits_are_all_or_none_and_the_binding_one_is_named() {
    let server = Running::start(FILE).await;
    let ask = async |cost: u64| {
        server
            .answer(&format!(
                r#"{{"limit": ["5/s", "8/h sliding-log"], "key": "", "cost": {cost}}}"#
            ))
            .await
    };
    let first = ask(5).await;
    assert_eq!(
        (&first["key"], &first["limit"], &first["remaining"]),
        (&json!(""), &json!("5/s token-bucket"), &json!(0))
    );
    server.clock.advance(Span::from_secs(1));
    let second = ask(4).await;
    assert_eq!((&second["outcome"], &second["limit"]), (&json!("deny"), &json!("8/h sliding-log")));
    assert_eq!(second["retry_after_ns"], 3_599_000_000_000_u64);
    assert_eq!(ask(3).await["outcome"], "allow", "the denial charged neither");
    let unlimited =
        server.answer(r#"{"limit": "unlimited", "key": "k", "cost": 18446744073709551615}"#).await;
    assert_eq!((&unlimited["remaining"], &unlimited["cost"]), (&Value::Null, &json!(u64::MAX)));
    let blocked = server.answer(r#"{"limit": ["5/s", "block"], "key": "k"}"#).await;
    assert_eq!((&blocked["outcome"], &blocked["limit"]), (&json!("blocked"), &json!("block")));
}

#[tokio::test]
async fn a_described_request_is_judged_by_the_policies() {
    let server = Running::start(FILE).await;
    let request = r#""request": {"path": "/v1//x/?q", "peer": "::ffff:192.0.2.1", "headers": {"X-API-Key": ["s3cret"]}}"#;
    let answer = server.answer(&format!("{{{request}}}")).await;
    let key = answer["key"].as_str().unwrap();
    assert!(key.starts_with("header.x-api-key=#") && key.ends_with(",ip=192.0.2.1"), "{key}");
    assert!(!key.contains("s3cret"));
    assert_eq!(
        (&answer["policy"], &answer["limit"], &answer["cost"], &answer["remaining"]),
        (&json!("api"), &json!("10/min token-bucket"), &json!(2), &json!(8))
    );
    let dearer = server.answer(&format!(r#"{{{request}, "cost": 5}}"#)).await;
    assert_eq!((&dearer["cost"], &dearer["remaining"]), (&json!(5), &json!(3)));
    let named = server.answer(&format!(r#"{{{request}, "policy": "gone"}}"#)).await;
    assert_eq!(
        (&named["outcome"], &named["policy"]),
        (&json!("allow"), &Value::Null),
        "it does not match"
    );
    assert_eq!(
        (&named["t"], &named["limit"], &named["key"]),
        (&json!("1700000000"), &Value::Null, &Value::Null)
    );
    let missing = server.answer(r#"{"request": {"path": "/v1/x", "peer": "192.0.2.1"}}"#).await;
    assert_eq!(
        missing,
        json!({
            "t": "1700000000", "key": null, "cost": null, "outcome": "missing-key", "remaining": null, "retry_after_ns": null,
            "reset_after_ns": null, "delay_ns": 0, "policy": "api", "limit": null, "delay_ms": 0,
        })
    );
    let gone = server.answer(r#"{"request": {"path": "/gone", "peer": "192.0.2.1"}}"#).await;
    assert_eq!((&gone["outcome"], &gone["policy"]), (&json!("blocked"), &json!("gone")));
}

#[tokio::test]
async fn a_queue_names_its_delay() {
    let server = Running::start(FILE).await;
    let ask = async || {
        server
            .answer(r#"{"request": {"method": "POST", "path": "/exports", "peer": "192.0.2.1"}}"#)
            .await
    };
    for (ns, ms) in [(0, 0), (1_500_000, 2), (3_000_000, 3)] {
        let answer = ask().await;
        assert_eq!((&answer["delay_ns"], &answer["delay_ms"]), (&json!(ns), &json!(ms)));
    }
    assert_eq!(ask().await["outcome"], "deny");
}

#[tokio::test]
async fn a_full_store_is_an_outcome() {
    let full = format!("[store]\nmax_entries = 20\noverflow = \"deny\"\n{FILE}");
    let server = Running::start(&full).await;
    let checks: Vec<_> =
        (0..29).map(|key| json!({"limit": "1/h", "key": key.to_string()})).collect();
    let answer = server.answer(&json!(checks).to_string()).await;
    assert_eq!(answer[28]["outcome"], "store-down");
    let reply = server.check("/v1/check?status=decision", &checks[28].to_string()).await;
    let _detail = reply.problem(503);
    assert_eq!(reply.names(), ["cache-control", "content-type", "retry-after"]);
    assert_eq!(reply.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn an_array_is_decided_in_order_and_refused_whole() {
    let server = Running::start(FILE).await;
    let check = r#"{"limit": "2/min", "key": "k"}"#;
    let good = format!("[{check}, {check}, {check}, {{\"request\": {{\"path\": \"/gone\"}}}}]");
    let answer = server.answer(&good).await;
    let outcomes: Vec<_> =
        answer.as_array().unwrap().iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes[..3], ["allow", "allow", "deny"]);
    assert_eq!(outcomes.len(), 4);
    assert_eq!(server.answer("[]").await, json!([]));

    let fresh = r#"{"limit": "2/min", "key": "fresh"}"#;
    for (bad, said) in [
        (r#"{"limit": "2/min"}"#, "[1]: `key` is missing"),
        (r#"{"request": {}, "policy": "nobody"}"#, "[1].policy: there is no policy of that name"),
        ("[]", "[1]: invalid type"),
    ] {
        let detail = server.check("/v1/check", &format!("[{fresh}, {bad}]")).await.problem(400);
        assert!(detail.starts_with(said), "{detail}");
    }
    let looked = server.answer(&fresh.replace('}', r#", "mode": "look"}"#)).await;
    assert_eq!(looked["remaining"], 2, "none of a bad array was charged");

    let paid = |cost: &str| {
        format!(
            r#"{{"request": {{"path": "/paid", "peer": "192.0.2.1", "headers": {{"x-cost": "{cost}"}}}}}}"#
        )
    };
    let answer = server.answer(&format!("[{}, {}]", paid("9"), paid("5"))).await;
    assert_eq!(
        (&answer[0]["outcome"], &answer[1]["outcome"]),
        (&json!("bad-request"), &json!("allow"))
    );
    let detail = server.check("/v1/check", &paid("9")).await.problem(400);
    assert_eq!(detail, "request.headers: header `x-cost` is a whole number from 1 to 5");
}

#[tokio::test]
async fn the_outcome_becomes_the_status_when_asked_for() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.http).await;
    let target = "/v1/check?a=b&status=decision";
    let check = r#"{"limit": "1/min", "key": "k"}"#;
    let allowed = client.check(target, check).await;
    assert_eq!((allowed.status, allowed.body.as_str()), (200, ""));
    assert_eq!(allowed.names(), ["ratelimit", "ratelimit-policy"]);
    let denied = client.check(target, check).await;
    assert!(denied.problem(429).contains("60 s"));
    assert_eq!(denied.header("retry-after"), Some("60"));
    assert_eq!(denied.header("ratelimit"), Some(r#""default";r=0;t=60"#));
    let never = client.check(target, r#"{"limit": "1/min", "key": "k", "cost": 2}"#).await;
    let _detail = never.problem(429);
    assert_eq!(never.header("retry-after"), None);
    let _detail = client.check(target, r#"{"request": {"path": "/gone"}}"#).await.problem(401);
    let _detail =
        client.check(target, r#"{"request": {"path": "/gone", "peer": "::1"}}"#).await.problem(403);
    assert!(client.check(target, "[]").await.problem(400).contains("array"));
    assert!(client.check("/v1/check?status=yes", check).await.problem(400).contains("`status`"));
    assert_eq!(client.check("/v1/check?stat=yes", check).await.status, 200, "only ours is ours");
}
