//! A gateway of a test's own, upstreams that do as they are told, and a client that says exactly what it is told to.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, client::conn::http2, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use sekisho::{Clock, FakeClock, Limiter, PolicySet, SystemClock, Timestamp};
use sekisho_server::door::gateway::{
    AccessLog, Gateway, GatewayOptions, Proxy, ProxyOptions, gate,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

/// Longer than anything here takes: a test that waits for this has found a fault.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Lets everybody through.
pub(crate) const OPEN: &str =
    "[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"1000000/s\"]\n";

/// What a gateway is made of.
pub(crate) struct Setup {
    pub(crate) policies: String,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) log: Option<AccessLog>,
    pub(crate) proxy: ProxyOptions,
    pub(crate) gateway: GatewayOptions,
}

impl Setup {
    /// An open gateway to that upstream, on a clock that stands still.
    pub(crate) fn to(upstream: impl std::fmt::Display) -> Self {
        let to = upstream.to_string();
        let to = if to.contains("://") { to } else { format!("http://{to}") };
        Self {
            policies: OPEN.to_owned(),
            clock: Arc::new(FakeClock::at(Timestamp::from_secs(1_700_000_000))),
            log: None,
            proxy: ProxyOptions::new(to.parse().unwrap()),
            gateway: GatewayOptions::new(([127, 0, 0, 1], 0)),
        }
    }

    pub(crate) fn limits(mut self, limits: &str) -> Self {
        self.policies =
            format!("[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"{limits}\"]\n");
        self
    }

    pub(crate) fn real_time(mut self) -> Self {
        self.clock = Arc::new(SystemClock::new());
        self
    }

    pub(crate) async fn start(self) -> Running {
        let policies = PolicySet::parse(&self.policies).unwrap();
        let limiter = Arc::new(Limiter::with_clock(policies, self.clock));
        let layer = gate(limiter, self.log);
        let proxy = Proxy::new(self.proxy).unwrap();
        let gateway = Gateway::bind(self.gateway, &layer, proxy).await.unwrap();
        let at = gateway.address().tcp().unwrap();
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(gateway.run(async {
            let _told = stopped.await;
        }));
        Running { at, stop: Some(stop), ended }
    }
}

/// A gateway that runs.
pub(crate) struct Running {
    pub(crate) at: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) ended: JoinHandle<()>,
}

impl Running {
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.at).await
    }

    /// Sends a head, without its last empty line, over a connection of its own.
    pub(crate) async fn ask(&self, head: &str) -> Reply {
        self.connect().await.ask(head).await
    }

    pub(crate) async fn get(&self, target: &str) -> Reply {
        self.ask(&get(target)).await
    }

    /// Returns a client of HTTP/2 without TLS.
    pub(crate) async fn http2<B>(&self) -> http2::SendRequest<B>
    where
        B: hyper::body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let socket = TokioIo::new(TcpStream::connect(self.at).await.unwrap());
        let (sender, connection) =
            http2::Builder::new(TokioExecutor::new()).handshake(socket).await.unwrap();
        let _running = tokio::spawn(connection);
        sender
    }
}

pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nhost: h.example\r\n")
}

/// Returns a socket of an upstream's.
pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Starts an upstream that speaks HTTP/1.1 and h2c.
pub(crate) async fn upstream<F, A, B>(answer: F) -> SocketAddr
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<B>> + Send + 'static,
    B: hyper::body::Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (socket, address) = listen().await;
    let _serving = tokio::spawn(async move {
        loop {
            let (stream, _) = socket.accept().await.unwrap();
            let answer = answer.clone();
            let service = service_fn(move |request| {
                let answering = answer(request);
                async { Ok::<_, Infallible>(answering.await) }
            });
            let _connection = tokio::spawn(async move {
                let server = auto::Builder::new(TokioExecutor::new());
                let _ended = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}

/// Starts an upstream that answers `ok` to everything, having read the body.
pub(crate) async fn ok() -> SocketAddr {
    upstream(|request: Request<Incoming>| async {
        let _read = request.into_body().collect().await;
        Response::new(Full::new(Bytes::from_static(b"ok")))
    })
    .await
}

/// Starts an upstream that does with each connection what `speak` says.
pub(crate) async fn speaking<F, A>(speak: F) -> SocketAddr
where
    F: Fn(Client) -> A + Send + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    let (socket, address) = listen().await;
    let _serving = tokio::spawn(async move {
        loop {
            let (stream, _) = socket.accept().await.unwrap();
            let _connection = tokio::spawn(speak(Client { stream: BufReader::new(stream) }));
        }
    });
    address
}

/// One side of a connection.
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

    pub(crate) async fn ask(&mut self, head: &str) -> Reply {
        self.send(format!("{head}\r\n")).await;
        self.receive().await
    }

    pub(crate) async fn get(&mut self, target: &str) -> Reply {
        self.ask(&get(target)).await
    }

    /// Reads a head: its first line and the others; `None` at the connection's end.
    pub(crate) async fn head(&mut self) -> Option<(String, Vec<(String, String)>)> {
        let mut text = String::new();
        while !text.ends_with("\r\n\r\n") {
            let reading = timeout(PATIENCE, self.stream.read_line(&mut text)).await;
            if reading.expect("a head in time").unwrap_or(0) == 0 {
                return None;
            }
        }
        let mut lines = text.trim_end().split("\r\n");
        let first = lines.next().unwrap().to_owned();
        let headers = lines.map(|line| line.split_once(": ").unwrap());
        Some((first, headers.map(|(name, value)| (name.into(), value.into())).collect()))
    }

    /// Reads an answer with its body, by `Content-Length` or in chunks.
    pub(crate) async fn receive(&mut self) -> Reply {
        let (first, headers) = self.head().await.expect("an answer");
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let mut reply = Reply { status, headers, body: String::new() };
        if reply.header("transfer-encoding").is_some() {
            reply.body = self.chunks().await;
        } else {
            let length = reply.header("content-length").map_or(0, |text| text.parse().unwrap());
            reply.body = self.bytes(length).await;
        }
        reply
    }

    pub(crate) async fn bytes(&mut self, length: usize) -> String {
        let mut body = vec![0; length];
        let _read = timeout(PATIENCE, self.stream.read_exact(&mut body)).await.unwrap().unwrap();
        String::from_utf8(body).unwrap()
    }

    async fn chunks(&mut self) -> String {
        let mut body = String::new();
        loop {
            let mut line = String::new();
            let _read = timeout(PATIENCE, self.stream.read_line(&mut line)).await.unwrap().unwrap();
            let size = usize::from_str_radix(line.trim_end(), 16).unwrap();
            let chunk = self.bytes(size + 2).await;
            if size == 0 {
                return body;
            }
            body.push_str(&chunk[..size]);
        }
    }

    /// Reads until the connection ends, however it ends.
    pub(crate) async fn rest(&mut self) -> (Vec<u8>, std::io::Result<()>) {
        let mut rest = Vec::new();
        let reading = self.stream.read_to_end(&mut rest);
        let ended = timeout(PATIENCE, reading).await.expect("the connection is kept");
        (rest, ended.map(|_| ()))
    }

    /// Closes the connection with a reset.
    pub(crate) fn reset(self) {
        self.stream.get_ref().set_zero_linger().unwrap();
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
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

    /// Asserts that this is a problem with that status.
    pub(crate) fn is_problem(&self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
    }
}
