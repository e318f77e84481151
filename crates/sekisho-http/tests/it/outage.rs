//! What clients see while the shared store is down: what each policy says.

use sekisho_http::layer::{LimitLayer, WhenStoreDown};

use crate::support::{Down, down, from, get, send};

const GRPC: (&str, &str) = ("content-type", "application/grpc");

/// One policy of each kind, each for a path of its own and one for all.
const FILE: &str = r#"
    answer.headers = ["retry-after", "ratelimit", "x-ratelimit"]
    answer.expose = true
    [store]
    url = "redis://127.0.0.1:1"
    [[policy]]
    name = "a"
    match = { path = ["/allow/**", "/all", "/open"] }
    key = ["ip"]
    limits = ["2/min"]
    on_store_error = "allow"
    [[policy]]
    name = "l"
    match = { path = ["/local/**", "/all", "/open"] }
    key = ["ip"]
    limits = ["3/min"]
    on_store_error = "local"
    [[policy]]
    name = "d"
    match = { path = ["/deny/**", "/all"] }
    key = ["ip"]
    limits = ["4/min"]
    on_store_error = "deny"
"#;

async fn statuses(layer: &LimitLayer<Down>, path: &str) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(send(layer, get(path, &[])).await.status);
    }
    statuses
}

#[tokio::test]
async fn each_policy_does_what_it_says() {
    let layer = down(FILE);
    assert_eq!(statuses(&layer, "/allow/x").await, [200; 5]);
    assert_eq!(statuses(&layer, "/deny/x").await, [503; 5]);
    assert_eq!(statuses(&layer, "/local/x").await, [200, 200, 200, 429, 429]);
    assert_eq!(statuses(&layer, "/all").await, [503; 5]);
    assert_eq!(send(&layer, from("192.0.2.7", "/open", &[])).await.status, 200);
}

#[tokio::test]
async fn what_passes_uncounted_has_no_quota_fields_and_what_is_refused_has_a_wait() {
    let layer = down(FILE);
    let passed = send(&layer, get("/allow/x", &[])).await;
    assert_eq!((passed.status, passed.body.as_str()), (200, "inner"));
    assert_eq!(passed.headers.len(), 0, "{:?}", passed.headers);

    let refused = send(&layer, get("/deny/x", &[])).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!(refused.header("cache-control"), Some("no-store"));
    assert_eq!((refused.header("ratelimit"), refused.header("x-ratelimit-limit")), (None, None));
    let kind = refused.json()["type"].as_str().map(str::to_owned);
    assert!(kind.is_some_and(|kind| kind.ends_with("#temporary-reduced-capacity")));
    assert!(!refused.body.contains("10.0.0.7"), "nothing of the inside: {}", refused.body);

    // What is counted here is told: of the policy that is, and of no other.
    let counted = send(&layer, get("/open", &[])).await;
    assert_eq!(counted.header("ratelimit"), Some(r#""l";r=2;t=0"#));
    assert_eq!(counted.header("ratelimit-policy"), Some(r#""l";q=3;w=60"#));
    assert_eq!(counted.header("x-ratelimit-remaining"), Some("2"));
}

#[tokio::test]
async fn grpc_clients_see_the_same() {
    let layer = down(FILE);
    let passed = send(&layer, get("/allow/x", &[GRPC])).await;
    assert_eq!((passed.body.as_str(), passed.headers.len()), ("inner", 0));
    let refused = send(&layer, get("/deny/x", &[GRPC])).await;
    assert_eq!((refused.status, refused.header("grpc-status")), (200, Some("14")));
}

#[tokio::test]
async fn what_a_policy_says_goes_before_what_the_layer_says() {
    let layer = down(FILE).when_store_down(WhenStoreDown::Allow);
    assert_eq!(statuses(&layer, "/deny/x").await, [503; 5]);
    assert_eq!(statuses(&layer, "/local/x").await, [200, 200, 200, 429, 429]);
}
