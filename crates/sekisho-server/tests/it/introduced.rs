//! Connections that begin with a PROXY protocol header.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use sekisho::{PolicySet, SystemClock};
use sekisho_server::{
    ServeGateway, ServeOptions, Server,
    door::gateway::{GatewayOptions, ProxyOptions},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::harness::{Client, Running, limiter};

const ONCE: &str = "[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"1/min\"]\n";
const GET: &str = "GET /auth HTTP/1.1\r\nhost: a\r\n";

fn file(trusted: &str) -> String {
    format!("[identity]\naddress = \"proxy-protocol\"\ntrusted_proxies = [\"{trusted}\"]\n{ONCE}")
}

/// A header of version 2: the command, the family and protocol, and what follows.
fn version_2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend([0x20 | command, family]);
    header.extend(u16::try_from(rest.len()).unwrap().to_be_bytes());
    header.extend(rest);
    header
}

fn v4(last: u8) -> Vec<u8> {
    [203, 0, 113, last, 192, 0, 2, 1, 0x10, 0, 0, 80].to_vec()
}

async fn status(server: &Running, header: impl AsRef<[u8]>) -> u16 {
    let mut client = Client::connect(server.http).await;
    client.send(header).await;
    client.ask(GET).await.status
}

async fn is_cut(server: &Running, header: impl AsRef<[u8]>) -> bool {
    let mut client = Client::connect(server.http).await;
    client.send(header).await;
    client.is_closed_within(Duration::from_secs(5)).await
}

#[tokio::test]
async fn whom_a_trusted_proxy_names_is_counted() {
    let server = Running::start(&file("127.0.0.1")).await;
    let v6 = "PROXY TCP6 2001:db8::9 2001:db8::1 4711 80\r\n";
    let mut long = v4(5);
    long.extend([0xEE, 0, 200]);
    long.extend([0; 200]);
    for (header, expected) in [
        (b"PROXY TCP4 203.0.113.9 192.0.2.1 4711 80\r\n".to_vec(), 200),
        (b"PROXY TCP4 203.0.113.9 192.0.2.1 4712 80\r\n".to_vec(), 429),
        (b"PROXY TCP4 203.0.113.8 192.0.2.1 4711 80\r\n".to_vec(), 200),
        (v6.as_bytes().to_vec(), 200),
        (v6.as_bytes().to_vec(), 429),
        (version_2(1, 0x11, &v4(9)), 429),
        (version_2(1, 0x11, &v4(7)), 200),
        (version_2(1, 0x11, &long), 200),
        // These name nobody, so the proxy itself is counted.
        (b"PROXY UNKNOWN\r\n".to_vec(), 200),
        (version_2(0, 0, &[]), 429),
        (version_2(0, 0x11, &v4(6)), 429),
        (version_2(1, 0x31, &[0; 216]), 429),
    ] {
        let text = String::from_utf8_lossy(&header).into_owned();
        assert_eq!(status(&server, header).await, expected, "{text:?}");
    }
}

