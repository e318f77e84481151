//! Where a state lives: `<prefix>1:{<identity>}<policy>:<limit id>`.
//!
//! The digit is the layout's version. The braces make everything that one identity is counted under share a slot, so that one
//! script call can decide it on a cluster too. What could be mistaken for the layout is written as `%XX`.

use std::fmt::Write as _;

use sekisho::{Key, Scope};

/// The version of the layout of keys and states.
const VERSION: u8 = 1;

/// The part of the layout that all keys of a store share.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The prefix and the version.
    start: Box<str>,
}

impl Layout {
    pub(crate) fn new(prefix: &str) -> Self {
        let mut start = String::new();
        escape(&mut start, prefix);
        let _never = write!(start, "{VERSION}:");
        Self { start: start.into() }
    }

    /// Returns the key of what `key` has used under a limit.
    pub(crate) fn key(&self, scope: &Scope, key: &Key) -> String {
        // A key's text has no braces, and is never empty: an empty tag would hash the whole key.
        debug_assert!(!key.as_str().is_empty() && !key.as_str().contains(['{', '}']));
        let (policy, limit) = (scope.policy(), scope.limit());
        let mut text = String::with_capacity(
            self.start.len() + key.as_str().len() + policy.len() + limit.len() + 3,
        );
        text.push_str(&self.start);
        text.push('{');
        text.push_str(key.as_str());
        text.push('}');
        escape(&mut text, policy);
        text.push(':');
        escape(&mut text, limit);
        text
    }
}

fn escape(text: &mut String, part: &str) {
    for byte in part.bytes() {
        if byte.is_ascii_graphic() && !b":%{}".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _never = write!(text, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use sekisho::Seed;

    use super::*;

    fn text(prefix: &str, (policy, limit): (&str, &str), key: &str) -> String {
        let key = Key::plain(key.as_bytes(), &Seed::from_bytes([7; 16]));
        Layout::new(prefix).key(&Scope::new(policy, limit), &key)
    }

    #[test]
    fn the_layout_is_what_other_versions_read() {
        for (prefix, scope, key, wanted) in [
            ("sk", ("login", "60s-token-bucket"), "alice", "sk1:{=alice}login:60s-token-bucket"),
            ("sk", ("", "60s-token-bucket"), "", "sk1:{=}:60s-token-bucket"),
            ("", ("api", "daily"), "a:b{c}", "1:{=a%3Ab%7Bc%7D}api:daily"),
            ("my:app", ("a:b", "c"), "}{", "my%3Aapp1:{=%7D%7B}a%3Ab:c"),
            ("{x}", ("a", "b:c"), "{}", "%7Bx%7D1:{=%7B%7D}a:b%3Ac"),
            ("sk", ("a%b", "日 "), "u", "sk1:{=u}a%25b:%E6%97%A5%20"),
        ] {
            assert_eq!(text(prefix, scope, key), wanted);
        }
    }

    #[test]
    fn only_the_identity_is_the_tag() {
        let key = text("{p}", ("{q}", "{r}"), "{s}");
        assert_eq!((key.matches('{').count(), key.matches('}').count()), (1, 1), "{key}");
    }
}
