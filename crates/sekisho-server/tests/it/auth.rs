//! Forward-auth, in both profiles.

use sekisho::Span;
use serde_json::json;

use crate::harness::{Client, Reply, Running};

const FILE: &str = r#"
    [[policy]]
    name = "api"
    match = { path = "/v1/**" }
    key = ["ip"]
    limits = ["60/min"]

    [[policy]]
    name = "login"
    match = { method = "POST", path = "/login", host = "h.example" }
    key = [{ header = "x-user" }]
    on_missing_key = "deny"
    cost = { header = "x-cost", min = 1, max = 5, default = 1 }
    limits = ["4/min", "100/h sliding-log"]

    [[policy]]
    name = "gone"
    match = { path = "/gone" }
    key = ["ip"]
    limits = ["block"]
"#;

const PROBLEMS: &str = "https://iana.org/assignments/http-problem-types";

async fn spent(client: &mut Client, target: &str) {
    for left in (0..60).rev() {
        let reply = client.get(target).await;
        assert_eq!((reply.status, reply.body.as_str()), (200, ""));
        assert_eq!(reply.names(), ["ratelimit", "ratelimit-policy"]);
        let (after, policies) = (i32::from(left == 0), r#""api";q=60;w=60"#);
        assert_eq!(reply.header("ratelimit-policy"), Some(policies));
        assert_eq!(reply.header("ratelimit").unwrap(), format!(r#""api";r={left};t={after}"#));
    }
}

fn is_the_denial(reply: &Reply, status: u16) {
    assert_eq!(reply.status, status);
    assert_eq!(
        reply.names(),
        ["cache-control", "content-type", "ratelimit", "ratelimit-policy", "retry-after"]
    );
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert_eq!(reply.header("ratelimit-policy"), Some(r#""api";q=60;w=60"#));
    assert_eq!(reply.header("ratelimit"), Some(r#""api";r=0;t=1"#));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("content-type"), Some("application/problem+json"));
}

#[tokio::test]
async fn the_sixty_first_is_denied_with_all_that_a_client_needs() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.http).await;
    spent(&mut client, "/auth/v1/x?a=b").await;
    let denied = client.get("/auth/v1/x").await;
    is_the_denial(&denied, 429);
    assert_eq!(
        denied.json(),
        json!({
            "type": format!("{PROBLEMS}#quota-exceeded"),
            "title": "Quota Exceeded",
            "status": 429,
            "detail": "the quota `api` is used up; the same request passes in 1 s",
            "violated-policies": ["api"],
            "error_code": "rate_limit_exceeded",
            "retry_after": 1,
            "limit": 60,
            "remaining": 0,
            "reset": 1_700_000_060,
        })
    );
    // What it promises is true, to the nanosecond.
    server.clock.advance(Span::from_nanos(999_999_999));
    assert_eq!(client.get("/auth/v1/x").await.status, 429);
    server.clock.advance(Span::from_nanos(1));
    assert_eq!(client.get("/auth/v1/x").await.status, 200);
}

#[tokio::test]
async fn a_head_is_judged_like_a_get_and_has_no_body() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.http).await;
    spent(&mut client, "/auth/v1/x").await;
    let head = "HEAD /auth/v1/x HTTP/1.1\r\nhost: a\r\n";
    is_the_denial(&client.ask(head).await, 429);
    // Were there a body, it would stand before the next answer.
    is_the_denial(&client.ask(head).await, 429);
    assert_eq!(client.ask("HEAD /auth HTTP/1.1\r\nhost: a\r\n").await.status, 200);
}

#[tokio::test]
async fn nginx_is_told_403_with_the_same_headers() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.http).await;
    spent(&mut client, "/auth403/v1/x").await;
    let denied = client.get("/auth403/v1/x").await;
    is_the_denial(&denied, 403);
    assert_eq!(denied.json()["status"], 403);
    // Both profiles count in one place.
    is_the_denial(&client.get("/auth/v1/x").await, 429);
}

#[tokio::test]
async fn the_original_request_is_what_follows() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.http).await;
    let counted = [
        "/auth/v1",
        "/auth//v1/",
        "/auth/v1/x/../y",
        "/auth/%76%31",
        "/auth403/./v1?x",
        "/auth/v1/auth",
    ];
    for (target, left) in counted.iter().zip((0..60).rev()) {
        let reply = client.get(target).await;
        assert_eq!(reply.status, 200, "{target}");
        assert!(
            reply.header("ratelimit").unwrap().starts_with(&format!(r#""api";r={left};"#)),
            "{target}: {reply:?}"
        );
    }
    for target in
        ["/auth", "/auth/", "/auth?v1", "/auth403", "/auth/V1", "/auth/auth/v1", "/auth/x?/v1"]
    {
        let reply = client.get(target).await;
        assert_eq!((reply.status, reply.names()), (200, vec![]), "no policy holds for {target}");
    }
    for target in
        ["/authx", "/auth403x", "/auth.", "/auth%2fv1", "/Auth/v1", "//auth/v1", "/", "/v1/auth"]
    {
        assert_eq!(
            client.get(target).await.problem(404),
            "there is nothing at this path",
            "{target}"
        );
    }
    for target in [
        "/auth/a%2fb",
        "/auth/a%5Cb",
        "/auth/a\\b",
        "/auth/%00",
        "/auth/%",
        "/auth/%zz",
        "/auth/..",
        "/auth403/a%2Fb",
    ] {
        let _detail = client.get(target).await.problem(403);
    }
}

#[tokio::test]
async fn method_host_and_headers_are_the_original_requests() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.http).await;
    let login =
        |lines: &str| format!("POST /auth/login HTTP/1.1\r\nhost: h.example:8443\r\n{lines}");
    let missing = client.ask(&login("")).await;
    assert!(missing.problem(401).contains("policy `login`"));
    assert!(missing.header("www-authenticate").is_some());
    assert_eq!(client.ask(&login("").replace("/auth/", "/auth403/")).await.status, 401);
    assert_eq!(client.ask(&login("").replace("POST", "PUT")).await.status, 200, "another method");
    assert_eq!(
        client.ask(&login("").replace("h.example", "i.example")).await.status,
        200,
        "another host"
    );

    let allowed = client.ask(&login("x-user: a\r\nx-cost: 3\r\n")).await;
    assert_eq!(allowed.status, 200);
    assert_eq!(
        allowed.header("ratelimit-policy"),
        Some(r#""login-60s-token-bucket";q=4;w=60, "login-3600s-sliding-log";q=100;w=3600"#)
    );
    assert_eq!(allowed.header("ratelimit"), Some(r#""login-60s-token-bucket";r=1;t=0"#));
    let denied = client.ask(&login("x-user: a\r\nx-cost: 2\r\n")).await;
    assert_eq!((denied.status, denied.header("retry-after")), (429, Some("15")));
    assert_eq!(denied.json()["violated-policies"], json!(["login-60s-token-bucket"]));
    let never = client.ask(&login("x-user: a\r\nx-cost: 5\r\n")).await;
    assert_eq!(never.json()["type"], "https://sekisho.dev/problems/never-admissible");
    assert_eq!((never.status, never.header("retry-after")), (429, None));
    assert_eq!(
        client
            .ask(&login("x-user: a\r\nx-cost: 5\r\n").replace("/auth/", "/auth403/"))
            .await
            .status,
        403
    );
    let bad = login("x-user: a\r\nx-cost: 6\r\n");
    assert!(client.ask(&bad).await.problem(400).contains("`x-cost`"));
    let _detail = client.ask(&bad.replace("/auth/", "/auth403/")).await.problem(403);
}

#[tokio::test]
async fn blocked_is_403_in_both_profiles() {
    let denied = format!("deny = {{ cidr = [\"127.0.0.0/8\"] }}\n{FILE}");
    for (file, target) in [(FILE, "/gone"), (denied.as_str(), "/v1/x"), (denied.as_str(), "/")] {
        let server = Running::start(file).await;
        for prefix in ["/auth", "/auth403"] {
            let reply = server.ask(&format!("GET {prefix}{target} HTTP/1.1\r\nhost: a\r\n")).await;
            let _detail = reply.problem(403);
            assert_eq!(
                reply.names(),
                ["cache-control", "content-type"],
                "no quota, nothing to wait for"
            );
        }
    }
}

#[tokio::test]
async fn every_method_and_a_body_are_taken() {
    let server = Running::start(FILE).await;
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        let reply = server.ask(&format!("{method} /auth/v1/x HTTP/1.1\r\nhost: a\r\n")).await;
        assert_eq!(reply.status, 200, "{method}");
    }
    let mut client = Client::connect(server.http).await;
    for _ in 0..2 {
        client.send("POST /auth/v1/x HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello").await;
        assert_eq!(client.receive().await.status, 200);
    }
    client.send("GET /auth/v1 HTTP/1.1\r\nhost: a\r\n\r\n".repeat(3)).await;
    for left in [48, 47, 46] {
        let reply = client.receive().await;
        assert!(
            reply.header("ratelimit").unwrap().contains(&format!("r={left};")),
            "pipelined: {reply:?}"
        );
    }
}

/// *headers*, as published: 5 per 10 s in a fixed window, six requests five seconds into it.
#[tokio::test]
async fn the_published_experiment_on_headers() {
    let file =
        "[[policy]]\nname = \"default\"\nkey = [\"ip\"]\nlimits = [\"5/10s fixed-window\"]\n";
    let server = Running::start(file).await;
    server.clock.advance(Span::from_secs(5));
    let mut client = Client::connect(server.http).await;
    let (policy, fields) =
        (r#""default";q=5;w=10"#, ["ratelimit-policy", "ratelimit", "retry-after"]);
    for left in (0..5).rev() {
        let reply = client.get("/auth").await;
        let rate = format!(r#""default";r={left};t=5"#);
        assert_eq!(reply.status, 200);
        assert_eq!(
            fields.map(|field| reply.header(field)),
            [Some(policy), Some(rate.as_str()), None]
        );
    }
    let sixth = client.get("/auth").await;
    assert_eq!(sixth.status, 429);
    let rate = r#""default";r=0;t=5"#;
    assert_eq!(fields.map(|field| sixth.header(field)), [Some(policy), Some(rate), Some("5")]);
    assert!(sixth.body.contains("http-problem-types#quota-exceeded"), "{sixth:?}");
}

/// The guide's answers: all families, a detail in Japanese, a status of the policy's own.
#[tokio::test]
async fn answers_look_as_the_file_says() {
    let file = r#"
        [answer]
        headers = ["x-ratelimit"]
        reset = "delta"
        expose = true
        [[policy]]
        name = "api"
        key = ["ip"]
        limits = ["2/min"]
        refusal = { status = 420, detail = "{policy} は {retry_after} 秒後に再試行してください" }
        [[policy]]
        name = "page"
        match = { path = "/page" }
        key = ["ip"]
        limits = ["1/h"]
        refusal = { body = "<p>later</p>", content_type = "text/html" }
    "#;
    let server = Running::start(file).await;
    let mut client = Client::connect(server.http).await;
    let allowed = client.get("/auth/page").await;
    assert_eq!(
        allowed.names(),
        [
            "access-control-expose-headers",
            "x-ratelimit-limit",
            "x-ratelimit-remaining",
            "x-ratelimit-reset"
        ]
    );
    let page = client.get("/auth/page").await;
    assert_eq!((page.status, page.body.as_str()), (429, "<p>later</p>"));
    assert_eq!(page.header("content-type"), Some("text/html"));
    assert_eq!(client.get("/auth").await.status, 200);
    let denied = client.get("/auth").await;
    assert_eq!((denied.status, denied.header("retry-after")), (420, Some("30")));
    let fields = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
    assert_eq!(fields.map(|field| denied.header(field)), [Some("2"), Some("0"), Some("60")]);
    assert_eq!(denied.json()["detail"], "api は 30 秒後に再試行してください");
}
