//! The tower layer: asks a limiter about every request before the service inside sees it.
//!
//! What an outcome becomes is the same table as at every other door; what is particular here:
//!
//! * A request is charged **once for each policy**, however many layers with a policy of that name it passes.
//! * A policy that counts only some answers (`count = { status = [401] }`) charges before the service is asked, so that many
//!   at once cannot pass a limit together, and gives back when the answer does not count. A request whose answer nobody gets
//!   stays charged.
//! * A `leaky-queue` waits for its slot here. Whoever gives up while waiting gets back what was charged.
//! * gRPC gets gRPC's own refusals.
//!
//! Nothing is ever an error of ours: a refusal is a response, and the error type is the inner service's.

mod ask;
mod body;
mod grpc;
mod observe;
mod service;
mod who;

use std::{fmt, net::IpAddr, pin::Pin, sync::Arc};

use http::{Extensions, Uri};
use sekisho::{AddressSource, Clock, IdentityDoor, Limiter, Memory, Store};
use tower_layer::Layer;

use self::who::Warned;
pub use self::{
    body::LimitBody,
    grpc::GrpcRefusal,
    observe::{Decided, Observe, Refunded, RefusedWith, Unasked},
    service::{LimitFuture, LimitService},
    who::{Peer, Principal},
};

/// Work that is left over when nobody waits for it.
pub type Background = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What happens to requests while the store cannot decide, where no policy says: one with `on_store_error`, or of a file whose
/// `[store]` has a `url`, does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenStoreDown {
    /// They are refused with status 503.
    #[default]
    Deny,
    /// They pass, uncounted, and their answers tell of no quota.
    Allow,
}

type Extract<T> = Arc<dyn for<'a> Fn(&'a Extensions) -> Option<T> + Send + Sync>;
type ExtractRef<T> = Arc<dyn for<'a> Fn(&'a Extensions) -> Option<&'a T> + Send + Sync>;

/// Puts a limiter in front of services.
///
/// ```
/// use std::{convert::Infallible, future::{Ready, ready}, sync::Arc, task::{Context, Poll}};
/// use http::{Request, Response};
/// use sekisho::{Limiter, PolicySet};
/// use sekisho_http::layer::{LimitLayer, Peer};
/// use tower_layer::Layer;
/// use tower_service::Service;
///
/// #[derive(Clone)]
/// struct Hello;
///
/// impl Service<Request<()>> for Hello {
///     type Response = Response<String>;
///     type Error = Infallible;
///     type Future = Ready<Result<Response<String>, Infallible>>;
///     fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
///         Poll::Ready(Ok(()))
///     }
///     fn call(&mut self, _: Request<()>) -> Self::Future {
///         ready(Ok(Response::new("hello".to_owned())))
///     }
/// }
///
/// let policies = PolicySet::parse("[[policy]]\nname = \"all\"\nkey = [\"ip\"]\nlimits = [\"1/min\"]\n")?;
/// let mut service = LimitLayer::new(Arc::new(Limiter::new(policies))).layer(Hello);
/// # let mut context = Context::from_waker(std::task::Waker::noop());
/// # let mut send = |request: Request<()>| match std::pin::pin!(service.call(request)).poll(&mut context) {
/// #     Poll::Ready(Ok(response)) => response.status().as_u16(),
/// #     _ => unreachable!("nothing waits"),
/// # };
/// let request = || Request::get("/").extension(Peer([203, 0, 113, 9].into())).body(()).unwrap();
/// assert_eq!(send(request()), 200);
/// assert_eq!(send(request()), 429);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Under axum the peer is where axum puts it:
///
/// ```
/// use std::{net::SocketAddr, sync::Arc};
/// use axum::{Router, extract::ConnectInfo, routing::get};
/// # use sekisho::{Limiter, PolicySet};
/// # use sekisho_http::layer::LimitLayer;
/// # let policies = PolicySet::parse("[[policy]]\nname = \"all\"\nkey = [\"ip\"]\nlimits = [\"1/min\"]\n")?;
/// let limit = LimitLayer::new(Arc::new(Limiter::new(policies)))
///     .peer(|extensions| extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip()));
/// let app: Router = Router::new().route("/", get(async || "hello")).layer(limit);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LimitLayer<S = Memory> {
    limiter: Arc<Limiter<S>>,
    clock: Arc<dyn Clock>,
    source: AddressSource,
    peer: Extract<IpAddr>,
    peerless: bool,
    principal: ExtractRef<str>,
    target: Option<ExtractRef<Uri>>,
    grpc: GrpcRefusal,
    when_store_down: WhenStoreDown,
    background: Option<Arc<dyn Fn(Background) + Send + Sync>>,
    observer: Option<Arc<dyn Observe>>,
    warned: Arc<Warned>,
}

impl LimitLayer {
    /// Returns a layer of a limiter that counts in this process's memory, on that store's clock.
    pub fn new(limiter: Arc<Limiter>) -> Self {
        let clock = Arc::clone(limiter.store().clock());
        Self::with_clock(limiter, clock)
    }
}

