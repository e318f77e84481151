//! The limiter in front of the proxy: nothing of a request goes further, and none of its body is read, before it may pass.

use std::{
    convert::Infallible,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use http::{Request, Response, StatusCode, request::Parts};
use sekisho::{
    Ask, Asked, CanonicalPath, Charge, Clock as _, Decision, IdentityDoor, Limiter, Mode, Now,
    Span, Store as _, Timestamp,
};
use sekisho_http::{Answer, HeaderLines, Profile, client_addr, describe};
use tower_layer::Layer;
use tower_service::Service;

use super::{
    body::Body,
    log::{AccessLog, Line, refund_line},
    proxy::Peer,
    quota,
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
            quota::add(response.headers_mut(), passed.headers);
            Ok(response)
        })
    }
}

impl Shared {
    /// Decides, and waits until the request's turn has come.
    async fn pass(self: &Arc<Self>, parts: &Parts) -> Result<Answer, Response<Body>> {
        let path = CanonicalPath::parse(parts.uri.path()).map_err(|error| {
            reply::problem(StatusCode::BAD_REQUEST, error.to_string()).map(Body::whole)
        })?;
        let client = self.client(parts);
        let decision = self.decide(parts, &path, client);
        let answer = Answer::of(&decision, Profile::Standard);
        if !decision.is_allowed() {
            return Err(reply::of(answer).map(Body::whole));
        }
        if decision.delay > Span::ZERO {
            let slot = decision.at.plus(decision.delay);
            let waiting = Waiting { gate: self, decision: Some(decision) };
            self.limiter.store().clock().wait_until(slot).await;
            waiting.over();
        }
        Ok(answer)
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

    /// Gives back what a request was charged that did not go ahead.
    fn refund(&self, decision: &Decision) {
        let give_back = || {
            let charges: Vec<_> = decision
                .parts
                .iter()
                .map(|part| Charge {
                    limit: &part.limit,
                    scope: &part.scope,
                    key: &part.key,
                    cost: part.cost,
                })
                .collect();
            let ask = [Ask { charges: &charges, mode: Mode::Refund { at: decision.at } }];
            let mut asking = std::pin::pin!(self.limiter.store().decide(&ask, Now::StoreClock));
            // The memory store answers at once.
            match asking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(mut answers) => answers.pop().and_then(Result::ok),
                Poll::Pending => None,
            }
        };
        match &self.log {
            None => drop(give_back()),
            Some(log) => log.write(|| {
                let at = give_back()
                    .map_or_else(|| self.limiter.store().clock().now(), |answer| answer.at);
                ((), refund_line(decision, at))
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
            self.gate.refund(&decision);
        }
    }
}
