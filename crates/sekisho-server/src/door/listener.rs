//! A listening socket and its connections: bounded in number, in time and in what each may send.

use std::{convert::Infallible, net::SocketAddr, pin::pin, sync::Arc};

use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};

use crate::{
    door::patience::{Patient, Progress},
    limits::{ACCEPT_PAUSE, HEADERS_MAX, Limits},
    reply::Reply,
};

/// Answers requests.
pub(crate) trait Handle: Send + Sync + 'static {
    /// Answers one request of a peer.
    fn handle(
        &self,
        peer: SocketAddr,
        request: Request<Incoming>,
    ) -> impl Future<Output = Reply> + Send;
}

/// Speaks with the peers of a listener, whatever the protocol.
pub(crate) trait Serve: Send + Sync + 'static {
    /// Answers what comes over one connection until either side ends it.
    fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        stay: Stay,
    ) -> impl Future<Output = ()> + Send;
}

/// A connection's place with its listener, which waits at its end until the last holder is gone.
#[derive(Clone, Debug)]
pub(crate) struct Stay {
    pub(crate) peer: SocketAddr,
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
    socket: TcpListener,
    limits: Limits,
}

impl Listener {
    pub(crate) const fn new(socket: TcpListener, limits: Limits) -> Self {
        Self { socket, limits }
    }

    /// Answers requests of HTTP/1.1 until `stop`, then finishes what runs within the time that the limits allow.
    pub(crate) async fn run(self, handler: impl Handle, stop: impl Future<Output = ()>) {
        let limits = self.limits;
        self.serve(Served { server: server(&limits), limits, handler }, stop).await;
    }

    /// The same for those who speak with the peers themselves.
    pub(crate) async fn serve(self, served: impl Serve, stop: impl Future<Output = ()>) {
        let Self { socket, limits } = self;
        let most = u32::try_from(limits.connections).unwrap_or(u32::MAX).max(1);
        let places = Arc::new(Semaphore::new(most as usize));
        let stage = watch::Sender::new(Stage::Serving);
        let served = Arc::new(served);
        let accept_all = async {
            loop {
                // The place comes first: what has none waits in the system's queue and costs nothing here.
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                let Some((stream, peer)) = accept(&socket).await else { continue };
                let stay = Stay { peer, stages: stage.subscribe(), _place: Arc::new(place) };
                let _running = tokio::spawn(Arc::clone(&served).connection(stream, stay));
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

/// What all connections of a listener share.
#[derive(Debug)]
struct Served<H> {
    server: http1::Builder,
    limits: Limits,
    handler: H,
}

impl<H: Handle> Serve for Served<H> {
    async fn connection(self: Arc<Self>, stream: TcpStream, stay: Stay) {
        let progress = Arc::new(Progress::default());
        let socket = TokioIo::new(Patient::new(stream, Arc::clone(&progress), self.limits));
        let service = service_fn(|request| {
            let (served, progress) = (Arc::clone(&self), Arc::clone(&progress));
            let peer = stay.peer;
            async move {
                progress.begin();
                let reply = served.handler.handle(peer, request).await;
                progress.end();
                Ok::<_, Infallible>(reply)
            }
        });
        let mut connection = pin!(self.server.serve_connection(socket, service));
        // How a connection ends is its peer's business: an error here is a peer that left, lied or was too slow.
        tokio::select! {
            biased;
            _ended = connection.as_mut() => return,
            () = stay.reached(Stage::Draining) => {}
        }
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            _ended = connection => {}
            () = stay.reached(Stage::Cut) => {}
        }
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
async fn accept(socket: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    match socket.accept().await {
        Ok((stream, peer)) => {
            // An answer is one packet; it does not wait for another. A socket that refuses is closed already.
            stream.set_nodelay(true).ok()?;
            Some((stream, peer))
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
