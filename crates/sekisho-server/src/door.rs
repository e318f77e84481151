//! The doors of the HTTP listener: which path leads where, and what they all share.

pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod caller;
pub mod check;
pub(crate) mod deadline;
pub mod gateway;
pub(crate) mod listener;
pub mod openapi;
pub(crate) mod patience;
pub mod resp;
pub(crate) mod socket;
pub(crate) mod unbelieved;

use std::sync::Arc;

use http::{HeaderValue, Method, Request, StatusCode, Version, header::HOST, request::Parts};
use hyper::body::Incoming;
use sekisho::{Asked, Clock, Decision, Direct, Limiter, Mode};
use sekisho_http::{Answer, Profile};

use self::{caller::Caller, unbelieved::Unbelieved};
use crate::{
    limits::Limits,
    metrics::{Door, Metrics},
    reply::{self, Reply},
    store::ServerStore,
};

/// The doors, and what they decide with.
#[derive(Debug)]
pub(crate) struct Doors {
    pub(crate) limiter: Arc<Limiter<ServerStore>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) limits: Limits,
    pub(crate) unbelieved: Unbelieved,
}

/// Where a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route<'a> {
    /// Forward-auth; the original request's path is what is left of ours.
    Auth(Profile, &'a str),
    Check,
    OpenApi,
    Health,
    Nowhere,
}

impl<'a> Route<'a> {
    fn of(path: &'a str) -> Self {
        if let Some(rest) = under(path, "/auth") {
            return Self::Auth(Profile::Standard, rest);
        }
        if let Some(rest) = under(path, "/auth403") {
            return Self::Auth(Profile::Nginx, rest);
        }
        match path {
            "/v1/check" => Self::Check,
            "/v1/openapi.json" => Self::OpenApi,
            "/healthz" => Self::Health,
            _ => Self::Nowhere,
        }
    }

    const fn door(self) -> Door {
        match self {
            Self::Auth(Profile::Standard, _) => Door::Auth,
            Self::Auth(Profile::Nginx, _) => Door::Auth403,
            Self::Check => Door::Check,
            Self::OpenApi | Self::Health | Self::Nowhere => Door::Other,
        }
    }
}

/// Returns what follows `prefix`, `/` when nothing does; `None` when the path is not `prefix` and not under it.
fn under<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    match path.strip_prefix(prefix)? {
        "" => Some("/"),
        rest => rest.starts_with('/').then_some(rest),
    }
}

impl listener::Handle for Doors {
    async fn handle(&self, caller: Caller, request: Request<Incoming>) -> Reply {
        let (parts, body) = request.into_parts();
        if !names_one_host(&parts) {
            return reply::last_problem(
                StatusCode::BAD_REQUEST,
                "a request names one host (RFC 9112, 3.2)",
            );
        }
        let route = Route::of(parts.uri.path());
        let reply = match route {
            // Whatever the method: it is the original request's.
            Route::Auth(profile, path) => auth::answer(self, &parts, (profile, path), caller).await,
            Route::Check if parts.method != Method::POST => reply::wrong_method("POST"),
            Route::Check => check::answer(self, &parts, body).await,
            Route::OpenApi | Route::Health if !is_read(&parts.method) => {
                reply::wrong_method("GET, HEAD")
            }
            Route::OpenApi => reply::content("application/json", openapi::OPENAPI),
            Route::Health => reply::text(StatusCode::OK, "ok"),
            Route::Nowhere => reply::not_found(),
        };
        self.metrics.answered(route.door(), reply.status());
        reply
    }
}

/// Returns whether a request of HTTP/1.1 has one `Host`, and that is one. With two, each reader could take another.
pub(crate) fn names_one_host(parts: &Parts) -> bool {
    let mut lines = parts.headers.get_all(HOST).iter();
    let first = lines.next();
    let host = |value: &HeaderValue| {
        let allowed =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(byte);
        value.as_bytes().iter().all(allowed)
    };
    match first {
        Some(value) => host(value) && lines.next().is_none(),
        None => parts.version != Version::HTTP_11,
    }
}

pub(crate) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

impl Doors {
    /// Decides a request under the policies, and counts the decision. The future holds the request no more.
    pub(crate) fn decide<'d, 'q>(
        &'d self,
        door: Door,
        request: &sekisho::Request<'_>,
        asked: Asked<'q>,
    ) -> impl Future<Output = Decision> + Send + use<'d, 'q> {
        let begin = self.clock.now();
        let deciding = self.limiter.decide(request, asked);
        async move {
            let decision = deciding.await;
            self.metrics.decided(door, &decision, self.clock.now().since(begin));
            decision
        }
    }

    /// Decides limits that the caller names, and counts the decision.
    pub(crate) async fn decide_direct(
        &self,
        door: Door,
        direct: &Direct<'_>,
        mode: Mode,
    ) -> Decision {
        let begin = self.clock.now();
        let decision = self.limiter.decide_direct(direct, mode).await;
        self.metrics.decided(door, &decision, self.clock.now().since(begin));
        decision
    }

    /// Returns what a decision becomes, as the policy file has answers look.
    pub(crate) fn reply(&self, decision: &Decision, profile: Profile) -> Reply {
        let settings = &self.limiter.policies().settings().answer;
        reply::of(Answer::new(decision, profile, settings, self.clock.wall()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_segments_lead_to_forward_auth() {
        let standard = |path| Route::Auth(Profile::Standard, path);
        let nginx = |path| Route::Auth(Profile::Nginx, path);
        for (path, route) in [
            ("/auth", standard("/")),
            ("/auth/", standard("/")),
            ("/auth/v1/x", standard("/v1/x")),
            ("/auth//v1", standard("//v1")),
            ("/auth/auth403", standard("/auth403")),
            ("/auth403", nginx("/")),
            ("/auth403/v1/", nginx("/v1/")),
            ("/authx", Route::Nowhere),
            ("/auth403x", Route::Nowhere),
            ("/auth%2fx", Route::Nowhere),
            ("//auth", Route::Nowhere),
            ("/Auth", Route::Nowhere),
            ("", Route::Nowhere),
            ("/v1/check", Route::Check),
            ("/v1/check/", Route::Nowhere),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
        }
    }
}
