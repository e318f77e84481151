//! The answer to one check: the fields of a trace line, and those of the wire.

use std::fmt;

use sekisho::{Decision, Limit, Ruling, Timestamp};
use serde::{Serialize, Serializer};

use super::{Check, Subject};

/// The fields in the order in which they are written.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    t: AsText<Seconds>,
    key: Option<&'a str>,
    cost: Option<u64>,
    outcome: &'static str,
    remaining: Option<u64>,
    retry_after_ns: Option<u64>,
    reset_after_ns: Option<u64>,
    delay_ns: u64,
    policy: Option<&'a str>,
    limit: Option<AsText<&'a Limit>>,
    delay_ms: u64,
}

impl<'a> Line<'a> {
    pub(super) fn new(check: &'a Check, decision: &'a Decision, at: Timestamp) -> Self {
        let binding = decision.binding();
        let verdict = binding.map(|part| &part.verdict);
        let (key, cost) = match &check.subject {
            Subject::Direct { key, .. } => (Some(key.as_str()), Some(check.cost.unwrap_or(1))),
            // The encoded key: the parts that are secrets are digests in it.
            Subject::Described { .. } => (
                binding.map(|part| part.key.as_str()),
                binding.map(|part| part.cost).or(check.cost),
            ),
        };
        let policy = binding.map(|part| &part.policy).or(decision.refused_by.as_ref());
        let denied = decision.ruling == Ruling::Deny;
        Self {
            t: AsText(Seconds(at)),
            key,
            cost,
            outcome: decision.ruling.as_str(),
            remaining: verdict.and_then(|verdict| verdict.remaining),
            retry_after_ns: verdict
                .filter(|_| denied)
                .and_then(|verdict| Some(verdict.retry_after?.as_nanos())),
            reset_after_ns: verdict.map(|verdict| verdict.reset_after.as_nanos()),
            delay_ns: decision.delay.as_nanos(),
            policy: policy.map(|name| &**name).filter(|name| !name.is_empty()),
            limit: binding.map(|part| AsText(&part.limit)),
            delay_ms: decision.delay.as_millis_ceil(),
        }
    }

    /// Writes the line behind what is there.
    pub(super) fn write(&self, json: &mut Vec<u8>) {
        // Text and numbers always have a JSON form, and a vector takes any of it.
        let _never = serde_json::to_writer(json, self);
    }
}

/// What is written as its text.
#[derive(Debug)]
pub(crate) struct AsText<T>(pub(crate) T);

impl<T: fmt::Display> Serialize for AsText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// An instant in seconds: as many places as it needs, up to nine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds(pub(crate) Timestamp);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos();
        let (whole, mut rest, mut places) = (ns / 1_000_000_000, ns % 1_000_000_000, 9);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        while rest % 10 == 0 {
            rest /= 10;
            places -= 1;
        }
        write!(f, "{whole}.{rest:0places$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_have_as_many_places_as_they_need() {
        for (ns, text) in [
            (0, "0"),
            (1, "0.000000001"),
            (100_500_000_000, "100.5"),
            (3_333_333_334, "3.333333334"),
            (1_700_000_000_000_000_000, "1700000000"),
            (1_700_000_000_010_000_000, "1700000000.01"),
        ] {
            assert_eq!(Seconds(Timestamp::from_nanos(ns)).to_string(), text);
        }
    }
}
