//! New connections to the upstream.

use std::{fmt, io, sync::Arc, time::Duration};

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName},
    },
};

use super::{outgoing::Outgoing, upstream::Upstream};

/// The most bytes of an upstream's answer that are read before the client has taken those before them; a head fits in.
const READ_AHEAD_BYTES_MAX: usize = 64 * 1024;

/// How often a connection of HTTP/2 that has streams is asked whether it still lives, and how long it may take to answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Whose certificates an upstream's may be signed by.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Roots {
    /// Those that the machine trusts.
    #[default]
    Native,
    /// These, in DER, and no other.
    Only(Vec<Vec<u8>>),
}

/// Why an upstream cannot be spoken to over TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// There is no root certificate to judge by. Install the system's package of them, or name one.
    #[error("no root certificate is found to judge the upstream's by")]
    NoRoots,
    /// A certificate cannot be read, or the host has a name that no certificate can have.
    #[error("TLS to the upstream cannot be set up")]
    Setup(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Which version of HTTP is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Http1,
    Http2,
    /// What the upstream prefers, if it can be asked.
    Either,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum ConnectError {
    Timeout,
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// A connection's sending half.
#[derive(Debug)]
pub(super) enum Opened {
    One(http1::SendRequest<Outgoing>),
    Many(http2::SendRequest<Outgoing>),
}

/// Opens connections to one upstream.
pub(super) struct Connector {
    host: String,
    port: u16,
    timeout: Duration,
    tls: Option<Tls>,
}

struct Tls {
    name: ServerName<'static>,
    either: Arc<ClientConfig>,
    http1: Arc<ClientConfig>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connector({}:{})", self.host, self.port)
    }
}

impl Connector {
    pub(super) fn new(
        upstream: &Upstream,
        roots: &Roots,
        timeout: Duration,
    ) -> Result<Self, TlsError> {
        let tls = if upstream.tls { Some(Tls::new(&upstream.host, roots)?) } else { None };
        Ok(Self { host: upstream.host.clone(), port: upstream.port, timeout, tls })
    }

    /// Opens a connection, TLS and all, within the time that the options allow.
    pub(super) async fn open(&self, wanted: Wanted) -> Result<Opened, ConnectError> {
        match timeout(self.timeout, self.dial(wanted)).await {
            Ok(opened) => opened.map_err(ConnectError::Failed),
            Err(_elapsed) => Err(ConnectError::Timeout),
        }
    }

    async fn dial(
        &self,
        wanted: Wanted,
    ) -> Result<Opened, Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            return Ok(handshake(stream, wanted == Wanted::Http2).await?);
        };
        let config = if wanted == Wanted::Http1 { &tls.http1 } else { &tls.either };
        let stream =
            TlsConnector::from(Arc::clone(config)).connect(tls.name.clone(), stream).await?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        if wanted == Wanted::Http2 && !http2 {
            return Err(io::Error::other("the upstream does not speak HTTP/2").into());
        }
        Ok(handshake(stream, http2).await?)
    }
}

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    http2: bool,
) -> hyper::Result<Opened> {
    let socket = TokioIo::new(stream);
    // How a connection ends is told to those whose requests it carries.
    if http2 {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_INTERVAL)
            .handshake(socket)
            .await?;
        let _running = tokio::spawn(connection);
        return Ok(Opened::Many(sender));
    }
    let mut client = http1::Builder::new();
    // What an upstream sends ahead of a client that does not read is held here: by default it is several times as much.
    client.max_buf_size(READ_AHEAD_BYTES_MAX);
    let (sender, connection) = client.handshake(socket).await?;
    let _running = tokio::spawn(connection.with_upgrades());
    Ok(Opened::One(sender))
}

impl Tls {
    fn new(host: &str, roots: &Roots) -> Result<Self, TlsError> {
        let name = ServerName::try_from(host.to_owned()).map_err(setup)?;
        let base = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(setup)?
            .with_root_certificates(store(roots)?)
            .with_no_client_auth();
        let speaking = |protocols: &[&[u8]]| {
            let mut config = base.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            Arc::new(config)
        };
        Ok(Self { name, either: speaking(&[b"h2", b"http/1.1"]), http1: speaking(&[b"http/1.1"]) })
    }
}

fn store(roots: &Roots) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    match roots {
        Roots::Native => {
            // One that cannot be read is left out: the rest may do.
            let found = rustls_native_certs::load_native_certs().certs;
            let _counts = store.add_parsable_certificates(found);
        }
        Roots::Only(certificates) => {
            for certificate in certificates {
                store.add(CertificateDer::from(certificate.clone())).map_err(setup)?;
            }
        }
    }
    if store.is_empty() { Err(TlsError::NoRoots) } else { Ok(store) }
}

fn setup(error: impl std::error::Error + Send + Sync + 'static) -> TlsError {
    TlsError::Setup(Box::new(error))
}
