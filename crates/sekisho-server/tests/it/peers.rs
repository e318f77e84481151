//! Peers that are slow, silent, loud or wrong: each is cut or told, and nobody else notices.

use std::time::Duration;

use sekisho_server::ServeOptions;
use tokio::time::timeout;

use crate::harness::{Client, PATIENCE, Running};

const FILE: &str = "[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"1000/min\"]\n";
const GET: &str = "GET /auth HTTP/1.1\r\nhost: a\r\n";
const SHORT: Duration = Duration::from_millis(300);
/// So much longer than `SHORT` that what lasts this long is not bounded by it.
const LONG: Duration = Duration::from_secs(1);

fn short_heads(options: &mut ServeOptions) {
    options.limits.header_timeout = SHORT;
}

/// Sends bytes one by one until the server closes the connection. Returns whether it did before they ran out.
async fn drip(client: &mut Client, bytes: impl IntoIterator<Item = u8>) -> bool {
    use tokio::io::AsyncWriteExt as _;
    for byte in bytes {
        let sent = client.stream.get_mut().write_all(&[byte]).await;
        if sent.is_err() || client.is_closed_within(Duration::from_millis(10)).await {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn a_head_that_drips_is_cut() {
    let server = Running::with(FILE, short_heads).await;
    let endless = || GET.bytes().chain(std::iter::repeat_n(b'x', 10_000));
    let mut client = Client::connect(server.http).await;
    assert!(timeout(PATIENCE, drip(&mut client, endless())).await.expect("a cut"));
    // The second request of a connection has no more time than the first.
    let mut client = Client::connect(server.http).await;
    assert_eq!(client.ask(GET).await.status, 200);
    assert!(timeout(PATIENCE, drip(&mut client, endless())).await.expect("a cut"));
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_cut() {
    let server = Running::with(FILE, short_heads).await;
    Client::connect(server.http).await.closed().await;
    Client::connect(server.admin).await.closed().await;
}

#[tokio::test]
async fn half_open_connections_stop_nobody() {
    let server = Running::start(FILE).await;
    let mut silent = Vec::new();
    for index in 0..200 {
        let mut client = Client::connect(server.http).await;
        client.send(&GET.as_bytes()[..index % GET.len()]).await;
        silent.push(client);
    }
    for _ in 0..20 {
        assert_eq!(server.ask(GET).await.status, 200);
    }
    for (index, mut client) in silent.into_iter().enumerate() {
        client.send(&GET.as_bytes()[index % GET.len()..]).await;
        assert_eq!(client.ask("").await.status, 200, "slow is not wrong");
    }
}

#[tokio::test]
async fn an_idle_connection_is_kept_for_its_own_time() {
    let server = Running::with(FILE, short_heads).await;
    let mut client = Client::connect(server.http).await;
    for _ in 0..2 {
        assert_eq!(client.ask(GET).await.status, 200);
        assert!(!client.is_closed_within(LONG).await, "idle is not slow");
    }
    let server = Running::with(FILE, |options| {
        options.limits.idle_timeout = SHORT;
        options.limits.header_timeout = 10 * PATIENCE;
    })
    .await;
    let mut client = Client::connect(server.http).await;
    assert_eq!(client.ask(GET).await.status, 200);
    client.closed().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_408() {
    let server = Running::with(FILE, |options| options.limits.body_timeout = SHORT).await;
    let mut client = Client::connect(server.http).await;
    client.send("POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-length: 50\r\n\r\n{").await;
    assert_eq!(client.receive().await.problem(408), "the body did not arrive in time");
    client.closed().await;
}

#[tokio::test]
async fn a_body_that_breaks_off_or_is_framed_wrongly_is_no_panic() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.http).await;
    client
        .send("POST /v1/check HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")
        .await;
    client.closed().await;
    let mut client = Client::connect(server.http).await;
    client.send("POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-length: 50\r\n\r\n{").await;
    drop(client);
    assert_eq!(server.ask(GET).await.status, 200);
}

#[tokio::test]
async fn heads_that_are_too_large_are_431() {
    let server = Running::start(FILE).await;
    let line = |bytes: usize| format!("{GET}x-long: {}\r\n", "x".repeat(bytes));
    assert_eq!(server.ask(&line(15_000)).await.status, 200);
    assert_eq!(server.ask(&line(17_000)).await.status, 431);
    assert_eq!(server.ask(&line(200_000)).await.status, 431);
    let lines = |count: usize| format!("{GET}{}", "x-a: b\r\n".repeat(count));
    assert_eq!(server.ask(&lines(99)).await.status, 200);
    assert_eq!(server.ask(&lines(100)).await.status, 431);

    // Refused as soon as it is too large, not once it is whole.
    let mut client = Client::connect(server.http).await;
    client.send(line(17_000)).await;
    assert_eq!(client.receive().await.status, 431);

    let server = Running::with(FILE, |options| options.limits.header_bytes = 1_000).await;
    assert_eq!(server.ask(&line(900)).await.status, 200);
    assert_eq!(server.ask(&line(1_100)).await.status, 431);
    let server = Running::with(FILE, |options| options.limits.headers = 10).await;
    assert_eq!(server.ask(&lines(9)).await.status, 200);
    assert_eq!(server.ask(&lines(10)).await.status, 431);
}

#[tokio::test]
async fn what_is_not_http_is_400() {
    let server = Running::start(FILE).await;
    for head in [
        "\0\x01\x02\r\n",
        "GET\r\n",
        "GET /auth HTTP/1.1\r\nhost\r\n",
        "GET /a b HTTP/1.1\r\n",
        "GET /auth HTTP/1.1\r\na\0: b\r\n",
    ] {
        let mut client = Client::connect(server.http).await;
        client.send(format!("{head}\r\n")).await;
        assert_eq!(client.receive().await.status, 400, "{head:?}");
        client.closed().await;
    }
}

#[tokio::test]
async fn connections_beyond_the_most_wait_for_a_place() {
    let server = Running::with(FILE, |options| options.limits.connections = 2).await;
    let (mut one, mut other) =
        (Client::connect(server.http).await, Client::connect(server.http).await);
    assert_eq!((one.ask(GET).await.status, other.ask(GET).await.status), (200, 200));
    let mut third = Client::connect(server.http).await;
    third.send(format!("{GET}\r\n")).await;
    assert!(timeout(SHORT, third.head()).await.is_err(), "there is no place");
    drop(one);
    assert_eq!(third.receive().await.status, 200);
    assert_eq!(other.ask(GET).await.status, 200);
}

#[tokio::test]
async fn a_peer_that_reads_nothing_is_cut() {
    let server = Running::with(FILE, |options| options.limits.write_timeout = SHORT).await;
    let mut client = Client::connect(server.http).await;
    let many = "GET /v1/openapi.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(100);
    // Far more answers than the system holds for a reader that does not read.
    let refused = async {
        use tokio::io::AsyncWriteExt as _;
        while client.stream.get_mut().write_all(many.as_bytes()).await.is_ok() {}
    };
    timeout(PATIENCE, refused).await.expect("a cut");
}

#[tokio::test]
async fn a_request_names_one_host() {
    let server =
        Running::start("[[policy]]\nname = \"p\"\nkey = [\"ip\"]\nlimits = [\"9/s\"]\n").await;
    for hosts in
        ["", "host: a\r\nhost: b\r\n", "host: a b\r\n", "host: a/b\r\n", "host: a\r\nHost: a\r\n"]
    {
        let reply = server.ask(&format!("GET /auth HTTP/1.1\r\n{hosts}")).await;
        assert_eq!(reply.status, 400, "{hosts:?}");
    }
    for host in ["a", "a.example:80", "[::1]:80", ""] {
        let reply = server.ask(&format!("GET /auth HTTP/1.1\r\nhost: {host}\r\n")).await;
        assert_eq!(reply.status, 200, "{host:?}");
    }
}