#[tokio::test]
async fn a_connection_keeps_its_client() {
    let server = Running::start(&file("127.0.0.1")).await;
    let mut client = Client::connect(server.http).await;
    // In pieces, with the first request right behind.
    for piece in ["PRO", "XY TCP4 203.0.113.9 192.0.2.1 ", "1 2\r", "\nGET /au"] {
        client.send(piece).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(client.ask("th HTTP/1.1\r\nhost: a\r\n").await.status, 200);
    assert_eq!(client.ask(GET).await.status, 429);
    let again = b"PROXY TCP4 203.0.113.7 192.0.2.1 1 2\r\n";
    client.send(again).await;
    assert_eq!(client.receive().await.status, 400, "a header comes once");
}

#[tokio::test]
async fn a_trusted_proxy_that_does_not_introduce_is_cut() {
    let server = Running::start(&file("127.0.0.1")).await;
    let endless = format!("PROXY TCP4 {}", "1".repeat(200));
    for header in [
        b"GET /auth HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(),
        b"PROXY TCP4 203.0.113.9\r\n".to_vec(),
        b"PROXY TCP4 203.0.113.900 192.0.2.1 1 2\r\n".to_vec(),
        b"PROXY TCP5 203.0.113.9 192.0.2.1 1 2\r\n".to_vec(),
        b"proxy TCP4 203.0.113.9 192.0.2.1 1 2\r\n".to_vec(),
        endless.into_bytes(),
        version_2(7, 0x11, &v4(9)),
        version_2(1, 0x11, &[1, 2, 3]),
        version_2(1, 0x11, &[0; 5_000]),
        vec![0; 64],
    ] {
        let text = String::from_utf8_lossy(&header).into_owned();
        assert!(is_cut(&server, header).await, "{text:?}");
    }
    assert_eq!(status(&server, "PROXY UNKNOWN\r\n").await, 200, "nothing was counted");
}

#[tokio::test]
async fn a_header_that_drips_is_cut() {
    let short =
        |options: &mut ServeOptions| options.limits.header_timeout = Duration::from_millis(300);
    let server = Running::with(&file("127.0.0.1"), short).await;
    assert!(is_cut(&server, "").await);
    assert!(is_cut(&server, "PROXY TCP4 203.").await);
    let server = Running::with(&file("10.0.0.1"), short).await;
    assert!(is_cut(&server, "").await);
    assert!(is_cut(&server, "PROX").await);
}

#[tokio::test]
async fn forward_auth_cannot_decide_for_a_peer_that_is_not_trusted() {
    let server = Running::start(&file("10.0.0.1")).await;
    assert_eq!(status(&server, "PROXY TCP4 203.0.113.9 192.0.2.1 1 2\r\n").await, 503);
    assert_eq!(status(&server, version_2(1, 0x11, &v4(9))).await, 503);
    // One that claims nothing is a client like any other.
    assert_eq!(status(&server, "").await, 200);
    assert_eq!(status(&server, "").await, 429);
}

/// An upstream that answers with the `X-Forwarded-For` that it was sent.
async fn upstream() -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    let _serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = socket.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else { return };
                head.push(byte);
            }
            let head = String::from_utf8(head).unwrap();
            let line = head.lines().find_map(|line| line.strip_prefix("x-forwarded-for: "));
            let body = line.unwrap_or("none");
            let answer = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _sent = stream.write_all(answer.as_bytes()).await;
        }
    });
    at
}

async fn gateway(trusted: &str) -> SocketAddr {
    let policies = PolicySet::parse(&file(trusted)).unwrap();
    let mut options = ServeOptions::new(limiter(policies, Arc::new(SystemClock::new())));
    options.http = None;
    let to = format!("http://{}", upstream().await).parse().unwrap();
    options.gateway = Some(ServeGateway {
        listen: GatewayOptions::new(([127, 0, 0, 1], 0)),
        proxy: ProxyOptions::new(to),
        log: None,
    });
    let server = Server::bind(options).await.unwrap();
    let at = server.gateway_address().unwrap().tcp().unwrap();
    let _running = tokio::spawn(async { Box::pin(server.run(std::future::pending())).await });
    at
}

async fn through(gateway: SocketAddr, header: &str) -> (u16, String) {
    let mut client = Client::connect(gateway).await;
    client.send(header).await;
    let reply = client.ask("GET / HTTP/1.1\r\nhost: a\r\n").await;
    (reply.status, reply.body)
}

#[tokio::test]
async fn the_gateway_counts_and_names_the_client_of_a_trusted_proxy() {
    let at = gateway("127.0.0.1").await;
    let header = "PROXY TCP4 203.0.113.9 192.0.2.1 1 2\r\n";
    assert_eq!(through(at, header).await, (200, "203.0.113.9".to_owned()));
    assert_eq!(through(at, header).await.0, 429);
    assert_eq!(
        through(at, "PROXY TCP6 2001:db8::7 ::1 1 2\r\n").await,
        (200, "2001:db8::7".to_owned())
    );
}

#[tokio::test]
async fn the_gateway_counts_a_peer_that_it_does_not_trust() {
    let at = gateway("10.0.0.1").await;
    assert_eq!(
        through(at, "PROXY TCP4 203.0.113.9 192.0.2.1 1 2\r\n").await,
        (200, "127.0.0.1".to_owned())
    );
    assert_eq!(through(at, "PROXY TCP4 203.0.113.8 192.0.2.1 1 2\r\n").await.0, 429);
    assert_eq!(through(at, "").await.0, 429);
    drop(TcpStream::connect(at).await.unwrap());
}
