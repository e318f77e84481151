//! The admin listener: health, readiness, metrics, the fullest keys.

mod keys;

use std::sync::Arc;

use http::{Request, StatusCode};
use hyper::body::Incoming;
use sekisho::Limiter;
use tokio::sync::watch;

use crate::{
    door::{caller::Caller, is_read, listener::Handle},
    metrics::{Door, METRICS_TYPE, Metrics},
    reply::{self, Reply},
    serve::Life,
    store::ServerStore,
};

/// What the admin listener shows.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) limiter: Arc<Limiter<ServerStore>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) life: watch::Receiver<Life>,
}

impl Handle for Admin {
    async fn handle(&self, _: Caller, request: Request<Incoming>) -> Reply {
        let reply = self.answer(&request);
        self.metrics.answered(Door::Admin, reply.status());
        reply
    }
}

impl Admin {
    fn answer(&self, request: &Request<Incoming>) -> Reply {
        let path = request.uri().path();
        if !matches!(path, "/healthz" | "/readyz" | "/metrics" | "/v1/keys") {
            return reply::not_found();
        }
        if !is_read(request.method()) {
            return reply::wrong_method("GET, HEAD");
        }
        match path {
            "/v1/keys" => keys::answer(&self.limiter, request),
            "/metrics" => reply::content(METRICS_TYPE, self.metrics.render()),
            // Alive is not ready: a server that drains is not to be restarted, only to be left alone.
            "/readyz" if *self.life.borrow() != Life::Ready => {
                reply::text(StatusCode::SERVICE_UNAVAILABLE, "draining")
            }
            _ => reply::text(StatusCode::OK, "ok"),
        }
    }
}
