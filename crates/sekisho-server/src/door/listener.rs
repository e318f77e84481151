//! A listening socket and its connections: bounded in number, in time and in what each may send.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
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
    fn handle(&self, peer: SocketAddr, request: Request<Incoming>) -> impl Future<Output = Reply> + Send;
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
    stage: watch::Sender<Stage>,
}

impl Listener {
    pub(crate) fn new(socket: TcpListener, limits: Limits) -> Self {
        Self { socket, limits, stage: watch::Sender::new(Stage::Serving) }
    }

    /// Accepts connections until `stop`, then finishes what runs within the time that the limits allow.
    pub(crate) async fn run(self, handler: Arc<impl Handle>, stop: impl Future<Output = ()>) {
        let Self { socket, limits, stage } = self;
        let most = limits.connections.clamp(1, Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(most));
        let server = server(&limits);
        let accept = async {
            loop {
                // The place comes first: what has none waits in the system's queue and costs nothing here.
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                let Some((stream, peer)) = accept(&socket).await else { continue };
                let connection = connection((server.clone(), limits), stream, peer, Arc::clone(&handler));
                let stages = stage.subscribe();
                let _running = tokio::spawn(async move {
                    finish(connection, stages).await;
                    drop(place);
                });
            }
        };
        tokio::select! {
            () = accept => {}
            () = stop => {}
        }
        drop(socket);
        drain(&stage, &places, (most, limits.drain_timeout)).await;
    }
}

type Connection<F> = http1::Connection<TokioIo<Patient<TcpStream>>, F>;

fn server(limits: &Limits) -> http1::Builder {
    let mut server = http1::Builder::new();
    server
        .pipeline_flush(true)
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
        Err(error) if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) => None,
        Err(_) => {
            sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

fn connection(
    (server, limits): (http1::Builder, Limits),
    stream: TcpStream,
    peer: SocketAddr,
    handler: Arc<impl Handle>,
) -> Connection<impl hyper::service::HttpService<Incoming, ResBody = http_body_util::Full<bytes::Bytes>>> {
    let progress = Arc::new(Progress::default());
    let socket = TokioIo::new(Patient::new(stream, Arc::clone(&progress), limits));
    let service = service_fn(move |request| {
        let (handler, progress) = (Arc::clone(&handler), Arc::clone(&progress));
        async move {
            progress.begin();
            let reply = handler.handle(peer, request).await;
            progress.end();
            Ok::<_, Infallible>(reply)
        }
    });
    server.serve_connection(socket, service)
}

