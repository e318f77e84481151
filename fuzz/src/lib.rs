//! What each fuzz target holds, and the one place that knows the product's functions.
//!
//! The targets themselves only pass bytes on. When a function below is renamed, this file changes
//! and nothing else does.

use std::{
    hash::Hasher as _,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, LazyLock},
};

use http::{HeaderMap, HeaderValue};
use sekisho::{
    AddressSource, AnswerSettings, CanonicalPath, Decision, Direct, FakeClock, IdentitySettings,
    Limiter, Memory, MemoryOptions, Mode, PolicySet, Restored, Seed, Snapshot, SnapshotFault,
    Timestamp,
};
use sekisho_core::Limit;
use sekisho_http::{client_addr, headers};
use sekisho_server::door::resp::parse::{Parsed, parse};
use siphasher::sip128::{Hasher128 as _, SipHasher24};

/// A limit's text reads back as the same limit and prints unchanged.
pub fn limit_text(text: &str) {
    let Ok(limit) = text.parse::<Limit>() else { return };
    let printed = limit.to_string();
    let again: Limit = match printed.parse() {
        Ok(again) => again,
        Err(error) => panic!("`{text}` reads, its print `{printed}` does not: {error}"),
    };
    assert_eq!(limit, again, "`{text}` and its print `{printed}` are two limits");
    assert_eq!(printed, again.to_string(), "the print of a print differs");
}

/// A policy file of any content is taken or refused, and never a panic.
pub fn policy_file(text: &str) {
    drop(sekisho::PolicySet::parse(text));
}

/// The address of a store of any text is taken or refused, prints without its password, and reads back as the same place.
pub fn store_address(text: &str) {
    let Ok(address) = text.parse::<sekisho::StoreAddress>() else { return };
    let printed = address.to_string();
    let mut other = address.clone();
    if other.password.is_some() {
        other.password = Some("another".to_owned());
    }
    assert_eq!(printed, other.to_string(), "the password can be told from the print");
    // What is written as `%XX` is longer than it was.
    if printed.len() > sekisho::STORE_ADDRESS_BYTES_MAX {
        return;
    }
    let again: sekisho::StoreAddress = match printed.parse() {
        Ok(again) => again,
        Err(error) => panic!("`{printed}` does not read: {error}"),
    };
    assert_eq!(address.authority(), again.authority(), "`{printed}` is another place");
    assert_eq!((&address.user, address.tls), (&again.user, again.tls));
}

/// A check request of any bytes is taken or refused, and never a panic.
pub fn check_body(bytes: &[u8]) {
    drop(sekisho_server::door::check::parse_body(bytes));
}

/// A snapshot of any bytes is taken whole or refused. What is taken is written and taken again, and says the same then.
pub fn snapshot(bytes: &[u8]) {
    drop(restore(bytes));
    // An accident cannot have the right head and end, so they are made: what is behind them must be looked through as well.
    if let Some(whole) = sealed(bytes) {
        let Ok((store, keys, restored)) = restore(&whole) else { return };
        assert!(restored.entries * 33 <= whole.len() as u64, "more entries than fit");
        let held = store.occupancy().entries;
        assert!(held as u64 + restored.left_out <= restored.entries);
        let written = Snapshot::encode(&store, &keys).expect("memory takes all");
        let (again, _, restored) = restore(&written).expect("what is written can be read");
        assert_eq!((restored.entries, restored.left_out), (held as u64, 0));
        assert_eq!(again.occupancy().entries, held);
    }
}

fn restore(bytes: &[u8]) -> Result<(Memory, Seed, Restored), SnapshotFault> {
    let options = MemoryOptions { max_bytes: 16 << 20, ..MemoryOptions::default() };
    Snapshot::decode(bytes, options, Arc::new(FakeClock::at(Timestamp::from_secs(1_700_000_000))))
}

/// Returns a snapshot with the magic, the version, the length and the end that belong to what else the bytes are.
fn sealed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut whole = bytes.to_vec();
    let length = whole.len() as u64;
    whole.get_mut(..16)?.copy_from_slice(b"sekisho snapshot");
    whole.get_mut(16..24)?.copy_from_slice(&1_u64.to_le_bytes());
    whole.get_mut(24..32)?.copy_from_slice(&length.to_le_bytes());
    let end = whole.len().checked_sub(16).filter(|end| *end >= 80)?;
    let mut hasher = SipHasher24::new_with_key(b"sekisho snapshot");
    hasher.write(&whole[80..end]);
    hasher.write(&whole[..80]);
    let sum = hasher.finish128().as_u128().to_le_bytes();
    whole[end..].copy_from_slice(&sum);
    Some(whole)
}

/// Commands of any bytes are read, waited for or refused. What is read takes bytes, has its words within them, and is the same when
/// it comes in two pieces.
pub fn resp(bytes: &[u8]) {
    let mut begin = 0;
    while let Parsed::Command(words, length) = parse(bytes, begin) {
        assert!(length > 0 && begin + length <= bytes.len());
        let all: usize = (0..words.len()).map(|index| words.get(bytes, index).len()).sum();
        assert!(all <= length, "more than was sent");
        assert!(words.get(bytes, words.len()).is_empty());
        let shorter = parse(&bytes[..begin + length - 1], begin);
        assert!(matches!(shorter, Parsed::Incomplete), "{shorter:?}");
        begin += length;
    }
}

/// A log line of any bytes is taken or refused, and never a panic.
pub fn trace_line(bytes: &[u8]) {
    drop(sekisho_replay::trace::parse_line(bytes));
}

