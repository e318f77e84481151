//! Upstreams that are down, slow, gone, or behind TLS.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use sekisho_server::door::gateway::Roots;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

use super::harness::{Client, Setup, get, listen, speaking};

#[tokio::test]
async fn an_upstream_that_is_down_is_502_and_charges_once() {
    let (socket, to) = listen().await;
    drop(socket);
    let gateway = Setup::to(to).limits("10/min").start().await;
    let reply = gateway.get("/").await;
    reply.is_problem(502);
    assert_eq!(reply.header("ratelimit"), Some("\"api\";r=9;t=0"));
    assert!(!reply.body.contains("127.0.0.1"), "the client learns no address");
    assert_eq!(gateway.get("/").await.header("ratelimit"), Some("\"api\";r=8;t=0"));
}

#[tokio::test]
async fn an_upstream_that_breaks_off_before_its_answer_is_502() {
    let to = speaking(|mut client| async move {
        let _head = client.head().await;
        client.reset();
    })
    .await;
    Setup::to(to).start().await.get("/").await.is_problem(502);
    let to = speaking(|mut client| async move {
        let _head = client.head().await;
        client.send("SSH-2.0-OpenSSH\r\n\r\n").await;
    })
    .await;
    Setup::to(to).start().await.get("/").await.is_problem(502);
}

#[tokio::test]
async fn an_upstream_that_does_not_answer_is_504() {
    let to = speaking(|mut client| async move {
        let _never = client.rest().await;
    })
    .await;
    let mut setup = Setup::to(to);
    setup.proxy.answer_timeout = Duration::from_millis(100);
    let gateway = setup.start().await;
    gateway.get("/").await.is_problem(504);
    let post = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n";
    gateway.ask(post).await.is_problem(504);
}

#[tokio::test]
async fn an_upstream_that_does_not_take_the_connection_is_504() {
    // A TLS handshake that nobody answers: a connection is made only when it can be used.
    let to = speaking(|client| async move {
        let _never = { client }.rest().await;
    })
    .await;
    let mut setup = Setup::to(format!("https://{to}"));
    setup.proxy.connect_timeout = Duration::from_millis(100);
    setup.proxy.roots = Roots::Only(vec![certificate().0]);
    setup.start().await.get("/").await.is_problem(504);
}

#[tokio::test]
async fn a_client_that_pauses_too_long_in_its_body_is_408() {
    let mut setup = Setup::to(super::harness::ok().await);
    setup.proxy.body_timeout = Duration::from_millis(100);
    setup.proxy.answer_timeout = Duration::from_millis(20);
    let gateway = setup.start().await;
    let mut client = gateway.connect().await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhalf").await;
    let reply = client.receive().await;
    reply.is_problem(408);
    assert_eq!(reply.header("connection"), Some("close"));
}

/// Starts an upstream whose connections carry one request each, and end when the second comes.
async fn short_lived() -> (SocketAddr, Arc<AtomicU32>) {
    let seen = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&seen);
    let to = speaking(move |mut client: Client| {
        let seen = Arc::clone(&count);
        async move {
            let _head = client.head().await;
            let _before = seen.fetch_add(1, Relaxed);
            client.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
            if client.head().await.is_some() {
                let _before = seen.fetch_add(1, Relaxed);
            }
        }
    })
    .await;
    (to, seen)
}

#[tokio::test]
async fn a_stale_connection_is_replaced_once_and_only_without_a_body() {
    let (to, seen) = short_lived().await;
    let gateway = Setup::to(to).start().await;
    let mut client = gateway.connect().await;
    let settle = || tokio::time::sleep(Duration::from_millis(50));
    for _ in 0..3 {
        assert_eq!(client.get("/").await.status, 200);
        settle().await;
    }
    assert_eq!(seen.load(Relaxed), 5, "two were tried again");
    let post = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi";
    client.send(post).await;
    client.receive().await.is_problem(502);
    assert_eq!(seen.load(Relaxed), 6, "a body goes out once");
    assert_eq!(client.get("/").await.status, 200);
    settle().await;
    client.ask("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n").await.is_problem(502);
    assert_eq!(seen.load(Relaxed), 8, "nor does a request that may not be repeated");
}

#[tokio::test]
async fn connections_are_kept_and_closed_when_they_rest_too_long() {
    let (opened, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let to = speaking(move |mut client: Client| {
        let opened = opened.clone();
        async move {
            while client.head().await.is_some() {
                client.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
            }
            opened.send(()).unwrap();
        }
    })
    .await;
    let mut setup = Setup::to(to);
    setup.proxy.idle_timeout = Duration::from_millis(200);
    let gateway = setup.start().await;
    for _ in 0..5 {
        assert_eq!(gateway.get("/").await.status, 200);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(ends.try_recv().is_err(), "one connection carries them all");
    tokio::time::timeout(super::harness::PATIENCE, ends.recv()).await.unwrap().unwrap();
    assert!(ends.try_recv().is_err(), "there was one only");
}

/// Returns a certificate for the loopback address, and a server's settings with it.
fn certificate() -> (Vec<u8>, ServerConfig) {
    let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    (own.cert.der().to_vec(), config)
}

/// Starts an upstream behind TLS that says which version of HTTP it was asked in.
async fn behind_tls(protocols: &[&[u8]]) -> (SocketAddr, Vec<u8>) {
    let (root, mut config) = certificate();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (socket, to) = listen().await;
    let _serving = tokio::spawn(async move {
        loop {
            let (stream, _) = socket.accept().await.unwrap();
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let service = service_fn(|request: Request<hyper::body::Incoming>| async move {
                let version = format!("{:?}", request.version());
                Ok::<_, hyper::Error>(http::Response::new(Full::<bytes::Bytes>::from(version)))
            });
            let _connection = tokio::spawn(async move {
                let server = auto::Builder::new(TokioExecutor::new());
                let _ended = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (to, root)
}

#[tokio::test]
async fn an_upstream_behind_tls_is_asked_in_the_version_that_it_prefers() {
    for (protocols, version) in [(&[&b"h2"[..], b"http/1.1"][..], "HTTP/2.0"), (&[], "HTTP/1.1")] {
        let (to, root) = behind_tls(protocols).await;
        let mut setup = Setup::to(format!("https://{to}"));
        setup.proxy.roots = Roots::Only(vec![root]);
        let gateway = setup.start().await;
        for _ in 0..2 {
            let reply = gateway.get("/").await;
            assert_eq!((reply.status, reply.body.as_str()), (200, version));
        }
        let mut client = gateway.http2().await;
        let grpc = Request::post("http://a/")
            .header("content-type", "application/grpc")
            .body(Full::<bytes::Bytes>::default())
            .unwrap();
        let response = client.send_request(grpc).await.unwrap();
        assert_eq!(response.status().as_u16(), if version == "HTTP/2.0" { 200 } else { 502 });
        let _body = response.into_body().collect().await.unwrap();
    }
}

#[tokio::test]
async fn an_upstream_whose_certificate_is_not_trusted_is_502() {
    let (to, _root) = behind_tls(&[b"h2"]).await;
    let mut setup = Setup::to(format!("https://{to}"));
    setup.proxy.roots = Roots::Only(vec![certificate().0]);
    setup.start().await.ask(&get("/")).await.is_problem(502);
}
