//! Who is asking: the client's address, from the one source that the policy file names.
//!
//! A header counts only when a trusted proxy connects. Lists are walked from the right, over all lines together, past trusted
//! addresses, to the first that is not trusted: what a client wrote itself stands further left and is never reached. An entry
//! that is no address stops the walk, and the last good address stands.

use std::net::IpAddr;

use sekisho::{AddressSource, Headers, IdentitySettings};

/// A client's address, and whether somebody tried to say another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddr {
    /// The address; none on a unix socket where no header names one.
    pub address: Option<IpAddr>,
    /// Whether a peer that is not trusted sent the header that the address would come from. The gateway and the layer use the
    /// peer then; forward-auth cannot, since that would count a whole site under its proxy.
    pub unbelieved: bool,
}

/// Returns the client's address.
///
/// ```
/// use sekisho::{AddressSource, IdentitySettings};
/// use sekisho_http::client_addr;
///
/// let identity = IdentitySettings::new(AddressSource::XForwardedFor, vec!["10.0.0.0/8".parse()?]);
/// let headers = vec![("x-forwarded-for", "6.6.6.6, 203.0.113.9")];
///
/// let behind = client_addr(&identity, &AddressSource::XForwardedFor, Some("10.0.0.5".parse()?), &headers);
/// assert_eq!(behind.address, Some("203.0.113.9".parse()?));
/// let direct = client_addr(&identity, &AddressSource::XForwardedFor, Some("198.51.100.7".parse()?), &headers);
/// assert_eq!((direct.address, direct.unbelieved), (Some("198.51.100.7".parse()?), true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn client_addr(
    identity: &IdentitySettings,
    source: &AddressSource,
    peer: Option<IpAddr>,
    headers: &dyn Headers,
) -> ClientAddr {
    let peer = peer.map(|peer| peer.to_canonical());
    let itself = ClientAddr { address: peer, unbelieved: false };
    let name = match source {
        // Where the connection began is what the listener has put in the peer's place.
        AddressSource::Peer | AddressSource::ProxyProtocol => return itself,
        AddressSource::XForwardedFor => "x-forwarded-for",
        AddressSource::Forwarded => "forwarded",
        AddressSource::XRealIp => "x-real-ip",
        AddressSource::Header(name) => name,
    };
    let lines = lines(headers, name);
    if lines.is_empty() {
        return itself;
    }
    // Only the machine's own processes reach a unix socket; who may is a matter of the file's mode.
    if peer.is_some_and(|peer| !identity.trusts(peer)) {
        return ClientAddr { unbelieved: true, ..itself };
    }
    let address = match source {
        AddressSource::XForwardedFor => {
            let entries = lines.iter().rev().flat_map(|line| line.rsplit(','));
            walk(identity, peer, entries.map(|entry| parse_node(entry.trim())))
        }
        AddressSource::Forwarded => {
            let nodes: Vec<_> = lines.iter().flat_map(|line| elements(line)).collect();
            walk(identity, peer, nodes.into_iter().rev().map(|node| parse_node(&node)))
        }
        // One address: with several lines, one of them may be the client's own.
        _ => match lines.as_slice() {
            [line] => parse_node(line.trim()).or(peer),
            _ => peer,
        },
    };
    ClientAddr { address, unbelieved: false }
}

/// Walks from the nearest proxy towards the client.
fn walk(
    identity: &IdentitySettings,
    peer: Option<IpAddr>,
    entries: impl Iterator<Item = Option<IpAddr>>,
) -> Option<IpAddr> {
    let mut last = peer;
    for entry in entries {
        let Some(address) = entry else { return last };
        last = Some(address);
        if !identity.trusts(address) {
            return last;
        }
    }
    last
}

/// Returns the lines of a header. One that is no text has nothing in it that is an address.
fn lines(headers: &dyn Headers, name: &str) -> Vec<String> {
    let mut lines = Vec::new();
    headers.each(name, &mut |line| lines.push(std::str::from_utf8(line).unwrap_or("?").to_owned()));
    lines
}

