//! The server, from its sockets to its end.

use std::{io, sync::Arc};

use sekisho::{
    AddressSource, Clock, IdentityDoor, Key, Limiter, ListenAddress, Memory, PolicySet, Scope,
    Seed, Snapshot, SnapshotError, Store as _, SystemClock,
};
use sekisho_http::layer::LimitService;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};

use crate::{
    admin::Admin,
    door::{
        Doors,
        gateway::{
            AccessLog, Gateway, GatewayOptions, Proxy, ProxyOptions, TlsError, counted_gate,
        },
        listener::{Introduced, Listener},
        resp::Resp,
        socket::Socket,
        unbelieved::Unbelieved,
    },
    limits::{Limits, SWEEP_INTERVAL},
    metrics::Metrics,
    snapshot::{self, Keeper, StartError},
    store::{Counting as _, ServerStore},
};

/// What a server serves, and where.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServeOptions {
    /// The policies and the store.
    pub limiter: Arc<Limiter<ServerStore>>,
    /// The clock of this process: what waits for a slot waits on it, and answers' dates are its wall clock's.
    pub clock: Arc<dyn Clock>,
    /// Where the check API and forward-auth listen; nowhere when absent.
    pub http: Option<ListenAddress>,
    /// Where RESP listens: `CL.THROTTLE` and `THROTTLE`; nowhere when absent.
    pub resp: Option<ListenAddress>,
    /// Where health, readiness, metrics and the fullest keys are asked for; nowhere when absent. Whoever can connect may ask.
    pub admin: Option<ListenAddress>,
    /// The gateway; none when absent.
    pub gateway: Option<ServeGateway>,
    /// The bounds on peers.
    pub limits: Limits,
    /// The file that the memory store's state is written to, as often as the policy file says and after the last decision; none
    /// when absent.
    pub snapshot: Option<Arc<Snapshot>>,
}

/// A server's gateway.
#[derive(Clone, Debug)]
pub struct ServeGateway {
    /// Where it listens. It has bounds of its own.
    pub listen: GatewayOptions,
    /// Where it forwards to.
    pub proxy: ProxyOptions,
    /// Where its decisions are written; nowhere when absent.
    pub log: Option<AccessLog>,
}

impl ServeOptions {
    /// Returns options for the policies of a file, with the addresses and the store that it names. Counts that its `snapshot`
    /// holds come back; for one that another server still has, this waits up to
    /// [`SNAPSHOT_TIMEOUT`](crate::limits::SNAPSHOT_TIMEOUT), and holds the thread meanwhile.
    ///
    /// ```
    /// use sekisho::PolicySet;
    /// use sekisho_server::ServeOptions;
    ///
    /// let file = "[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"60/min\"]\n";
    /// let options = ServeOptions::open(PolicySet::parse(file)?)?;
    /// assert!(options.http.is_some() && options.snapshot.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`StartError`] when the store or its snapshot cannot be had.
    pub fn open(policies: PolicySet) -> Result<Self, StartError> {
        Self::open_with_clock(policies, Arc::new(SystemClock::new()))
    }

