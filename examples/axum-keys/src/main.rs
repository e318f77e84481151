//! An axum service with API keys and a login, limited by one policy file (`sekisho.toml`) and one layer that stands twice.
//!
//! `cargo run -p axum-keys`; what to ask it, and what it answers, is in the `README.md` beside.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Extension, Router,
    extract::{ConnectInfo, Request},
    http::StatusCode,
    middleware::{Next, from_fn},
    response::Response,
    routing::{get, post},
};
use sekisho::{Limiter, PolicySet};
use sekisho_http::layer::{LimitLayer, Principal};

/// The customers and their keys. A real service has them in its database, as digests.
const KEYS: [(&str, &str); 2] = [("key-of-alice", "alice"), ("key-of-bob", "bob")];

/// Lets a request through that has a known key, and notes whose it is.
async fn authenticate(mut request: Request, next: Next) -> Result<Response, StatusCode> {
    let key = request.headers().get("x-api-key").and_then(|key| key.to_str().ok());
    let known = KEYS.iter().find(|(known, _)| key == Some(*known));
    let (_, customer) = known.ok_or(StatusCode::UNAUTHORIZED)?;
    let _before = request.extensions_mut().insert(Principal((*customer).to_owned()));
    Ok(next.run(request).await)
}

async fn report(Extension(Principal(customer)): Extension<Principal>) -> String {
    format!("a report for {customer}\n")
}

async fn login(password: String) -> Result<&'static str, StatusCode> {
    if password == "open sesame" { Ok("welcome\n") } else { Err(StatusCode::UNAUTHORIZED) }
}

fn app(limit: &LimitLayer) -> Router {
    // The layer inside knows the customer, and charges `customers`. The one around everything has charged `guesses` by then,
    // so that nobody tries keys without end, and no policy is charged twice.
    let api = Router::new()
        .route("/v1/report", get(report))
        .layer(limit.clone())
        .layer(from_fn(authenticate));
    api.route("/login", post(login)).layer(limit.clone())
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "whoever runs it is told where it listens")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policies = PolicySet::parse(include_str!("../sekisho.toml"))?;
    let limit = LimitLayer::new(Arc::new(Limiter::new(policies)))
        .peer(|extensions| extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip()));
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    let service = app(&limit).into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}
