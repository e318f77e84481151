//! What `GET /v1/keys` is asked for.

use sekisho::FullKey;

use crate::limits::{DETAIL_BYTES_MAX, TOP_DEFAULT, TOP_MAX};

/// Which keys are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Of this policy; empty for limits that callers named themselves.
    pub(super) policy: Option<String>,
    /// Of this limit: its id, or as it is written.
    limit: Option<String>,
    /// At most so many; from 1 to [`TOP_MAX`].
    pub(super) top: usize,
    /// At least so full; from 0 to 100.
    min_used_percent: u8,
}

/// What is wrong with a query. The message begins with the parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadQuery {
    #[error(
        "`{0}`: there is no such parameter; there are `policy`, `limit`, `top` and `min_used_percent`"
    )]
    Unknown(String),
    #[error("{0}: it comes twice")]
    Twice(&'static str),
    #[error("{0}: this is not UTF-8 text in percent-encoding")]
    Encoding(String),
    #[error("top: a whole number from 1 to {TOP_MAX}")]
    Top,
    #[error("min_used_percent: a whole number from 0 to 100")]
    Percent,
}

impl Wanted {
    pub(super) fn wants(&self, key: &FullKey) -> bool {
        let is = |wanted: &Option<String>, text: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == text)
        };
        is(&self.policy, key.scope.policy())
            && (is(&self.limit, key.scope.limit()) || is(&self.limit, &key.limit.to_string()))
            && key.used_percent() >= self.min_used_percent
    }
}

/// Reads a query, without its question mark.
pub(super) fn parse(query: &str) -> Result<Wanted, BadQuery> {
    let (mut policy, mut limit, mut top, mut percent) = (None, None, None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name).ok_or_else(|| BadQuery::Encoding(quotable(name)))?;
        let (place, known) = match name.as_str() {
            "policy" => (&mut policy, "policy"),
            "limit" => (&mut limit, "limit"),
            "top" => (&mut top, "top"),
            "min_used_percent" => (&mut percent, "min_used_percent"),
            _ => return Err(BadQuery::Unknown(quotable(&name))),
        };
        let value = decoded(value).ok_or_else(|| BadQuery::Encoding(known.to_owned()))?;
        if place.replace(value).is_some() {
            return Err(BadQuery::Twice(known));
        }
    }
    let in_range = |top: &usize| (1..=TOP_MAX).contains(top);
    let top = top.map_or(Some(TOP_DEFAULT), |top| number(&top).filter(in_range));
    let percent = percent.map_or(Some(0), |percent| number(&percent));
    Ok(Wanted {
        policy,
        limit,
        top: top.ok_or(BadQuery::Top)?,
        min_used_percent: percent
            .filter(|percent| *percent <= 100)
            .and_then(|percent| u8::try_from(percent).ok())
            .ok_or(BadQuery::Percent)?,
    })
}

/// Reads digits, and nothing else: `+1` is no number here.
fn number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Returns what a piece of a query stands for.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Returns as much of a text as a message may quote.
fn quotable(text: &str) -> String {
    let most = DETAIL_BYTES_MAX / 8;
    text.chars().take(most).map(|of| if of.is_control() { '\u{fffd}' } else { of }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read() {
        let nothing = Wanted { policy: None, limit: None, top: 20, min_used_percent: 0 };
        assert_eq!(parse(""), Ok(nothing.clone()));
        assert_eq!(parse("&&"), Ok(nothing.clone()));
        let wanted =
            parse("limit=60%2Fmin+burst%201&policy=a%C3%A9&top=1000&min%5fused_percent=100");
        let limit = Some("60/min burst 1".to_owned());
        let policy = Some("aé".to_owned());
        assert_eq!(wanted, Ok(Wanted { policy, limit, top: 1_000, min_used_percent: 100 }));
        assert_eq!(parse("policy"), Ok(Wanted { policy: Some(String::new()), ..nothing }));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (query, words) in [
            ("top=0", "top: a whole number from 1 to 1000"),
            ("top=1001", "top: "),
            ("top=", "top: "),
            ("top", "top: "),
            ("top=-1", "top: "),
            ("top=%2B1", "top: "),
            ("top=1.0", "top: "),
            ("top=99999999999999999999999", "top: "),
            ("top=1&top=1", "top: it comes twice"),
            ("policy=a&policy=a", "policy: it comes twice"),
            ("min_used_percent=101", "min_used_percent: a whole number from 0 to 100"),
            ("min_used_percent=256", "min_used_percent: "),
            ("min_used_percent=-0", "min_used_percent: "),
            ("Top=1", "`Top`: there is no such parameter"),
            ("=1", "``: there is no such parameter"),
            ("a%00b=1", "`a\u{fffd}b`: there is no such"),
            ("limit=%", "limit: this is not UTF-8"),
            ("limit=%4", "limit: "),
            ("limit=%zz", "limit: "),
            ("policy=%ff", "policy: this is not UTF-8"),
            ("%ff=1", "%ff: this is not UTF-8"),
        ] {
            let error = parse(query).unwrap_err().to_string();
            assert!(error.starts_with(words), "{query}: {error}");
        }
        let long = parse(&format!("{}=1", "é".repeat(10_000))).unwrap_err().to_string();
        assert!(long.len() < DETAIL_BYTES_MAX, "{long}");
    }
}
