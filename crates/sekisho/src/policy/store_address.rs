//! Where a shared store is: one server, a socket, a cluster, or what sentinels watch over.
//!
//! The one parser of such addresses, so that a policy file, a program and the store itself read the same text alike. No error
//! and no text of an address ever shows a password, and none quotes what might be a part of one.

mod parse;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// The most hosts of one address. A cluster's are only where to begin to ask.
pub const STORE_HOSTS_MAX: usize = 64;
/// The longest address, in bytes.
pub const STORE_ADDRESS_BYTES_MAX: usize = 8_192;

/// Where a shared store is.
///
/// | text | what it is |
/// |---|---|
/// | `redis://[[user][:password]@]host[:6379][/database]` | one server |
/// | `rediss://…` | the same over TLS |
/// | `redis+unix:///path[?db=1&user=u&password=p]` | one server, through a unix socket |
/// | `redis-cluster://[…@]a[:6379],b,…`, `rediss-cluster://…` | a cluster, asked from these hosts on |
/// | `redis-sentinel://[…@]a[:26379],b,…/master[/database]`, `rediss-sentinel://…` | the server that sentinels call `master` |
///
/// User, password and path may have `%XX` in them, and must where a character has a meaning of its own (`:`, `@`, `/`, `?`,
/// `#`, `%`).
///
/// ```
/// use sekisho::{StoreAddress, Topology};
///
/// let address: StoreAddress = "redis://app:s%40crat@[::1]/2".parse()?;
/// assert_eq!(address.topology, Topology::Single);
/// assert_eq!((address.hosts[0].name.as_str(), address.hosts[0].port, address.database), ("::1", 6379, 2));
/// assert_eq!(address.password.as_deref(), Some("s@crat"));
/// assert_eq!(address.to_string(), "redis://app:***@[::1]:6379/2");
/// assert_eq!(address.authority(), "[::1]:6379/2");
/// # Ok::<(), sekisho::StoreAddressError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreAddress {
    /// How the servers stand together.
    pub topology: Topology,
    /// One for [`Topology::Single`], one or more for a cluster or sentinels, none for a socket; no two the same.
    pub hosts: Vec<Host>,
    /// Whether they are spoken to over TLS.
    pub tls: bool,
    /// As whom to log in, decoded.
    pub user: Option<String>,
    /// With which password, decoded.
    pub password: Option<String>,
    /// The number of the database; 0 on a cluster, which has no other.
    pub database: u32,
}

/// How the servers of an address stand together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One server.
    Single,
    /// One server, through a socket in the file system.
    Unix(PathBuf),
    /// A cluster.
    Cluster,
    /// The server that sentinels name at the moment.
    Sentinel {
        /// What the sentinels call it.
        master: String,
    },
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    /// A name in small letters or an address; an IPv6 address without its brackets.
    pub name: String,
    /// The port, never 0.
    pub port: u16,
}

/// Why a text is no address of a store. The text itself is not shown: a password may stand anywhere in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreAddressError {
    /// It does not begin with a scheme that is known.
    #[error(
        "the address of a store begins with `redis://`, `rediss://`, `redis+unix://`, `redis-cluster://`, `rediss-cluster://`, `redis-sentinel://` or `rediss-sentinel://`"
    )]
    Scheme,
    /// `valkey://`: the protocol is the same.
    #[error(
        "a Valkey is spoken to as a Redis: write `redis` instead of `valkey`, the rest as it is"
    )]
    Valkey,
    /// It is longer than [`STORE_ADDRESS_BYTES_MAX`].
    #[error("the address of a store has at most {STORE_ADDRESS_BYTES_MAX} bytes")]
    Long,
    /// A blank or a control character.
    #[error("the address of a store has no blanks and no control characters: write them as `%XX`")]
    Blank,
    /// A `%` without two hexadecimal digits, or bytes that are no UTF-8.
    #[error(
        "a `%` is followed by two hexadecimal digits, and what they stand for is UTF-8: a `%` itself is written `%25`"
    )]
    Percent,
    /// A second `@`.
    #[error(
        "in a user's name or a password `@` is written as `%40`, `:` as `%3A` and `/` as `%2F`"
    )]
    Credentials,
    /// A host is empty: two commas, a comma at the end, or nothing before the port.
    #[error("host {0} is empty")]
    NoHost(usize),
    /// A host is neither a name nor an address.
    #[error(
        "host {0} is no name and no address: an IPv6 address stands in brackets, like `[::1]:6379`"
    )]
    BadHost(usize),
    /// A port is no number from 1 to 65535.
    #[error("the port of host {0} is a number from 1 to 65535")]
    Port(usize),
    /// A host occurs twice.
    #[error("host {0} is named twice")]
    SameHost(usize),
    /// More than one host where there is one server.
    #[error(
        "one server has one host: several are written as `redis-cluster://…`, `redis-sentinel://…` or `shards = […]`"
    )]
    Hosts,
    /// More than [`STORE_HOSTS_MAX`].
    #[error("an address has at most {STORE_HOSTS_MAX} hosts")]
    ManyHosts,
    /// What follows the hosts is no number.
    #[error("a database is a whole number, like `/2` behind the host")]
    Database,
    /// A cluster with another database than 0.
    #[error("a cluster has only database 0: leave the number out")]
    ClusterDatabase,
    /// Sentinels without the name of what they watch over.
    #[error(
        "sentinels are asked for a master by its name (letters, digits, `.`, `-`, `_`), as in `redis-sentinel://host/mymaster`"
    )]
    Master,
    /// A socket's path that is none.
    #[error(
        "a socket is a path from the root, as in `redis+unix:///run/redis.sock`, of at most {} bytes",
        super::address::SOCKET_PATH_BYTES_MAX
    )]
    Path,
    /// A query on anything but a socket, or one that says something unknown, or the same twice.
    #[error(
        "only a socket's address has a query, of `db`, `user` and `password`, each at most once"
    )]
    Query,
}

