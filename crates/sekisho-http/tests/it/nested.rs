//! One request, several layers: the same policy is charged once, another one beside it.

use std::convert::Infallible;

use http::Request;
use sekisho_http::layer::LimitLayer;
use tower::{Layer, ServiceBuilder, service_fn};

use crate::support::{call, decide, get, layer, limiter, named, send};

fn policy(name: &str, path: &str, limit: &str) -> String {
    format!(
        "[[policy]]\nname = \"{name}\"\nmatch = {{ path = \"{path}\" }}\nkey = [\"ip\"]\nlimits = [\"{limit}\"]\n"
    )
}

/// Returns what is left of each quota after one request.
async fn left(layers: &[&LimitLayer], path: &str) -> Option<String> {
    let inner = service_fn(async |request: Request<()>| Ok::<_, Infallible>(named(&request)));
    let seen = match layers {
        [a] => call(a.layer(inner), get(path, &[])).await,
        [a, b] => call(a.layer(b.layer(inner)), get(path, &[])).await,
        [a, b, c] => call(a.layer(b.layer(c.layer(inner))), get(path, &[])).await,
        _ => unreachable!("up to three"),
    };
    seen.header("ratelimit").map(str::to_owned)
}

#[tokio::test]
async fn the_same_limiter_charges_once_however_often_it_is_nested() {
    let layer = layer(&policy("all", "/**", "9/min"));
    assert_eq!(left(&[&layer, &layer, &layer], "/a").await.as_deref(), Some(r#""all";r=8;t=0"#));
    assert_eq!(left(&[&layer, &layer], "/a").await.as_deref(), Some(r#""all";r=7;t=0"#));
    // The mark is the request's, not the client's.
    assert_eq!(left(&[&layer], "/a").await.as_deref(), Some(r#""all";r=6;t=0"#));
}

#[tokio::test]
async fn policies_of_different_names_are_both_charged() {
    let outer = layer(&policy("outer", "/**", "9/min"));
    let inner = layer(&policy("inner", "/**", "5/min"));
    let told = left(&[&outer, &inner], "/a").await;
    assert_eq!(told.as_deref(), Some(r#""inner";r=4;t=0, "outer";r=8;t=0"#));
}

#[tokio::test]
async fn of_a_limiter_that_is_known_in_part_the_rest_is_charged() {
    let outer = layer(&policy("all", "/**", "9/min"));
    let both =
        policy("all", "/**", "9/min") + &policy("a", "/a", "5/min") + &policy("b", "/a", "3/min");
    let inner = layer(&both);
    let told = left(&[&outer, &inner, &inner], "/a").await;
    assert_eq!(told.as_deref(), Some(r#""a";r=4;t=0, "b";r=2;t=0, "all";r=8;t=0"#));
    // `b` refuses after three; what `a` was charged for the fourth is given back, and `all` is the outer layer's own.
    for _ in 0..2 {
        drop(left(&[&outer, &inner], "/a").await);
    }
    let service = ServiceBuilder::new().layer(outer.clone()).layer(inner.clone());
    let refused = call(
        service
            .service(service_fn(async |request: Request<()>| Ok::<_, Infallible>(named(&request)))),
        get("/a", &[]),
    )
    .await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("20")));
    assert_eq!(refused.json()["violated-policies"], serde_json::json!(["b"]));
    let alone = remaining(&inner, "a");
    assert_eq!(alone, 2, "three of five were charged for good");
}

/// Returns what is left of a policy.
fn remaining(layer: &LimitLayer, policy: &str) -> u64 {
    let limiter = layer.limiter();
    let ask = sekisho::Asked { policy: Some(policy), ..sekisho::Mode::Look.into() };
    let decision = decide(limiter, "/a", ask);
    decision.binding().and_then(|part| part.verdict.remaining).expect("a limit")
}

#[tokio::test]
async fn a_retry_inside_the_layer_is_no_new_request() {
    let (limiter, _) = limiter(&policy("all", "/**", "9/min"));
    let layer = LimitLayer::new(limiter);
    let deep =
        layer.layer(service_fn(async |request: Request<()>| Ok::<_, Infallible>(named(&request))));
    let retrying = service_fn(move |request: Request<()>| {
        let deep = deep.clone();
        async move {
            drop(call(deep.clone(), request.clone()).await);
            drop(call(deep.clone(), request.clone()).await);
            Ok::<_, Infallible>(named(&request))
        }
    });
    let seen = call(layer.layer(retrying), get("/a", &[])).await;
    assert_eq!(seen.header("ratelimit"), Some(r#""all";r=8;t=0"#));
    assert_eq!(send(&layer, get("/a", &[])).await.header("ratelimit"), Some(r#""all";r=7;t=0"#));
}
