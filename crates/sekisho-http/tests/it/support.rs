//! What most tests here begin with.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use sekisho::{
    Asked, CanonicalPath, Clock, Decision, FakeClock, Limiter, Memory, MemoryOptions, NoHeaders,
    Overflow, PolicySet, Store, Timestamp,
};
use sekisho_http::layer::{LimitLayer, Peer};
use tower::{Layer, Service, ServiceExt, service_fn};

/// The wall clock's time at which all tests begin.
pub(crate) const START: u64 = 1_700_000_000;

pub(crate) fn policies(file: &str) -> PolicySet {
    PolicySet::parse(file).unwrap_or_else(|errors| panic!("{errors:?}"))
}

pub(crate) fn clock() -> Arc<FakeClock> {
    Arc::new(FakeClock::at(Timestamp::from_secs(START)))
}

pub(crate) fn limiter(file: &str) -> (Arc<Limiter>, Arc<FakeClock>) {
    let clock = clock();
    let limiter = Limiter::with_clock(policies(file), Arc::clone(&clock) as Arc<dyn Clock>);
    (Arc::new(limiter), clock)
}

pub(crate) fn layer(file: &str) -> LimitLayer {
    LimitLayer::new(limiter(file).0)
}

/// Returns a limiter that has room for no more keys.
pub(crate) fn full(file: &str) -> LimitLayer {
    let options = MemoryOptions { max_entries: 1, overflow: Overflow::Deny, ..Default::default() };
    let limiter = Limiter::with_store(policies(file), Memory::with_clock(options, clock()));
    for key in 0..64_u8 {
        let limits = ["1/h".parse().expect("a limit")];
        let ask = sekisho::Direct { limits: &limits, key: &[key], cost: 1 };
        drop(limiter.decide_direct_now(&ask, sekisho::Mode::Check));
    }
    LimitLayer::new(Arc::new(limiter))
}

/// Asks a limiter itself, as whoever [`get`] comes from.
pub(crate) fn decide<'a>(limiter: &Limiter, path: &str, ask: impl Into<Asked<'a>>) -> Decision {
    let path = CanonicalPath::parse(path).expect("a path");
    let request = sekisho::Request {
        method: "GET",
        host: None,
        path: &path,
        query: None,
        client: Some([203, 0, 113, 9].into()),
        principal: None,
        headers: &NoHeaders,
    };
    limiter.decide_now(&request, ask)
}

/// A response, read to its end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) async fn of<B>(response: Response<B>) -> Self
    where
        B: Body<Data = Bytes, Error: std::fmt::Debug>,
    {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8(body.into()).expect("text"),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let name: HeaderName = name.parse().expect("a name");
        let mut lines = self.headers.get_all(name).iter();
        let line = lines.next().map(|line| line.to_str().expect("text"));
        assert!(lines.next().is_none(), "more than one line: {:?}", self.headers);
        line
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }
}

/// Returns a request of a client with an address.
pub(crate) fn get(path: &str, headers: &[(&str, &str)]) -> Request<()> {
    from("203.0.113.9", path, headers)
}

pub(crate) fn from(peer: &str, path: &str, headers: &[(&str, &str)]) -> Request<()> {
    let request = Request::get(path).extension(Peer(peer.parse().expect("an address")));
    let add = |request: http::request::Builder, line: &(&str, &str)| request.header(line.0, line.1);
    headers.iter().fold(request, add).body(()).expect("a request")
}

/// Sends a request to a service that answers with the status that the path's end names, 200 otherwise.
pub(crate) async fn send<S: Store + 'static>(layer: &LimitLayer<S>, request: Request<()>) -> Seen {
    let inner = service_fn(async |request: Request<()>| Ok::<_, Infallible>(named(&request)));
    call(layer.layer(inner), request).await
}

pub(crate) fn named<B>(request: &Request<B>) -> Response<Full<Bytes>> {
    let status = request.uri().path().rsplit('/').next().and_then(|end| end.parse().ok());
    let mut response = Response::new(Full::from("inner"));
    *response.status_mut() = status.unwrap_or(StatusCode::OK);
    response
}

pub(crate) async fn call<S, B>(service: S, request: Request<()>) -> Seen
where
    S: Service<Request<()>, Response = Response<B>, Error: std::fmt::Debug>,
    B: Body<Data = Bytes, Error: std::fmt::Debug>,
{
    Seen::of(service.oneshot(request).await.expect("no error")).await
}

/// A future that is polled by hand.
pub(crate) struct Started<F>(Pin<Box<F>>);

impl<F: Future> Started<F> {
    pub(crate) fn new(future: F) -> Self {
        Self(Box::pin(future))
    }

    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        self.0.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    pub(crate) fn is_pending(&mut self) -> bool {
        self.poll().is_pending()
    }
}

/// A store that nobody can reach.
#[derive(Debug)]
pub(crate) struct Down;

impl Store for Down {
    async fn decide(
        &self,
        asks: &[sekisho::Ask<'_>],
        _: sekisho::Now,
    ) -> Vec<Result<sekisho::Answer, sekisho::StoreError>> {
        let down = || Err(sekisho::StoreError::Unavailable("no route to 10.0.0.7".into()));
        asks.iter().map(|_| down()).collect()
    }

    async fn forget(
        &self,
        _: &sekisho::Scope,
        _: &sekisho::Key,
    ) -> Result<bool, sekisho::StoreError> {
        Ok(false)
    }
}

/// Returns a layer whose store nobody can reach.
pub(crate) fn down(file: &str) -> LimitLayer<Down> {
    LimitLayer::with_clock(Arc::new(Limiter::with_store(policies(file), Down)), clock())
}
