//! Forward-auth that holds its answer until a queue's slot.

use std::time::Duration;

use sekisho::Span;
use tokio::time::sleep;

use crate::harness::{Client, Reply, Running};

const QUEUE: &str =
    "[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"1/s burst 10 leaky-queue\"]\n";

fn held(longest: &str) -> String {
    format!("[listen.auth]\nhold = \"{longest}\"\n{QUEUE}")
}

/// Asks, and leaves the answer to be read.
async fn begin(server: &Running, door: &str) -> Client {
    let mut client = Client::connect(server.http).await;
    client.send(format!("GET {door} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
    // The request is decided before the clock moves.
    sleep(Duration::from_millis(100)).await;
    client
}

async fn answers_now(client: &mut Client) -> bool {
    tokio::time::timeout(Duration::from_millis(100), client.stream.get_ref().readable())
        .await
        .is_ok()
}

fn refused(reply: &Reply, status: u16, retry_after: &str) {
    assert_eq!((reply.status, reply.header("retry-after")), (status, Some(retry_after)));
    assert_eq!(reply.header("ratelimit").unwrap(), format!("\"api\";r=8;t={retry_after}"));
}

#[tokio::test]
async fn an_answer_is_held_until_the_slot() {
    let server = Running::start(&held("2s")).await;
    assert_eq!(server.ask("GET /auth HTTP/1.1\r\nhost: a\r\n").await.status, 200);
    let (mut second, mut third) = (begin(&server, "/auth").await, begin(&server, "/auth403").await);
    assert!(!answers_now(&mut second).await && !answers_now(&mut third).await);
    server.clock.advance(Span::from_secs(1));
    assert_eq!(second.receive().await.status, 200);
    assert!(!answers_now(&mut third).await);
    server.clock.advance(Span::from_secs(1));
    assert_eq!(third.receive().await.status, 200);
}

#[tokio::test]
async fn a_slot_that_is_too_far_away_is_refused_and_given_back() {
    let server = Running::start(&held("2s")).await;
    let _held = [
        begin(&server, "/auth").await,
        begin(&server, "/auth").await,
        begin(&server, "/auth").await,
    ];
    // However many ask, the queue is no longer for it.
    for _ in 0..20 {
        refused(&server.ask("GET /auth HTTP/1.1\r\nhost: a\r\n").await, 429, "1");
        refused(&server.ask("GET /auth403 HTTP/1.1\r\nhost: a\r\n").await, 403, "1");
    }
    server.clock.advance(Span::from_secs(1));
    let mut next = begin(&server, "/auth").await;
    server.clock.advance(Span::from_secs(2));
    assert_eq!(next.receive().await.status, 200, "as `Retry-After` said");
}

#[tokio::test]
async fn whoever_hangs_up_gives_the_slot_back() {
    let server = Running::start(&held("60s")).await;
    let first = [begin(&server, "/auth").await, begin(&server, "/auth").await];
    drop(begin(&server, "/auth").await);
    sleep(Duration::from_millis(200)).await;
    let mut next = begin(&server, "/auth").await;
    server.clock.advance(Span::from_secs(2));
    assert_eq!(next.receive().await.status, 200, "the place of the one that left");
    drop(first);
}

#[tokio::test]
async fn without_hold_a_request_with_a_slot_passes_at_once() {
    let server = Running::start(QUEUE).await;
    for _ in 0..11 {
        assert_eq!(server.ask("GET /auth HTTP/1.1\r\nhost: a\r\n").await.status, 200);
    }
    assert_eq!(server.ask("GET /auth HTTP/1.1\r\nhost: a\r\n").await.status, 429);
}

#[tokio::test]
async fn those_behind_one_that_hangs_up_move_up() {
    let server = Running::start(&held("60s")).await;
    let _first = begin(&server, "/auth").await;
    let leaves = begin(&server, "/auth").await;
    let (mut third, mut fourth) = (begin(&server, "/auth").await, begin(&server, "/auth").await);
    drop(leaves);
    sleep(Duration::from_millis(200)).await;
    server.clock.advance(Span::from_secs(1));
    assert_eq!(third.receive().await.status, 200);
    assert!(!answers_now(&mut fourth).await);
    server.clock.advance(Span::from_secs(1));
    assert_eq!(fourth.receive().await.status, 200);
}
