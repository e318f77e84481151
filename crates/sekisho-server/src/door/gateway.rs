//! The gateway: a listener of HTTP/1.1 and h2c, a layer that decides, and a proxy behind it.
//!
//! ```
//! use std::{net::SocketAddr, sync::Arc};
//!
//! use sekisho::{Limiter, PolicySet};
//! use sekisho_server::door::gateway::{Gateway, GatewayOptions, Proxy, ProxyOptions, gate};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let policies = PolicySet::parse("[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"60/min\"]\n")?;
//! let layer = gate(Arc::new(Limiter::new(policies)), None);
//! let proxy = Proxy::new(ProxyOptions::new("http://127.0.0.1:3000".parse()?))?;
//! let at = SocketAddr::from(([127, 0, 0, 1], 0));
//! let gateway = Gateway::bind(GatewayOptions::new(at), &layer, proxy).await?;
//! assert_ne!(gateway.address().tcp().map(|address| address.port()), Some(0));
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

use std::{convert::Infallible, fmt, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use sekisho::{AddressSource, Clock, IdentityDoor, IdentitySettings, ListenAddress};
use tower_layer::Layer;
use tower_service::Service;

pub(crate) use self::gate::counted_gate;
use self::{body::BoxError, entry::Entry};
pub use self::{
    body::{Body, Inbound},
    connect::{Roots, TlsError},
    gate::gate,
    log::{AccessLog, LINES_MAX},
    proxy::{HostField, Peer, Proxy, ProxyOptions},
    upstream::{Upstream, UpstreamError},
};
use crate::{
    door::{
        listener::{Introduced, Listener},
        socket::Socket,
        unbelieved::Unbelieved,
    },
    limits::Limits,
};

/// The time for which a client may leave an answer unread. Longer than a door's, whose answers are one packet.
pub const WRITE_TIMEOUT: Duration = Duration::from_mins(1);

/// Where a gateway listens, and the bounds on its peers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GatewayOptions {
    /// The address; port 0 lets the system choose.
    pub at: ListenAddress,
    /// The bounds. The body's size is not among them: it is passed on, however long.
    pub limits: Limits,
}

impl GatewayOptions {
    /// Returns the usual options for an address.
    pub fn new(at: impl Into<ListenAddress>) -> Self {
        let at = at.into();
        Self { at, limits: Limits { write_timeout: WRITE_TIMEOUT, ..Limits::default() } }
    }
}

/// A gateway whose socket is open.
pub struct Gateway<S> {
    socket: Socket,
    address: ListenAddress,
    limits: Limits,
    introduced: Option<Introduced>,
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
        let (socket, address) = Socket::bind(&options.at).await?;
        let service = layer.layer(proxy);
        Ok(Self { socket, address, limits: options.limits, introduced: None, service })
    }

    /// Has connections begin with a PROXY protocol header, when that is where the policy file has clients' addresses come from.
    /// The clock times the warnings about peers that are not believed.
    #[must_use]
    pub fn identified(self, identity: &IdentitySettings, clock: Arc<dyn Clock>) -> Self {
        let introduced = *identity.source(IdentityDoor::Gateway) == AddressSource::ProxyProtocol;
        let introduced = introduced
            .then(|| Introduced { identity: identity.clone(), unbelieved: Unbelieved::new(clock) });
        Self { introduced, ..self }
    }

    /// Returns where it listens, with the port that the system chose for port 0.
    pub const fn address(&self) -> &ListenAddress {
        &self.address
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
        let Self { socket, limits, introduced, service, .. } = self;
        let listener = Listener::new(socket, limits).introduced(introduced);
        listener.serve(Entry::new(limits, service), stop).await;
    }
}
