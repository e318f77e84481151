//! Policies that count only some answers: charged before, given back after.

use std::{convert::Infallible, future::pending, sync::Arc};

use http::{Request, Response};
use http_body_util::Full;
use sekisho_http::layer::LimitLayer;
use tokio::sync::Barrier;
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

use crate::support::{Started, get, layer, named, send};

const LOGIN: &str = r#"
    [[policy]]
    name = "login"
    key = ["ip"]
    limits = ["5/min sliding-log"]
    count = { status = [401, 403] }
"#;

#[tokio::test]
async fn only_answers_that_count_are_charged_for_good() {
    let layer = layer(LOGIN);
    for _ in 0..20 {
        let seen = send(&layer, get("/login/200", &[])).await;
        assert_eq!((seen.status, seen.header("ratelimit")), (200, Some("\"login\";r=5;t=60")));
    }
    let failed = send(&layer, get("/login/403", &[])).await;
    assert_eq!((failed.status, failed.header("ratelimit")), (403, Some("\"login\";r=4;t=60")));
    for status in [500, 302, 404] {
        assert_eq!(send(&layer, get(&format!("/login/{status}"), &[])).await.status, status);
    }
    let failed = send(&layer, get("/login/401", &[])).await;
    assert_eq!(
        failed.header("ratelimit"),
        Some("\"login\";r=3;t=60"),
        "nothing in between counted"
    );
}

#[tokio::test]
async fn after_as_many_failures_as_the_limit_has_nothing_passes() {
    let layer = layer(LOGIN);
    for _ in 0..5 {
        assert_eq!(send(&layer, get("/login/401", &[])).await.status, 401);
    }
    for path in ["/login/401", "/login/200"] {
        assert_eq!(send(&layer, get(path, &[])).await.status, 429, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_failures_at_once_do_not_pass_the_limit_together() {
    let layer = layer(LOGIN);
    let together = Arc::new(Barrier::new(200));
    let attempts = (0..200).map(|_| {
        let (layer, together) = (layer.clone(), Arc::clone(&together));
        tokio::spawn(async move {
            together.wait().await;
            send(&layer, get("/login/401", &[])).await.status
        })
    });
    let mut failures = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        match attempt.await.expect("no panic") {
            401 => failures += 1,
            429 => {}
            other => panic!("{other}"),
        }
    }
    assert_eq!(failures, 5);
}

#[tokio::test]
async fn a_refusal_further_inside_is_an_answer_like_any_other() {
    let layer = layer(LOGIN);
    let inner = layer_of_all("1/h");
    for status in [200, 429, 429, 429, 429, 429, 429, 429] {
        let service =
            layer.layer(inner.layer(service_fn(async |request: Request<()>| {
                Ok::<_, Infallible>(named(&request))
            })));
        let response = service.oneshot(get("/x", &[])).await.expect("no error");
        assert_eq!(response.status(), status);
        assert!(
            response.headers()["ratelimit"].to_str().is_ok_and(|told| told.contains("\"all\";r=0"))
        );
    }
    assert_eq!(
        send(&layer, get("/login/401", &[])).await.header("ratelimit"),
        Some("\"login\";r=4;t=60")
    );
}

fn layer_of_all(limit: &str) -> LimitLayer {
    layer(&format!("[[policy]]\nname = \"all\"\nkey = [\"ip\"]\nlimits = [\"{limit}\"]\n"))
}

#[tokio::test]
async fn an_answer_that_nobody_gets_stays_charged() {
    let layer = layer(LOGIN);
    // The client leaves while the password is checked.
    let slow = service_fn(async |_: Request<()>| {
        pending::<Result<Response<Full<bytes::Bytes>>, Infallible>>().await
    });
    let mut service = layer.layer(slow);
    let mut left = Started::new(service.call(get("/login", &[])));
    assert!(left.is_pending());
    drop(left);
    // The service breaks.
    let broken = service_fn(async |_: Request<()>| {
        Err::<Response<Full<bytes::Bytes>>, BoxError>("broken".into())
    });
    let error = layer.layer(broken).oneshot(get("/login", &[])).await.expect_err("the inner error");
    assert_eq!(error.to_string(), "broken", "the error is the inner service's own");
    assert_eq!(
        send(&layer, get("/login/401", &[])).await.header("ratelimit"),
        Some("\"login\";r=2;t=60")
    );
}
