//! Bodies pass through as they come, however long, and end as they end.

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Either, Empty, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{
    harness::{Setup, get, speaking, upstream},
    pieces::{Zeroes, count},
};

const LENGTH: usize = 100_000_000;
const GROWTH_MAX: u64 = 16 * 1024 * 1024;
/// Names the upstream of [`a_gateway_in_a_process_of_its_own`].
const TO: &str = "SEKISHO_TEST_GATEWAY_TO";

/// Not a test by itself: what it does when the environment names an upstream is looked at from outside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_in_a_process_of_its_own() {
    let Some(to) = std::env::var_os(TO) else { return };
    let gateway = Setup::to(to.into_string().unwrap()).start().await;
    println!("\nat {}", gateway.at);
    gateway.ended.await.unwrap();
}

struct Process {
    child: Child,
    at: SocketAddr,
}

impl Process {
    fn start(to: SocketAddr) -> Self {
        let name = "gateway::streams::a_gateway_in_a_process_of_its_own";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(TO, to.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let at = lines.map(Result::unwrap).find_map(|line| line.strip_prefix("at ")?.parse().ok());
        Self { child, at: at.unwrap() }
    }

    fn resident_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap();
        statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }
}

impl Process {
    /// Returns the most that was ever resident.
    fn highest_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        let _status = self.child.wait().unwrap();
    }
}

async fn connect(at: SocketAddr) -> http1::SendRequest<Either<Zeroes, Empty<Bytes>>> {
    let socket = TokioIo::new(TcpStream::connect(at).await.unwrap());
    let (sender, connection) = http1::handshake(socket).await.unwrap();
    let _running = tokio::spawn(connection);
    sender
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_megabytes_each_way_take_less_than_sixteen_of_memory() {
    let to = upstream(|request: Request<Incoming>| async move {
        if request.method() == "GET" {
            return Response::new(Either::Left(Zeroes(LENGTH)));
        }
        let bytes = count(request.into_body()).await.unwrap();
        Response::new(Either::Right(Full::new(Bytes::from(bytes.to_string()))))
    })
    .await;
    let gateway = Process::start(to);
    let post = |bytes: usize| {
        Request::post("/").header("host", "a").body(Either::Left(Zeroes(bytes))).unwrap()
    };
    let mut client = connect(gateway.at).await;
    // What every process takes once is not counted.
    let warm = client.send_request(post(100_000)).await.unwrap();
    assert_eq!(warm.into_body().collect().await.unwrap().to_bytes(), "100000");
    let before = gateway.resident_bytes();
    let mut most = before;

    let mut client = connect(gateway.at).await;
    let get = Request::get("/").header("host", "a").body(Either::Right(Empty::new())).unwrap();
    let mut body = client.send_request(get).await.unwrap().into_body();
    let (mut bytes, mut look_at) = (0, 0);
    while let Some(frame) = body.frame().await {
        bytes += frame.unwrap().data_ref().unwrap().len();
        if bytes >= look_at {
            most = most.max(gateway.resident_bytes());
            look_at += 1_000_000;
        }
    }
    assert_eq!(bytes, LENGTH);
    let mut client = connect(gateway.at).await;
    let reply = client.send_request(post(LENGTH)).await.unwrap();
    assert_eq!(reply.into_body().collect().await.unwrap().to_bytes(), LENGTH.to_string());
    most = most.max(gateway.highest_bytes());
    let growth = most - before;
    println!("{growth} bytes more");
    assert!(growth < GROWTH_MAX, "{growth} bytes more");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_stops_the_upstream() {
    let to = upstream(|_| async { Response::new(Zeroes(LENGTH)) }).await;
    let gateway = Process::start(to);
    let before = gateway.resident_bytes();
    let mut idle = Vec::new();
    for _ in 0..20 {
        let mut client = super::harness::Client::connect(gateway.at).await;
        client.send(format!("{}\r\n", get("/"))).await;
        let _head = client.head().await.unwrap();
        idle.push(client);
    }
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let growth = gateway.resident_bytes() - before;
    println!("{growth} bytes more");
    assert!(growth < GROWTH_MAX, "{growth} bytes more");
}

#[tokio::test]
async fn an_upstream_that_breaks_off_is_not_a_short_answer() {
    for head in
        ["content-length: 1000\r\n\r\nhalf", "transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"]
    {
        let to = speaking(move |mut client| async move {
            let _head = client.head().await;
            client.send(format!("HTTP/1.1 200 OK\r\n{head}")).await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            client.reset();
        })
        .await;
        let gateway = Setup::to(to).start().await;
        let mut client = gateway.connect().await;
        client.send(format!("{}\r\n", get("/"))).await;
        assert!(client.head().await.unwrap().0.contains("200"));
        let (rest, _ended) = client.rest().await;
        let rest = String::from_utf8(rest).unwrap();
        assert!(rest.contains("half") && !rest.ends_with("0\r\n\r\n"), "{rest:?}");

        let mut client = gateway.http2().await;
        let request = Request::get("http://a/").body(Empty::new()).unwrap();
        let response = client.send_request(request).await.unwrap();
        let error = count(response.into_body()).await.unwrap_err();
        assert!(!error.is_closed(), "a reset of the stream: {error:?}");
    }
}

#[tokio::test]
async fn a_client_that_breaks_off_is_not_a_short_request() {
    let (seen, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let to = upstream(move |request: Request<Incoming>| {
        let seen = seen.clone();
        async move {
            seen.send(count(request.into_body()).await.is_ok()).unwrap();
            Response::new(Empty::<Bytes>::new())
        }
    })
    .await;
    let gateway = Setup::to(to).start().await;
    for head in ["content-length: 9\r\n\r\nhalf", "transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"]
    {
        let mut client = gateway.connect().await;
        client.send(format!("POST / HTTP/1.1\r\nhost: a\r\n{head}")).await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        drop(client);
        assert!(!ends.recv().await.unwrap(), "the upstream takes it for whole");
    }
}
