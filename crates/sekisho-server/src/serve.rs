//! The server, from its sockets to its end.

use std::{io, net::SocketAddr, sync::Arc};

use sekisho::Limiter;
use tokio::{
    net::TcpListener,
    sync::watch,
    time::{MissedTickBehavior, interval},
};

use crate::{
    admin::Admin,
    door::{Doors, listener::Listener, unbelieved::Unbelieved},
    limits::{Limits, SWEEP_INTERVAL},
    metrics::Metrics,
};

/// What a server serves, and where.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServeOptions {
    /// The policies and the store.
    pub limiter: Arc<Limiter>,
    /// Where the check API and forward-auth listen; nowhere when absent.
    pub http: Option<SocketAddr>,
    /// Where health, readiness and metrics listen; nowhere when absent.
    pub admin: Option<SocketAddr>,
    /// The bounds on peers.
    pub limits: Limits,
}

impl ServeOptions {
    /// Returns options with the addresses that the limiter's policy file names.
    pub fn new(limiter: Arc<Limiter>) -> Self {
        let listen = limiter.policies().settings().listen;
        Self { limiter, http: listen.http, admin: listen.admin, limits: Limits::default() }
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// No address is given. Name one under `[listen]`.
    #[error(
        "there is no address to listen on: name one under `[listen]`, as in `http = \"127.0.0.1:8080\"`"
    )]
    NoAddress,
    /// An address is taken, not this machine's, or not allowed. Name another.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

/// A server whose sockets are open: connections queue up, and are answered once it runs.
#[derive(Debug)]
pub struct Server {
    http: Option<(TcpListener, SocketAddr)>,
    admin: Option<(TcpListener, SocketAddr)>,
    doors: Doors,
}

/// Serves until `shutdown` is ready, then finishes what runs.
///
/// # Errors
/// As [`Server::bind`].
pub async fn serve(
    options: ServeOptions,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    Server::bind(options).await?.run(shutdown).await;
    Ok(())
}

impl Server {
    /// Opens the sockets.
    ///
    /// # Errors
    /// [`ServeError::Bind`] when an address cannot be had, [`ServeError::NoAddress`] when none is given.
    pub async fn bind(options: ServeOptions) -> Result<Self, ServeError> {
        let ServeOptions { limiter, http, admin, limits } = options;
        if http.or(admin).is_none() {
            return Err(ServeError::NoAddress);
        }
        let metrics = Arc::new(Metrics::new(&limiter));
        let unbelieved = Unbelieved::new(Arc::clone(limiter.store().clock()));
        let doors = Doors { limiter, metrics, limits, unbelieved };
        Ok(Self { http: open(http).await?, admin: open(admin).await?, doors })
    }

    /// Returns where the check API and forward-auth listen, with the port that the system chose for port 0.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(|(_, address)| *address)
    }

    /// Returns where the admin listener listens.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|(_, address)| *address)
    }

    /// Serves until `shutdown` is ready. Then no connection is accepted, requests that run are finished within
    /// [`DRAIN_TIMEOUT`](crate::limits::DRAIN_TIMEOUT), and it returns. The admin listener goes last, and says all the while
    /// that the server is not ready.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { http, admin, doors } = self;
        let limits = doors.limits;
        let life = watch::Sender::new(Life::Ready);
        let admin_door = Admin { metrics: Arc::clone(&doors.metrics), life: life.subscribe() };
        let sweeping = sweep(Arc::clone(&doors.limiter));
        let serving = async {
            let draining = reached(life.subscribe(), Life::Draining);
            match http {
                Some((socket, _)) => Listener::new(socket, limits).run(doors, draining).await,
                None => draining.await,
            }
            let _before = life.send_replace(Life::Over);
        };
        let administering = async {
            let over = reached(life.subscribe(), Life::Over);
            match admin {
                Some((socket, _)) => Listener::new(socket, limits).run(admin_door, over).await,
                None => over.await,
            }
        };
        let stopping = async {
            shutdown.await;
            let _before = life.send_replace(Life::Draining);
        };
        tokio::select! {
            ((), (), ()) = async { tokio::join!(stopping, serving, administering) } => {}
            never = sweeping => never,
        }
    }
}

/// How far a server has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Life {
    /// It takes requests.
    Ready,
    /// It finishes those that it has.
    Draining,
    /// The doors are closed; the admin listener follows.
    Over,
}

async fn reached(mut life: watch::Receiver<Life>, wanted: Life) {
    // An error is a sender that is gone, and with it the server.
    let _life = life.wait_for(|life| *life >= wanted).await;
}

async fn open(
    address: Option<SocketAddr>,
) -> Result<Option<(TcpListener, SocketAddr)>, ServeError> {
    let Some(address) = address else { return Ok(None) };
    let failed = |source| ServeError::Bind { address, source };
    let socket = TcpListener::bind(address).await.map_err(failed)?;
    let bound = socket.local_addr().map_err(failed)?;
    Ok(Some((socket, bound)))
}

/// Drops what has become fresh, again and again: a table that nobody adds to does not sweep itself.
async fn sweep(limiter: Arc<Limiter>) -> ! {
    let mut ticks = interval(SWEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let limiter = Arc::clone(&limiter);
        // A large table takes a while, and no request should wait behind it for a worker.
        let _swept = tokio::task::spawn_blocking(move || limiter.store().sweep()).await;
    }
}
