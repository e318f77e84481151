//! What an observer is told, and in which order.

use std::{
    convert::Infallible,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use http::{Request, StatusCode};
use parking_lot::Mutex;
use sekisho::{
    Answer, Ask, Clock, FakeClock, Key, Limiter, Memory, MemoryOptions, Now, Scope, Span, Store,
    StoreError,
};
use sekisho_http::layer::{Decided, LimitLayer, Observe, Refunded, Unasked};
use tower::{Layer, Service, service_fn};

use crate::support::{Started, call, clock, from, get, layer, limiter, named, policies, send};

/// Writes down what it is told.
#[derive(Default)]
struct Notes {
    lines: Mutex<Vec<String>>,
    inside: AtomicBool,
    says_so: bool,
}

impl Notes {
    fn put(&self, line: String) {
        assert!(self.inside.load(SeqCst), "told out of order: {line}");
        self.lines.lock().push(line);
    }

    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock())
    }
}

impl Observe for Notes {
    fn in_order(&self, step: &mut dyn FnMut()) {
        assert!(!self.inside.swap(true, SeqCst), "within itself");
        step();
        self.inside.store(false, SeqCst);
    }

    fn decided(&self, decided: &Decided<'_>) {
        let request = decided.request;
        let refused = decided.refused_with.map(|with| (with.status.as_u16(), with.grpc_status));
        self.put(format!(
            "{} {} {:?} {} {} ns {refused:?}",
            request.method,
            request.path,
            request.client.map(|client| client.to_string()).unwrap_or_default(),
            decided.decision.ruling.as_str(),
            decided.took.as_nanos(),
        ));
    }

    fn refunded(&self, refunded: &Refunded<'_>) {
        let parts: Vec<_> = refunded.parts.iter().map(|part| &*part.policy).collect();
        self.put(format!("back {}", parts.join(" ")));
    }

    fn unasked(&self, unasked: &Unasked<'_>) {
        let with = unasked.refused_with;
        self.put(format!(
            "{} {} {:?} {:?}",
            unasked.target.path(),
            unasked.error,
            with.status.as_u16(),
            with.grpc_status
        ));
    }

    fn unbelieved(&self, peer: IpAddr) -> bool {
        self.lines.lock().push(format!("unbelieved {peer}"));
        self.says_so
    }

    fn answered(&self, status: StatusCode) {
        self.lines.lock().push(format!("answered {}", status.as_u16()));
    }
}

fn policy(name: &str, rest: &str) -> String {
    format!("[[policy]]\nname = \"{name}\"\nkey = [\"ip\"]\n{rest}\n")
}

#[tokio::test]
async fn decisions_and_answers_are_told() {
    let notes = Arc::new(Notes::default());
    let layer = layer(&policy("all", "limits = [\"1/min\"]")).observe(Arc::clone(&notes));
    let _seen = send(&layer, get("/a//b/404?c", &[])).await;
    let _seen = send(&layer, get("/", &[])).await;
    let _seen = send(&layer, get("/x", &[("content-type", "application/grpc")])).await;
    assert_eq!(
        notes.taken(),
        [
            "GET /a/b/404 \"203.0.113.9\" allow 0 ns None",
            "answered 404",
            "GET / \"203.0.113.9\" deny 0 ns Some((429, None))",
            "answered 429",
            "GET /x \"203.0.113.9\" deny 0 ns Some((200, Some(8)))",
            "answered 200",
        ]
    );
}

#[tokio::test]
async fn a_path_without_one_form_is_told() {
    let notes = Arc::new(Notes::default());
    let layer = layer(&policy("all", "limits = [\"1/min\"]")).observe(Arc::clone(&notes));
    let _seen = send(&layer, get("/a%2fb", &[])).await;
    let _seen = send(&layer, get("/%zz", &[("content-type", "application/grpc")])).await;
    let lines = notes.taken();
    assert!(lines[0].starts_with("/a%2fb ") && lines[0].ends_with(" 400 None"), "{lines:?}");
    assert!(lines[2].starts_with("/%zz ") && lines[2].ends_with(" 200 Some(3)"), "{lines:?}");
    assert_eq!([&*lines[1], &lines[3]], ["answered 400", "answered 200"]);
}

#[tokio::test]
async fn all_that_is_given_back_is_told() {
    let notes = Arc::new(Notes::default());
    let (outer, _clock) = limiter(&policy("outer", "limits = [\"9/min\"]"));
    let file = policy("outer", "limits = [\"9/min\"]")
        + &policy("a", "limits = [\"9/min\"]")
        + &policy("b", "limits = [\"1/min\"]\ncount = { status = [401] }");
    let (inner, _clock) = limiter(&file);
    let outer = LimitLayer::new(outer);
    let inner = LimitLayer::new(inner).observe(Arc::clone(&notes));
    let service = |status: &str| {
        let both =
            outer.layer(inner.layer(service_fn(async |request: Request<()>| {
                Ok::<_, Infallible>(named(&request))
            })));
        call(both, get(&format!("/{status}"), &[]))
    };
    let _seen = service("200").await;
    let told = notes.taken();
    assert_eq!(told.len(), 4, "{told:?}");
    assert_eq!(told[2..], ["back b", "answered 200"], "an answer that does not count");
    let _seen = service("401").await;
    let _seen = service("401").await;
    let told = notes.taken();
    assert!(told[4].contains(" deny "), "{told:?}");
    assert_eq!(told[5..], ["back a", "answered 429"], "`b` refuses, and `a` was charged");
}

