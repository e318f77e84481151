//! The metrics page: what it says, and that no client makes it grow.

use sekisho::Span;
use serde_json::json;
use tokio::time::timeout;

use crate::harness::{Client, PATIENCE, Running};

const FILE: &str = r#"
    [[policy]]
    name = "api"
    match = { path = "/v1/**" }
    key = [{ header = "x-key" }]
    on_missing_key = "deny"
    limits = ["1/h"]
"#;

#[tokio::test]
async fn decisions_are_counted_by_policy_outcome_and_door() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.http).await;
    for _ in 0..3 {
        let _reply = client.ask("GET /auth/v1/x HTTP/1.1\r\nhost: a\r\nx-key: k\r\n").await;
    }
    let _reply = client.get("/auth403/v1/x").await;
    let _reply = client.get("/auth/other").await;
    let _reply = client
        .check("/v1/check", r#"[{"limit": "block", "key": "k"}, {"limit": "1/s", "key": "k"}]"#)
        .await;
    let _reply = client.get("/nowhere").await;
    let page = server.page().await;
    assert_eq!(
        page.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    for line in [
        r#"sekisho_decisions_total{policy="api",outcome="allow",door="auth"} 1"#,
        r#"sekisho_decisions_total{policy="api",outcome="deny",door="auth"} 2"#,
        r#"sekisho_decisions_total{policy="api",outcome="missing-key",door="auth403"} 1"#,
        r#"sekisho_decisions_total{policy="(none)",outcome="allow",door="auth"} 1"#,
        r#"sekisho_decisions_total{policy="(none)",outcome="blocked",door="check"} 1"#,
        r#"sekisho_decisions_total{policy="(none)",outcome="allow",door="check"} 1"#,
        r#"sekisho_http_requests_total{door="auth",status_class="2xx"} 2"#,
        r#"sekisho_http_requests_total{door="auth",status_class="4xx"} 2"#,
        r#"sekisho_http_requests_total{door="auth403",status_class="4xx"} 1"#,
        r#"sekisho_http_requests_total{door="check",status_class="2xx"} 1"#,
        r#"sekisho_http_requests_total{door="other",status_class="4xx"} 1"#,
        "sekisho_decision_seconds_count 7",
        "sekisho_store_entries 2",
        "sekisho_store_overflow_total 0",
        "sekisho_store_dropped_fresh_total 0",
        "sekisho_store_dropped_in_use_total 0",
        "sekisho_fullest_keys 2",
        "sekisho_fullest_keys_max 1024",
        "sekisho_fullest_keys_crowded_out_total 0",
        concat!("sekisho_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
    ] {
        assert!(page.body.lines().any(|other| other == line), "no `{line}` in\n{}", page.body);
    }
    assert!(page.body.contains("\nsekisho_store_bytes ") && page.body.ends_with("# EOF\n"));
}

#[tokio::test]
async fn the_store_says_how_full_it_is_and_what_gave() {
    let bounds = "[store]\nmax_entries = 40\nmax_bytes = \"1MiB\"\noverflow = \"deny\"\n";
    let server = Running::start(&format!("{bounds}{FILE}")).await;
    let ask = |from: u32, to: u32| {
        let checks: Vec<_> = (from..to)
            .map(|key| json!({"policy": "api", "request": {"path": "/v1/x", "headers": {"x-key": key.to_string()}}}))
            .collect();
        json!(checks).to_string()
    };
    let has = async |lines: &[&str]| {
        let page = server.page().await.body;
        for line in lines {
            assert!(page.lines().any(|other| other == *line), "no `{line}` in\n{page}");
        }
        page
    };
    let page =
        has(&["sekisho_store_max_bytes 1048576", "sekisho_store_dropped_fresh_total 0"]).await;
    let most = page.lines().find_map(|line| line.strip_prefix("sekisho_store_max_entries "));
    let most: u32 = most.unwrap().parse().unwrap();
    assert!((30..=40).contains(&most), "{most}");
    let answer = server.answer(&ask(0, most + 5)).await;
    let down =
        answer.as_array().unwrap().iter().filter(|line| line["outcome"] == "store-down").count();
    let held = usize::try_from(most).unwrap() + 5 - down;
    let full =
        [format!("sekisho_store_entries {held}"), format!("sekisho_store_overflow_total {down}")];
    assert!(down >= 5);
    let _page = has(&[&full[0], &full[1], "sekisho_store_dropped_in_use_total 0"]).await;
    // An hour later all are fresh again, and are swept.
    server.clock.advance(Span::from_secs(3_600));
    let swept = async { while !server.page().await.body.contains("sekisho_store_entries 0\n") {} };
    timeout(PATIENCE, swept).await.expect("a sweep");
    let dropped = format!("sekisho_store_dropped_fresh_total {held}");
    let _page = has(&[&dropped, &full[1], "sekisho_store_dropped_in_use_total 0"]).await;
}

#[tokio::test]
async fn what_has_no_bound_has_no_line() {
    let server = Running::start(FILE).await;
    let page = server.page().await.body;
    assert!(!page.contains("sekisho_store_max_entries"), "{page}");
    assert!(page.contains("\nsekisho_store_max_bytes "), "a quarter of the machine's memory");
}

#[tokio::test]
async fn a_flood_of_keys_adds_no_line() {
    let server = Running::start(FILE).await;
    let before = server.page().await.body;
    let mut client = Client::connect(server.http).await;
    for key in 0..1_000 {
        for status in [200, 429] {
            let head = format!(
                "GET /auth/v1/secret-{key} HTTP/1.1\r\nhost: host-{key}\r\nx-key: secret-{key}\r\n"
            );
            assert_eq!(client.ask(&head).await.status, status);
        }
    }
    let checks: Vec<_> =
        (0..1_000).map(|key| json!({"limit": "1/h", "key": format!("secret-{key}")})).collect();
    for outcome in ["allow", "deny"] {
        let answer = server.answer(&json!(checks).to_string()).await;
        assert!(answer.as_array().unwrap().iter().all(|line| line["outcome"] == outcome));
    }
    let _reply = client.ask("SECRET-METHOD /secret-path HTTP/1.1\r\nhost: secret-host\r\n").await;
    let after = server.page().await.body;
    assert_eq!(after.lines().count(), before.lines().count());
    assert!(!after.to_ascii_lowercase().contains("secret"), "{after}");
    assert!(
        after.contains(r#"sekisho_decisions_total{policy="api",outcome="deny",door="auth"} 1000"#)
    );
}

#[tokio::test]
async fn what_has_become_fresh_is_swept_with_nobody_asking() {
    let server = Running::start(FILE).await;
    let _answer = server.answer(r#"{"limit": "1/min", "key": "k"}"#).await;
    assert!(server.page().await.body.contains("sekisho_store_entries 1\n"));
    server.clock.advance(Span::from_secs(60));
    let swept = async { while !server.page().await.body.contains("sekisho_store_entries 0\n") {} };
    timeout(PATIENCE, swept).await.expect("a sweep");
}

#[tokio::test]
async fn two_servers_count_apart() {
    let (one, other) = (Running::start(FILE).await, Running::start(FILE).await);
    let _reply = one.ask("GET /auth HTTP/1.1\r\nhost: a\r\n").await;
    let line = r#"sekisho_http_requests_total{door="auth",status_class="2xx"} "#;
    assert!(one.page().await.body.contains(&format!("{line}1\n")));
    assert!(other.page().await.body.contains(&format!("{line}0\n")));
}