impl<S: Store + 'static> LimitLayer<S> {
    /// Returns a layer of a limiter with any store. The clock is waited on, and is the wall clock of what answers tell.
    pub fn with_clock(limiter: Arc<Limiter<S>>, clock: Arc<dyn Clock>) -> Self {
        let source = limiter.policies().settings().identity.common_source().clone();
        Self {
            limiter,
            clock,
            source,
            peer: Arc::new(|extensions| extensions.get::<Peer>().map(|peer| peer.0)),
            peerless: false,
            principal: Arc::new(|extensions| Some(extensions.get::<Principal>()?.0.as_str())),
            target: None,
            grpc: GrpcRefusal::default(),
            when_store_down: WhenStoreDown::default(),
            background: None,
            observer: None,
            warned: Arc::default(),
        }
    }

    /// Returns the limiter that is asked.
    pub const fn limiter(&self) -> &Arc<Limiter<S>> {
        &self.limiter
    }

    /// Takes clients' addresses from where the policy file says for a door: `[identity.gateway]` and its like. Without this,
    /// `[identity] address` holds.
    #[must_use]
    pub fn door(self, door: IdentityDoor) -> Self {
        let source = self.limiter.policies().settings().identity.source(door).clone();
        self.source(source)
    }

    /// Takes clients' addresses from here, whatever the policy file says. Headers still count only from its
    /// `trusted_proxies`.
    #[must_use]
    pub fn source(self, source: AddressSource) -> Self {
        Self { source, ..self }
    }

    /// Says where the address is that a request's connection came from; by default an extension [`Peer`].
    ///
    /// A request without one has no address at all, and its headers are not believed: nobody knows who sent them. Behind a
    /// unix socket, name an address that the proxy is then trusted under, or say [`trust_peerless`](Self::trust_peerless).
    #[must_use]
    pub fn peer(
        self,
        peer: impl Fn(&Extensions) -> Option<IpAddr> + Send + Sync + 'static,
    ) -> Self {
        Self { peer: Arc::new(peer), ..self }
    }

    /// Says that a request without a peer came over a unix socket: only this machine's processes reach one, so the headers that
    /// name a client count.
    #[must_use]
    pub fn trust_peerless(self) -> Self {
        Self { peerless: true, ..self }
    }

    /// Says where an earlier layer has put who it found the caller to be; by default an extension [`Principal`].
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use sekisho::{Limiter, PolicySet};
    /// # use sekisho_http::layer::LimitLayer;
    /// #[derive(Clone)]
    /// struct Customer { id: String }
    ///
    /// # let policies = PolicySet::parse("[[policy]]\nname = \"all\"\nkey = [\"ip\"]\nlimits = [\"1/min\"]\n")?;
    /// let limit = LimitLayer::new(Arc::new(Limiter::new(policies)))
    ///     .principal(|extensions| Some(extensions.get::<Customer>()?.id.as_str()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn principal(
        self,
        principal: impl Fn(&Extensions) -> Option<&str> + Send + Sync + 'static,
    ) -> Self {
        Self { principal: Arc::new(principal), ..self }
    }

    /// Says where a router that shortens paths has put the whole one, like axum's `OriginalUri`. Policies then match the same
    /// path at every depth of nesting.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use sekisho::{Limiter, PolicySet};
    /// # use sekisho_http::layer::LimitLayer;
    /// use axum::extract::OriginalUri;
    ///
    /// # let policies = PolicySet::parse("[[policy]]\nname = \"all\"\nkey = [\"ip\"]\nlimits = [\"1/min\"]\n")?;
    /// let limit = LimitLayer::new(Arc::new(Limiter::new(policies)))
    ///     .target(|extensions| Some(&extensions.get::<OriginalUri>()?.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn target(
        self,
        target: impl Fn(&Extensions) -> Option<&Uri> + Send + Sync + 'static,
    ) -> Self {
        Self { target: Some(Arc::new(target)), ..self }
    }

    /// Says which status a gRPC client gets when its quota is used up.
    #[must_use]
    pub fn grpc(self, grpc: GrpcRefusal) -> Self {
        Self { grpc, ..self }
    }

    /// Says what happens while the store cannot decide and no policy says.
    #[must_use]
    pub fn when_store_down(self, when_store_down: WhenStoreDown) -> Self {
        Self { when_store_down, ..self }
    }

    /// Says who finishes giving back what an abandoned wait was charged, when the store cannot do it at once:
    /// `|work| drop(tokio::spawn(work))`. The memory store never needs it, a shared one always does.
    #[must_use]
    pub fn background(self, spawn: impl Fn(Background) + Send + Sync + 'static) -> Self {
        Self { background: Some(Arc::new(spawn)), ..self }
    }

    /// Has somebody told of all that the layer does; [`Observe`] has an example.
    #[must_use]
    pub fn observe(self, observer: impl Observe + 'static) -> Self {
        Self { observer: Some(Arc::new(observer)), ..self }
    }
}

impl<S> Clone for LimitLayer<S> {
    fn clone(&self) -> Self {
        Self {
            limiter: Arc::clone(&self.limiter),
            clock: Arc::clone(&self.clock),
            source: self.source.clone(),
            peer: Arc::clone(&self.peer),
            peerless: self.peerless,
            principal: Arc::clone(&self.principal),
            target: self.target.clone(),
            grpc: self.grpc,
            when_store_down: self.when_store_down,
            background: self.background.clone(),
            observer: self.observer.clone(),
            warned: Arc::clone(&self.warned),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for LimitLayer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitLayer")
            .field("limiter", &self.limiter)
            .field("source", &self.source)
            .field("grpc", &self.grpc)
            .field("when_store_down", &self.when_store_down)
            .finish_non_exhaustive()
    }
}

impl<I, S> Layer<I> for LimitLayer<S> {
    type Service = LimitService<I, S>;

    fn layer(&self, inner: I) -> Self::Service {
        LimitService::new(Arc::new(self.clone()), inner)
    }
}
