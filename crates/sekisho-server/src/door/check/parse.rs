//! A check's body, read: what is wrong is named with its field, and nothing is guessed.
//!
//! A field that is `null` is refused, not taken for absent: that is what JavaScript writes for a cost that is not a number.

mod described;
mod fields;

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::error::Category;

use self::{
    described::RequestFields,
    fields::{Amount, Instant, LimitList, ModeWord, present},
};
use super::{BadBody, Check, Checks, Subject};
use crate::limits::{CHECKS_MAX, DETAIL_BYTES_MAX};

/// Reads a body: one check, or an array of them.
///
/// ```
/// use sekisho_server::door::check::{Checks, parse_body};
///
/// assert!(matches!(parse_body(br#"{"limit": "60/min", "key": "alice"}"#), Ok(Checks::One(_))));
/// assert!(matches!(parse_body(br#"[{"request": {"path": "/v1/x", "peer": "192.0.2.1"}}]"#), Ok(Checks::Many(_))));
/// let error = parse_body(br#"[{"limit": "60/min", "key": "alice", "cost": -1}]"#).unwrap_err();
/// assert!(error.to_string().starts_with("[0].cost: "), "{error}");
/// ```
///
/// # Errors
/// What is wrong, and where.
pub fn parse_body(body: &[u8]) -> Result<Checks, BadBody> {
    let several = body.trim_ascii_start().first() == Some(&b'[');
    let quick = if several {
        serde_json::from_slice(body).map(|Array(checks)| Checks::Many(checks))
    } else {
        serde_json::from_slice(body).map(Checks::One)
    };
    // Where something is wrong is found by reading it again.
    quick.or_else(|_| parse_again(body, several))
}

/// Reads a body and keeps track of where it is, which takes longer.
fn parse_again(body: &[u8], several: bool) -> Result<Checks, BadBody> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let parsed = if several {
        serde_path_to_error::deserialize(&mut reader).map(|Array(checks)| Checks::Many(checks))
    } else {
        serde_path_to_error::deserialize(&mut reader).map(Checks::One)
    };
    let checks = parsed.map_err(|error| {
        let path = error.path().to_string();
        complaint(&path, error.inner())
    })?;
    reader.end().map_err(|error| complaint(".", &error))?;
    Ok(checks)
}

/// Puts the field before what is wrong with it.
fn complaint(path: &str, error: &serde_json::Error) -> BadBody {
    let mut message = match (error.classify(), path) {
        (Category::Syntax | Category::Eof, "." | "?") => format!("the body is not JSON: {error}"),
        (_, "." | "?") => error.to_string(),
        _ => format!("{path}: {error}"),
    };
    if message.len() > DETAIL_BYTES_MAX {
        let end = (0..=DETAIL_BYTES_MAX).rev().find(|end| message.is_char_boundary(*end));
        message.truncate(end.unwrap_or_default());
        message.push('…');
    }
    BadBody::new(message)
}

/// An array of checks.
struct Array(Vec<Check>);

impl<'de> Deserialize<'de> for Array {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ArrayVisitor)
    }
}

struct ArrayVisitor;

impl<'de> Visitor<'de> for ArrayVisitor {
    type Value = Array;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of checks")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Array, A::Error> {
        let mut checks = Vec::new();
        while let Some(check) = items.next_element()? {
            if checks.len() == CHECKS_MAX {
                return Err(A::Error::custom(format!("an array has at most {CHECKS_MAX} checks")));
            }
            checks.push(check);
        }
        Ok(Array(checks))
    }
}

/// The fields of a check, of which each form has its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default, deserialize_with = "present")]
    limit: Option<LimitList>,
    #[serde(default, deserialize_with = "present")]
    key: Option<String>,
    #[serde(default, deserialize_with = "present")]
    policy: Option<String>,
    #[serde(default, deserialize_with = "present")]
    request: Option<RequestFields>,
    #[serde(default, deserialize_with = "present")]
    cost: Option<Amount>,
    #[serde(default, deserialize_with = "present")]
    mode: Option<ModeWord>,
    #[serde(default, deserialize_with = "present")]
    at: Option<Instant>,
}

impl<'de> Deserialize<'de> for Check {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        // Only an object: a struct as serde derives it would take an array for its fields in order.
        impl<'de> Visitor<'de> for Object {
            type Value = Check;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a check, which is an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Check, A::Error> {
                let fields = Fields::deserialize(MapAccessDeserializer::new(map))?;
                fields.check().map_err(A::Error::custom)
            }
        }

        deserializer.deserialize_map(Object)
    }
}

impl Fields {
    /// Returns the check, if the fields are those of one form.
    fn check(self) -> Result<Check, &'static str> {
        let mode = self.mode.unwrap_or_default().with(self.at)?;
        let cost = self.cost.map(|Amount(cost)| cost);
        let subject = match (self.limit, self.key, self.request) {
            (Some(_), _, Some(_)) => return Err("a check has a `limit` or a `request`, not both"),
            (Some(_), None, None) => return Err("`key` is missing: a `limit` counts under one"),
            (Some(_), Some(_), None) if self.policy.is_some() => {
                return Err("`policy` goes with a `request`: a `limit` belongs to none");
            }
            (Some(LimitList(limits)), Some(key), None) => Subject::Direct { limits, key },
            (None, Some(_), _) => {
                return Err(
                    "`key` goes with a `limit`: for a `request` the policies say who is counted",
                );
            }
            (None, None, None) => return Err("a check has a `limit` and a `key`, or a `request`"),
            (None, None, Some(RequestFields(request))) => {
                Subject::Described { policy: self.policy, request }
            }
        };
        Ok(Check { subject, cost, mode })
    }
}

#[cfg(test)]
mod tests;
