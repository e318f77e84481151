//! The gateway: a listener of HTTP/1.1 and h2c, a layer that decides, and a proxy behind it.
//!
//! ```
//! use std::{net::SocketAddr, sync::Arc};
//!
//! use sekisho::{Limiter, PolicySet};
//! use sekisho_server::door::gateway::{Gate, Gateway, GatewayOptions, Proxy, ProxyOptions};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let policies = PolicySet::parse("[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"60/min\"]\n")?;
//! let gate = Gate::new(Arc::new(Limiter::new(policies)), None);
//! let proxy = Proxy::new(ProxyOptions::new("http://127.0.0.1:3000".parse()?))?;
//! let at = SocketAddr::from(([127, 0, 0, 1], 0));
//! let gateway = Gateway::bind(GatewayOptions::new(at), &gate, proxy).await?;
//! assert_ne!(gateway.address().port(), 0);
//! let told_to_stop = async {};
//! gateway.run(told_to_stop).await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A request is judged before the upstream is touched and before any of its body is read. What two servers could read
//! differently is refused with 400, and the connection closed. Of upgrades only `websocket` is let through.

mod body;
mod connect;
mod entry;
mod failure;
mod fields;
mod framing;
mod gate;
mod head;
mod log;
mod outgoing;
mod pool;
mod proxy;
mod running;
mod tunnel;
mod upstream;

use std::{convert::Infallible, fmt, io, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use tokio::net::TcpListener;
use tower_layer::Layer;
use tower_service::Service;

use self::{body::BoxError, entry::Entry};
pub use self::{
    body::{Body, Inbound},
    connect::{Roots, TlsError},
    gate::{Gate, Gated},
    log::{AccessLog, LINES_MAX},
    proxy::{HostField, Peer, Proxy, ProxyOptions},
    upstream::{Upstream, UpstreamError},
};
use crate::{door::listener::Listener, limits::Limits};

/// The time for which a client may leave an answer unread. Longer than a door's, whose answers are one packet.
pub const WRITE_TIMEOUT: Duration = Duration::from_mins(1);

/// Where a gateway listens, and the bounds on its peers.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GatewayOptions {
    /// The address; port 0 lets the system choose.
    pub at: SocketAddr,
    /// The bounds. The body's size is not among them: it is passed on, however long.
    pub limits: Limits,
}

impl GatewayOptions {
    /// Returns the usual options for an address.
    pub fn new(at: SocketAddr) -> Self {
        Self { at, limits: Limits { write_timeout: WRITE_TIMEOUT, ..Limits::default() } }
    }
}

/// A gateway whose socket is open.
pub struct Gateway<S> {
    socket: TcpListener,
    address: SocketAddr,
    limits: Limits,
    service: S,
}

impl<S> fmt::Debug for Gateway<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("address", &self.address).finish_non_exhaustive()
    }
}

impl<S> Gateway<S> {
    /// Opens the socket, and puts `layer` in front of `proxy`.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn bind<P>(
        options: GatewayOptions,
        layer: &impl Layer<P, Service = S>,
        proxy: P,
    ) -> io::Result<Self> {
        let socket = TcpListener::bind(options.at).await?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address, limits: options.limits, service: layer.layer(proxy) })
    }

    /// Returns where it listens, with the port that the system chose for port 0.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is ready. Then no connection is accepted, and what runs, tunnels included, is finished within the
    /// time that the limits allow.
    pub async fn run<B>(self, stop: impl Future<Output = ()>)
    where
        S: Service<Request<Inbound>, Response = Response<B>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
        B: hyper::body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let Self { socket, limits, service, .. } = self;
        Listener::new(socket, limits).serve(Entry::new(limits, service), stop).await;
    }
}
