//! One limit for two servers and a service with the tower layer, counted in one real Redis.

use std::{convert::Infallible, future::ready, sync::Arc, thread};

use http::{Request, Response};
use sekisho::{Limiter, PolicySet, SystemClock};
use sekisho_http::layer::{LimitLayer, Peer};
use sekisho_redis::RedisStore;
use sekisho_testkit::redis_server::RedisServer;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::serving::{File, Served};

fn file(url: &str) -> String {
    format!(
        r#"
[store]
url     = "{url}"
timeout = "5s"

[[policy]]
name   = "api"
match  = {{ path = "/v1/**" }}
key    = ["ip"]
limits = ["100/week", "120/week sliding-log", "130/week fixed-window"]
"#
    )
}

/// Asks the layer of a service so often, all at once, and returns how many came through to it.
async fn through_the_layer(layer: &LimitLayer<RedisStore>, times: usize) -> usize {
    let asks = (0..times).map(|_| {
        let inner = service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new(()))));
        let service = layer.layer(inner);
        tokio::spawn(async move {
            let request = Request::get("/v1/hello").extension(Peer([127, 0, 0, 1].into()));
            let response = service.oneshot(request.body(()).unwrap()).await.unwrap();
            usize::from(response.status() == 200)
        })
    });
    let asks: Vec<_> = asks.collect();
    let mut passed = 0;
    for ask in asks {
        passed += ask.await.unwrap();
    }
    passed
}

/// Asks a server so often, eight at once, and returns how many passed.
fn through_a_server(server: &Served, times: usize) -> usize {
    thread::scope(|scope| {
        let ask = || {
            let asks = (0..times / 8).map(|_| server.get("/auth/v1/hello"));
            asks.filter(|answer| Served::status(answer) == "200").count()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn two_servers_and_a_service_share_a_limit_exactly() {
    let redis = RedisServer::start();
    let text = file(&redis.url());
    let written = File::new("shared", &text);
    let servers = [(); 2].map(|()| Served::start(&["-c", written.path()]));
    assert!(servers[0].said.contains("scope: shared"), "{}", servers[0].said);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let policies = PolicySet::parse(&text).unwrap();
    let store = RedisStore::open(policies.settings().store.shared.as_ref().unwrap()).unwrap();
    let limiter = Arc::new(Limiter::with_store(policies, store));
    let layer = LimitLayer::with_clock(limiter, Arc::new(SystemClock::new()));

    let passed = thread::scope(|scope| {
        let asking = servers.each_ref().map(|server| scope.spawn(|| through_a_server(server, 96)));
        let layered = runtime.block_on(through_the_layer(&layer, 96));
        layered + asking.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    assert_eq!(passed, 100);
    assert_eq!(redis.keys_without_expiry(""), Vec::<String>::new());
    for server in servers {
        assert_eq!(server.terminate(), Some(0));
    }
}
