//! Bad bodies and bad calls: each a clear refusal, and nothing is charged.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use crate::harness::{Client, Running};

const FILE: &str = "[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"60/min\"]\n";

#[tokio::test]
async fn a_bad_body_is_400_and_names_what_is_wrong() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.http).await;
    for (body, said) in [
        ("", "the body is not JSON"),
        ("{", "the body is not JSON"),
        ("\"\\ud800\"", "the body is not JSON"),
        ("7", "invalid type: integer `7`"),
        ("{}", "a check has a `limit` and a `key`, or a `request`"),
        (r#"{"limit": "60/min"}"#, "`key` is missing"),
        (
            r#"{"limit": "0/min", "key": "k"}"#,
            "limit: an amount of 0 could mean two things: write `block`",
        ),
        (r#"{"limit": "5/min burst 0", "key": "k"}"#, "limit: a bucket holds at least 1 unit"),
        (r#"{"limit": "sixty", "key": "k"}"#, "limit: a limit is"),
        (r#"{"limit": "60/min", "key": "k", "cost": -1}"#, "cost: "),
        (r#"{"limit": "60/min", "key": "k", "cost": 1.5}"#, "cost: "),
        (r#"{"limit": "60/min", "key": "k", "cost": NaN}"#, "cost: "),
        (r#"{"limit": "60/min", "key": "k", "cost": 18446744073709551616}"#, "cost: "),
        (r#"{"limit": "60/min", "key": "k", "cost": null}"#, "cost: "),
        (r#"[{"limit": "60/min", "key": "k", "cost": 1e9}]"#, "[0].cost: "),
        (r#"{"limit": "60/min", "key": "k", "mode": "CHECK"}"#, "mode: unknown variant"),
        (r#"{"limit": "60/min", "key": "k", "mode": "refund"}"#, "`at` is missing"),
        (r#"{"limit": "60/min", "key": "k", "extra": 1}"#, "extra: unknown field"),
        (r#"{"request": {}, "policy": "nobody"}"#, "policy: there is no policy of that name"),
        (r#"{"request": {"path": "/a%2fb"}}"#, "request.path: "),
        (r#"{"request": {"peer": "localhost"}}"#, "request.peer: "),
    ] {
        for target in ["/v1/check", "/v1/check?status=decision"] {
            let detail = client.check(target, body).await.problem(400);
            assert!(detail.starts_with(said), "`{body}`: {detail}");
        }
    }
    let looked =
        client.check("/v1/check", r#"{"limit": "60/min", "key": "k", "mode": "look"}"#).await;
    assert_eq!(looked.json()["remaining"], 60, "no bad body was charged");
}

#[tokio::test]
async fn bytes_that_are_no_text_are_refused() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.http).await;
    for body in [
        &b"\xff\xfe"[..],
        b"{\"limit\": \"1/s\", \"key\": \"\xc3\"}",
        b"\0\0\0\0",
        b"{\"key\": \"\x01\"}",
    ] {
        client
            .send(format!(
                "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n",
                body.len()
            ))
            .await;
        client.send(body).await;
        let _detail = client.receive().await.problem(400);
    }
}

#[tokio::test]
async fn a_body_of_two_megabytes_is_413() {
    let server = Running::start(FILE).await;
    let body = format!(r#"{{"limit": "60/min", "key": "{}"}}"#, "k".repeat(2 << 20));
    assert_eq!(server.check("/v1/check", &body).await.problem(413), "the body is too long");

    let mut client = Client::connect(server.http).await;
    client.send("POST /v1/check HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n").await;
    for _ in 0..20 {
        client.send(format!("4000\r\n{}\r\n", "x".repeat(0x4000))).await;
    }
    // Its sender is heard out, or it would meet a closed socket and never read the answer.
    assert!(timeout(Duration::from_millis(100), client.head()).await.is_err());
    client.send("0\r\n\r\n").await;
    let _detail = client.receive().await.problem(413);

    let mut client = Client::connect(server.http).await;
    let head = "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-length: 2000000\r\nexpect: 100-continue\r\n\r\n";
    client.send(head).await;
    let _detail = client.receive().await.problem(413);

    let most = format!(r#"{{"limit": "60/min", "key": "{}"}}"#, "k".repeat((64 << 10) - 30));
    assert_eq!(most.len(), 64 << 10);
    assert_eq!(server.check("/v1/check", &most).await.status, 200);
    let _detail = server.check("/v1/check", &(most + " ")).await.problem(413);
}

#[tokio::test]
async fn an_array_of_a_thousand_is_answered_and_one_more_is_refused() {
    let server = Running::start(FILE).await;
    let body = |count| format!("[{}]", vec![r#"{"limit":"600/min","key":"k"}"#; count].join(","));
    let answer = server.answer(&body(1_000)).await;
    let outcomes = answer.as_array().unwrap();
    assert_eq!(outcomes.len(), 1_000);
    assert_eq!(outcomes.iter().filter(|line| line["outcome"] == "allow").count(), 600);
    assert!(server.check("/v1/check", &body(1_001)).await.problem(400).contains("at most 1000"));
}

#[tokio::test]
async fn other_paths_are_404_and_other_methods_405() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.http).await;
    for (head, allowed) in [
        ("GET /v1/check HTTP/1.1", "POST"),
        ("PUT /v1/check HTTP/1.1", "POST"),
        ("POST /v1/openapi.json HTTP/1.1", "GET, HEAD"),
        ("DELETE /healthz HTTP/1.1", "GET, HEAD"),
    ] {
        let reply = client.ask(&format!("{head}\r\nhost: a\r\n")).await;
        let _detail = reply.problem(405);
        assert_eq!(reply.header("allow"), Some(allowed));
    }
    for target in ["/", "/v1", "/v1/check/", "/metrics", "/readyz", "/healthz/"] {
        let _detail = client.get(target).await.problem(404);
    }
    let health = client.get("/healthz?now").await;
    assert_eq!((health.status, health.body.as_str()), (200, "ok"));
    assert_eq!(client.ask("HEAD /healthz HTTP/1.1\r\nhost: a\r\n").await.status, 200);
    assert_eq!(client.get("/healthz").await.body, "ok", "the connection is still in step");
}

#[tokio::test]
async fn the_description_names_every_path() {
    let server = Running::start(FILE).await;
    let reply = Client::connect(server.http).await.get("/v1/openapi.json").await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert_eq!(reply.body, sekisho_server::door::openapi::OPENAPI);
    let document = reply.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    let paths: Vec<_> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    for path in [
        "/auth",
        "/auth/{path}",
        "/auth403",
        "/auth403/{path}",
        "/healthz",
        "/v1/check",
        "/v1/keys",
        "/v1/openapi.json",
    ] {
        assert!(paths.contains(&path), "no {path} in {paths:?}");
    }
    assert_eq!(paths.len(), 8);
    references(&document, &document);

    // The answer that it describes is the one that is given.
    let answer = server.answer(r#"{"limit": "60/min", "key": "k"}"#).await;
    let described = document["components"]["schemas"]["Answer"]["properties"].as_object().unwrap();
    assert_eq!(
        described.keys().collect::<Vec<_>>(),
        answer.as_object().unwrap().keys().collect::<Vec<_>>()
    );
}

/// Asserts that every reference leads somewhere.
fn references(document: &Value, value: &Value) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "nothing at {reference}");
            }
            members.values().for_each(|member| references(document, member));
        }
        Value::Array(items) => items.iter().for_each(|item| references(document, item)),
        _ => {}
    }
}
