//! The service that forwards: a request goes to the upstream, and its answer comes back.

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
use http::{
    Extensions, HeaderValue, Request, Response, StatusCode, Uri, Version,
    header::{CONNECTION, HOST, TE},
    request::Parts,
    uri::Authority,
};
use hyper::{
    body::{Body as _, Incoming},
    upgrade::OnUpgrade,
};
use tower_service::Service;

use super::{
    body::{Body, BoxError},
    connect::{Connector, Roots, TlsError, Wanted},
    failure::{Broken, Failure},
    fields,
    outgoing::Outgoing,
    pool::{Answered, Leased, Pool},
    running::Running,
    tunnel::tunnel,
    upstream::Upstream,
};

/// The address that a request's connection comes from: the listener puts it among the request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Which host the upstream is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostField {
    /// The one that the client asked for.
    #[default]
    Client,
    /// The upstream's own, as its URL has it.
    Upstream,
}

/// How a proxy forwards.
#[derive(Clone, Debug)]
pub struct ProxyOptions {
    /// Where to.
    pub upstream: Upstream,
    /// Which host it is told.
    pub host: HostField,
    /// Whose certificates it may show.
    pub roots: Roots,
    /// The time in which a connection is made, TLS included. Longer is answered with 504.
    pub connect_timeout: Duration,
    /// The time in which an answer begins, counted from the last piece of the request's body. Longer is answered with 504.
    pub answer_timeout: Duration,
    /// The time for which a client may pause within a body. Longer is answered with 408.
    pub body_timeout: Duration,
    /// The time that a connection is kept at least while nothing needs it, and half of what it is kept at most.
    pub idle_timeout: Duration,
}

impl ProxyOptions {
    /// Returns the usual options for an upstream.
    pub const fn new(upstream: Upstream) -> Self {
        Self {
            upstream,
            host: HostField::Client,
            roots: Roots::Native,
            connect_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_mins(1),
            body_timeout: Duration::from_mins(1),
            idle_timeout: Duration::from_secs(30),
        }
    }
}

/// Forwards requests to one upstream, and streams both bodies: no more of them is held than a socket's buffers take.
///
/// Fields of one hop are taken off both ways. The peer is added to `X-Forwarded-For`, `X-Forwarded-Proto` and
/// `X-Forwarded-Host` are set, `Forwarded` is removed, and `Host` is what the client sent unless [`HostField`] says otherwise.
/// A request is sent again, once, only when a kept connection turns out to be closed and the request has no body and may be
/// repeated. Failures are problems: 502 when the upstream cannot be reached or breaks off, 504 when it takes too long.
#[derive(Clone, Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: ProxyOptions,
    pool: Arc<Pool>,
}

impl Proxy {
    /// Returns a proxy. It connects when the first request comes.
    ///
    /// # Errors
    /// [`TlsError`] when the upstream is `https` and TLS cannot be set up.
    pub fn new(options: ProxyOptions) -> Result<Self, TlsError> {
        let connector = Connector::new(&options.upstream, &options.roots, options.connect_timeout)?;
        let pool = Pool::new(connector, options.idle_timeout);
        Ok(Self { shared: Arc::new(Shared { options, pool }) })
    }
}

impl<B> Service<Request<B>> for Proxy
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        let patience = shared.options.body_timeout;
        let request = request.map(|body| Outgoing::new(body, patience));
        Box::pin(async move {
            let answer = shared.forward(request).await;
            Ok(answer.unwrap_or_else(|failure| failure.reply().map(Body::whole)))
        })
    }
}

