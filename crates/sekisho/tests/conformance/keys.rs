//! Keys: whatever bytes they are made of, no two are one.

use std::{collections::BTreeSet, sync::Arc};

use sekisho::{
    Ask, CanonicalPath, Charge, FakeClock, Headers, KEY_BYTES_MAX, Key, KeyedLimiter, Limit, Limiter,
    Memory, MemoryOptions, Mode, Now, PolicySet, Request, Ruling, Scope, Seed, Timestamp,
};

fn odd() -> Vec<Vec<u8>> {
    let long = vec![b'x'; 10_000];
    let longer = [long.as_slice(), b"y"].concat();
    let texts: [&[u8]; 17] = [
        b" ",
        b"  ",
        b"\t",
        b"\r\n",
        b"\r\nSET a 1\r\n",
        b"\0",
        b"\0\0",
        b"\xff",
        b"\xff\xfe",
        "用户".as_bytes(),
        "🦀".as_bytes(),
        b"{a}",
        b"}{",
        b"a%00",
        b"%",
        &long,
        &longer,
    ];
    texts.iter().map(|text| text.to_vec()).collect()
}

#[test]
pub(crate) fn any_bytes_are_a_key_of_their_own() {
    let clock = Arc::new(FakeClock::default());
    let limiter = KeyedLimiter::with_clock("1/min".parse().unwrap(), clock);
    let mut keys = odd();
    keys.push(Vec::new());
    let check = |key: &Vec<u8>| limiter.check(key).unwrap().is_allowed();
    assert!(keys.iter().all(check), "each is new");
    assert!(!keys.iter().any(check), "each is used up");
    assert_eq!(limiter.store().occupancy().entries, keys.len());
    // As they are named in a store that is shared.
    let seed = Seed::from_bytes([7; 16]);
    let named: BTreeSet<Key> = keys.iter().map(|key| Key::plain(key, &seed)).collect();
    assert_eq!(named.len(), keys.len());
    for key in named {
        let text = key.as_str();
        assert!(text.len() <= KEY_BYTES_MAX, "{text}");
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && !b"{}".contains(&byte)), "{text}");
    }
}

struct OneHeader<'a>(&'a [u8]);

impl Headers for OneHeader<'_> {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        if name == "x-api-key" {
            visit(self.0);
        }
    }
}

#[test]
pub(crate) fn any_bytes_may_stand_in_a_header() {
    let text = "[[policy]]\nname = \"a\"\nkey = [{ header = \"x-api-key\" }]\n\
                on_missing_key = \"deny\"\nlimits = [\"1/min\"]\n";
    let limiter =
        Limiter::with_clock(PolicySet::parse(text).unwrap(), Arc::new(FakeClock::default()));
    let path = CanonicalPath::parse("/").unwrap();
    let decide = |value: &[u8]| {
        let headers = OneHeader(value);
        let request = Request {
            method: "GET",
            host: None,
            path: &path,
            query: None,
            client: Some("192.0.2.1".parse().unwrap()),
            principal: None,
            headers: &headers,
        };
        limiter.decide_now(&request, Mode::Check)
    };
    let mut keys = BTreeSet::new();
    for value in odd() {
        let decision = decide(&value);
        if value.trim_ascii().is_empty() {
            assert_eq!(decision.ruling, Ruling::MissingKey, "{value:?}");
            continue;
        }
        let key = decision.binding().unwrap().key.clone();
        assert!(decision.is_allowed() && key.as_str().len() <= KEY_BYTES_MAX, "{key}");
        assert!(key.as_str().bytes().all(|byte| byte.is_ascii_graphic()), "{key}");
        assert_eq!(decide(&value).ruling, Ruling::Deny, "{key}");
        assert!(keys.insert(key), "{value:?} is another's");
    }
    assert_eq!(decide(b"").ruling, Ruling::MissingKey);
    assert_eq!(keys.len(), odd().len() - 4);
}

#[test]
pub(crate) fn policy_and_limit_are_part_of_the_key_and_numbers_are_not() {
    let store = Memory::new(MemoryOptions::default());
    let seed = Seed::from_bytes([7; 16]);
    let key = Key::plain(b"a", &seed);
    let left = |scope: &Scope, text: &str, cost: u64| {
        let limit: Limit = text.parse().unwrap();
        let charges = [Charge { limit: &limit, scope, key: &key, cost }];
        let ask = Ask::new(&charges, Mode::Check);
        let answer = store.decide_now(&[ask], Now::At(Timestamp::from_secs(60))).remove(0).unwrap();
        answer.verdicts[0].remaining
    };
    let scopes = [("a:b", "c"), ("a", "b:c"), ("ab", "c"), ("a", "bc"), ("", "a"), ("a", "")];
    for (policy, id) in scopes {
        let scope = Scope::new(policy, id);
        assert_eq!(left(&scope, "10/min fixed-window", 8), Some(2), "{scope:?}");
        assert_eq!(left(&scope, "20/min fixed-window", 7), Some(5), "{scope:?}: what was used stays used");
        assert_eq!(left(&scope, "10/min fixed-window", 0), Some(0), "{scope:?}");
    }
    assert_eq!(store.occupancy().entries, scopes.len());
    // And so from a file: the same names keep the count, whatever the number.
    let scope_of = |text: &str| {
        let policies = PolicySet::parse(text).unwrap();
        let (_, limits) = policies.policies()[0].plans().next().unwrap();
        limits[0].scope().clone()
    };
    let file = |name: &str, limit: &str| {
        format!("[[policy]]\nname = \"{name}\"\nkey = [\"ip\"]\nlimits = [\"{limit}\"]\n")
    };
    assert_eq!(scope_of(&file("a", "10/min")), scope_of(&file("a", "20/60s burst 3 gcra")));
    assert_ne!(scope_of(&file("a", "10/min")), scope_of(&file("b", "10/min")));
    assert_ne!(scope_of(&file("a", "10/min")), scope_of(&file("a", "10/h")));
    assert_ne!(scope_of(&file("a", "10/min")), scope_of(&file("a", "10/min sliding-log")));
}
