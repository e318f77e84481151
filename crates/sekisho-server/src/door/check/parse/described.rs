//! The request that a check describes.

use std::{fmt, net::IpAddr};

use sekisho::CanonicalPath;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::{
    super::{Described, HeaderText},
    fields::present,
};

/// The fields of a described request.
pub(super) struct RequestFields(pub(super) Described);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default, deserialize_with = "present")]
    method: Option<String>,
    #[serde(default, deserialize_with = "present")]
    path: Option<PathText>,
    #[serde(default, deserialize_with = "present")]
    host: Option<String>,
    #[serde(default, deserialize_with = "present")]
    peer: Option<IpAddr>,
    #[serde(default)]
    headers: HeaderText,
}

impl<'de> Deserialize<'de> for RequestFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = RequestFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a request, which is an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RequestFields, A::Error> {
                let raw = Raw::deserialize(MapAccessDeserializer::new(map))?;
                let (path, query) =
                    raw.path.map_or_else(|| (CanonicalPath::root(), None), |path| (path.0, path.1));
                Ok(RequestFields(Described {
                    method: raw.method.unwrap_or_else(|| "GET".to_owned()),
                    path,
                    query,
                    host: raw.host,
                    peer: raw.peer.map(|peer| peer.to_canonical()),
                    headers: raw.headers,
                }))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// A path, and the query behind it.
struct PathText(CanonicalPath, Option<String>);

impl<'de> Deserialize<'de> for PathText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let path = CanonicalPath::parse(&text).map_err(D::Error::custom)?;
        let target = text.split('#').next().unwrap_or_default();
        Ok(Self(path, target.split_once('?').map(|(_, query)| query.to_owned())))
    }
}

/// The values of one header: text, or an array of it.
struct Values(Vec<String>);

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;

        impl<'de> Visitor<'de> for OneOrMore {
            type Value = Values;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a header's value, which is text, or an array of them")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Values, E> {
                Ok(Values(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Values, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = items.next_element()? {
                    values.push(value);
                }
                Ok(Values(values))
            }
        }

        deserializer.deserialize_any(OneOrMore)
    }
}

impl<'de> Deserialize<'de> for HeaderText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lines;

        // Not a map: a name that comes twice has the lines of both.
        impl<'de> Visitor<'de> for Lines {
            type Value = HeaderText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("header names and their values, which is an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HeaderText, A::Error> {
                let mut lines = Vec::new();
                while let Some((name, Values(values))) = map.next_entry()? {
                    lines.push((name, values));
                }
                Ok(HeaderText(lines))
            }
        }

        deserializer.deserialize_map(Lines)
    }
}
