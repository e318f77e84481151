//! The gateway's connections: HTTP/1.1 and HTTP/2 on one socket, and a service that answers both.

use std::{
    convert::Infallible,
    future::poll_fn,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, Version};
use hyper::{
    body::{Body as HttpBody, Frame, Incoming, SizeHint},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::{self, UpgradeableConnection},
};
use tower_service::Service;

use super::{
    body::{Body, BoxError, Inbound},
    framing::{Framed, Opaque},
    head,
    proxy::Peer,
    running::Running,
};
use crate::{
    door::{
        listener::{Serve, Stay},
        patience::{Patient, Progress},
        socket::Stream,
    },
    limits::{HEADERS_MAX, Limits},
};

/// The most requests that run side by side on one connection of HTTP/2.
const STREAMS_MAX: u32 = 256;
/// How often a peer of HTTP/2 is asked whether it still lives. Its connection looks at its own idle time then as well.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// What all connections of a gateway share.
pub(super) struct Entry<S> {
    server: auto::Builder<TokioExecutor>,
    limits: Limits,
    service: S,
}

impl<S> Entry<S> {
    pub(super) fn new(limits: Limits, service: S) -> Self {
        Self { server: server(&limits), limits, service }
    }
}

fn server(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    let mut http1 = server.http1();
    // A head that does not fit is refused like one that is too large; hyper takes no less.
    http1.max_buf_size(limits.header_bytes.max(8 * 1024));
    if limits.headers != HEADERS_MAX {
        http1.max_headers(limits.headers);
    }
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX));
    server
}

impl<S, B> Serve for Entry<S>
where
    S: Service<Request<Inbound>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send,
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    async fn connection(self: Arc<Self>, stream: Stream, stay: Stay) {
        let (progress, opaque) = (Arc::new(Progress::default()), Arc::new(Opaque::default()));
        let framed = Framed::new(stream, Arc::clone(&opaque));
        let socket = TokioIo::new(Patient::new(framed, Arc::clone(&progress), self.limits));
        let service = service_fn(|request: Request<Incoming>| {
            match request.version() {
                Version::HTTP_2 => progress.begin_side_by_side(),
                _ => progress.begin(),
            }
            let running = Running::begin(&progress, &stay, &opaque);
            answer(self.service.clone(), request, self.limits, (running, stay.caller.client))
        });
        let connection = pin!(self.server.serve_connection_with_upgrades(socket, service));
        stay.drive(connection, UpgradeableConnection::graceful_shutdown).await;
    }
}

async fn answer<S, B>(
    mut service: S,
    request: Request<Incoming>,
    limits: Limits,
    (running, client): (Arc<Running>, Option<SocketAddr>),
) -> Result<Response<Held<B>>, Infallible>
where
    S: Service<Request<Inbound>, Response = Response<B>, Error = Infallible>,
{
    let sends = head::sends_at_once(&request);
    let refusal = head::refusal(&request);
    let mut request = request.map(|body| Inbound::new(body, limits, sends));
    let response = if let Some(refusal) = refusal {
        refusal.map(|body| Either::Own(Body::whole(body)))
    } else {
        if let Some(client) = client {
            let _before = request.extensions_mut().insert(Peer(client));
        }
        let _before = request.extensions_mut().insert(Arc::clone(&running));
        poll_fn(|context| service.poll_ready(context)).await?;
        service.call(request).await?.map(Either::Service)
    };
    Ok(response.map(|body| Held { body, _running: running }))
}

/// An answer's body; while it lasts, the request runs.
pub(super) struct Held<B> {
    body: Either<B>,
    _running: Arc<Running>,
}

enum Either<B> {
    Own(Body),
    Service(B),
}

impl<B> HttpBody for Held<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.body {
            Either::Own(body) => Pin::new(body).poll_frame(context),
            Either::Service(body) => Pin::new(body).poll_frame(context).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Either::Own(body) => body.is_end_stream(),
            Either::Service(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Either::Own(body) => body.size_hint(),
            Either::Service(body) => body.size_hint(),
        }
    }
}
