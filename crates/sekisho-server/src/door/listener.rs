//! A listening socket and its connections: bounded in number, in time and in what each may send.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::Arc,
};

use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use sekisho::IdentitySettings;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};

use crate::{
    door::{
        caller::Caller,
        patience::{Patient, Progress},
        socket::{Socket, Stream},
        unbelieved::Unbelieved,
    },
    limits::{ACCEPT_PAUSE, HEADERS_MAX, Limits},
    reply::Reply,
};

/// Answers requests.
pub(crate) trait Handle: Send + Sync + 'static {
    /// Answers one request of a caller.
    fn handle(
        &self,
        caller: Caller,
        request: Request<Incoming>,
    ) -> impl Future<Output = Reply> + Send;
}

/// Speaks with the peers of a listener, whatever the protocol.
pub(crate) trait Serve: Send + Sync + 'static {
    /// Answers what comes over one connection until either side ends it.
    fn connection(self: Arc<Self>, stream: Stream, stay: Stay) -> impl Future<Output = ()> + Send;
}

/// A connection's place with its listener, which waits at its end until the last holder is gone.
#[derive(Clone, Debug)]
pub(crate) struct Stay {
    pub(crate) caller: Caller,
    stages: watch::Receiver<Stage>,
    _place: Arc<OwnedSemaphorePermit>,
}

impl Stay {
    /// Is ready once the listener has come that far.
    pub(crate) async fn reached(&self, wanted: Stage) {
        let mut stages = self.stages.clone();
        // An error is a listener that is gone.
        let _stage = stages.wait_for(|stage| *stage >= wanted).await;
    }

    /// Drives a connection to its end: its own, or after `wind_down` once the listener drains, or the cut.
    pub(crate) async fn drive<C: Future>(
        &self,
        mut connection: Pin<&mut C>,
        wind_down: impl FnOnce(Pin<&mut C>),
    ) {
        // How a connection ends is its peer's business: an error here is a peer that left, lied or was too slow.
        tokio::select! {
            biased;
            _ended = connection.as_mut() => return,
            () = self.reached(Stage::Draining) => {}
        }
        wind_down(connection.as_mut());
        tokio::select! {
            _ended = connection => {}
            () = self.reached(Stage::Cut) => {}
        }
    }
}

/// How far a listener has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// It accepts connections.
    Serving,
    /// It finishes what runs.
    Draining,
    /// It drops what is left.
    Cut,
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Socket,
    limits: Limits,
    introduced: Option<Introduced>,
}

/// How the callers of a listener are introduced that are not who connects.
#[derive(Debug)]
pub(crate) struct Introduced {
    pub(crate) identity: IdentitySettings,
    pub(crate) unbelieved: Unbelieved,
}

impl Listener {
    pub(crate) const fn new(socket: Socket, limits: Limits) -> Self {
        Self { socket, limits, introduced: None }
    }

    /// Has connections begin with a PROXY protocol header from those that are trusted, when there is such a setting.
    pub(crate) fn introduced(self, introduced: Option<Introduced>) -> Self {
        Self { introduced, ..self }
    }

    /// Answers requests of HTTP/1.1 until `stop`, then finishes what runs within the time that the limits allow.
    pub(crate) async fn run(self, handler: impl Handle, stop: impl Future<Output = ()>) {
        let limits = self.limits;
        self.serve(Served { server: server(&limits), limits, handler }, stop).await;
    }