/// Reads an address with or without a port, brackets and a zone.
fn parse_node(text: &str) -> Option<IpAddr> {
    let bare = |text: &str| {
        let without_zone = text.split('%').next().unwrap_or(text);
        without_zone.parse::<IpAddr>().ok().map(|address| address.to_canonical())
    };
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, after) = rest.split_once(']')?;
        let port = after.strip_prefix(':').map_or(after.is_empty(), is_port);
        return bare(inside).filter(|address| port && (address.is_ipv6() || inside.contains(':')));
    }
    match text.rsplit_once(':') {
        // One colon is a port's; an IPv6 address has more, and no port without brackets.
        Some((address, port)) if !address.contains(':') => {
            bare(address).filter(|address| address.is_ipv4() && is_port(port))
        }
        _ => bare(text),
    }
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the `for` of every element of a line of `Forwarded` (RFC 7239), in order; an element without one, or one that is
/// no element, has a text that is no address.
fn elements(line: &str) -> Vec<String> {
    let mut nodes = Vec::new();
    for element in split_outside_quotes(line, ',') {
        let node = split_outside_quotes(&element, ';').into_iter().find_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            name.trim().eq_ignore_ascii_case("for").then(|| unquoted(value.trim()))
        });
        nodes.push(node.unwrap_or_default());
    }
    nodes
}

fn split_outside_quotes(text: &str, separator: char) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let (mut quoted, mut escaped) = (false, false);
    for letter in text.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if letter == separator && !quoted => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(letter);
    }
    parts.push(part);
    parts
}

