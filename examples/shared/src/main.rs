//! An axum service that shares its limits with other processes, through a Redis or Valkey.
//!
//! `REDIS_URL=redis://127.0.0.1:6379 cargo run -p shared`. The README of the project shows it beside two servers.

use std::{net::SocketAddr, sync::Arc};

use axum::{Router, extract::ConnectInfo, routing::get};
use sekisho::{Limiter, PolicySet, SystemClock};
use sekisho_http::layer::LimitLayer;
use sekisho_redis::RedisStore;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "whoever runs it is told where it listens")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policies = PolicySet::parse(include_str!("../sekisho.toml"))?;
    let shared = policies.settings().store.shared.as_ref().ok_or("this file counts in memory")?;
    let store = RedisStore::open(shared)?;
    let limiter = Arc::new(Limiter::with_store(policies, store));
    let limit = LimitLayer::with_clock(limiter, Arc::new(SystemClock::new()))
        .peer(|extensions| extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip()));
    let app = Router::new().route("/v1/hello", get(async || "hello\n")).layer(limit);
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
