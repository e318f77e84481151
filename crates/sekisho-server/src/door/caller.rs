//! Who is at the other end of a connection: the peer, or whom a trusted proxy names in a PROXY protocol header.
//!
//! A listener whose clients' addresses come from that protocol reads a header, version 1 or 2, before anything else. From a
//! trusted peer it is required, since a receiver that guesses can be lied to; one that names nobody (`LOCAL`, `UNKNOWN`, a
//! unix socket's) leaves the peer. From any other peer it is read over and not believed.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use ppp::{v1, v2};
use sekisho::IdentitySettings;
use tokio::io::AsyncReadExt as _;

use super::socket::Stream;
use crate::limits::PROXY_HEADER_BYTES_MAX;

const V1_BEGIN: &[u8] = b"PROXY ";
const V2_BEGIN: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// A header of version 1 is one line of at most this many bytes.
const V1_BYTES_MAX: usize = 107;
/// The part of a header of version 2 that every one has; its last two bytes say how much follows.
const V2_BEGIN_BYTES: usize = 16;

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Whoever connects; nobody known on a unix socket.
    pub(crate) peer: Option<SocketAddr>,
    /// The client's end of the connection: the peer, or whom a trusted one names.
    pub(crate) client: Option<SocketAddr>,
    /// Whether a peer that is not trusted named somebody.
    pub(crate) unbelieved: bool,
}

impl Caller {
    pub(crate) const fn peer(peer: Option<SocketAddr>) -> Self {
        Self { peer, client: peer, unbelieved: false }
    }

    /// Returns the address of whoever connects.
    pub(crate) fn peer_ip(&self) -> Option<IpAddr> {
        self.peer.map(|peer| peer.ip())
    }

    /// Returns the client's address, as far as the connection tells.
    pub(crate) fn client_ip(&self) -> Option<IpAddr> {
        self.client.map(|client| client.ip())
    }

    /// Reads the header that a connection begins with.
    ///
    /// # Errors
    /// When there is none though there must be, or what is there is wrong: nobody knows then whom the rest comes from.
    pub(crate) async fn introduced(
        stream: &mut Stream,
        peer: Option<SocketAddr>,
        identity: &IdentitySettings,
    ) -> io::Result<Self> {
        let caller = Self::peer(peer);
        // Whoever reaches a unix socket is trusted: the file's mode says who that may be.
        if peer.is_none_or(|peer| identity.trusts(peer.ip())) {
            let named = read(stream).await?;
            return Ok(Self { client: named.or(peer), ..caller });
        }
        if !begins_with_header(stream).await? {
            return Ok(caller);
        }
        let _not_believed = read(stream).await?;
        Ok(Self { unbelieved: true, ..caller })
    }
}

/// Looks whether what a peer sends begins like a header, and leaves it there.
async fn begins_with_header(stream: &mut Stream) -> io::Result<bool> {
    let mut begin = Vec::with_capacity(V2_BEGIN.len());
    let begins = loop {
        let mut next = [0; V2_BEGIN.len()];
        let room = V2_BEGIN.len() - begin.len();
        let read = stream.read(&mut next[..room]).await?;
        begin.extend_from_slice(&next[..read]);
        let like = |whole: &[u8]| begin.starts_with(whole);
        let could_be = |whole: &[u8]| whole.starts_with(&begin);
        if like(V1_BEGIN) || like(V2_BEGIN) {
            break true;
        }
        if read == 0 || !could_be(V1_BEGIN) && !could_be(V2_BEGIN) {
            break false;
        }
    };
    stream.put_back(&begin);
    Ok(begins)
}

/// Reads a header and not a byte more, and returns whom it names.
async fn read(stream: &mut Stream) -> io::Result<Option<SocketAddr>> {
    let mut header = vec![0; V2_BEGIN.len()];
    let _read = stream.read_exact(&mut header).await?;
    if header == V2_BEGIN {
        header.resize(V2_BEGIN_BYTES, 0);
        let _read = stream.read_exact(&mut header[V2_BEGIN.len()..]).await?;
        let rest = usize::from(u16::from_be_bytes([header[14], header[15]]));
        if V2_BEGIN_BYTES + rest > PROXY_HEADER_BYTES_MAX {
            return Err(wrong("a header that is too long"));
        }
        header.resize(V2_BEGIN_BYTES + rest, 0);
        let _read = stream.read_exact(&mut header[V2_BEGIN_BYTES..]).await?;
        return named_by_v2(&header);
    }
    if !header.starts_with(V1_BEGIN) {
        return Err(wrong("no header"));
    }
    // Byte by byte: what follows the line is the client's first request.
    while !header.ends_with(b"\n") {
        if header.len() == V1_BYTES_MAX {
            return Err(wrong("a line that does not end"));
        }
        header.push(stream.read_u8().await?);
    }
    named_by_v1(&header)
}

fn named_by_v1(header: &[u8]) -> io::Result<Option<SocketAddr>> {
    let header = v1::Header::try_from(header).map_err(|_| wrong("a line that is no header"))?;
    Ok(match header.addresses {
        v1::Addresses::Unknown => None,
        v1::Addresses::Tcp4(of) => Some((of.source_address, of.source_port).into()),
        v1::Addresses::Tcp6(of) => Some((of.source_address, of.source_port).into()),
    })
}

fn named_by_v2(header: &[u8]) -> io::Result<Option<SocketAddr>> {
    let header = v2::Header::try_from(header).map_err(|_| wrong("bytes that are no header"))?;
    if header.command == v2::Command::Local {
        return Ok(None);
    }
    Ok(match header.addresses {
        v2::Addresses::Unspecified | v2::Addresses::Unix(_) => None,
        v2::Addresses::IPv4(of) => Some((of.source_address, of.source_port).into()),
        v2::Addresses::IPv6(of) => Some((of.source_address, of.source_port).into()),
    })
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
