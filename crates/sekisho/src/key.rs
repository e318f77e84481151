//! Who is counted: parts, encoded so that nothing collides.
//!
//! A key is text that can be read and stored anywhere: `ip=203.0.113.9`, `header.x-api-key=#5f0c…,ip=203.0.113.9`. Whatever
//! could be mistaken for the encoding (`,`, `=`, `#`, `:`, `%`, braces, control and non-ASCII bytes) is written as `%XX`, so the
//! keys of ("a:b", "c"), ("a", "b:c"), ("a", ""), ("", "a") all differ, and no client's text can choose a Redis slot.

use std::{fmt, net::IpAddr, sync::Arc};

use crate::digest::Seed;

/// The longest key that is kept as it is, in bytes; a longer one becomes a digest.
pub const KEY_BYTES_MAX: usize = 256;

/// Who is counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    // Invariant: printable ASCII, at most KEY_BYTES_MAX bytes.
    // Shared, since each limit of a request has the key.
    text: Arc<str>,
}

impl Key {
    /// Returns a key of one plain part, as a caller names it.
    ///
    /// ```
    /// use sekisho::{Key, Seed};
    ///
    /// let seed = Seed::random();
    /// assert_eq!(Key::plain(b"alice", &seed).as_str(), "=alice");
    /// assert_eq!(Key::plain(b"a:b{c}", &seed).as_str(), "=a%3Ab%7Bc%7D");
    /// ```
    pub fn plain(part: &[u8], seed: &Seed) -> Self {
        let mut builder = KeyBuilder::new();
        builder.part("", part);
        builder.build(seed)
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the key as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.text)
    }
}

/// Puts a key together, part by part.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyBuilder {
    text: String,
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

impl KeyBuilder {
    pub(crate) fn new() -> Self {
        Self { text: String::with_capacity(48) }
    }

    /// Adds a part that may be read by anybody.
    pub(crate) fn part(&mut self, name: &str, value: &[u8]) {
        self.name(name);
        self.escaped(value);
    }

    /// Adds a part that nobody may read: its digest is kept.
    pub(crate) fn secret(&mut self, name: &str, value: &[u8], seed: &Seed) {
        self.name(name);
        self.digest(seed.conceal(value));
    }

    /// Adds an address of which the first `prefix` bits count.
    pub(crate) fn address(&mut self, name: &str, address: IpAddr, prefix: u8) {
        use fmt::Write as _;
        self.name(name);
        let masked = mask(address, prefix);
        // Written to a string, which never fails; colons are the encoding's, so an IPv6 address is escaped.
        match masked {
            IpAddr::V4(v4) => {
                let _never = write!(self.text, "{v4}");
            }
            IpAddr::V6(v6) => self.escaped(v6.to_string().as_bytes()),
        }
    }

    pub(crate) fn build(mut self, seed: &Seed) -> Key {
        if self.text.len() > KEY_BYTES_MAX {
            let digest = seed.conceal(self.text.as_bytes());
            self.text.clear();
            self.text.push_str("long=");
            self.digest(digest);
        }
        Key { text: self.text.into() }
    }

    fn name(&mut self, name: &str) {
        if !self.text.is_empty() {
            self.text.push(',');
        }
        self.escaped(name.as_bytes());
        self.text.push('=');
    }

    fn digest(&mut self, digest: u128) {
        use fmt::Write as _;
        let _never = write!(self.text, "#{digest:032x}");
    }

    fn escaped(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let plain = byte.is_ascii_graphic() && !b",=#:%{}".contains(byte);
            if plain {
                self.text.push(char::from(*byte));
            } else {
                self.text.push('%');
                for nibble in [byte >> 4, byte & 15] {
                    self.text.push(char::from(HEX[usize::from(nibble)]));
                }
            }
        }
    }
}

/// Returns the address with all but its first `prefix` bits cleared. An IPv4 address mapped into IPv6 is unmapped first,
/// or every IPv4 client would land in `::/64`.
pub fn mask(address: IpAddr, prefix: u8) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let keep = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
            IpAddr::V4((u32::from(v4) & keep).into())
        }
        IpAddr::V6(v6) => {
            let keep = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
            IpAddr::V6((u128::from(v6) & keep).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn key(parts: &[&[u8]]) -> Key {
        let mut builder = KeyBuilder::new();
        for part in parts {
            builder.part("p", part);
        }
        builder.build(&Seed::from_bytes([7; 16]))
    }

    #[test]
    fn parts_never_collide() {
        let parts: [&[&[u8]]; 10] = [
            &[b"a:b", b"c"],
            &[b"a", b"b:c"],
            &[b"ab", b"c"],
            &[b"a", b"bc"],
            &[b"a", b""],
            &[b"", b"a"],
            &[b"a", b"b"],
            &[b"a", b"b", b""],
            &[b"a,p=b"],
            &[b"a%2C", b"b"],
        ];
        let keys: BTreeSet<_> = parts.iter().map(|parts| key(parts)).collect();
        assert_eq!(keys.len(), parts.len(), "{keys:?}");
    }

    #[test]
    fn odd_bytes_and_long_keys_stay_apart_and_bounded() {
        let long = vec![b'x'; 10_000];
        let mut longer = long.clone();
        longer.push(b'y');
        let odd: [&[u8]; 10] =
            [b"", b" ", b"\r\n", b"\0", b"\xff", "用户".as_bytes(), b"{", b"}{", &long, &longer];
        let keys: BTreeSet<_> = odd.iter().map(|part| key(&[part])).collect();
        assert_eq!(keys.len(), odd.len(), "{keys:?}");
        for key in keys {
            assert!(
                key.as_str().len() <= KEY_BYTES_MAX
                    && key.as_str().bytes().all(|b| b.is_ascii_graphic())
            );
        }
    }

    #[test]
    fn addresses_are_unmapped_before_they_are_masked() {
        let masked = |text: &str, prefix| mask(text.parse().unwrap(), prefix).to_string();
        assert_eq!(masked("2001:DB8:1:2:0:0:0:1", 64), "2001:db8:1:2::");
        assert_eq!(masked("2001:db8:1:2::ffff", 64), "2001:db8:1:2::");
        assert_eq!(masked("::ffff:192.0.2.1", 64), "192.0.2.1");
        assert_eq!(masked("192.0.2.77", 24), "192.0.2.0");
        assert_eq!(masked("192.0.2.77", 0), "0.0.0.0");
        assert_eq!(masked("2001:db8::1", 128), "2001:db8::1");
    }
}
