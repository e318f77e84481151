//! Who leaves a queue lets those behind move up.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::Waker,
};

use http::{Request, Response};
use http_body_util::Full;
use parking_lot::Mutex;
use proptest::prelude::*;
use sekisho::{Clock, FakeClock, Limiter, Mode, Span};
use sekisho_http::layer::LimitLayer;
use tower::{Layer, Service, service_fn};

use crate::support::{START, Started, decide, from, limiter};

const SECOND: u64 = 1_000_000_000;

type Starts = Arc<Mutex<Vec<(String, u64)>>>;
type Call = Started<std::pin::Pin<Box<dyn Future<Output = u16>>>>;

/// A queue, with what started in it and when, in nanoseconds.
struct Queue {
    clock: Arc<FakeClock>,
    limiter: Arc<Limiter>,
    starts: Starts,
}

impl Queue {
    fn new(limit: &str, more: &str) -> Self {
        let (limiter, clock) = limiter(&format!(
            "[[policy]]\nname = \"queue\"\nkey = [\"ip\"]\nlimits = [\"{limit}\"]\n{more}\n"
        ));
        Self { clock, limiter, starts: Starts::default() }
    }

    fn ns(&self) -> u64 {
        self.clock.now().as_nanos() - START * SECOND
    }

    /// Lets a request go as far as it gets, and returns it if it waits.
    fn ask(&self, name: &str) -> Option<Call> {
        self.put(from("203.0.113.9", &format!("/{name}"), &[]))
    }

    fn put(&self, request: Request<()>) -> Option<Call> {
        let (starts, clock) = (Arc::clone(&self.starts), Arc::clone(&self.clock));
        let inner = service_fn(move |request: Request<()>| {
            let ns = clock.now().as_nanos() - START * SECOND;
            starts.lock().push((request.uri().path()[1..].to_owned(), ns));
            async { Ok::<_, Infallible>(Response::new(Full::<bytes::Bytes>::default())) }
        });
        // A layer of its own for each: what they share is the limiter.
        let mut service = LimitLayer::new(Arc::clone(&self.limiter)).layer(inner);
        let call = service.call(request);
        let mut started: Call =
            Started::new(Box::pin(async { call.await.expect("no error").status().as_u16() }));
        started.is_pending().then_some(started)
    }

    /// Lets time pass, a tenth of a second at a time.
    fn run(&self, until_ms: u64, calls: &mut [&mut Option<Call>]) {
        while self.ns() < until_ms * 1_000_000 {
            self.clock.advance(Span::from_nanos(SECOND / 10));
            for call in calls.iter_mut() {
                if call.as_mut().is_some_and(|call| !call.is_pending()) {
                    **call = None;
                }
            }
        }
    }

    fn started(&self) -> Vec<(String, u64)> {
        self.starts.lock().clone()
    }

    fn remaining(&self) -> Option<u64> {
        decide(&self.limiter, "/", Mode::Look).binding()?.verdict.remaining
    }
}

fn named(list: &[(&str, u64)]) -> Vec<(String, u64)> {
    list.iter().map(|(name, ms)| ((*name).to_owned(), ms * 1_000_000)).collect()
}

#[test]
fn two_move_up_and_a_newcomer_gets_the_end() {
    // Their charges may have one time or each its own.
    for apart in [0, 1_000_000] {
        let queue = Queue::new("1/s burst 3 leaky-queue", "");
        let step = || queue.clock.advance(Span::from_nanos(apart));
        drop(queue.ask("served"));
        step();
        let first = queue.ask("first");
        step();
        let mut second = queue.ask("second");
        step();
        let mut third = queue.ask("third");
        assert_eq!(queue.remaining(), Some(0));
        queue.clock.advance(Span::from_nanos(SECOND / 2 - 3 * apart));
        drop(first);
        let mut newcomer = queue.ask("newcomer");
        assert_eq!(queue.remaining(), Some(0), "as many wait as may");
        queue.run(5_000, &mut [&mut second, &mut third, &mut newcomer]);
        assert_eq!(
            queue.started(),
            named(&[("served", 0), ("second", 1_000), ("third", 2_000), ("newcomer", 3_000)])
        );
    }
}

#[test]
fn whoever_leaves_in_whatever_order_no_slot_is_lost() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let queue = Queue::new("1/s burst 9 leaky-queue", "");
        drop(queue.ask("served"));
        let mut calls: Vec<_> = (0..4)
            .map(|at| {
                queue.clock.advance(Span::from_nanos(1));
                queue.ask(&format!("call{at}"))
            })
            .collect();
        for leaver in order {
            queue.clock.advance(Span::from_nanos(1));
            calls[leaver] = None;
        }
        let mut last = calls.pop().flatten();
        let mut newcomers = [0, 1].map(|_| {
            queue.clock.advance(Span::from_nanos(1));
            queue.ask("newcomer")
        });
        let [one, other] = &mut newcomers;
        queue.clock.advance(Span::from_nanos(SECOND / 10 - 9));
        queue.run(9_000, &mut [&mut last, one, other]);
        assert_eq!(
            queue.started(),
            named(&[("served", 0), ("call3", 1_000), ("newcomer", 2_000), ("newcomer", 3_000)]),
            "{order:?}"
        );
    }
}

