//! The file's settings beside its policies.

use std::net::{Ipv4Addr, SocketAddr};

use sekisho_core::Span;

use super::{address::ListenAddress, answer::AnswerSettings, identity::IdentitySettings};
use crate::store::memory::Overflow;

/// Where to listen and how to store.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where to listen.
    pub listen: ListenSettings,
    /// How the memory store is bounded.
    pub store: StoreSettings,
    /// What answers look like.
    pub answer: AnswerSettings,
    /// Whom to believe about a client's address.
    pub identity: IdentitySettings,
}

/// A door opens only where an address is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenSettings {
    /// The check API and forward-auth.
    pub http: Option<ListenAddress>,
    /// Health, readiness and metrics.
    pub admin: Option<ListenAddress>,
    /// The gateway.
    pub gateway: Option<GatewaySettings>,
    /// Where forward-auth finds the original request.
    pub original: Original,
    /// How long forward-auth holds an answer at most until a queue's slot; a request with a slot passes at once when absent.
    pub hold: Option<Span>,
}

/// A gateway in front of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewaySettings {
    /// Where it listens.
    pub at: ListenAddress,
    /// The server that it passes requests on to: a URL of `http` or `https`, whose parts the gateway itself reads.
    pub to: String,
}

/// Where forward-auth finds the request that it is asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Original {
    /// This request's own method, and the path that follows `/auth`.
    #[default]
    Path,
    /// `X-Original-Method` and `X-Original-URI`, as an nginx is told to send them.
    XOriginal,
    /// `X-Forwarded-Method`, `X-Forwarded-Uri` and `X-Forwarded-Host`, as Traefik, Caddy and APISIX send them.
    XForwarded,
}

impl Default for ListenSettings {
    /// Without a `[listen]` at all: HTTP on the loopback address, port 8080.
    fn default() -> Self {
        Self {
            http: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)).into()),
            admin: None,
            gateway: None,
            original: Original::Path,
            hold: None,
        }
    }
}

/// What the file says of the memory store; what it does not say is the store's own default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreSettings {
    /// The most bytes.
    pub max_bytes: Option<usize>,
    /// The most entries.
    pub max_entries: Option<usize>,
    /// What happens to new keys when it is full.
    pub overflow: Option<Overflow>,
}