/// Takes the quotes off a quoted text. One that does not end, or has a backslash, is kept, and is no address.
fn unquoted(value: &str) -> String {
    let inside = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.unwrap_or(value).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(source: &AddressSource, peer: &str, lines: &[(&str, &str)]) -> (String, bool) {
        let trusted = ["10.0.0.0/8", "2001:db8:ffff::/48"].map(|block| block.parse().unwrap());
        let identity = IdentitySettings::new(source.clone(), trusted.into());
        let client = client_addr(&identity, source, Some(peer.parse().unwrap()), &lines);
        (client.address.unwrap().to_string(), client.unbelieved)
    }

    fn xff(peer: &str, lines: &[&str]) -> (String, bool) {
        let lines: Vec<_> = lines.iter().map(|line| ("x-forwarded-for", *line)).collect();
        seen(&AddressSource::XForwardedFor, peer, &lines)
    }

    fn believed(address: &str) -> (String, bool) {
        (address.to_owned(), false)
    }

    #[test]
    fn what_a_client_wrote_itself_is_never_reached() {
        for made_up in 0..1_000 {
            let line = format!("6.6.{}.{}, 203.0.113.9", made_up / 250, made_up % 250);
            assert_eq!(xff("10.0.0.5", &[&line]), believed("203.0.113.9"));
        }
        assert_eq!(xff("198.51.100.7", &["203.0.113.9"]), ("198.51.100.7".to_owned(), true));
        assert_eq!(
            xff("10.0.0.5", &["1.1.1.1, junk"]),
            believed("10.0.0.5"),
            "no walking past junk"
        );
        assert_eq!(xff("10.0.0.5", &["1.1.1.1, junk, 10.0.0.6"]), believed("10.0.0.6"));
        assert_eq!(xff("10.0.0.5", &["203.0.113.9, 10.0.0.8"]), believed("203.0.113.9"));
        assert_eq!(xff("10.0.0.5", &["10.0.0.7, 10.0.0.8"]), believed("10.0.0.7"), "all are ours");
        assert_eq!(xff("10.0.0.5", &[]), believed("10.0.0.5"));
        assert_eq!(xff("198.51.100.7", &[]), believed("198.51.100.7"));
    }

    #[test]
    fn several_lines_are_one_list() {
        assert_eq!(xff("10.0.0.5", &["6.6.6.6", "203.0.113.9"]), believed("203.0.113.9"));
        assert_eq!(
            xff("10.0.0.5", &["203.0.113.9", "10.0.0.1, 10.0.0.2"]),
            believed("203.0.113.9")
        );
        assert_eq!(
            xff("10.0.0.5", &["203.0.113.9, 10.0.0.1"]),
            xff("10.0.0.5", &["203.0.113.9, 10.0.0.2"])
        );
        assert_eq!(
            xff("10.0.0.5", &["203.0.113.9,"]),
            believed("10.0.0.5"),
            "an empty entry is no address"
        );
    }

    #[test]
    fn ports_brackets_zones_and_mapped_addresses() {
        for (entry, address) in [
            ("203.0.113.9:4711", "203.0.113.9"),
            ("[2001:DB8:1:2::1]:443", "2001:db8:1:2::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("[::ffff:192.0.2.1]:80", "192.0.2.1"),
            ("fe80::1%eth0", "fe80::1"),
        ] {
            assert_eq!(xff("10.0.0.5", &[entry]), believed(address), "{entry}");
        }
        for junk in [
            "203.0.113.9:x",
            "203.0.113.9:99999",
            "203.0.113.9:",
            "[2001:db8::1",
            "[::1]x",
            "[1.2.3.4]",
            "_hidden",
            "1.2.3",
            "203.0.113.9 ",
        ] {
            let expected = if junk.ends_with(' ') { "203.0.113.9" } else { "10.0.0.5" };
            assert_eq!(xff("10.0.0.5", &[junk]), believed(expected), "{junk}");
        }
        assert_eq!(xff("2001:db8:ffff::5", &["203.0.113.9"]), believed("203.0.113.9"));
        assert_eq!(
            xff("::ffff:10.0.0.5", &["203.0.113.9"]),
            believed("203.0.113.9"),
            "the peer is unmapped too"
        );
    }

    #[test]
    fn forwarded_is_read_as_its_rfc_says() {
        let forwarded = |lines: &[&str]| {
            let lines: Vec<_> = lines.iter().map(|line| ("forwarded", *line)).collect();
            seen(&AddressSource::Forwarded, "10.0.0.5", &lines).0
        };
        assert_eq!(forwarded(&["for=192.0.2.60;proto=http;by=203.0.113.43"]), "192.0.2.60");
        assert_eq!(forwarded(&["For=\"[2001:db8:cafe::17]:4711\""]), "2001:db8:cafe::17");
        assert_eq!(
            forwarded(&["for=6.6.6.6, for=192.0.2.43;host=\"a,b;for=1.1.1.1\""]),
            "192.0.2.43"
        );
        assert_eq!(forwarded(&["for=6.6.6.6", "for=192.0.2.43, for=10.0.0.9"]), "192.0.2.43");
        assert_eq!(forwarded(&["for=192.0.2.43, for=unknown"]), "10.0.0.5");
        assert_eq!(forwarded(&["for=192.0.2.43, proto=http"]), "10.0.0.5");
        assert_eq!(forwarded(&["for=\"192.0.2.43"]), "10.0.0.5");
        assert_eq!(forwarded(&["for=_secret, for=10.0.0.9"]), "10.0.0.9");
    }

    #[test]
    fn a_header_of_another_family_is_ignored() {
        let others = [("forwarded", "for=6.6.6.6"), ("x-real-ip", "6.6.6.6")];
        assert_eq!(seen(&AddressSource::XForwardedFor, "10.0.0.5", &others), believed("10.0.0.5"));
        let single = |lines: &[(&str, &str)]| {
            seen(&AddressSource::Header("cf-connecting-ip".to_owned()), "10.0.0.5", lines).0
        };
        assert_eq!(single(&[("cf-connecting-ip", "203.0.113.9")]), "203.0.113.9");
        assert_eq!(
            single(&[("cf-connecting-ip", "203.0.113.9"), ("cf-connecting-ip", "6.6.6.6")]),
            "10.0.0.5"
        );
        assert_eq!(single(&[("cf-connecting-ip", "203.0.113.9, 6.6.6.6")]), "10.0.0.5");
        assert_eq!(
            seen(&AddressSource::XRealIp, "10.0.0.5", &[("x-real-ip", "203.0.113.9")]),
            believed("203.0.113.9")
        );
        assert_eq!(
            seen(&AddressSource::Peer, "10.0.0.5", &[("x-forwarded-for", "6.6.6.6")]),
            believed("10.0.0.5")
        );
    }
}
