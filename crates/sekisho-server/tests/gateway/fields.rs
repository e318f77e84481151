//! Which header fields come through, and what is added.

use std::sync::Arc;

use http::Request;
use http_body_util::Empty;
use parking_lot::Mutex;
use sekisho_server::door::gateway::HostField;

use super::harness::{Client, Setup, get, speaking};

type Heads = Arc<Mutex<Vec<(String, Vec<(String, String)>)>>>;

/// Starts an upstream that keeps the heads that it sees, and answers with `lines`.
async fn recording(lines: &'static str) -> (std::net::SocketAddr, Heads) {
    let heads = Heads::default();
    let seen = Arc::clone(&heads);
    let address = speaking(move |mut client: Client| {
        let seen = Arc::clone(&seen);
        async move {
            while let Some(head) = client.head().await {
                seen.lock().push(head);
                client.send(format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n{lines}\r\nok")).await;
            }
        }
    })
    .await;
    (address, heads)
}

fn value<'a>(head: &'a (String, Vec<(String, String)>), name: &str) -> Option<&'a str> {
    head.1.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

#[tokio::test]
async fn fields_of_one_hop_are_taken_off_both_ways() {
    let (to, heads) = recording(
        "connection: keep-alive, x-up\r\nx-up: 1\r\nkeep-alive: timeout=5\r\nproxy-connection: a\r\nx-stays: 1\r\n",
    )
    .await;
    let gateway = Setup::to(to).start().await;
    let lines = "connection: keep-alive, X-A\r\nx-a: 1\r\nconnection: x-b\r\nx-b: 2\r\nkeep-alive: timeout=5\r\n\
        proxy-connection: keep-alive\r\nproxy-authorization: Basic YTpi\r\nte: gzip\r\nupgrade: h2c\r\n\
        http2-settings: AAMAAABk\r\nx-stays: 1\r\nexpect: 100-continue\r\n";
    let reply = gateway.ask(&format!("{}{lines}", get("/a"))).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "ok"));
    let mut names: Vec<_> = reply.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["content-length", "date", "ratelimit", "ratelimit-policy", "x-stays"],
        "{reply:?}"
    );
    let heads = heads.lock();
    let mut names: Vec<_> = heads[0].1.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["host", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-stays"]
    );
}

#[tokio::test]
async fn the_upstream_learns_who_asks_and_for_what_host() {
    let (to, heads) = recording("").await;
    let gateway = Setup::to(format!("http://{to}/base/")).start().await;
    let lines = "x-forwarded-for: 6.6.6.6\r\nx-forwarded-for: 192.0.2.7\r\nx-forwarded-proto: https\r\nforwarded: for=a\r\n";
    assert_eq!(gateway.ask(&format!("{}{lines}", get("/a%20b//c?d=%2F"))).await.status, 200);
    assert_eq!(
        gateway.ask("GET http://t.example/x HTTP/1.1\r\nhost: other.example\r\n").await.status,
        200
    );
    let heads = heads.lock();
    assert_eq!(heads[0].0, "GET /base/a%20b//c?d=%2F HTTP/1.1");
    assert_eq!(value(&heads[0], "host"), Some("h.example"));
    assert_eq!(value(&heads[0], "x-forwarded-for"), Some("6.6.6.6, 192.0.2.7, 127.0.0.1"));
    assert_eq!(value(&heads[0], "x-forwarded-host"), Some("h.example"));
    assert_eq!(value(&heads[0], "x-forwarded-proto"), Some("http"));
    assert_eq!(value(&heads[0], "forwarded"), None);
    assert_eq!(
        (heads[1].0.as_str(), value(&heads[1], "host")),
        ("GET /base/x HTTP/1.1", Some("t.example"))
    );
}

#[tokio::test]
async fn the_upstream_may_be_told_its_own_host() {
    let (to, heads) = recording("").await;
    let mut setup = Setup::to(to);
    setup.proxy.host = HostField::Upstream;
    assert_eq!(setup.start().await.get("/").await.status, 200);
    assert_eq!(value(&heads.lock()[0], "host"), Some(to.to_string().as_str()));
    assert_eq!(value(&heads.lock()[0], "x-forwarded-host"), Some("h.example"));
}

#[tokio::test]
async fn a_request_of_http2_is_one_of_http1_to_the_upstream() {
    let (to, heads) = recording("connection: close\r\n").await;
    let gateway = Setup::to(to).start().await;
    let mut client = gateway.http2().await;
    let request = Request::get("http://two.example/a?b").body(Empty::new()).unwrap();
    let response = client.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers().get("connection").is_none());
    let heads = heads.lock();
    assert_eq!(heads[0].0, "GET /a?b HTTP/1.1");
    assert_eq!(value(&heads[0], "host"), Some("two.example"));
}

#[tokio::test]
async fn lists_of_quotas_are_added_to_and_anything_else_replaced() {
    for (theirs, expected) in [
        (
            "ratelimit: \"in\";r=1;t=3\r\nratelimit-policy: \"in\";q=5\r\n",
            "\"in\";r=1;t=3, \"api\";r=9;t=0",
        ),
        ("ratelimit: limit=5, remaining 3\r\n", "\"api\";r=9;t=0"),
    ] {
        let (to, _heads) = recording(theirs).await;
        let gateway = Setup::to(to).limits("10/min").start().await;
        assert_eq!(gateway.get("/").await.header("ratelimit"), Some(expected));
    }
}
