//! The values of a check's fields, each read strictly.

use std::fmt;

use sekisho::{Limit, Mode, Period, Timestamp, Zones};
use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Unexpected, Visitor},
};

use crate::limits::LIMITS_MAX;

/// Reads a field that is there: `null` is no way to leave it out.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A cost.
pub(super) struct Amount(pub(super) u64);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole;

        // Whatever is negative, has a point or an exponent, or is larger arrives as another type, and is refused.
        impl Visitor<'_> for Whole {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from 0 to {}", u64::MAX)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Amount, E> {
                Ok(Amount(number))
            }
        }

        deserializer.deserialize_u64(Whole)
    }
}

/// The word of a mode.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ModeWord {
    #[default]
    Check,
    Look,
    Force,
    Refund,
}

impl ModeWord {
    /// Returns the mode, with the instant that only a refund has.
    pub(super) const fn with(self, at: Option<Instant>) -> Result<Mode, &'static str> {
        match (self, at) {
            (Self::Check, None) => Ok(Mode::Check),
            (Self::Look, None) => Ok(Mode::Look),
            (Self::Force, None) => Ok(Mode::Force),
            (Self::Refund, Some(Instant(at))) => Ok(Mode::Refund { at }),
            (Self::Refund, None) => {
                Err("`at` is missing: a refund names the `t` of the charge that it takes back")
            }
            (_, Some(_)) => Err("`at` goes with the mode `refund` alone"),
        }
    }
}

/// An instant: seconds since the Unix epoch, as text with up to nine places, or as a whole number.
#[derive(Clone, Copy)]
pub(super) struct Instant(Timestamp);

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Seconds;

        // Never a number with a point: it would have been rounded on its way here.
        impl Visitor<'_> for Seconds {
            type Value = Instant;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("Unix seconds up to the year 2286: text like \"1700000000.5\", or a whole number")
            }

            fn visit_u64<E: Error>(self, seconds: u64) -> Result<Instant, E> {
                let ns = seconds.checked_mul(1_000_000_000).and_then(instant);
                ns.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(seconds), &self))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Instant, E> {
                seconds(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Seconds)
    }
}

fn instant(ns: u64) -> Option<Instant> {
    (ns <= Timestamp::MAX.as_nanos()).then(|| Instant(Timestamp::from_nanos(ns)))
}

/// Reads digits, or digits, a point and one to nine digits.
fn seconds(text: &str) -> Option<Instant> {
    let (whole, places) =
        text.split_once('.').map_or((text, None), |(whole, places)| (whole, Some(places)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || places.is_some_and(|places| !digits(places) || places.len() > 9) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let rest: u64 = format!("{:0<9}", places.unwrap_or_default()).parse().ok()?;
    instant(whole.checked_mul(1_000_000_000)?.checked_add(rest)?)
}

/// The limits of a check: one text, or an array of them.
pub(super) struct LimitList(pub(super) Vec<Limit>);

/// One limit's text.
struct LimitText(Limit);

impl<'de> Deserialize<'de> for LimitText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = LimitText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a limit's text, like \"60/min\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<LimitText, E> {
                limit(text).map(LimitText).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Text)
    }
}

fn limit(text: &str) -> Result<Limit, String> {
    let limit: Limit = text.parse().map_err(|error: sekisho::LimitError| error.to_string())?;
    match limit.as_metered().map(sekisho::Metered::period) {
        Some(Period::Calendar(_, zone)) if !Zones::knows(zone) => {
            Err(format!("there is no time zone `{}`", zone.as_str()))
        }
        _ => Ok(limit),
    }
}

/// Returns the name of the place that a limit counts in, which no request may be charged to twice.
fn id(limit: &Limit) -> String {
    limit.as_metered().map_or_else(|| limit.to_string(), |metered| metered.id().to_string())
}

/// Adds a limit to others that hold together with it.
fn add(limits: &mut Vec<Limit>, limit: Limit) -> Result<(), String> {
    if limits.len() == LIMITS_MAX {
        return Err(format!("there are at most {LIMITS_MAX} limits"));
    }
    if limits.iter().any(|other| id(other) == id(&limit)) {
        return Err(format!(
            "`{limit}` counts in the same place as one before it: change its period or algorithm"
        ));
    }
    limits.push(limit);
    Ok(())
}

impl<'de> Deserialize<'de> for LimitList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;

        impl<'de> Visitor<'de> for OneOrMore {
            type Value = LimitList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a limit's text, like \"60/min\", or an array of them")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<LimitList, E> {
                limit(text).map(|limit| LimitList(vec![limit])).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<LimitList, A::Error> {
                let mut limits = Vec::new();
                while let Some(LimitText(limit)) = items.next_element()? {
                    add(&mut limits, limit).map_err(A::Error::custom)?;
                }
                let some = !limits.is_empty();
                some.then_some(LimitList(limits))
                    .ok_or_else(|| A::Error::custom("there is at least one limit"))
            }
        }

        deserializer.deserialize_any(OneOrMore)
    }
}
