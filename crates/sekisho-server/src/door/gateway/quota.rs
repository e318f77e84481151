//! Our quota fields beside those of a limiter further in.

use std::iter::once;

use http::{HeaderMap, HeaderName, HeaderValue};
use sekisho_http::headers::{RATELIMIT, RATELIMIT_POLICY};
use sfv::{Parser, visitor::Ignored};

/// Adds the fields of a decision to an answer. `RateLimit` and `RateLimit-Policy` keep the members that are there and ours come
/// behind them; what is no list is replaced, and so is any other field.
pub(super) fn add(headers: &mut HeaderMap, ours: HeaderMap) {
    let mut last = None;
    for (name, value) in ours {
        // A field of several lines has its name on the first only.
        last = name.or(last);
        let Some(name) = &last else { continue };
        let value = if *name == RATELIMIT || *name == RATELIMIT_POLICY {
            joined(headers, name, &value).unwrap_or(value)
        } else {
            value
        };
        let _before = headers.insert(name.clone(), value);
    }
}

/// Returns the list of all members; `None` when there are none yet, or they are no list.
fn joined(headers: &HeaderMap, name: &HeaderName, ours: &HeaderValue) -> Option<HeaderValue> {
    let theirs = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect::<Vec<_>>();
    let theirs = theirs.join(&b", "[..]);
    if theirs.trim_ascii().is_empty() {
        return None;
    }
    Parser::new(&theirs).parse_list_with_visitor(Ignored).ok()?;
    let list: Vec<&[u8]> = once(theirs.as_slice()).chain(once(ours.as_bytes())).collect();
    HeaderValue::from_bytes(&list.join(&b", "[..])).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(theirs: &[&str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for line in theirs {
            headers.append(RATELIMIT, line.parse().unwrap());
        }
        let ours = HeaderMap::from_iter([(RATELIMIT, HeaderValue::from_static("\"api\";r=1;t=2"))]);
        add(&mut headers, ours);
        headers.get_all(RATELIMIT).iter().map(|line| line.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_list_is_kept_and_anything_else_replaced() {
        assert_eq!(added(&[]), ["\"api\";r=1;t=2"]);
        assert_eq!(
            added(&["\"in\";r=5;t=1", "\"inner\";r=6"]),
            ["\"in\";r=5;t=1, \"inner\";r=6, \"api\";r=1;t=2"]
        );
        for old in ["limit=10, remaining=3 reset", "\"in", "", "\u{e9}"] {
            assert_eq!(added(&[old]), ["\"api\";r=1;t=2"], "{old}");
        }
    }
}