impl Shared {
    async fn forward(&self, mut request: Request<Outgoing>) -> Result<Response<Body>, Failure> {
        let upgrade = Upgrade::wished(&mut request);
        let (mut parts, body) = request.into_parts();
        let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
        let wanted = self.wanted(&parts, upgrade.is_some());
        let host = match self.options.host {
            HostField::Client => fields::asked_host(&parts),
            HostField::Upstream => None,
        };
        fields::forward(&mut parts, peer);
        if upgrade.is_some() {
            fields::upgrade(&mut parts.headers);
        }
        // What the listener left there is not for the upstream's connection to hold.
        parts.extensions = Extensions::new();
        let (mut response, place) = self.exchange(Head { parts, host }, body, wanted).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return upgrade.ok_or(Failure::Unasked)?.switch(&mut response);
        }
        fields::strip(response.headers_mut());
        // The version is of one connection, and this answer goes over another: the listener speaks its own.
        *response.version_mut() = Version::HTTP_11;
        Ok(response.map(|body| Body::upstream(body, place)))
    }

    fn wanted(&self, parts: &Parts, upgrades: bool) -> Wanted {
        let grpc = parts.version == Version::HTTP_2 && fields::is_grpc(&parts.headers);
        match self.options.upstream.tls {
            _ if upgrades => Wanted::Http1,
            _ if grpc => Wanted::Http2,
            true => Wanted::Either,
            false => Wanted::Http1,
        }
    }

    /// Sends a request and waits for the answer to begin; once more if a kept connection was closed meanwhile.
    async fn exchange(
        &self,
        head: Head,
        body: Outgoing,
        wanted: Wanted,
    ) -> Result<Answered, Failure> {
        let leased = self.pool.lease(wanted).await?;
        if !leased.reused {
            return Ok(self.attempt(leased, head, body).await?);
        }
        let repeatable = body.is_end_stream() && head.parts.method.is_idempotent();
        let (first, spare) = (head.clone(), head);
        let body = match self.attempt(leased, first, body).await {
            Ok(answered) => return Ok(answered),
            // The upstream has seen nothing of it.
            Err(Broken::Unsent(body)) => body,
            Err(Broken::Off(_)) if repeatable => Outgoing::empty(),
            Err(broken) => return Err(broken.into()),
        };
        // Boxed: it is large and rare, and every request would carry room for it.
        let again = Box::pin(async move {
            let leased = self.pool.open(wanted).await?;
            Ok(self.attempt(leased, spare, body).await?)
        });
        again.await
    }

    async fn attempt(
        &self,
        mut leased: Leased,
        head: Head,
        body: Outgoing,
    ) -> Result<Answered, Broken> {
        let flow = body.flow();
        let request = self.request(head, body, leased.is_http2())?;
        let mut sending = pin!(leased.send(request));
        let response = loop {
            let before = flow.moved();
            let answering = leased.answering();
            answering.restart(self.options.answer_timeout);
            let sent = poll_fn(|context| match sending.as_mut().poll(context) {
                Poll::Ready(sent) => Poll::Ready(Some(sent)),
                Poll::Pending => answering.poll(context).map(|()| None),
            });
            match sent.await {
                Some(sent) => break sent.map_err(|error| Broken::of(error, &flow))?,
                // A body that moves, or whose sender pauses, has a time of its own.
                None if flow.moved() != before || flow.waits_for_client() => {}
                None => return Err(Failure::Late.into()),
            }
        };
        Ok((response, leased.into_place(&self.pool)))
    }

    /// Puts a request into the form that the connection speaks.
    fn request(
        &self,
        head: Head,
        body: Outgoing,
        http2: bool,
    ) -> Result<Request<Outgoing>, Failure> {
        let Head { mut parts, host } = head;
        let upstream = &self.options.upstream;
        let target = upstream.target(&parts.uri).ok_or(Failure::Target)?;
        let mut uri = Uri::builder().path_and_query(target);
        let authority = upstream.authority.as_str();
        if http2 {
            let asked =
                host.as_ref().and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
            uri = uri
                .scheme(upstream.scheme())
                .authority(asked.unwrap_or_else(|| upstream.authority.clone()));
            let _removed = parts.headers.remove(HOST);
            parts.version = Version::HTTP_2;
        } else {
            let host = host.or_else(|| HeaderValue::from_str(authority).ok());
            let _before = parts.headers.insert(HOST, host.ok_or(Failure::Target)?);
            if parts.headers.contains_key(TE) {
                let _ours = parts.headers.append(CONNECTION, HeaderValue::from_static("te"));
            }
            parts.version = Version::HTTP_11;
        }
        parts.uri = uri.build().map_err(|_| Failure::Target)?;
        Ok(Request::from_parts(parts, body))
    }
}

/// A request without its body, and the host that the upstream is told; its own when absent.
#[derive(Clone)]
struct Head {
    parts: Parts,
    host: Option<HeaderValue>,
}

/// A client's wish for a WebSocket.
struct Upgrade {
    client: OnUpgrade,
    running: Option<Arc<Running>>,
}

impl Upgrade {
    fn wished(request: &mut Request<Outgoing>) -> Option<Self> {
        let wished = request.version() == Version::HTTP_11
            && request.body().is_end_stream()
            && fields::is_websocket(request.headers());
        if !wished {
            return None;
        }
        let running = request.extensions().get::<Arc<Running>>().cloned();
        Some(Self { client: hyper::upgrade::on(request), running })
    }

    /// Agrees, and joins the two connections once both have been turned over.
    fn switch(self, response: &mut Response<Incoming>) -> Result<Response<Body>, Failure> {
        if !fields::is_websocket(response.headers()) {
            return Err(Failure::Unasked);
        }
        let upstream = hyper::upgrade::on(&mut *response);
        if let Some(running) = &self.running {
            running.turn_over();
        }
        let _running = tokio::spawn(tunnel(self.client, upstream, self.running));
        let mut agreed = Response::new(Body::default());
        *agreed.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *agreed.headers_mut() = std::mem::take(response.headers_mut());
        fields::strip(agreed.headers_mut());
        fields::upgrade(agreed.headers_mut());
        Ok(agreed)
    }
}
