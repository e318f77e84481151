//! From a text to an address.

use std::{net::Ipv6Addr, str::FromStr};

use percent_encoding::percent_decode_str;

use super::{
    Host, STORE_ADDRESS_BYTES_MAX, STORE_HOSTS_MAX, StoreAddress, StoreAddressError as Error,
    Topology,
};
use crate::policy::address::SOCKET_PATH_BYTES_MAX;

/// Where a Redis listens that is told nothing.
const PORT: u16 = 6_379;
/// Where a sentinel does.
const SENTINEL_PORT: u16 = 26_379;
/// The longest name of a host, as in the DNS.
const HOST_BYTES_MAX: usize = 253;
/// The longest name of a master.
const MASTER_BYTES_MAX: usize = 128;

impl FromStr for StoreAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.len() > STORE_ADDRESS_BYTES_MAX {
            return Err(Error::Long);
        }
        let (scheme, rest) = text.split_once("://").ok_or(Error::Scheme)?;
        if scheme.starts_with("valkey") {
            return Err(Error::Valkey);
        }
        if rest.contains(|letter: char| letter.is_control() || letter.is_whitespace()) {
            return Err(Error::Blank);
        }
        if scheme == "redis+unix" {
            return socket(rest);
        }
        let (tls, kind) = match scheme.strip_prefix("rediss") {
            Some(kind) => (true, kind),
            None => (false, scheme.strip_prefix("redis").ok_or(Error::Scheme)?),
        };
        let port = match kind {
            "" | "-cluster" => PORT,
            "-sentinel" => SENTINEL_PORT,
            _ => return Err(Error::Scheme),
        };
        if rest.contains(['?', '#']) {
            return Err(Error::Query);
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, password, hosts) = credentials(authority, path)?;
        let hosts = parse_hosts(hosts, port)?;
        let (topology, database) = match kind {
            "" if hosts.len() > 1 => return Err(Error::Hosts),
            "" => (Topology::Single, parse_database(path)?),
            "-cluster" if parse_database(path)? > 0 => return Err(Error::ClusterDatabase),
            "-cluster" => (Topology::Cluster, 0),
            _ => {
                let (master, database) = path.split_once('/').unwrap_or((path, ""));
                (Topology::Sentinel { master: parse_master(master)? }, parse_database(database)?)
            }
        };
        Ok(Self { topology, hosts, tls, user, password, database })
    }
}

/// Divides the user and the password from the hosts.
fn credentials<'a>(
    authority: &'a str,
    path: &str,
) -> Result<(Option<String>, Option<String>, &'a str), Error> {
    // An `@` behind the first slash is a password's that holds a slash.
    if path.contains('@') {
        return Err(Error::Credentials);
    }
    let Some((before, hosts)) = authority.split_once('@') else {
        return Ok((None, None, authority));
    };
    let (user, password) = before.split_once(':').unwrap_or((before, ""));
    if hosts.contains('@') || password.contains(':') {
        return Err(Error::Credentials);
    }
    Ok((decode(user)?, decode(password)?, hosts))
}

/// Returns what a text with `%XX` in it stands for; nothing when it is empty.
fn decode(text: &str) -> Result<Option<String>, Error> {
    let mut pieces = text.split('%');
    let _before = pieces.next();
    let is_escape = |piece: &str| {
        piece.len() >= 2 && piece.bytes().take(2).all(|digit| digit.is_ascii_hexdigit())
    };
    if !pieces.all(is_escape) {
        return Err(Error::Percent);
    }
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| Error::Percent)?;
    Ok((!decoded.is_empty()).then(|| decoded.into_owned()))
}

fn parse_hosts(text: &str, port: u16) -> Result<Vec<Host>, Error> {
    let mut hosts = Vec::new();
    for (index, text) in text.split(',').enumerate() {
        if index == STORE_HOSTS_MAX {
            return Err(Error::ManyHosts);
        }
        let host = parse_host(text, index + 1, port)?;
        if hosts.contains(&host) {
            return Err(Error::SameHost(index + 1));
        }
        hosts.push(host);
    }
    Ok(hosts)
}

/// Reads the host that stands at `place`, counted from 1.
fn parse_host(text: &str, place: usize, default: u16) -> Result<Host, Error> {
    let (name, port) = if let Some(rest) = text.strip_prefix('[') {
        let (address, port) = rest.split_once(']').ok_or(Error::BadHost(place))?;
        let address: Ipv6Addr = address.parse().map_err(|_| Error::BadHost(place))?;
        let port = match port {
            "" => None,
            _ => Some(port.strip_prefix(':').ok_or(Error::BadHost(place))?),
        };
        (address.to_string(), port)
    } else {
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        };
        // A second colon is an IPv6 address without its brackets.
        if port.is_some_and(|port| port.contains(':')) {
            return Err(Error::BadHost(place));
        }
        (name.to_ascii_lowercase(), port)
    };
    if name.is_empty() {
        return Err(Error::NoHost(place));
    }
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if name.len() > HOST_BYTES_MAX || !name.bytes().all(is_letter) {
        return Err(Error::BadHost(place));
    }
    let port = match port {
        None => default,
        Some(port) => {
            let port = number(port).and_then(|port| u16::try_from(port).ok());
            port.filter(|port| *port > 0).ok_or(Error::Port(place))?
        }
    };
    Ok(Host { name, port })
}

/// Reads digits alone: no sign, no blank, nothing else.
fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn parse_database(text: &str) -> Result<u32, Error> {
    if text.is_empty() { Ok(0) } else { number(text).ok_or(Error::Database) }
}

/// Reads the name of a master: sentinels allow no other characters.
fn parse_master(text: &str) -> Result<String, Error> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let fits = (1..=MASTER_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_letter);
    fits.then(|| text.to_owned()).ok_or(Error::Master)
}

fn socket(rest: &str) -> Result<StoreAddress, Error> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    if path.contains('#') || query.contains('#') {
        return Err(Error::Query);
    }
    let path = decode(path)?.unwrap_or_default();
    let is_file = path.starts_with('/') && !path.ends_with('/');
    if !is_file || path.len() > SOCKET_PATH_BYTES_MAX || path.contains('\0') {
        return Err(Error::Path);
    }
    let mut address = StoreAddress {
        topology: Topology::Unix(path.into()),
        hosts: Vec::new(),
        tls: false,
        user: None,
        password: None,
        database: 0,
    };
    let mut seen = Vec::new();
    for pair in query.split('&').filter(|_| !query.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(Error::Query)?;
        if seen.contains(&name) {
            return Err(Error::Query);
        }
        seen.push(name);
        match name {
            "db" => address.database = number(value).ok_or(Error::Database)?,
            "user" => address.user = decode(value)?,
            "password" => address.password = decode(value)?,
            _ => return Err(Error::Query),
        }
    }
    Ok(address)
}
