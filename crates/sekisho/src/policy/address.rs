//! Where a door listens: on an address of the network, or on a socket in the file system.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    str::FromStr,
};

/// The longest path of a unix socket, in bytes: what the system's own address has room for.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Where a door listens.
///
/// ```
/// use sekisho::ListenAddress;
///
/// let tcp: ListenAddress = "127.0.0.1:8080".parse()?;
/// assert_eq!(tcp.tcp(), Some(([127, 0, 0, 1], 8080).into()));
/// let unix: ListenAddress = "unix:/run/sekisho.sock".parse()?;
/// assert_eq!((unix.tcp(), unix.to_string()), (None, "unix:/run/sekisho.sock".to_owned()));
/// # Ok::<(), sekisho::ListenAddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address and port; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// The path of a unix socket, from the root. Who may connect is a matter of the file's mode and its folder's.
    Unix(PathBuf),
}

/// Not an address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an address to listen on is like `127.0.0.1:8080`, `[::1]:8080` or `unix:/run/sekisho.sock` (a path from the root, at most {SOCKET_PATH_BYTES_MAX} bytes)"
)]
pub struct ListenAddressError;

impl ListenAddress {
    /// Returns the network address; `None` for a unix socket.
    pub const fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// Returns whether only this machine can reach it.
    pub const fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Returns whether two doors cannot both have it: port 0 is another each time.
    pub(crate) fn collides(&self, other: &Self) -> bool {
        self == other && self.tcp().is_none_or(|address| address.port() != 0)
    }
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, ListenAddressError> {
        let Some(path) = text.strip_prefix("unix:") else {
            return text.parse().map(Self::Tcp).map_err(|_| ListenAddressError);
        };
        let fits = path.len() <= SOCKET_PATH_BYTES_MAX && !path.contains('\0');
        if fits && Path::new(path).is_absolute() && !path.ends_with('/') {
            Ok(Self::Unix(path.into()))
        } else {
            Err(ListenAddressError)
        }
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl<I: Into<IpAddr>> From<(I, u16)> for ListenAddress {
    fn from(pieces: (I, u16)) -> Self {
        Self::Tcp(pieces.into())
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "localhost:80",
            "127.0.0.1",
            ":80",
            "unix:",
            "unix:x.sock",
            "unix:/",
            "unix:/run/",
            "unix:/a\0b",
            "UNIX:/run/a",
            "/run/a",
        ] {
            assert_eq!(text.parse::<ListenAddress>(), Err(ListenAddressError), "{text:?}");
        }
        let long = format!("unix:/{}", "x".repeat(SOCKET_PATH_BYTES_MAX));
        assert!(long.parse::<ListenAddress>().is_err());
        assert!(long[..long.len() - 1].parse::<ListenAddress>().is_ok());
    }
}
