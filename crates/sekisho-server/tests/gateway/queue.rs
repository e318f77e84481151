//! A queue in the gateway: requests wait their turn instead of failing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use parking_lot::Mutex;
use sekisho::{Clock as _, FakeClock, Span, SystemClock, Timestamp};
use tokio::task::JoinSet;

use super::harness::{Setup, get, ok, upstream};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_start_a_second_apart_and_the_twelfth_is_refused() {
    let clock = SystemClock::new();
    let starts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&starts);
    let watch = clock.clone();
    let to = upstream(move |_| {
        seen.lock().push(watch.now());
        async { Response::new(Full::new(Bytes::new())) }
    })
    .await;
    let gateway = Setup::to(to).limits("1/s burst 10 leaky-queue").real_time().start().await;
    // The connections are there before the clock matters.
    let mut clients = Vec::new();
    for _ in 0..12 {
        clients.push(gateway.connect().await);
    }
    let watch_for_stalls = Stalls::watch(clock);
    let mut asking = JoinSet::new();
    for mut client in clients {
        asking.spawn(async move { client.get("/").await });
    }
    let replies = asking.join_all().await;
    let mut statuses: Vec<_> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [&[200; 11][..], &[429]].concat());
    let stalls = watch_for_stalls.stop();
    let starts = starts.lock();
    for (turn, start) in starts.iter().enumerate() {
        let due = starts[0].plus(Span::from_secs(turn as u64));
        let off = start.since(due).as_nanos().max(due.since(*start).as_nanos());
        // What the machine itself was late by at that moment is not the gateway's.
        let around = |at: &Timestamp| at.plus(AROUND) >= due && start.plus(AROUND) >= *at;
        let stalled = stalls.iter().filter(|(at, _)| around(at)).map(|(_, late)| late.as_nanos());
        let allowed = 20_000_000 + stalled.max().unwrap_or_default();
        assert!(off <= allowed, "number {turn} is {off} ns off, {allowed} allowed: {starts:?}");
    }
}

const AROUND: Span = Span::from_nanos(50_000_000);

/// A thread of its own that sleeps for short times, and notes how much longer than that each took.
struct Stalls {
    over: Arc<AtomicBool>,
    thread: thread::JoinHandle<Vec<(Timestamp, Span)>>,
}

impl Stalls {
    #[expect(clippy::disallowed_methods, reason = "how late a sleep ends is what is measured")]
    fn watch(clock: SystemClock) -> Self {
        const NAP: Span = Span::from_nanos(2_000_000);
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let mut seen = Vec::new();
            while !told.load(Relaxed) {
                let begin = clock.now();
                thread::sleep(NAP.into());
                let now = clock.now();
                seen.push((now, now.since(begin.plus(NAP))));
            }
            seen
        });
        Self { over, thread }
    }

    fn stop(self) -> Vec<(Timestamp, Span)> {
        self.over.store(true, Relaxed);
        self.thread.join().unwrap()
    }
}

#[tokio::test]
async fn who_leaves_the_queue_gives_the_slot_back() {
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1_700_000_000)));
    let mut setup = Setup::to(ok().await).limits("1/min burst 1 leaky-queue");
    setup.clock = Arc::clone(&clock) as Arc<_>;
    let gateway = setup.start().await;
    assert_eq!(gateway.get("/").await.status, 200);
    clock.advance(Span::from_secs(1));
    let mut waiting = gateway.connect().await;
    waiting.send(format!("{}\r\n", get("/"))).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    gateway.get("/").await.is_problem(429);
    drop(waiting);
    tokio::time::sleep(Duration::from_millis(200)).await;
    // The slot is free again: this one waits for it.
    let mut next = gateway.connect().await;
    next.send(format!("{}\r\n", get("/"))).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    clock.advance(Span::from_secs(59));
    assert_eq!(next.receive().await.status, 200);
}
