//! The same refusal in every stack: status, fields and body do not depend on what stands around.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    error_handling::HandleErrorLayer,
    extract::{ConnectInfo, OriginalUri},
    routing::get as route,
};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use sekisho_http::layer::{LimitLayer, Peer};
use tokio::net::{TcpListener, TcpStream};
use tower::{
    BoxError, Layer, Service, ServiceBuilder, ServiceExt,
    buffer::BufferLayer,
    service_fn,
    timeout::TimeoutLayer,
    util::{BoxCloneService, BoxService},
};

use crate::support::{Seen, call, get, layer, limiter, named, send};

const ONE: &str = r#"
    [answer]
    headers = ["ratelimit", "x-ratelimit"]
    [[policy]]
    name = "all"
    key = ["ip"]
    limits = ["1/min"]
"#;

/// What all of them must come to.
async fn wanted() -> Seen {
    let layer = layer(ONE);
    drop(send(&layer, get("/", &[])).await);
    let seen = send(&layer, get("/", &[])).await;
    assert_eq!(seen.status, 429);
    seen
}

async fn inner(request: Request<()>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(named(&request))
}

/// Sends two requests, of which the second is refused.
async fn refused<S, B>(mut service: S) -> Seen
where
    S: Service<Request<()>, Response = Response<B>, Error: std::fmt::Debug>,
    B: http_body::Body<Data = Bytes, Error: std::fmt::Debug>,
{
    let service = &mut service;
    assert_eq!(call(&mut *service, get("/", &[])).await.status, 200);
    call(service, get("/", &[])).await
}

#[tokio::test]
async fn every_order_of_buffer_timeout_and_box_answers_alike() {
    let wanted = wanted().await;
    let minute = Duration::from_mins(1);
    assert_eq!(refused(layer(ONE).layer(service_fn(inner))).await, wanted);
    assert_eq!(refused(BoxService::new(layer(ONE).layer(service_fn(inner)))).await, wanted);
    assert_eq!(refused(BoxCloneService::new(layer(ONE).layer(service_fn(inner)))).await, wanted);
    assert_eq!(refused(layer(ONE).layer(BoxCloneService::new(service_fn(inner)))).await, wanted);
    let around = ServiceBuilder::new()
        .layer(BufferLayer::new(8))
        .layer(TimeoutLayer::new(minute))
        .layer(layer(ONE))
        .service_fn(inner);
    assert_eq!(refused(around).await, wanted);
    let inside = ServiceBuilder::new()
        .layer(layer(ONE))
        .layer(BufferLayer::new(8))
        .layer(TimeoutLayer::new(minute))
        .service_fn(inner);
    assert_eq!(refused(inside).await, wanted);
    let between = ServiceBuilder::new()
        .layer(TimeoutLayer::new(minute))
        .layer(layer(ONE))
        .layer(BufferLayer::new(8))
        .service_fn(inner);
    assert_eq!(refused(between).await, wanted);
}

#[tokio::test]
async fn the_service_that_was_ready_is_the_one_that_is_called() {
    // A concurrency limit panics when it is called without being ready.
    let mut service = ServiceBuilder::new()
        .layer(layer(&ONE.replace("1/min", "9/min")))
        .layer(tower::limit::ConcurrencyLimitLayer::new(1))
        .service_fn(inner);
    for _ in 0..3 {
        let ready = service.ready().await.expect("no error");
        assert_eq!(ready.call(get("/", &[])).await.expect("no error").status(), 200);
    }
}

/// Returns a request as axum has it.
fn axum_get(path: &str) -> Request<Body> {
    let peer: SocketAddr = "203.0.113.9:4711".parse().expect("an address");
    Request::get(path).extension(ConnectInfo(peer)).body(Body::empty()).expect("a request")
}

fn for_axum(file: &str) -> LimitLayer {
    layer(file)
        .peer(|extensions| extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip()))
}

