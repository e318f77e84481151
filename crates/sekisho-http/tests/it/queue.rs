//! A queue waits here, and whoever gives up gives the place back.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::Poll,
};

use http::Request;
use parking_lot::Mutex;
use sekisho::{
    Answer, Ask, Clock, Key, Limiter, Memory, MemoryOptions, Mode, Now, Scope, Span, Store,
    StoreError,
};
use sekisho_http::layer::LimitLayer;
use tower::{Layer, Service, service_fn};

use crate::support::{Started, clock, get, limiter, named, policies};

const QUEUE: &str = r#"
    [[policy]]
    name = "queue"
    key = ["ip"]
    limits = ["1/s burst 4 leaky-queue"]
"#;

#[tokio::test]
async fn five_at_once_start_a_second_apart_and_a_sixth_is_refused() {
    let (limiter, clock) = limiter(QUEUE);
    let started = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&started);
    let mut service = LimitLayer::new(limiter).layer(service_fn(move |request: Request<()>| {
        let _before = count.fetch_add(1, SeqCst);
        async move { Ok::<_, Infallible>(named(&request)) }
    }));
    let mut all: Vec<_> = (0..6).map(|_| Some(Started::new(service.call(get("/", &[]))))).collect();
    let mut done = || {
        let mut statuses = Vec::new();
        for waiting in &mut all {
            if let Some(Poll::Ready(response)) = waiting.as_mut().map(Started::poll) {
                statuses.push(response.expect("no error").status().as_u16());
                *waiting = None;
            }
        }
        statuses
    };
    assert_eq!(done(), [200, 429], "the queue has the limit's own length");
    for second in 1..=4 {
        clock.advance(Span::from_nanos(999_999_999));
        assert_eq!(done(), [0_u16; 0], "not a nanosecond early");
        clock.advance(Span::from_nanos(1));
        assert_eq!(done(), [200]);
        assert_eq!(started.load(SeqCst), second + 1);
    }
}

#[tokio::test]
async fn an_abandoned_wait_gives_its_slot_back() {
    let (limiter, clock) = limiter(QUEUE);
    let started = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&started);
    let mut service = LimitLayer::new(limiter).layer(service_fn(move |request: Request<()>| {
        let _before = count.fetch_add(1, SeqCst);
        async move { Ok::<_, Infallible>(named(&request)) }
    }));
    let mut call = || Started::new(service.call(get("/", &[])));
    assert!(!call().is_pending());
    for _ in 0..1_000 {
        clock.advance(Span::from_nanos(1));
        let mut left = call();
        assert!(left.is_pending());
        drop(left);
    }
    assert_eq!(started.load(SeqCst), 1, "whoever left never reached the service");
    let mut next = call();
    assert!(next.is_pending());
    clock.advance(Span::from_secs(1));
    assert!(!next.is_pending(), "the first slot was free again");
    assert_eq!(started.load(SeqCst), 2);
}

#[tokio::test]
async fn a_slot_that_was_used_is_not_given_back() {
    let (limiter, clock) = limiter(QUEUE);
    let mut service =
        LimitLayer::new(Arc::clone(&limiter)).layer(service_fn(async |_: Request<()>| {
            std::future::pending::<
                Result<http::Response<http_body_util::Full<bytes::Bytes>>, Infallible>,
            >()
            .await
        }));
    let mut first = Started::new(service.call(get("/", &[])));
    let mut second = Started::new(service.call(get("/", &[])));
    assert!(first.is_pending() && second.is_pending());
    clock.advance(Span::from_secs(1));
    assert!(second.is_pending(), "it is with the service now");
    drop((first, second));
    let mut inside = LimitLayer::new(limiter)
        .layer(service_fn(async |request: Request<()>| Ok::<_, Infallible>(named(&request))));
    let mut third = Started::new(inside.call(get("/", &[])));
    assert!(third.is_pending());
    clock.advance(Span::from_secs(1));
    assert!(!third.is_pending());
}

/// A store that is not done at once when it gives back.
#[derive(Debug)]
struct Slow(Memory);

impl Store for Slow {
    async fn decide(&self, asks: &[Ask<'_>], now: Now) -> Vec<Result<Answer, StoreError>> {
        if asks.iter().any(|ask| matches!(ask.mode, Mode::Refund { .. })) {
            tokio::task::yield_now().await;
        }
        self.0.decide(asks, now).await
    }

    async fn forget(&self, scope: &Scope, key: &Key) -> Result<bool, StoreError> {
        self.0.forget(scope, key).await
    }
}

#[tokio::test]
async fn a_store_that_is_slow_gives_back_in_the_background() {
    let clock = clock();
    let store = Memory::with_clock(MemoryOptions::default(), Arc::clone(&clock) as Arc<dyn Clock>);
    let limiter = Arc::new(Limiter::with_store(policies(QUEUE), Slow(store)));
    let layer = LimitLayer::with_clock(limiter, Arc::clone(&clock) as Arc<dyn Clock>);
    let left_over = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&left_over);
    let layer = layer.background(move |work| list.lock().push(work));
    let mut service =
        layer.layer(service_fn(async |request: Request<()>| Ok::<_, Infallible>(named(&request))));
    let mut call = || Started::new(service.call(get("/", &[])));
    assert!(!call().is_pending());
    let mut left = call();
    assert!(left.is_pending());
    drop(left);
    let work: Vec<_> = std::mem::take(&mut *left_over.lock());
    assert_eq!(work.len(), 1);
    for work in work {
        work.await;
    }
    let mut next = call();
    assert!(next.is_pending());
    clock.advance(Span::from_secs(1));
    assert!(!next.is_pending(), "the first slot was free again");
}
