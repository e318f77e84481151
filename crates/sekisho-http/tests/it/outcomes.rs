//! Every row of the table, through the layer, as HTTP and as gRPC.

use sekisho::Span;
use sekisho_http::layer::{GrpcRefusal, LimitLayer, WhenStoreDown};
use tower::{Layer, service_fn};

use crate::support::{Seen, call, down, from, full, get, layer, limiter, named, send};

const FILE: &str = r#"
    deny = { cidr = ["198.51.100.0/24"] }
    [[policy]]
    name = "api"
    match = { path = "/api/**" }
    key = [{ header = "x-api-key" }]
    on_missing_key = "deny"
    cost = { header = "x-cost", default = 1, min = 1, max = 50 }
    limits = ["2/min"]
    [[policy]]
    name = "closed"
    match = { path = "/closed" }
    key = ["ip"]
    limits = ["block"]
"#;

const KEY: (&str, &str) = ("x-api-key", "k");
const GRPC: (&str, &str) = ("content-type", "application/grpc");

#[tokio::test]
async fn allowed_requests_reach_the_service_and_tell_of_the_quota() {
    let layer = layer(FILE);
    let seen = send(&layer, get("/api/x", &[KEY])).await;
    assert_eq!((seen.status, seen.body.as_str()), (200, "inner"));
    assert_eq!(seen.header("ratelimit-policy"), Some(r#""api";q=2;w=60"#));
    assert_eq!(seen.header("ratelimit"), Some(r#""api";r=1;t=0"#));
    assert_eq!((seen.header("retry-after"), seen.header("cache-control")), (None, None));
    let free = send(&layer, get("/elsewhere", &[])).await;
    assert_eq!((free.status, free.headers.len()), (200, 0), "no policy, no fields");
}

#[tokio::test]
async fn each_refusal_is_the_tables() {
    let layer = layer(FILE);
    for _ in 0..2 {
        assert_eq!(send(&layer, get("/api/x", &[KEY])).await.status, 200);
    }
    let cases = [
        ("deny", get("/api/x", &[KEY]), 429, Some("30"), "#quota-exceeded"),
        ("never", get("/api/x", &[KEY, ("x-cost", "3")]), 429, None, "never-admissible"),
        ("missing key", get("/api/x", &[]), 401, None, "about:blank"),
        ("block", get("/closed", &[]), 403, None, "about:blank"),
        ("deny list", from("198.51.100.7", "/", &[]), 403, None, "about:blank"),
        ("bad cost", get("/api/x", &[KEY, ("x-cost", "x")]), 400, None, "about:blank"),
        ("bad path", get("/api%2Fx", &[KEY]), 400, None, "about:blank"),
    ];
    for (what, request, status, wait, kind) in cases {
        let seen = send(&layer, request).await;
        assert_eq!((seen.status, seen.header("retry-after")), (status, wait), "{what}");
        assert_eq!(seen.header("cache-control"), Some("no-store"), "{what}");
        assert_eq!(seen.header("content-type"), Some("application/problem+json"), "{what}");
        assert!(seen.json()["type"].as_str().is_some_and(|of| of.ends_with(kind)), "{what}");
        assert_eq!(seen.json()["status"], status, "{what}");
    }
    for spelling in ["/api%5Cx", "/api%00", "/%zz", "/api\\x"] {
        let Ok(uri) = spelling.parse::<http::Uri>() else { continue };
        let mut request = get("/", &[KEY]);
        *request.uri_mut() = uri;
        assert_eq!(send(&layer, request).await.status, 400, "{spelling}");
    }
}

#[tokio::test]
async fn a_store_that_cannot_decide_refuses_or_lets_through() {
    for (seen, inside) in [
        (send(&down(FILE), get("/api/x", &[KEY])).await, "10.0.0.7"),
        (send(&full(FILE), get("/api/x", &[KEY])).await, "overflow"),
    ] {
        assert_eq!((seen.status, seen.header("retry-after")), (503, Some("1")));
        assert!(seen.body.contains("#temporary-reduced-capacity"), "{}", seen.body);
        assert!(!seen.body.contains(inside), "nothing of the inside: {}", seen.body);
    }
    let open = down(FILE).when_store_down(WhenStoreDown::Allow);
    let seen = send(&open, get("/api/x", &[KEY])).await;
    assert_eq!((seen.status, seen.headers.len()), (200, 0), "no numbers: {:?}", seen.headers);
    assert_eq!(send(&open, get("/api/x", &[])).await.status, 401, "the store was not asked");
}

async fn grpc(layer: &LimitLayer, path: &str, lines: &[(&str, &str)]) -> Seen {
    let lines = [&[GRPC], lines].concat();
    send(layer, get(path, &lines)).await
}

#[tokio::test]
async fn grpc_has_statuses_of_its_own() {
    let layer = layer(FILE);
    for _ in 0..2 {
        assert_eq!(grpc(&layer, "/api/x", &[KEY]).await.header("grpc-status"), None);
    }
    for (what, path, lines, code) in [
        ("deny", "/api/x", &[KEY][..], "8"),
        ("never", "/api/x", &[KEY, ("x-cost", "3")], "8"),
        ("missing key", "/api/x", &[], "16"),
        ("block", "/closed", &[], "7"),
        ("bad cost", "/api/x", &[KEY, ("x-cost", "x")], "3"),
        ("bad path", "/api%2Fx", &[KEY], "3"),
    ] {
        let seen = grpc(&layer, path, lines).await;
        assert_eq!((seen.status, seen.header("grpc-status")), (200, Some(code)), "{what}");
        assert_eq!((seen.header("content-type"), seen.body.as_str()), (Some(GRPC.1), ""), "{what}");
        assert!(seen.header("grpc-message").is_some_and(|message| !message.is_empty()), "{what}");
        assert_eq!(seen.header("retry-after"), None, "{what}");
        for field in ["grpc-retry-pushback-ms", "grpc-status-details-bin"] {
            assert_eq!(seen.header(field).is_some(), what == "deny", "{what}: {field}");
        }
    }
    let denied = grpc(&layer, "/api/x", &[KEY]).await;
    assert_eq!(denied.header("grpc-retry-pushback-ms"), Some("30000"));
    assert_eq!(denied.header("ratelimit"), Some(r#""api";r=0;t=30"#));
    let blocked = send(&layer, from("198.51.100.7", "/", &[GRPC])).await;
    assert_eq!(blocked.header("grpc-status"), Some("7"), "deny list");
}

#[tokio::test]
async fn grpc_clients_may_be_told_to_try_again_of_their_own_accord() {
    let (limiter, clock) = limiter(FILE);
    let layer = LimitLayer::new(limiter).grpc(GrpcRefusal::Unavailable);
    for _ in 0..2 {
        let seen = grpc(&layer, "/api/x", &[KEY]).await;
        assert_eq!((seen.status, seen.header("grpc-status")), (200, None));
    }
    clock.advance(Span::from_nanos(1));
    let denied = grpc(&layer, "/api/x", &[KEY]).await;
    assert_eq!(denied.header("grpc-status"), Some("14"));
    assert_eq!(denied.header("grpc-retry-pushback-ms"), Some("30000"), "rounded up");
    let never = grpc(&layer, "/api/x", &[KEY, ("x-cost", "3")]).await;
    assert_eq!(never.header("grpc-status"), Some("8"), "trying again is no use");

    let seen = send(&down(FILE), get("/api/x", &[KEY, GRPC])).await;
    assert_eq!((seen.status, seen.header("grpc-status")), (200, Some("14")));
    let open = down(FILE).when_store_down(WhenStoreDown::Allow);
    assert_eq!(send(&open, get("/api/x", &[KEY, GRPC])).await.body, "inner");
}

#[tokio::test]
async fn the_fields_of_the_service_inside_stay() {
    let layer = layer(&format!("answer.headers = [\"ratelimit\", \"x-ratelimit\"]\n{FILE}"));
    let inner = service_fn(async |request: http::Request<()>| {
        let mut response = named(&request);
        for (name, value) in [
            ("ratelimit", r#""deep";r=9;t=1"#),
            ("x-ratelimit-remaining", "1"),
            ("x-ratelimit-limit", "1000"),
            ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ] {
            let _first = response.headers_mut().insert(name, value.parse().expect("a value"));
        }
        Ok::<_, std::convert::Infallible>(response)
    });
    let seen = call(layer.layer(inner), get("/api/503", &[KEY])).await;
    assert_eq!(seen.header("ratelimit"), Some(r#""deep";r=9;t=1, "api";r=1;t=0"#));
    assert_eq!(seen.header("x-ratelimit-limit"), Some("1000"));
    assert_eq!(seen.header("x-ratelimit-remaining"), Some("1"));
    assert_eq!(seen.header("retry-after"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
}

#[tokio::test]
async fn a_preflight_is_charged_like_any_request() {
    let layer = layer(FILE);
    for status in [200, 200, 429] {
        let mut preflight = get(
            "/api/x",
            &[KEY, ("origin", "https://a.example"), ("access-control-request-method", "PUT")],
        );
        *preflight.method_mut() = http::Method::OPTIONS;
        assert_eq!(send(&layer, preflight).await.status, status);
    }
}