#[test]
fn who_moves_up_is_woken() {
    struct Count(AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            let _before = self.0.fetch_add(1, SeqCst);
        }
    }
    let queue = Queue::new("1/s burst 3 leaky-queue", "");
    drop(queue.ask("served"));
    let (first, count) = (queue.ask("first"), Arc::new(Count(AtomicUsize::new(0))));
    let mut service =
        LimitLayer::new(Arc::clone(&queue.limiter)).layer(service_fn(async |_: Request<()>| {
            Ok::<_, Infallible>(Response::new(Full::<bytes::Bytes>::default()))
        }));
    let mut second = Box::pin(service.call(from("203.0.113.9", "/", &[])));
    let waker = Waker::from(Arc::clone(&count));
    let mut context = std::task::Context::from_waker(&waker);
    assert!(second.as_mut().poll(&mut context).is_pending());
    drop(first);
    assert_eq!(count.0.load(SeqCst), 1, "to set its timer anew");
    assert!(second.as_mut().poll(&mut context).is_pending());
    queue.clock.advance(Span::from_secs(1));
    assert_eq!(count.0.load(SeqCst), 2);
    assert!(second.as_mut().poll(&mut context).is_ready());
}

#[test]
fn a_slot_whose_time_has_come_is_handed_to_nobody() {
    let queue = Queue::new("1/s burst 3 leaky-queue", "");
    drop(queue.ask("served"));
    let first = queue.ask("first");
    let mut second = queue.ask("second");
    // Nobody has asked the first since; it leaves a moment before the second's turn.
    queue.clock.advance(Span::from_nanos(SECOND * 19 / 10));
    drop(first);
    assert!(second.as_mut().is_some_and(Started::is_pending));
    queue.run(3_000, &mut [&mut second]);
    assert_eq!(queue.started(), named(&[("served", 0), ("second", 2_000)]));
}

#[test]
fn those_who_wait_elsewhere_keep_the_slots_that_they_were_told() {
    let queue = Queue::new("1/s burst 5 leaky-queue", "");
    drop(queue.ask("served"));
    let step = || queue.clock.advance(Span::from_nanos(1));
    step();
    let first = queue.ask("first");
    step();
    // As the check API asks: whoever it answers waits for two seconds, whatever becomes of others.
    let told = decide(&queue.limiter, "/", Mode::Check);
    assert_eq!(told.delay.as_nanos(), 2 * SECOND - 2);
    step();
    drop(first);
    // The slot before it stands empty, and goes to who comes next.
    let mut newcomers = [0, 1].map(|_| {
        step();
        queue.ask("newcomer")
    });
    let [one, other] = &mut newcomers;
    queue.clock.advance(Span::from_nanos(SECOND / 10 - 5));
    queue.run(5_000, &mut [one, other]);
    assert_eq!(queue.started(), named(&[("served", 0), ("newcomer", 1_000), ("newcomer", 3_000)]));
}

#[test]
fn who_takes_another_number_of_slots_keeps_its_own() {
    let queue = Queue::new(
        "1/s burst 9 leaky-queue",
        "cost = { header = \"x-cost\", min = 1, max = 5, default = 1 }",
    );
    let put = |name: &str, cost: &str| {
        queue.put(from("203.0.113.9", &format!("/{name}"), &[("x-cost", cost)]))
    };
    drop(put("served", "1"));
    // Slots 1, 2 and 3, 4, 5 and 6, all charged at one time.
    let (first, mut wide) = (put("first", "1"), put("wide", "2"));
    let (mut second, mut also_wide) = (put("second", "1"), put("also-wide", "2"));
    drop(first);
    let (mut newcomer, mut last) = (put("newcomer", "1"), put("last", "1"));
    queue.run(9_000, &mut [&mut wide, &mut second, &mut also_wide, &mut newcomer, &mut last]);
    assert_eq!(
        queue.started(),
        named(&[
            ("served", 0),
            ("second", 1_000),
            ("wide", 3_000),
            ("newcomer", 4_000),
            ("also-wide", 6_000),
            ("last", 7_000)
        ])
    );
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Next {
    Comes,
    Leaves(usize),
    /// So many tenths of a second pass.
    Passes(u64),
}

fn next() -> impl Strategy<Value = Next> {
    prop_oneof![
        4 => Just(Next::Comes),
        3 => (0..4_usize).prop_map(Next::Leaves),
        3 => (0..4_u64).prop_map(Next::Passes),
    ]
}

proptest! {
    #[test]
    fn starts_are_even_and_nobody_waits_before_an_empty_slot(
        all in prop::collection::vec(next(), 1..60),
    ) {
        let queue = Queue::new("1/s burst 3 leaky-queue", "");
        let mut waiting: Vec<Call> = Vec::new();
        let mut busy_since = 0;
        for what in all {
            match what {
                Next::Comes => waiting.extend(queue.ask("call")),
                Next::Leaves(at) if at < waiting.len() => drop(waiting.remove(at)),
                Next::Leaves(_) => {}
                Next::Passes(tenths) => {
                    for _ in 0..tenths {
                        queue.clock.advance(Span::from_nanos(SECOND / 10));
                        waiting.retain_mut(Started::is_pending);
                    }
                }
            }
            prop_assert!(waiting.len() <= 3, "as many wait as may");
            let starts = queue.started();
            let even = starts.windows(2).all(|pair| pair[1].1 - pair[0].1 >= SECOND);
            prop_assert!(even, "{starts:?}");
            // The first in line waits for less than an interval, counted from the last start or from its coming.
            if waiting.is_empty() {
                busy_since = queue.ns();
            }
            let last = starts.last().map_or(0, |start| start.1);
            let idle = queue.ns() - last.max(busy_since);
            prop_assert!(waiting.is_empty() || idle < SECOND, "{idle} ns: {starts:?}");
        }
    }
}