    /// The same for those who speak with the peers themselves.
    pub(crate) async fn serve(self, served: impl Serve, stop: impl Future<Output = ()>) {
        let Self { socket, limits, introduced } = self;
        let most = u32::try_from(limits.connections).unwrap_or(u32::MAX).max(1);
        let places = Arc::new(Semaphore::new(most as usize));
        let stage = watch::Sender::new(Stage::Serving);
        let (served, introduced) = (Arc::new(served), introduced.map(Arc::new));
        let accept_all = async {
            loop {
                // The place comes first: what has none waits in the system's queue and costs nothing here.
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                let Some((stream, caller)) = accept(&socket).await else { continue };
                let stay = Stay { caller, stages: stage.subscribe(), _place: Arc::new(place) };
                let served = Arc::clone(&served);
                let _running = match &introduced {
                    None => tokio::spawn(served.connection(stream, stay)),
                    Some(introduced) => {
                        let introduced = Arc::clone(introduced);
                        tokio::spawn(introduce(served, (stream, stay), introduced, limits))
                    }
                };
            }
        };
        tokio::select! {
            () = accept_all => {}
            () = stop => {}
        }
        drop(socket);
        // All places are free again once the last connection has ended.
        let _before = stage.send_replace(Stage::Draining);
        if timeout(limits.drain_timeout, places.acquire_many(most)).await.is_err() {
            let _before = stage.send_replace(Stage::Cut);
            let _ended = places.acquire_many(most).await;
        }
    }
}

/// Finds out who a connection is from before it is served.
async fn introduce(
    served: Arc<impl Serve>,
    (mut stream, mut stay): (Stream, Stay),
    introduced: Arc<Introduced>,
    limits: Limits,
) {
    let peer = stay.caller.peer;
    let reading = Caller::introduced(&mut stream, peer, &introduced.identity);
    let read = tokio::select! {
        read = timeout(limits.header_timeout, reading) => read,
        () = stay.reached(Stage::Draining) => return,
    };
    match read {
        Ok(Ok(caller)) => {
            if caller.unbelieved {
                introduced.unbelieved.note(caller.peer_ip());
            }
            stay.caller = caller;
            served.connection(stream, stay).await;
        }
        // A load balancer that only looks whether somebody answers sends nothing at all.
        Ok(Err(error)) if error.kind() != std::io::ErrorKind::InvalidData => {}
        Ok(Err(error)) => {
            introduced.unbelieved.note_silent(peer.map(|peer| peer.ip()), &error);
        }
        Err(_elapsed) => {}
    }
}

/// What all connections of a listener share.
#[derive(Debug)]
struct Served<H> {
    server: http1::Builder,
    limits: Limits,
    handler: H,
}

impl<H: Handle> Serve for Served<H> {
    async fn connection(self: Arc<Self>, stream: Stream, stay: Stay) {
        let progress = Arc::new(Progress::default());
        let socket = TokioIo::new(Patient::new(stream, Arc::clone(&progress), self.limits));
        let service = service_fn(|request| {
            let (served, progress) = (Arc::clone(&self), Arc::clone(&progress));
            let caller = stay.caller;
            async move {
                progress.begin();
                let reply = served.handler.handle(caller, request).await;
                progress.end();
                Ok::<_, Infallible>(reply)
            }
        });
        let connection = pin!(self.server.serve_connection(socket, service));
        stay.drive(connection, http1::Connection::graceful_shutdown).await;
    }
}

fn server(limits: &Limits) -> http1::Builder {
    // `pipeline_flush` stays off: with it hyper keeps the refusal of a bad head to itself while bytes are left behind it.
    let mut server = http1::Builder::new();
    server
        .max_header_size(limits.header_bytes)
        // hyper takes no less; a longer head does not fit and is refused like one that is too large.
        .max_buf_size(limits.header_bytes.max(8 * 1024));
    if limits.headers != HEADERS_MAX {
        // At its own default hyper keeps the lines on the stack, which is faster.
        server.max_headers(limits.headers);
    }
    server
}

/// Returns the next connection; `None` when the system has none to give, after a pause if it is short of something.
async fn accept(socket: &Socket) -> Option<(Stream, Caller)> {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    match socket.accept().await {
        Ok((stream, peer)) => {
            // A socket that refuses is closed already.
            stream.send_at_once().ok()?;
            Some((stream, Caller::peer(peer)))
        }
        Err(error) if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) => {
            None
        }
        Err(_) => {
            sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}
