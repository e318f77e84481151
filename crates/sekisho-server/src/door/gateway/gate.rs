//! The limiter in front of the proxy: nothing of a request goes further, and none of its body is read, before it may pass.

use std::{
    convert::Infallible,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, StatusCode, request::Parts};
use sekisho::{Asked, CanonicalPath, Clock as _, Decision, IdentityDoor, Limiter, Part, Timestamp};
use sekisho_http::{Answer, HeaderLines, Profile, client_addr, describe, headers};
use tower_layer::Layer;
use tower_service::Service;

use super::{
    body::Body,
    log::{AccessLog, Line, refund_line},
    proxy::Peer,
};
use crate::{door::unbelieved::Unbelieved, reply};

/// Asks a limiter before each request goes on.
///
/// A refusal is [`Answer`]'s. A request that is to wait for its slot waits here, and gives it back when its client leaves. The
/// answers of those that pass have the quota fields added to what the upstream said of its own.
#[derive(Clone, Debug)]
pub struct Gate {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limiter: Arc<Limiter>,
    log: Option<AccessLog>,
    unbelieved: Unbelieved,
}

impl Gate {
    /// Returns a layer that asks `limiter`, and writes its decisions to `log`.
    pub fn new(limiter: Arc<Limiter>, log: Option<AccessLog>) -> Self {
        let unbelieved = Unbelieved::new(Arc::clone(limiter.store().clock()));
        Self { shared: Arc::new(Shared { limiter, log, unbelieved }) }
    }
}

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated { shared: Arc::clone(&self.shared), inner }
    }
}

/// A service behind a [`Gate`].
#[derive(Clone, Debug)]
pub struct Gated<S> {
    shared: Arc<Shared>,
    inner: S,
}

impl<S, B> Service<Request<B>> for Gated<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        // The one that was asked whether it is ready is the one that is called.
        let spare = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, spare);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let passed = match shared.pass(&parts).await {
                Ok(passed) => passed,
                Err(refusal) => return Ok(refusal),
            };
            let mut response = inner.call(Request::from_parts(parts, body)).await?;
            shared.settle(&passed, response.status());
            let settings = &shared.limiter.policies().settings().answer;
            let wall = shared.limiter.store().clock().wall();
            headers::merge_into(response.headers_mut(), &passed, settings, wall);
            Ok(response)
        })
    }
}

impl Shared {
    /// Decides, and waits until the request's turn has come.
    async fn pass(self: &Arc<Self>, parts: &Parts) -> Result<Decision, Response<Body>> {
        let path = CanonicalPath::parse(parts.uri.path()).map_err(|error| {
            reply::problem(StatusCode::BAD_REQUEST, error.to_string()).map(Body::whole)
        })?;
        let client = self.client(parts);
        let decision = self.decide(parts, &path, client);
        if !decision.is_allowed() {
            let settings = &self.limiter.policies().settings().answer;
            let wall = self.limiter.store().clock().wall();
            let answer = Answer::new(&decision, Profile::Standard, settings, wall);
            return Err(reply::of(answer).map(Body::whole));
        }
        if decision.delay.is_zero() {
            return Ok(decision);
        }
        let slot = decision.at.plus(decision.delay);
        let waiting = Waiting { gate: self, decision: Some(decision.clone()) };
        self.limiter.store().clock().wait_until(slot).await;
        waiting.over();
        Ok(decision)
    }

    /// Gives back what was charged by policies for which an answer of this status does not count.
    fn settle(&self, decision: &Decision, status: StatusCode) {
        let uncounted = |part: &Part| {
            part.counted.as_ref().is_some_and(|counted| !counted.counts(status.as_u16()))
        };
        if decision.parts.iter().any(uncounted) {
            self.refund(decision, uncounted);
        }
    }

    fn client(&self, parts: &Parts) -> Option<IpAddr> {
        let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
        let identity = &self.limiter.policies().settings().identity;
        let source = identity.source(IdentityDoor::Gateway);
        let client = client_addr(identity, source, peer, &HeaderLines(&parts.headers));
        if let Some(peer) = peer.filter(|_| client.unbelieved) {
            // It is counted itself: a client may write what it likes.
            self.unbelieved.note(peer);
        }
        client.address
    }

    fn decide(&self, parts: &Parts, path: &CanonicalPath, client: Option<IpAddr>) -> Decision {
        let headers = HeaderLines(&parts.headers);
        let request = describe(parts, &headers, path, client);
        let decide = || self.limiter.decide_now(&request, Asked::default());
        let Some(log) = &self.log else { return decide() };
        log.write(|| {
            let decision = decide();
            let line = Line::new(&request, &decision, self.instant(&decision)).to_json();
            (decision, line)
        })
    }

    /// Returns when a decision was made; what no store was asked about has no instant of its own.
    fn instant(&self, decision: &Decision) -> Timestamp {
        if decision.parts.is_empty() { self.limiter.store().clock().now() } else { decision.at }
    }

    /// Gives back what some parts of a decision were charged.
    fn refund(&self, decision: &Decision, which: impl Fn(&Part) -> bool + Send + Sync) {
        // What a store cannot take back stays charged: the safe side.
        let give_back = || drop(self.limiter.refund_now(decision, &which));
        match &self.log {
            None => give_back(),
            Some(log) => log.write(|| {
                give_back();
                let mut returned = decision.clone();
                returned.parts.retain(&which);
                ((), refund_line(&returned, self.limiter.store().clock().now()))
            }),
        }
    }
}

/// A request that waits for its slot. One that is dropped was left by its client, and others move up.
struct Waiting<'a> {
    gate: &'a Shared,
    decision: Option<Decision>,
}

impl Waiting<'_> {
    fn over(mut self) {
        self.decision = None;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(decision) = self.decision.take() {
            self.gate.refund(&decision, |_| true);
        }
    }
}