/// What is written as `%XX` in an address.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'+')
    .add(b':')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'@');
/// The same for a path, in which slashes divide.
const ESCAPED_PATH: &AsciiSet = &ESCAPED.remove(b'/').remove(b':').remove(b'@');

impl StoreAddress {
    /// Returns which servers and database this is, without how to get in: the same text however often a password changes.
    /// What is spread over several servers is spread by it.
    pub fn authority(&self) -> String {
        let database = self.database;
        match &self.topology {
            Topology::Single => format!("{}/{database}", Hosts(&self.hosts)),
            Topology::Unix(path) => format!("unix:{}/{database}", path.display()),
            Topology::Cluster => format!("cluster:{}", Hosts(&self.hosts)),
            Topology::Sentinel { master } => {
                format!("sentinel:{}/{master}/{database}", Hosts(&self.hosts))
            }
        }
    }

    /// Returns whether this is one server, whose keys are all in one place: what counts can be spread over.
    pub const fn is_one_server(&self) -> bool {
        matches!(self.topology, Topology::Single | Topology::Unix(_))
    }

    const fn scheme(&self) -> &'static str {
        match (&self.topology, self.tls) {
            (Topology::Single, false) => "redis",
            (Topology::Single, true) => "rediss",
            (Topology::Unix(_), _) => "redis+unix",
            (Topology::Cluster, false) => "redis-cluster",
            (Topology::Cluster, true) => "rediss-cluster",
            (Topology::Sentinel { .. }, false) => "redis-sentinel",
            (Topology::Sentinel { .. }, true) => "rediss-sentinel",
        }
    }

    fn fmt_socket(&self, path: &Path, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = path.to_string_lossy();
        write!(f, "{}", utf8_percent_encode(&path, ESCAPED_PATH))?;
        let database = (self.database > 0).then(|| format!("db={}", self.database));
        let user = self.user.as_deref().map(|user| utf8_percent_encode(user, ESCAPED));
        let user = user.map(|user| format!("user={user}"));
        let password = self.password.as_ref().map(|_| "password=***".to_owned());
        let query: Vec<_> = [database, user, password].into_iter().flatten().collect();
        if query.is_empty() { Ok(()) } else { write!(f, "?{}", query.join("&")) }
    }
}

/// The one form of an address, with every port, and without the password.
impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme())?;
        if let Topology::Unix(path) = &self.topology {
            return self.fmt_socket(path, f);
        }
        if let Some(user) = &self.user {
            write!(f, "{}", utf8_percent_encode(user, ESCAPED))?;
        }
        if self.password.is_some() {
            f.write_str(":***")?;
        }
        if self.user.is_some() || self.password.is_some() {
            f.write_str("@")?;
        }
        write!(f, "{}", Hosts(&self.hosts))?;
        if let Topology::Sentinel { master } = &self.topology {
            write!(f, "/{master}")?;
        }
        if self.database > 0 { write!(f, "/{}", self.database) } else { Ok(()) }
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreAddress({self})")
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, port } = self;
        if name.contains(':') { write!(f, "[{name}]:{port}") } else { write!(f, "{name}:{port}") }
    }
}

struct Hosts<'a>(&'a [Host]);

impl fmt::Display for Hosts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, host) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{host}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
