//! A server of a test's own, and a client that says exactly what it is told to.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use sekisho::{Clock, FakeClock, Limiter, ListenAddress, PolicySet, Timestamp};
use sekisho_server::{ServeOptions, Server, ServerStore};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

/// Longer than anything here takes: a test that waits for this has found a fault.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// When the clock of every server begins.
pub(crate) const BEGIN: u64 = 1_700_000_000;

/// Returns a limiter that counts where its file says, and in this process by that clock.
pub(crate) fn limiter(policies: PolicySet, clock: Arc<dyn Clock>) -> Arc<Limiter<ServerStore>> {
    let settings = &policies.settings().store;
    let store = ServerStore::open_with_clock(settings, Arc::clone(&clock)).unwrap();
    Arc::new(Limiter::with_store_and_clock(policies, store, clock))
}

/// A server that runs.
pub(crate) struct Running {
    pub(crate) http: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) resp: SocketAddr,
    pub(crate) clock: Arc<FakeClock>,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) ended: JoinHandle<()>,
}

impl Running {
    /// Starts a server with that policy file, on a clock that stands still.
    pub(crate) async fn start(file: &str) -> Self {
        Self::with(file, |_| {}).await
    }

    pub(crate) async fn with(file: &str, change: impl FnOnce(&mut ServeOptions)) -> Self {
        let policies = PolicySet::parse(file).unwrap_or_else(|errors| panic!("{errors:?}"));
        let clock = Arc::new(FakeClock::at(Timestamp::from_secs(BEGIN)));
        let mut options =
            ServeOptions::new(limiter(policies, Arc::clone(&clock) as Arc<dyn Clock>));
        options.http = Some(([127, 0, 0, 1], 0).into());
        options.admin = options.http.clone();
        options.resp = options.http.clone();
        change(&mut options);
        let server = Server::bind(options).await.unwrap();
        let tcp = |address: Option<&ListenAddress>| address.unwrap().tcp().unwrap();
        let (http, admin) = (tcp(server.http_address()), tcp(server.admin_address()));
        let resp = tcp(server.resp_address());
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(async {
            let stopped = async { drop(stopped.await) };
            Box::pin(server.run(stopped)).await.unwrap();
        });
        Self { http, admin, resp, clock, stop: Some(stop), ended }
    }

    /// Tells the server to stop.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Sends a request over a connection of its own.
    pub(crate) async fn ask(&self, head: &str) -> Reply {
        Client::connect(self.http).await.ask(head).await
    }

    /// Sends a check over a connection of its own.
    pub(crate) async fn check(&self, target: &str, body: &str) -> Reply {
        Client::connect(self.http).await.check(target, body).await
    }

    /// Sends a check that is good, and returns what it answers.
    pub(crate) async fn answer(&self, body: &str) -> Value {
        let reply = self.check("/v1/check", body).await;
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, Some("application/json")),
            "{reply:?}"
        );
        reply.json()
    }

    /// Returns the metrics page.
    pub(crate) async fn page(&self) -> Reply {
        Client::connect(self.admin).await.ask("GET /metrics HTTP/1.1\r\nhost: a\r\n").await
    }
}

/// One connection.
pub(crate) struct Client {
    pub(crate) stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self { stream: BufReader::new(TcpStream::connect(address).await.unwrap()) }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends a head without its last empty line, and reads the answer.
    pub(crate) async fn ask(&mut self, head: &str) -> Reply {
        self.send(format!("{head}\r\n")).await;
        if head.starts_with("HEAD ") { self.head().await } else { self.receive().await }
    }

    pub(crate) async fn get(&mut self, target: &str) -> Reply {
        self.ask(&format!("GET {target} HTTP/1.1\r\nhost: h.example\r\n")).await
    }

    pub(crate) async fn check(&mut self, target: &str, body: &str) -> Reply {
        let length = body.len();
        let head = format!("POST {target} HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
        self.send(head + body).await;
        self.receive().await
    }

    /// Reads an answer without its body.
    pub(crate) async fn head(&mut self) -> Reply {
        timeout(PATIENCE, self.read_head()).await.expect("an answer in time")
    }

    async fn read_head(&mut self) -> Reply {
        let mut text = String::new();
        while !text.ends_with("\r\n\r\n") {
            let read = self.stream.read_line(&mut text).await.unwrap();
            assert_ne!(read, 0, "closed within a head: {text:?}");
        }
        let mut lines = text.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| line.split_once(": ").unwrap());
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Reply { status, headers, body: String::new() }
    }

    /// Reads an answer.
    pub(crate) async fn receive(&mut self) -> Reply {
        let mut reply = self.head().await;
        let length = reply.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        let _read = timeout(PATIENCE, self.stream.read_exact(&mut body)).await.unwrap().unwrap();
        reply.body = String::from_utf8(body).unwrap();
        reply
    }

    /// Waits until the server closes the connection; what it still says is thrown away.
    pub(crate) async fn closed(&mut self) {
        assert!(self.is_closed_within(PATIENCE).await, "the server keeps the connection");
    }

    pub(crate) async fn is_closed_within(&mut self, time: Duration) -> bool {
        let mut rest = Vec::new();
        timeout(time, self.stream.read_to_end(&mut rest)).await.is_ok()
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    /// Returns a header's value, which may come once only.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "`{name}` comes twice: {self:?}");
        value
    }

    /// Returns the names of all headers but those of HTTP itself, sorted.
    pub(crate) fn names(&self) -> Vec<&str> {
        let own = ["date", "content-length"];
        let mut names: Vec<_> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        names.retain(|name| !own.contains(name));
        names.sort_unstable();
        names
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts that this is a problem with that status, and returns its detail.
    pub(crate) fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        assert_eq!(self.header("cache-control"), Some("no-store"), "{self:?}");
        let json = self.json();
        assert_eq!(json["status"], status);
        json["detail"].as_str().unwrap().to_owned()
    }
}
