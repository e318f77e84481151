//! A server's beginning and its end.

use std::{sync::Arc, time::Duration};

use sekisho::{PolicySet, SystemClock};
use sekisho_server::{ServeError, ServeOptions, Server, serve};
use tokio::{net::TcpStream, time::timeout};

use crate::harness::{Client, PATIENCE, Running, limiter};

const FILE: &str = "[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"60/min\"]\n";
const CHECK: &str = r#"{"limit": "60/min", "key": "k"}"#;

/// Returns a client in the middle of a check: the server reads the body, of which half has been sent.
async fn half_way(server: &Running) -> Client {
    let mut client = Client::connect(server.http).await;
    let length = CHECK.len();
    client.send(format!("POST /v1/check HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n")).await;
    assert_eq!(client.head().await.status, 100);
    client.send(&CHECK[..10]).await;
    client
}

#[tokio::test]
async fn what_runs_is_finished_and_nothing_new_is_taken() {
    let mut server = Running::start(FILE).await;
    let mut idle = Client::connect(server.http).await;
    assert_eq!(idle.get("/auth").await.status, 200);
    let mut admin = Client::connect(server.admin).await;
    assert_eq!(admin.get("/readyz").await.body, "ok");
    let mut running = half_way(&server).await;

    server.stop();
    idle.closed().await;
    timeout(PATIENCE, async { while TcpStream::connect(server.http).await.is_ok() {} })
        .await
        .expect("a closed socket");
    let ready = admin.get("/readyz").await;
    assert_eq!((ready.status, ready.body.as_str()), (503, "draining"));
    assert_eq!(admin.get("/healthz").await.status, 200, "alive, if not ready");
    assert!(!server.ended.is_finished(), "a check still runs");

    running.send(&CHECK[10..]).await;
    let reply = running.receive().await;
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    running.closed().await;
    timeout(PATIENCE, server.ended).await.expect("an end").unwrap();
    admin.closed().await;
}

#[tokio::test]
async fn a_request_that_never_ends_does_not_hold_the_server() {
    let short = Duration::from_millis(50);
    let mut server = Running::with(FILE, |options| {
        options.limits.drain_timeout = short;
        options.limits.body_timeout = 10 * PATIENCE;
    })
    .await;
    let mut running = half_way(&server).await;
    server.stop();
    timeout(PATIENCE, &mut server.ended).await.expect("an end").unwrap();
    running.closed().await;
}

#[tokio::test]
async fn the_admin_listener_has_its_own_paths() {
    let server = Running::start(FILE).await;
    let mut admin = Client::connect(server.admin).await;
    for path in ["/healthz", "/readyz"] {
        let reply = admin.get(path).await;
        assert_eq!((reply.status, reply.body.as_str()), (200, "ok"));
    }
    for path in ["/", "/auth", "/v1/check", "/metrics/"] {
        let _detail = admin.get(path).await.problem(404);
    }
    let reply = admin.ask("POST /metrics HTTP/1.1\r\nhost: a\r\n").await;
    let _detail = reply.problem(405);
    assert_eq!(reply.header("allow"), Some("GET, HEAD"));
}

#[tokio::test]
async fn addresses_come_from_the_file_and_must_be_free() {
    let parse = |listen: &str| {
        let policies = PolicySet::parse(&format!("{listen}\n{FILE}")).unwrap();
        limiter(policies, Arc::new(SystemClock::new()))
    };
    let options = ServeOptions::new(parse("[listen]\nadmin = \"127.0.0.1:0\""));
    assert_eq!(options.http, None);
    let server = Server::bind(options).await.unwrap();
    let taken = server.admin_address().unwrap();
    assert_eq!(server.http_address(), None);

    let error = serve(ServeOptions::new(parse(&format!("[listen]\nhttp = \"{taken}\""))), async {})
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on {taken}"));
    let mut options = ServeOptions::new(parse(""));
    assert_eq!(options.http.unwrap().tcp().unwrap().port(), 8080);
    (options.http, options.admin) = (None, None);
    assert!(matches!(serve(options, async {}).await, Err(ServeError::NoAddress)));
    timeout(PATIENCE, server.run(async {})).await.expect("an end without a door").unwrap();
}
