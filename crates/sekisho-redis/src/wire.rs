//! The bytes between us and one server: dialled, written as they are taken, read as replies.

mod frame;

use std::{
    future::poll_fn,
    io,
    path::PathBuf,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::BytesMut;
use redis_protocol::resp2::{decode::decode_bytes_mut, types::BytesFrame as Frame};
use sekisho::Host;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, pki_types::ServerName},
};

/// How many bytes are read at once.
const READ_BYTES: usize = 16 * 1024;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Host(Host),
    Socket(PathBuf),
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// An open connection. What is to be written waits in `out`.
pub(crate) struct Wire {
    stream: Box<dyn Duplex>,
    pub(crate) out: Vec<u8>,
    written: usize,
    flushed: bool,
    input: BytesMut,
}

impl Wire {
    /// Opens a connection, over TLS when it is told how.
    pub(crate) async fn dial(place: &Place, tls: Option<&Arc<ClientConfig>>) -> io::Result<Self> {
        let stream: Box<dyn Duplex> = match (place, tls) {
            (Place::Socket(path), _) => Box::new(UnixStream::connect(path).await?),
            (Place::Host(host), tls) => {
                let stream = TcpStream::connect((host.name.as_str(), host.port)).await?;
                // A call is written whole, and somebody waits for it.
                stream.set_nodelay(true)?;
                match tls {
                    None => Box::new(stream),
                    Some(config) => {
                        let name = ServerName::try_from(host.name.clone())
                            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
                        let connector = TlsConnector::from(Arc::clone(config));
                        Box::new(connector.connect(name, stream).await?)
                    }
                }
            }
        };
        Ok(Self { stream, out: Vec::new(), written: 0, flushed: true, input: BytesMut::new() })
    }

    /// Returns the next reply, and writes all the while. May be dropped and called again: nothing is lost.
    pub(crate) async fn reply(&mut self) -> io::Result<Frame> {
        loop {
            if let Some(frame) = self.read_already()? {
                return Ok(frame);
            }
            poll_fn(|context| self.poll(context)).await?;
        }
    }

    /// Returns a reply that has been read already.
    pub(crate) fn read_already(&mut self) -> io::Result<Option<Frame>> {
        match frame::whole(&self.input) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(what) => {
                let message = format!("it does not speak the Redis protocol: {what}");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
        match decode_bytes_mut(&mut self.input) {
            Ok(Some((frame, ..))) => Ok(Some(frame)),
            Ok(None) => Ok(None),
            Err(error) => {
                let message = format!("it does not speak the Redis protocol: {}", error.details());
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
        }
    }

    /// Writes what can be written, and is ready when something was read.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.input.reserve(READ_BYTES);
        if let Poll::Ready(Err(error)) = self.poll_write_out(context) {
            return Poll::Ready(Err(error));
        }
        let mut reading = pin!(self.stream.read_buf(&mut self.input));
        match ready!(reading.as_mut().poll(context))? {
            0 => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "it closed the connection",
            ))),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_write_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let rest = &self.out[self.written..];
            let taken = ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
            if taken == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += taken;
            self.flushed = false;
        }
        self.out.clear();
        self.written = 0;
        if !self.flushed {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.flushed = true;
        }
        Poll::Ready(Ok(()))
    }
}