    /// The same on a clock of the caller's.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_clock(policies: PolicySet, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        let (limiter, snapshot) = snapshot::open(policies, clock)?;
        Ok(Self { snapshot, ..Self::new(Arc::new(limiter)) })
    }

    /// Returns options with the addresses that the limiter's policy file names, on the clock that it decides by in this process.
    pub fn new(limiter: Arc<Limiter<ServerStore>>) -> Self {
        let clock = limiter.process_clock();
        let listen = &limiter.policies().settings().listen;
        let (http, admin) = (listen.http.clone(), listen.admin.clone());
        let resp = listen.resp.clone();
        Self {
            limiter,
            clock,
            http,
            resp,
            admin,
            gateway: None,
            limits: Limits::default(),
            snapshot: None,
        }
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
        address: ListenAddress,
        /// What the system says.
        source: io::Error,
    },
    /// The gateway's upstream is `https`, and TLS to it cannot be set up.
    #[error("cannot forward to the upstream")]
    Tls(#[from] TlsError),
    /// The server has ended well, but for the snapshot: what was used since the last write is forgotten.
    #[error("what was used since the last write of the snapshot is lost")]
    Snapshot(#[from] SnapshotError),
}

/// A server whose sockets are open: connections queue up, and are answered once it runs.
#[derive(Debug)]
pub struct Server {
    http: Option<(Socket, ListenAddress)>,
    resp: Option<(Socket, ListenAddress)>,
    admin: Option<(Socket, ListenAddress)>,
    gateway: Option<Gateway<LimitService<Proxy, ServerStore>>>,
    doors: Doors,
    keeper: Option<Arc<Keeper>>,
}

/// Serves until `shutdown` is ready, then finishes what runs.
///
/// # Errors
/// As [`Server::bind`] and [`Server::run`].
pub async fn serve(
    options: ServeOptions,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    Server::bind(options).await?.run(shutdown).await
}

impl Server {
    /// Opens the sockets.
    ///
    /// # Errors
    /// [`ServeError::Bind`] when an address cannot be had, [`ServeError::NoAddress`] when none is given, [`ServeError::Tls`] when
    /// the gateway's upstream cannot be spoken to.
    pub async fn bind(options: ServeOptions) -> Result<Self, ServeError> {
        let ServeOptions { limiter, clock, http, resp, admin, gateway, limits, snapshot } = options;
        if http.as_ref().or(resp.as_ref()).or(admin.as_ref()).is_none() && gateway.is_none() {
            return Err(ServeError::NoAddress);
        }
        if admin.is_some() {
            // Nobody else can ask for them.
            let _fullest = limiter.keep_fullest();
        }
        let keeper = snapshot.map(|of| Arc::new(Keeper::new(of, &limiter, &clock)));
        let log = gateway.as_ref().and_then(|gateway| gateway.log.clone());
        let metrics = Arc::new(Metrics::new(&limiter, log, keeper.as_ref()));
        let unbelieved = Unbelieved::new(Arc::clone(&clock));
        let gateway = match gateway {
            Some(gateway) => Some(gateway.bind((&limiter, &clock), &metrics).await?),
            None => None,
        };
        let doors = Doors { limiter, clock, metrics, limits, unbelieved };
        let (http, resp) = (open(http).await?, open(resp).await?);
        Ok(Self { http, resp, admin: open(admin).await?, gateway, doors, keeper })
    }

    /// Returns where the gateway listens.
    pub fn gateway_address(&self) -> Option<&ListenAddress> {
        self.gateway.as_ref().map(Gateway::address)
    }

    /// Returns where the check API and forward-auth listen, with the port that the system chose for port 0.
    pub fn http_address(&self) -> Option<&ListenAddress> {
        self.http.as_ref().map(|(_, address)| address)
    }

    /// Returns where RESP listens.
    pub fn resp_address(&self) -> Option<&ListenAddress> {
        self.resp.as_ref().map(|(_, address)| address)
    }

    /// Returns where the admin listener listens.
    pub fn admin_address(&self) -> Option<&ListenAddress> {
        self.admin.as_ref().map(|(_, address)| address)
    }

    /// Serves until `shutdown` is ready. Then no connection is accepted, requests that run are finished within
    /// [`DRAIN_TIMEOUT`](crate::limits::DRAIN_TIMEOUT), the snapshot is written, and it returns. The admin listener goes last, and
    /// says all the while that the server is not ready.
    ///
    /// # Errors
    /// [`ServeError::Snapshot`] when that could not be written. A write that fails before the end is said in the log.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self { http, resp, admin, gateway, doors, keeper } = self;
        let limits = doors.limits;
        let life = watch::Sender::new(Life::Ready);
        let admin_door = Admin {
            limiter: Arc::clone(&doors.limiter),
            metrics: Arc::clone(&doors.metrics),
            life: life.subscribe(),
        };
        let sweeping = sweep(Arc::clone(&doors.limiter));
        let throttling = Resp::new(
            Arc::clone(&doors.limiter),
            Arc::clone(&doors.clock),
            Arc::clone(&doors.metrics),
            limits,
        );
        let throttling = Box::pin(async {
            let draining = reached(life.subscribe(), Life::Draining);
            match resp {
                Some((socket, _)) => {
                    Listener::new(socket, limits).serve(throttling, draining).await;
                }
                None => draining.await,
            }
        });
        // Boxed: a listener's future is large, and a caller may keep this one on its stack.
        let answering = Box::pin(async {
            let draining = reached(life.subscribe(), Life::Draining);
            match http {
                Some((socket, _)) => {
                    let listener = Listener::new(socket, limits).introduced(introduced(&doors));
                    listener.run(doors, draining).await;
                }
                None => draining.await,
            }
        });
        let forwarding = Box::pin(async {
            let draining = reached(life.subscribe(), Life::Draining);
            match gateway {
                Some(gateway) => gateway.run(draining).await,
                None => draining.await,
            }
        });
        let serving = async {
            tokio::join!(answering, throttling, forwarding, keep(keeper.as_ref(), &life));
            // The last decision has been made.
            let saved = match &keeper {
                Some(keeper) => keeper.save().await.map(drop),
                None => Ok(()),
            };
            let _before = life.send_replace(Life::Over);
            saved
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
            ((), saved, ()) = async { tokio::join!(stopping, serving, administering) } => Ok(saved?),
            never = sweeping => never,
        }
    }
}