#[tokio::test]
async fn the_slot_of_an_abandoned_wait_is_told() {
    let notes = Arc::new(Notes::default());
    let file = policy("queue", "limits = [\"1/s burst 4 leaky-queue\"]")
        + &policy("bucket", "limits = [\"9/min\"]");
    let mut service = layer(&file)
        .observe(Arc::clone(&notes))
        .layer(service_fn(async |request: Request<()>| Ok::<_, Infallible>(named(&request))));
    assert!(!Started::new(service.call(get("/", &[]))).is_pending());
    let mut waiting = Started::new(service.call(get("/", &[])));
    assert!(waiting.is_pending());
    let _before = notes.taken();
    drop(waiting);
    assert_eq!(notes.taken(), ["back bucket", "back queue"]);
}

#[tokio::test]
async fn an_observer_may_speak_of_unbelieved_peers_itself() {
    let file = format!(
        "[identity]\naddress = \"x-real-ip\"\ntrusted_proxies = [\"10.0.0.0/8\"]\n{}",
        policy("all", "limits = [\"9/min\"]")
    );
    for says_so in [false, true] {
        let notes = Arc::new(Notes { says_so, ..Notes::default() });
        let (log, _guard) = crate::identity::Log::start();
        let layer = layer(&file).observe(Arc::clone(&notes));
        for _ in 0..2 {
            let _seen = send(&layer, from("192.0.2.1", "/", &[("x-real-ip", "192.0.2.9")])).await;
        }
        let told = notes.taken();
        assert_eq!(told.iter().filter(|line| *line == "unbelieved 192.0.2.1").count(), 2);
        assert!(told[1].starts_with("GET / \"192.0.2.1\" allow"), "{told:?}");
        assert_eq!(log.lines().len(), usize::from(!says_so), "the layer warns, once");
    }
}

/// A store that takes its time, by its own clock too.
#[derive(Debug)]
struct Slow(Memory, Arc<FakeClock>);

impl Store for Slow {
    async fn decide(&self, asks: &[Ask<'_>], now: Now) -> Vec<Result<Answer, StoreError>> {
        tokio::task::yield_now().await;
        self.1.advance(Span::from_nanos(7));
        self.0.decide(asks, now).await
    }

    async fn forget(&self, scope: &Scope, key: &Key) -> Result<bool, StoreError> {
        self.0.forget(scope, key).await
    }
}

#[tokio::test]
async fn no_order_is_held_while_a_store_is_waited_for() {
    let notes = Arc::new(Notes::default());
    let clock = clock();
    let any = || Arc::clone(&clock) as Arc<dyn Clock>;
    let store = Slow(Memory::with_clock(MemoryOptions::default(), any()), Arc::clone(&clock));
    let limiter = Limiter::with_store(policies(&policy("all", "limits = [\"9/min\"]")), store);
    let layer = LimitLayer::with_clock(Arc::new(limiter), any()).observe(Arc::clone(&notes));
    let mut service =
        layer.layer(service_fn(async |request: Request<()>| Ok::<_, Infallible>(named(&request))));
    let mut both = [(); 2].map(|()| Started::new(service.call(get("/", &[]))));
    for request in &mut both {
        assert!(request.is_pending());
        assert!(!notes.inside.load(SeqCst) && notes.taken().is_empty());
    }
    for (request, took) in both.iter_mut().zip([7, 14]) {
        assert!(!request.is_pending());
        let told = notes.taken();
        assert!(told[0].contains(&format!("allow {took} ns")), "{told:?}");
    }
}

/// Writes down when decisions were made, with the order held.
#[derive(Default)]
struct Ordered {
    order: Mutex<()>,
    left: Mutex<Vec<u64>>,
}

impl Observe for Ordered {
    fn in_order(&self, step: &mut dyn FnMut()) {
        let _held = self.order.lock();
        step();
    }

    fn decided(&self, decided: &Decided<'_>) {
        let binding = decided.decision.binding().expect("a limit");
        self.left.lock().push(binding.verdict.remaining.expect("a number"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn decisions_are_told_in_the_order_in_which_they_were_made() {
    let ordered = Arc::new(Ordered::default());
    let layer =
        layer(&policy("all", "limits = [\"2000/h fixed-window\"]")).observe(Arc::clone(&ordered));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let layer = layer.clone();
            tokio::spawn(async move {
                for _ in 0..250 {
                    assert_eq!(send(&layer, get("/", &[])).await.status, 200);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    let wanted: Vec<u64> = (0..2_000).rev().collect();
    assert!(*ordered.left.lock() == wanted, "out of order");
}
