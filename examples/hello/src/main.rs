//! An axum service that limits itself: 60 requests a minute for each address, counted exactly.
//!
//! `cargo run -p hello`, then `curl -i http://127.0.0.1:3000/hello`; the 61st answer in a minute is 429.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{ConnectInfo, State},
    http::{StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
    routing::get,
};
use sekisho::{KeyedLimiter, Span};

async fn hello(
    State(limiter): State<Arc<KeyedLimiter>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
) -> Response {
    match limiter.check(peer.ip().to_string()) {
        Ok(verdict) if verdict.is_allowed() => "hello\n".into_response(),
        Ok(verdict) => {
            let wait = verdict.retry_after.map_or(1, Span::as_secs_ceil);
            (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, wait.to_string())], "too many\n")
                .into_response()
        }
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = Arc::new(KeyedLimiter::new("60/min sliding-log".parse()?));
    let app = Router::new().route("/hello", get(hello)).with_state(limiter);
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
