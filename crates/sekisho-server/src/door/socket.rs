//! The sockets that doors listen on and the streams that they hand out: TCP, or a unix socket.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use sekisho::ListenAddress;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    time::timeout,
};

/// How long is waited for whoever may listen at a path that is taken.
const KNOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// A socket that listens.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpListener),
    Unix(UnixSocket),
}

/// A unix socket, whose file goes with it.
#[derive(Debug)]
pub(crate) struct UnixSocket {
    listener: UnixListener,
    _file: SocketFile,
}

impl Socket {
    /// Opens a socket, and says where: the system chooses a port for port 0.
    pub(crate) async fn bind(address: &ListenAddress) -> io::Result<(Self, ListenAddress)> {
        match address {
            ListenAddress::Tcp(address) => {
                let socket = TcpListener::bind(address).await?;
                let bound = socket.local_addr()?.into();
                Ok((Self::Tcp(socket), bound))
            }
            ListenAddress::Unix(path) => {
                let listener = match UnixListener::bind(path) {
                    Err(error)
                        if error.kind() == io::ErrorKind::AddrInUse && is_stale(path).await =>
                    {
                        fs::remove_file(path)?;
                        UnixListener::bind(path)?
                    }
                    bound => bound?,
                };
                let socket = UnixSocket { listener, _file: SocketFile::of(path)? };
                Ok((Self::Unix(socket), address.clone()))
            }
        }
    }

    /// Waits for the next connection, and says who made it, if that is known.
    pub(crate) async fn accept(&self) -> io::Result<(Stream, Option<SocketAddr>)> {
        match self {
            Self::Tcp(socket) => {
                let (stream, peer) = socket.accept().await?;
                Ok((Stream::new(Kind::Tcp(stream)), Some(peer)))
            }
            Self::Unix(socket) => {
                let (stream, _) = socket.listener.accept().await?;
                Ok((Stream::new(Kind::Unix(stream)), None))
            }
        }
    }
}

/// Returns whether a socket's file is there, but nobody listens any more: its process ended without a goodbye. One that has
/// no room for another connection lives.
async fn is_stale(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket
        && timeout(KNOCK_TIMEOUT, UnixStream::connect(path))
            .await
            .is_ok_and(|knocked| knocked.err().is_some_and(refused))
}

/// The file of a unix socket: removed at the end, if it is still this socket's.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        let file = fs::symlink_metadata(path)?;
        Ok(Self { path: path.to_owned(), device: file.dev(), inode: file.ino() })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = |file: fs::Metadata| (file.dev(), file.ino()) == (self.device, self.inode);
        if fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            // What cannot be removed is found stale by the next server.
            let _removed = fs::remove_file(&self.path);
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Stream {
    /// What has been read of it already, and is read again first.
    again: Vec<u8>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    const fn new(kind: Kind) -> Self {
        Self { again: Vec::new(), kind }
    }

    /// Sends what is written at once: an answer is one packet, and does not wait for another.
    pub(crate) fn send_at_once(&self) -> io::Result<()> {
        match &self.kind {
            Kind::Tcp(stream) => stream.set_nodelay(true),
            Kind::Unix(_) => Ok(()),
        }
    }

    /// Puts back what has been read.
    pub(crate) fn put_back(&mut self, bytes: &[u8]) {
        self.again.splice(..0, bytes.iter().copied());
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.again.is_empty() {
            let fits = this.again.len().min(buffer.remaining());
            buffer.put_slice(&this.again[..fits]);
            drop(this.again.drain(..fits));
            return Poll::Ready(Ok(()));
        }
        match &mut this.kind {
            Kind::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Kind::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().kind {
            Kind::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Kind::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().kind {
            Kind::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Kind::Unix(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.kind {
            Kind::Tcp(stream) => stream.is_write_vectored(),
            Kind::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().kind {
            Kind::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Kind::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().kind {
            Kind::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Kind::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