async fn refused_by(app: Router) -> Seen {
    let send =
        async |app: Router| Seen::of(app.oneshot(axum_get("/")).await.expect("no error")).await;
    assert_eq!(send(app.clone()).await.status, 200);
    let mut seen = send(app).await;
    let _of_axum = seen.headers.remove("content-length");
    seen
}

#[tokio::test]
async fn axum_answers_alike_wherever_the_layer_stands() {
    let wanted = wanted().await;
    let routes = || Router::new().route("/", route(async || "hello"));
    let failed = || HandleErrorLayer::new(async |_: BoxError| StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(refused_by(routes().layer(for_axum(ONE))).await, wanted);
    assert_eq!(refused_by(routes().route_layer(for_axum(ONE))).await, wanted);
    let method = Router::new().route("/", route(async || "hello").layer(for_axum(ONE)));
    assert_eq!(refused_by(method).await, wanted);
    let outside = ServiceBuilder::new()
        .layer(failed())
        .layer(TimeoutLayer::new(Duration::from_mins(1)))
        .layer(for_axum(ONE));
    assert_eq!(refused_by(routes().layer(outside)).await, wanted);
    let inside = ServiceBuilder::new()
        .layer(for_axum(ONE))
        .layer(failed())
        .layer(BufferLayer::new(8))
        .layer(TimeoutLayer::new(Duration::from_mins(1)));
    assert_eq!(refused_by(routes().layer(inside)).await, wanted);
}

#[tokio::test]
async fn nested_routers_of_axum_charge_once_and_see_the_whole_path() {
    let file = r#"
        [[policy]]
        name = "api"
        match = { path = "/api/**" }
        key = ["ip"]
        limits = ["9/min"]
        [[policy]]
        name = "stripped"
        match = { path = "/login" }
        key = ["ip"]
        limits = ["block"]
    "#;
    let limit = for_axum(file).target(|extensions| Some(&extensions.get::<OriginalUri>()?.0));
    let child = Router::new()
        .route("/login", route(async || "hello").layer(limit.clone()))
        .layer(limit.clone());
    let app = Router::new().nest("/api", child).layer(limit);
    for left in [8, 7] {
        let seen =
            Seen::of(app.clone().oneshot(axum_get("/api/login")).await.expect("no error")).await;
        assert_eq!(seen.status, 200, "{seen:?}");
        assert_eq!(seen.header("ratelimit"), Some(format!("\"api\";r={left};t=0").as_str()));
    }
}

#[tokio::test]
async fn hyper_answers_alike_over_a_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (limiter, _) = limiter(ONE);
    let limit = LimitLayer::new(limiter);
    let server = tokio::spawn(async move {
        loop {
            let (stream, peer) = listener.accept().await.expect("a connection");
            let limited =
                limit.layer(service_fn(async |request: Request<hyper::body::Incoming>| {
                    Ok::<_, Infallible>(named(&request))
                }));
            let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
                let _first = request.extensions_mut().insert(Peer(peer.ip()));
                limited.clone().oneshot(request)
            });
            let http = hyper::server::conn::http1::Builder::new();
            drop(tokio::spawn(
                http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)),
            ));
        }
    });
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut client, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    drop(tokio::spawn(connection));
    let mut ask = async || {
        let request =
            Request::get("/").header("host", "h").body(Empty::<Bytes>::new()).expect("a request");
        let response = client.send_request(request).await.expect("an answer");
        Seen::of(response.map(BodyExt::boxed)).await
    };
    assert_eq!(ask().await.status, 200);
    let mut seen = ask().await;
    for of_hyper in ["date", "content-length"] {
        assert!(seen.headers.remove(of_hyper).is_some(), "{of_hyper}");
    }
    assert_eq!(seen, wanted().await);
    server.abort();
}

#[test]
fn all_that_is_shared_may_be_shared() {
    fn is_shared<T: Clone + Send + Sync + 'static>(_: &T) {}
    fn is_sent<T: Send>(_: &T) {}
    let layer = Arc::new(layer(ONE));
    is_shared(&layer);
    let mut service = layer.layer(service_fn(inner));
    is_shared(&service);
    is_sent(&service.call(get("/", &[])));
}
