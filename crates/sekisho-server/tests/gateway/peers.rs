//! Peers that are slow, many, or there when the gateway stops.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use sekisho::{Limiter, Memory, PolicySet};
use sekisho_server::{ServeGateway, ServeOptions, Server, ServerStore};
use tokio::{io::AsyncWriteExt as _, net::TcpStream, sync::Notify, time::timeout};

use super::harness::{Client, OPEN, PATIENCE, Setup, get, ok, upstream};

/// Sends a byte, after a while.
async fn drip(client: &mut Client) -> std::io::Result<()> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    client.stream.get_mut().write_all(b"a").await
}

#[tokio::test]
async fn a_head_that_drips_is_cut_in_time() {
    let setup = Setup::to(ok().await);
    assert_eq!(setup.gateway.limits.header_timeout, Duration::from_secs(10));
    let mut setup = setup;
    setup.gateway.limits.header_timeout = Duration::from_millis(500);
    let gateway = setup.start().await;
    // A head of HTTP/2 that is longer than what comes of it.
    let headers = "\0\u{20}\0\u{1}\u{4}\0\0\0\u{1}";
    let second = format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0{headers}");
    for first in ["", &second] {
        let mut client = gateway.connect().await;
        client.send(first).await;
        let dripping = async { while drip(&mut client).await.is_ok() {} };
        timeout(Duration::from_secs(5), dripping).await.expect("the connection ends");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_slow_clients_do_not_stop_a_fast_one() {
    let gateway = Setup::to(ok().await).start().await;
    let mut slow = Vec::new();
    for number in 0..1_000 {
        let mut client = gateway.connect().await;
        let head = get("/");
        let half = if number % 2 == 0 {
            &head[..20]
        } else {
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nx"
        };
        client.send(half).await;
        slow.push(client);
    }
    let mut fast = gateway.connect().await;
    timeout(Duration::from_secs(5), async {
        for _ in 0..100 {
            assert_eq!(fast.get("/").await.status, 200);
        }
    })
    .await
    .expect("a fast client is not held up");
    slow[0].send(&get("/")[20..]).await;
    slow[0].send("\r\n").await;
    assert_eq!(slow[0].receive().await.status, 200, "the slow ones are still served");
}

static GO_ON: Notify = Notify::const_new();

#[tokio::test]
async fn what_runs_is_finished_and_nothing_new_is_taken() {
    let to = upstream(|_| async {
        GO_ON.notified().await;
        Response::new(Full::new(Bytes::from_static(b"late")))
    })
    .await;
    let mut gateway = Setup::to(to).start().await;
    let mut idle = gateway.connect().await;
    idle.send("GET").await;
    let mut running = gateway.connect().await;
    running.send(format!("{}\r\n", get("/"))).await;
    let mut calling = gateway.http2().await;
    let call = http::Request::get("http://a/").body(http_body_util::Empty::<Bytes>::new()).unwrap();
    let calling = tokio::spawn(async move { calling.send_request(call).await.unwrap().status() });
    tokio::time::sleep(Duration::from_millis(200)).await;
    gateway.stop();
    timeout(PATIENCE, async { while TcpStream::connect(gateway.at).await.is_ok() {} })
        .await
        .expect("a closed socket");
    assert!(!gateway.ended.is_finished(), "two requests still run");
    GO_ON.notify_waiters();
    let reply = running.receive().await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "late"));
    assert_eq!(reply.header("connection"), Some("close"));
    assert_eq!(calling.await.unwrap(), 200);
    drop(idle);
    timeout(PATIENCE, gateway.ended).await.expect("an end").unwrap();
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_dropped() {
    let to = upstream(|_| async { Response::new(super::pieces::Zeroes(100_000_000)) }).await;
    let mut setup = Setup::to(to);
    setup.gateway.limits.write_timeout = Duration::from_millis(300);
    let gateway = setup.start().await;
    let mut client = gateway.connect().await;
    client.send(format!("{}\r\n", get("/"))).await;
    let _head = client.head().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (rest, _ended) = client.rest().await;
    assert!(rest.len() < 100_000_000, "{}", rest.len());
}

#[tokio::test]
async fn a_server_has_a_gateway_beside_its_doors() {
    let store = ServerStore::Memory(Memory::default());
    let limiter = Limiter::with_store(PolicySet::parse(OPEN).unwrap(), store);
    let mut options = ServeOptions::new(Arc::new(limiter));
    options.http = Some(([127, 0, 0, 1], 0).into());
    let Setup { proxy, gateway: listen, .. } = Setup::to(ok().await);
    options.gateway = Some(ServeGateway { listen, proxy, log: None });
    let server = Server::bind(options).await.unwrap();
    let [gateway, doors] = [server.gateway_address(), server.http_address()]
        .map(|address| address.unwrap().tcp().unwrap());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let ended = tokio::spawn(async {
        let stopped = async { drop(stopped.await) };
        Box::pin(server.run(stopped)).await.unwrap();
    });
    assert_eq!(Client::connect(gateway).await.get("/healthz").await.body, "ok");
    assert_eq!(Client::connect(doors).await.get("/auth").await.status, 200);
    stop.send(()).unwrap();
    timeout(PATIENCE, ended).await.expect("an end").unwrap();
    assert!(TcpStream::connect(gateway).await.is_err());
}
