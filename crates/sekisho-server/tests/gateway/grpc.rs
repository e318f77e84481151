//! Calls of gRPC, and HTTP/2 without TLS.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, Version};
use http_body_util::{BodyExt as _, Empty, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Body as _, Frame, Incoming};
use tokio::{sync::Barrier, task::JoinSet, time::timeout};

use super::harness::{PATIENCE, Setup, upstream};

fn call() -> Request<Full<Bytes>> {
    Request::post("http://svc.example/pkg.Service/Call")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::from("\0\0\0\0\u{1}a"))
        .unwrap()
}

#[tokio::test]
async fn the_status_of_a_call_arrives_in_its_trailers() {
    let to = upstream(|request: Request<Incoming>| async move {
        assert_eq!(request.version(), Version::HTTP_2);
        assert_eq!(request.headers()["te"], "trailers");
        assert_eq!(request.uri().authority().unwrap(), "svc.example");
        assert_eq!(request.uri().path(), "/pkg.Service/Call");
        let message = request.into_body().collect().await.unwrap().to_bytes();
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("9"));
        trailers.insert("grpc-message", HeaderValue::from_static("not yet"));
        let frames = [Frame::data(message), Frame::trailers(trailers)].map(Ok::<_, hyper::Error>);
        let body = BoxBody::new(StreamBody::new(futures_util::stream::iter(frames)));
        Response::builder().header("content-type", "application/grpc").body(body).unwrap()
    })
    .await;
    let gateway = Setup::to(to).start().await;
    let mut client = gateway.http2().await;
    for _ in 0..3 {
        let response = client.send_request(call()).await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/grpc");
        let body = response.into_body().collect().await.unwrap();
        let trailers = body.trailers().expect("trailers");
        assert_eq!(
            (&trailers["grpc-status"], &trailers["grpc-message"]),
            (&"9".parse().unwrap(), &"not yet".parse().unwrap())
        );
        assert_eq!(body.to_bytes(), "\0\0\0\0\u{1}a");
    }
}

#[tokio::test]
async fn a_call_that_is_refused_gets_a_status_of_grpc() {
    let to = super::harness::ok().await;
    for kind in ["application/grpc", "application/grpc-web+proto"] {
        let gateway = Setup::to(to).limits("1/min burst 1").start().await;
        let mut client = gateway.http2().await;
        let mut call = || {
            let mut call = call();
            call.headers_mut().insert("content-type", HeaderValue::from_static(kind));
            client.send_request(call)
        };
        assert!(!call().await.unwrap().headers().contains_key("grpc-status"));
        let refused = call().await.unwrap();
        assert_eq!((refused.status().as_u16(), refused.version()), (200, Version::HTTP_2));
        let header = |name: &str| refused.headers().get(name).unwrap().to_str().unwrap();
        assert_eq!((header("content-type"), header("grpc-status")), (kind, "8"));
        assert_eq!(header("grpc-retry-pushback-ms"), "60000");
        assert!(
            !header("grpc-status-details-bin").is_empty() && !header("grpc-message").is_empty()
        );
        assert!(header("ratelimit").starts_with("\"api\";r=0"));
        // The head is all that there is: no frame of data, and no trailers behind it.
        assert!(refused.body().is_end_stream());
    }
}

#[tokio::test]
async fn a_call_with_a_path_that_servers_read_differently_is_an_invalid_argument() {
    let gateway = Setup::to(super::harness::ok().await).start().await;
    let mut call = call();
    *call.uri_mut() = "http://svc.example/pkg.Service%2fCall".parse().unwrap();
    let refused = gateway.http2().await.send_request(call).await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["grpc-status"]),
        (200, &"3".parse().unwrap())
    );
}

#[tokio::test]
async fn trailers_pass_through_http1_as_well() {
    let to = super::harness::speaking(|mut client| async move {
        let (_, headers) = client.head().await.unwrap();
        assert!(headers.contains(&("te".to_owned(), "trailers".to_owned())), "{headers:?}");
        assert!(headers.contains(&("connection".to_owned(), "te".to_owned())), "{headers:?}");
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n";
        client.send(format!("{head}2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n")).await;
    })
    .await;
    let gateway = Setup::to(to).start().await;
    let mut client = gateway.connect().await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: te, close\r\n\r\n").await;
    let (rest, _ended) = client.rest().await;
    let rest = String::from_utf8(rest).unwrap();
    assert!(rest.ends_with("2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n"), "{rest}");
}

async fn hundred_at_once(kind: &'static str) {
    const STREAMS: usize = 100;
    let all = Arc::new(Barrier::new(STREAMS));
    // Nobody is answered before all have come.
    let to = upstream(move |_| {
        let all = Arc::clone(&all);
        async move {
            let _leader = all.wait().await;
            Response::new(Full::new(Bytes::from_static(b"ok")))
        }
    })
    .await;
    let gateway = Setup::to(to).start().await;
    let client = gateway.http2::<Empty<Bytes>>().await;
    let mut asking = JoinSet::new();
    for _ in 0..STREAMS {
        let mut client = client.clone();
        asking.spawn(async move {
            let request =
                Request::post("http://a/").header("content-type", kind).body(Empty::new()).unwrap();
            client.send_request(request).await.unwrap().status()
        });
    }
    let statuses = timeout(PATIENCE, asking.join_all()).await.expect("all streams at once");
    assert!(statuses.iter().all(|status| *status == 200));
}

#[tokio::test]
async fn a_hundred_streams_run_side_by_side() {
    hundred_at_once("text/plain").await;
}

#[tokio::test]
async fn a_hundred_calls_run_side_by_side() {
    hundred_at_once("application/grpc").await;
}

#[tokio::test]
async fn an_idle_connection_of_http2_is_kept_while_it_may_be_and_no_longer() {
    let to = super::harness::ok().await;
    let mut setup = Setup::to(to);
    setup.gateway.limits.header_timeout = Duration::from_millis(300);
    setup.gateway.limits.idle_timeout = Duration::from_secs(2);
    let gateway = setup.start().await;
    let mut client = gateway.http2::<Empty<Bytes>>().await;
    let ask = || Request::get("http://a/").body(Empty::new()).unwrap();
    assert_eq!(client.send_request(ask()).await.unwrap().status(), 200);
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(client.send_request(ask()).await.unwrap().status(), 200);
    timeout(PATIENCE, async {
        while !client.is_closed() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("an idle connection is closed");
}

#[tokio::test]
async fn a_stream_that_ends_does_not_make_the_others_idle() {
    let to = upstream(|request: Request<Incoming>| async move {
        let long = request.uri().path() == "/long";
        tokio::time::sleep(Duration::from_millis(if long { 1_000 } else { 50 })).await;
        Response::new(Full::new(Bytes::new()))
    })
    .await;
    let mut setup = Setup::to(to);
    setup.gateway.limits.idle_timeout = Duration::from_millis(200);
    let gateway = setup.start().await;
    let mut client = gateway.http2::<Empty<Bytes>>().await;
    let ask = |path: &str| Request::get(format!("http://a{path}")).body(Empty::new()).unwrap();
    let long = client.send_request(ask("/long"));
    assert_eq!(client.clone().send_request(ask("/short")).await.unwrap().status(), 200);
    // Something comes in, so that the connection looks at its time.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(client.send_request(ask("/short")).await.unwrap().status(), 200);
    assert_eq!(long.await.unwrap().status(), 200);
}
