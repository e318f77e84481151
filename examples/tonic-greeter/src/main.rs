//! A tonic server that limits itself: three greetings a minute for each address.
//!
//! `cargo run -p tonic-greeter` serves; `cargo run -p tonic-greeter -- ask http://127.0.0.1:50051` asks four times and shows
//! what a client gets.

mod greeter;
mod text;

use std::sync::Arc;

use sekisho::{Limiter, PolicySet};
use sekisho_http::layer::LimitLayer;
use tonic::transport::{
    Channel, Server,
    server::{TcpConnectInfo, TcpIncoming},
};

use crate::greeter::{Greeter, hello};

const POLICIES: &str = r#"
    [[policy]]
    name = "greetings"
    match = { path = "/example.Greeter/*" }
    key = ["ip"]
    limits = ["3/min sliding-log"]
"#;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[expect(clippy::print_stdout, reason = "whoever runs it is told where it listens")]
async fn serve(address: &str) -> Outcome {
    let limit = LimitLayer::new(Arc::new(Limiter::new(PolicySet::parse(POLICIES)?)))
        .peer(|extensions| extensions.get::<TcpConnectInfo>()?.remote_addr().map(|peer| peer.ip()));
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    let server = Server::builder().layer(limit).add_service(Greeter);
    server.serve_with_incoming(TcpIncoming::from(listener)).await?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "whoever runs it reads what was answered")]
async fn ask(server: String) -> Outcome {
    let channel = Channel::from_shared(server)?.connect().await?;
    for _ in 0..4 {
        match hello(channel.clone(), "tonic").await {
            Ok(reply) => println!("{reply}"),
            Err(status) => {
                let wait = status.metadata().get("grpc-retry-pushback-ms");
                let wait = wait.and_then(|wait| wait.to_str().ok()).unwrap_or("none");
                println!("{:?}: {}; pushback {wait} ms", status.code(), status.message());
            }
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("ask"), server) => ask(server.unwrap_or("http://127.0.0.1:50051".to_owned())).await,
        (address, _) => serve(address.unwrap_or("127.0.0.1:50051")).await,
    }
}
