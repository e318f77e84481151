//! The file's settings beside its policies.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use sekisho_core::Span;

use super::{
    address::ListenAddress, answer::AnswerSettings, identity::IdentitySettings, share::Share,
    store_address::StoreAddress,
};
use crate::store::memory::Overflow;

/// Where to listen and how to store.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where to listen.
    pub listen: ListenSettings,
    /// Where counts live.
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
    /// `CL.THROTTLE` and `THROTTLE`, for clients of Redis.
    pub resp: Option<ListenAddress>,
    /// Health, readiness, metrics and the fullest keys.
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
            resp: None,
            admin: None,
            gateway: None,
            original: Original::Path,
            hold: None,
        }
    }
}

/// What the file says of the store; what it does not say of the memory store is that store's own default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreSettings {
    /// The store that several servers count in together. Absent: this process's memory.
    pub shared: Option<SharedStoreSettings>,
    /// The most bytes of the memory store, or of what stands in for the shared one.
    pub max_bytes: Option<usize>,
    /// The most entries.
    pub max_entries: Option<usize>,
    /// What happens to new keys when it is full.
    pub overflow: Option<Overflow>,
    /// Where the memory store's state is kept over a restart; nowhere when absent. Whoever opens the store sees to it, with
    /// [`Snapshot`](crate::Snapshot).
    pub snapshot: Option<SnapshotSettings>,
}

/// Where the memory store's state is kept over a restart, and how often it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotSettings {
    /// The file. A relative path begins at the process's working directory.
    pub path: PathBuf,
    /// The time between two writes while the server runs.
    pub every: Span,
}

impl SnapshotSettings {
    /// The time between two writes when the file names none.
    pub const EVERY: Span = Span::from_secs(60);
}

/// A store that several servers count in together. Its passwords are shown nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedStoreSettings {
    /// One address, or several single servers that clients are spread over.
    pub addresses: Vec<StoreAddress>,
    /// How long a request waits for it.
    pub timeout: Span,
    /// What every key begins with.
    pub prefix: String,
    /// A file that holds the password, instead of the addresses' own.
    pub password_file: Option<PathBuf>,
    /// A file of the certificates that TLS is checked against; the machine's own when absent.
    pub ca_file: Option<PathBuf>,
    /// The share of each limit that one server lets through by itself while the store is down.
    pub local_share: Share,
}

impl SharedStoreSettings {
    /// The time that a request waits when the file names none.
    pub const TIMEOUT: Span = Span::from_nanos(50_000_000);
    /// What keys begin with when the file says nothing.
    pub const PREFIX: &'static str = "sk";
}

/// What happens to the requests of a policy while the shared store is down. Over the policies of one request `Deny` goes before
/// `Local`, and `Local` before `Allow`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnStoreError {
    /// They pass, uncounted.
    #[default]
    Allow,
    /// This process decides by itself, on its share of each limit.
    Local,
    /// They are refused: 503.
    Deny,
}

impl OnStoreError {
    /// Returns the word that the file uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Local => "local",
            Self::Deny => "deny",
        }
    }
}
