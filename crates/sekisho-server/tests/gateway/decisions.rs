//! What the limiter says comes first.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use sekisho::{IdentityDoor, Limiter, PolicySet};
use sekisho_http::layer::LimitLayer;
use sekisho_server::door::gateway::{Gateway, Peer, Proxy};

use super::harness::{Setup, get, ok, upstream};

/// Starts an upstream that counts requests.
async fn counting() -> (std::net::SocketAddr, Arc<AtomicU32>) {
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let address = upstream(move |request: Request<Incoming>| {
        let _before = counted.fetch_add(1, Relaxed);
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            Response::new(Full::new(body))
        }
    })
    .await;
    (address, count)
}

#[tokio::test]
async fn a_refused_request_does_not_reach_the_upstream() {
    let (to, count) = counting().await;
    let gateway = Setup::to(to).limits("2/min").start().await;
    let mut client = gateway.connect().await;
    for left in [1, 0] {
        let reply = client.get("/").await;
        assert_eq!(reply.status, 200);
        assert!(reply.header("ratelimit").unwrap().starts_with(&format!("\"api\";r={left}")));
    }
    for _ in 0..3 {
        let reply = client.get("/").await;
        reply.is_problem(429);
        assert_eq!(reply.header("retry-after"), Some("30"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
    assert_eq!(count.load(Relaxed), 2);
}

#[tokio::test]
async fn a_refusal_comes_before_the_body_is_asked_for() {
    let (to, count) = counting().await;
    let gateway = Setup::to(to).limits("1/min").start().await;
    assert_eq!(gateway.get("/").await.status, 200);
    let mut client = gateway.connect().await;
    let head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nexpect: 100-continue\r\n";
    client.ask(head).await.is_problem(429);
    assert_eq!(client.rest().await.0, b"", "no leave to send, and no second request in the body");
    // Who does not wait for leave gets the answer as well, and may go on.
    let mut client = gateway.connect().await;
    client.ask("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n").await.is_problem(429);
    client.send(vec![b'x'; 100_000]).await;
    client.get("/").await.is_problem(429);
    assert_eq!(count.load(Relaxed), 1);
}

#[tokio::test]
async fn leave_to_send_comes_with_the_limiters() {
    let (to, _count) = counting().await;
    let gateway = Setup::to(to).start().await;
    let mut client = gateway.connect().await;
    client
        .send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n")
        .await;
    assert_eq!(client.head().await.unwrap().0, "HTTP/1.1 100 Continue");
    client.send("hello").await;
    let reply = client.receive().await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "hello"));
}

#[tokio::test]
async fn paths_that_servers_read_differently_are_refused() {
    let gateway = Setup::to(ok().await).start().await;
    for path in ["/a%2Fb", "/a%5cb", "/%00", "/%zz", "/../a", "*"] {
        gateway.ask(&get(path).replace("GET *", "OPTIONS *")).await.is_problem(400);
    }
    assert_eq!(gateway.get("/a/../b").await.status, 200);
}

#[tokio::test]
async fn the_address_is_taken_from_where_the_file_says() {
    let mut setup = Setup::to(ok().await).limits("1/min");
    setup.policies.insert_str(
        0,
        "[identity.gateway]\naddress = \"x-forwarded-for\"\n[identity]\ntrusted_proxies = [\"127.0.0.0/8\"]\n",
    );
    let gateway = setup.start().await;
    let from = |address: &str| format!("{}x-forwarded-for: {address}\r\n", get("/"));
    assert_eq!(gateway.ask(&from("192.0.2.1")).await.status, 200);
    assert_eq!(gateway.ask(&from("192.0.2.2")).await.status, 200);
    assert_eq!(gateway.ask(&from("192.0.2.3, 192.0.2.1")).await.status, 429);
}

#[tokio::test]
async fn an_answer_before_the_body_is_read_comes_through() {
    let to = super::harness::speaking(|mut client| async move {
        let _head = client.head().await;
        client
            .send("HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno")
            .await;
    })
    .await;
    let gateway = Setup::to(to).start().await;
    let mut client = gateway.connect().await;
    let reply = client.ask("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n").await;
    assert_eq!((reply.status, reply.body.as_str()), (413, "no"));
    client.send(Bytes::from(vec![b'x'; 1000])).await;
}

#[tokio::test]
async fn the_tower_layer_fits_in_front_of_the_proxy() {
    let policies = "[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"1/min\"]\n";
    let limiter = Arc::new(Limiter::new(PolicySet::parse(policies).unwrap()));
    let layer = LimitLayer::new(limiter)
        .door(IdentityDoor::Gateway)
        .peer(|extensions| extensions.get::<Peer>().map(|peer| peer.0.ip()));
    let Setup { proxy, gateway, .. } = Setup::to(ok().await);
    let gateway = Gateway::bind(gateway, &layer, Proxy::new(proxy).unwrap()).await.unwrap();
    let at = gateway.address().tcp().unwrap();
    let _running = tokio::spawn(gateway.run(std::future::pending()));
    let mut client = super::harness::Client::connect(at).await;
    assert_eq!(client.get("/").await.status, 200);
    client.get("/").await.is_problem(429);
}

#[tokio::test]
async fn only_answers_that_count_stay_charged() {
    let to = upstream(|request: Request<Incoming>| async move {
        let status = if request.uri().path() == "/right" { 200 } else { 401 };
        Response::builder().status(status).body(Full::new(Bytes::new())).unwrap()
    })
    .await;
    let mut setup = Setup::to(to);
    setup.policies =
        "[[policy]]\nname = \"login\"\nkey = [\"ip\"]\nlimits = [\"2/h sliding-log\"]\ncount = { status = [401] }\n".to_owned();
    let gateway = setup.start().await;
    for _ in 0..5 {
        let reply = gateway.get("/right").await;
        assert_eq!(reply.status, 200, "a success is given back");
    }
    assert_eq!(gateway.get("/wrong").await.status, 401);
    assert_eq!(gateway.get("/wrong").await.status, 401);
    gateway.get("/wrong").await.is_problem(429);
    gateway.get("/right").await.is_problem(429);
}