impl ServeGateway {
    async fn bind(
        self,
        (limiter, clock): (&Arc<Limiter<ServerStore>>, &Arc<dyn Clock>),
        metrics: &Arc<Metrics>,
    ) -> Result<Gateway<LimitService<Proxy, ServerStore>>, ServeError> {
        let layer = counted_gate((limiter, clock), self.log, Arc::clone(metrics));
        let proxy = Proxy::new(self.proxy)?;
        let address = self.listen.at.clone();
        let bound = Gateway::bind(self.listen, &layer, proxy).await;
        let bound = bound.map_err(|source| ServeError::Bind { address, source })?;
        let identity = &limiter.policies().settings().identity;
        Ok(bound.identified(identity, Arc::clone(clock)))
    }
}

/// Returns how the callers of the doors are introduced, when one of them takes addresses from the PROXY protocol.
fn introduced(doors: &Doors) -> Option<Introduced> {
    let identity = &doors.limiter.policies().settings().identity;
    let sources = [IdentityDoor::Http, IdentityDoor::Auth].map(|door| identity.source(door));
    sources.contains(&&AddressSource::ProxyProtocol).then(|| Introduced {
        identity: identity.clone(),
        unbelieved: Unbelieved::new(Arc::clone(&doors.clock)),
    })
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
    address: Option<ListenAddress>,
) -> Result<Option<(Socket, ListenAddress)>, ServeError> {
    let Some(address) = address else { return Ok(None) };
    match Socket::bind(&address).await {
        Ok(bound) => Ok(Some(bound)),
        Err(source) => Err(ServeError::Bind { address, source }),
    }
}

/// Asks a shared store for something that it does not have, so that the log says from the start when it is away.
async fn greet(limiter: &Limiter<ServerStore>) {
    let Some(store) = limiter.store().as_redis() else { return };
    let nobody = Key::plain(b"nobody", &Seed::from_bytes([0; 16]));
    if let Err(error) = store.forget(&Scope::new("", "nothing"), &nobody).await {
        tracing::warn!(
            %error,
            "the shared store does not answer at the start; until it does, each policy does what its `on_store_error` says"
        );
    }
}

/// Writes the snapshot every so often while requests are taken.
async fn keep(keeper: Option<&Arc<Keeper>>, life: &watch::Sender<Life>) {
    let Some(keeper) = keeper else { return };
    tokio::select! {
        () = reached(life.subscribe(), Life::Draining) => {}
        never = keeper.keep() => never,
    }
}

/// Drops what has become fresh, again and again: a table that nobody adds to does not sweep itself.
async fn sweep(limiter: Arc<Limiter<ServerStore>>) -> ! {
    greet(&limiter).await;
    let mut ticks = interval(SWEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let limiter = Arc::clone(&limiter);
        // A large table takes a while, and no request should wait behind it for a worker.
        let _swept = tokio::task::spawn_blocking(move || limiter.memory().map(Memory::sweep)).await;
    }
}