/// Whatever a client writes into the header of its address, a trusted proxy's own entry behind it is what counts; and nothing
/// counts that a peer who is not trusted sends.
pub fn who_is_asking(written: &[u8]) {
    let proxy = IpAddr::from(Ipv4Addr::new(10, 0, 0, 5));
    let stranger = IpAddr::from(Ipv4Addr::new(198, 51, 100, 7));
    let client = IpAddr::from(Ipv4Addr::new(203, 0, 113, 9));
    for (source, name, entry) in [
        (AddressSource::XForwardedFor, "x-forwarded-for", "203.0.113.9"),
        (AddressSource::Forwarded, "forwarded", "for=203.0.113.9;proto=https"),
        (AddressSource::XRealIp, "x-real-ip", "203.0.113.9"),
    ] {
        let trusted = vec!["10.0.0.0/8".parse().expect("a network")];
        let identity = IdentitySettings::new(source.clone(), trusted);
        let seen = |peer, lines: &[&[u8]]| {
            let lines: Vec<_> = lines.iter().map(|line| (name, *line)).collect();
            client_addr(&identity, &source, Some(peer), &lines)
        };
        let alone = seen(proxy, &[written]);
        assert!(alone.address.is_some() && !alone.unbelieved, "a proxy is always an address");
        let told = seen(stranger, &[written]);
        assert_eq!((told.address, told.unbelieved), (Some(stranger), true), "{name}");
        let behind = seen(proxy, &[written, entry.as_bytes()]);
        // Of two lines of a header that is one address, one may be the client's own.
        let expected = if source == AddressSource::XRealIp { proxy } else { client };
        assert_eq!(behind.address, Some(expected), "{name} on a line of its own");
        if source == AddressSource::XForwardedFor {
            let joined = [written, b", ", entry.as_bytes()].concat();
            let address = seen(proxy, &[&joined]).address;
            // A line with an octet that is no text is no address as a whole.
            let expected = if std::str::from_utf8(written).is_ok() { client } else { proxy };
            assert_eq!(address, Some(expected), "{name} on one line");
        }
    }
}

/// A path that is taken has one form; that form and every other spelling of it are read as the same path.
pub fn path(target: &[u8]) {
    let Ok(path) = CanonicalPath::parse_bytes(target) else { return };
    let form = path.as_bytes();
    assert!(
        form.starts_with(b"/") && !form.iter().any(|byte| matches!(byte, 0 | b'\\')),
        "{path:?}"
    );
    assert!(form == b"/" || !form.ends_with(b"/"), "{path:?}");
    for segment in form.split(|byte| *byte == b'/').skip(1) {
        assert!(form == b"/" || !matches!(segment, b"" | b"." | b".."), "{path:?}");
    }
    let spelled = |separator: &str, letter: &dyn Fn(u8) -> String| -> String {
        let segment = |segment: &[u8]| segment.iter().map(|byte| letter(*byte)).collect::<String>();
        path.segments().map(|bytes| format!("{separator}{}", segment(bytes))).collect()
    };
    let upper = |byte: u8| format!("%{byte:02X}");
    let lower = |byte: u8| format!("%{byte:02x}");
    let sparing = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' => char::from(byte).to_string(),
        _ => upper(byte),
    };
    for other in [
        format!("/{}", spelled("/", &upper)),
        format!("/{}", spelled("/", &lower)),
        format!("/{}", spelled("//", &sparing)),
        format!("/{}/", spelled("/./", &sparing)),
        format!("/{}/.", spelled("/x/../", &sparing)),
        format!("/{}?a=/../b#c", spelled("/%2e/", &sparing)),
    ] {
        assert_eq!(CanonicalPath::parse(&other).as_ref(), Ok(&path), "{other}");
    }
}

/// Behind an upstream that tells of its own quota, in whatever words, our members come last, every field has one line, and
/// what came of it is a list that the next limiter on the way keeps.
pub fn quota_fields(lines: &[u8]) {
    static OURS: LazyLock<Decision> = LazyLock::new(decision);
    let settings = AnswerSettings::default();
    let wall = Timestamp::from_secs(1_700_000_000);
    let mut alone = HeaderMap::new();
    headers::merge_into(&mut alone, &OURS, &settings, wall);
    let mut merged = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let Ok(value) = HeaderValue::from_bytes(line) else { continue };
        for name in alone.keys() {
            merged.append(name, value.clone());
        }
    }
    headers::merge_into(&mut merged, &OURS, &settings, wall);
    let mut again = merged.clone();
    headers::merge_into(&mut again, &OURS, &settings, wall);
    for (name, ours) in &alone {
        let value = |of: &HeaderMap| {
            let mut lines = of.get_all(name).iter();
            let line = lines.next().expect("a line").to_str().expect("text").to_owned();
            assert!(lines.next().is_none(), "{name} has several lines");
            line
        };
        let (ours, first, second) = (ours.to_str().expect("text"), value(&merged), value(&again));
        if *name == headers::RATELIMIT || *name == headers::RATELIMIT_POLICY {
            assert!(first == ours || first.ends_with(&format!(", {ours}")), "{name}: {first}");
            assert_eq!(second, format!("{first}, {ours}"), "{name}: what we sent was not kept");
        } else if name.as_str().starts_with("x-ratelimit") {
            assert!(first.parse::<u64>().is_ok(), "{name}: {first}");
        }
    }
}

/// Returns a decision with one limit.
fn decision() -> Decision {
    let policies = "[[policy]]\nname = \"any\"\nkey = [\"ip\"]\nlimits = [\"1/s\"]\n";
    let limiter = Limiter::new(PolicySet::parse(policies).expect("a policy"));
    let limits = ["10/365d sliding-log".parse().expect("a limit")];
    limiter.decide_direct_now(&Direct { limits: &limits, key: b"alice", cost: 1 }, Mode::Check)
}
