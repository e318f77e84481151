//! A tonic server behind the layer, and a tonic client before it.

use std::convert::Infallible;

use http::{Request, uri::PathAndQuery};
use sekisho_http::layer::{GrpcRefusal, LimitLayer};
use tokio::net::TcpListener;
use tonic::{
    Code, Status,
    body::Body,
    client::Grpc,
    server::{self, NamedService, UnaryService},
    transport::{
        Channel, Server,
        server::{TcpConnectInfo, TcpIncoming},
    },
};
use tower::{Service, ServiceBuilder, buffer::BufferLayer};

use self::text::Text;
use crate::support::limiter;

/// The example's codec.
#[path = "../../../../examples/tonic-greeter/src/text.rs"]
mod text;

#[derive(Clone)]
struct Greeter;

impl UnaryService<String> for Greeter {
    type Response = String;
    type Future = std::future::Ready<Result<tonic::Response<String>, Status>>;

    fn call(&mut self, request: tonic::Request<String>) -> Self::Future {
        std::future::ready(Ok(tonic::Response::new(format!("Hello {}!", request.into_inner()))))
    }
}

impl NamedService for Greeter {
    const NAME: &'static str = "test.Greeter";
}

impl Service<Request<Body>> for Greeter {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(async move { Ok(server::Grpc::new(Text).unary(Self, request).await) })
    }
}

const FILE: &str = r#"
    [[policy]]
    name = "hello"
    match = { path = "/test.Greeter/*" }
    key = ["ip"]
    limits = ["2/min sliding-log"]
    refusal = { detail = "{limit} 回まで" }
"#;

fn limit() -> LimitLayer {
    LimitLayer::new(limiter(FILE).0)
        .peer(|extensions| extensions.get::<TcpConnectInfo>()?.remote_addr().map(|peer| peer.ip()))
}

/// Asks three times, and returns the status of the third.
async fn refused(address: std::net::SocketAddr) -> Status {
    let channel =
        Channel::from_shared(format!("http://{address}")).expect("an address").connect().await;
    let mut client = Grpc::new(channel.expect("a connection"));
    let mut ask = async || {
        client.ready().await.expect("ready");
        let path = PathAndQuery::from_static("/test.Greeter/Hello");
        client.unary(tonic::Request::new("you".to_owned()), path, Text).await
    };
    for left in [1, 0] {
        let reply = ask().await.expect("an answer");
        let told = reply.metadata().get("ratelimit").and_then(|told| told.to_str().ok());
        assert_eq!(told, Some(format!("\"hello\";r={left};t=60").as_str()));
        assert_eq!(reply.into_inner(), "Hello you!");
    }
    ask().await.expect_err("no third")
}

async fn port() -> (TcpIncoming, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (TcpIncoming::from(listener), address)
}

fn is_the_refusal(status: &Status, code: Code) {
    assert_eq!((status.code(), status.message()), (code, "2 回まで"));
    let text = |name: &str| status.metadata().get(name).and_then(|value| value.to_str().ok());
    assert_eq!(text("grpc-retry-pushback-ms"), Some("60000"));
    assert_eq!(text("ratelimit"), Some(r#""hello";r=0;t=60"#));
    // google.rpc.Status { code, message, details: [RetryInfo { retry_delay: 60 s }] }
    let details = status.details();
    assert_eq!(details[..2], [8, u8::try_from(i32::from(code)).expect("small")]);
    assert!(details.ends_with(b"type.googleapis.com/google.rpc.RetryInfo\x12\x04\x0a\x02\x08\x3c"));
}

#[tokio::test]
async fn a_tonic_client_reads_the_refusal() {
    let (incoming, address) = port().await;
    let server = Server::builder().layer(limit()).add_service(Greeter);
    let server = tokio::spawn(server.serve_with_incoming(incoming));
    is_the_refusal(&refused(address).await, Code::ResourceExhausted);
    server.abort();
}

#[tokio::test]
async fn and_with_a_buffer_between() {
    let (incoming, address) = port().await;
    let stack = ServiceBuilder::new()
        .layer(limit().grpc(GrpcRefusal::Unavailable))
        .layer(BufferLayer::new(8))
        .into_inner();
    let server = Server::builder().layer(stack).add_service(Greeter);
    let server = tokio::spawn(server.serve_with_incoming(incoming));
    is_the_refusal(&refused(address).await, Code::Unavailable);
    server.abort();
}
