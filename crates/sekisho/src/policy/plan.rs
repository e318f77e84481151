//! Which of a policy's limits hold for a request, and what it costs there.

use super::PolicyLimit;
use crate::request::Request;

/// A policy's limits: the same for everybody, or by plan.
#[derive(Clone, Debug)]
pub(crate) enum PlanSpec {
    Same(Vec<PolicyLimit>),
    ByHeader {
        header: String,
        /// Invariant: an index into the plans.
        default: usize,
        plans: Vec<(String, Vec<PolicyLimit>)>,
    },
}

impl PlanSpec {
    /// Returns the limits that hold for a request, and the plan they are of.
    pub(crate) fn choose(&self, request: &Request<'_>) -> (Option<&str>, &[PolicyLimit]) {
        match self {
            Self::Same(limits) => (None, limits),
            Self::ByHeader { header, default, plans } => {
                let asked = request.header(header);
                let named =
                    asked.and_then(|asked| plans.iter().find(|(name, _)| name.as_bytes() == asked));
                let (name, limits) = named.unwrap_or(&plans[*default]);
                (Some(name), limits)
            }
        }
    }

    /// Does something with every limit.
    pub(crate) fn each_mut(&mut self, act: &mut dyn FnMut(&mut PolicyLimit)) {
        match self {
            Self::Same(limits) => limits.iter_mut().for_each(act),
            Self::ByHeader { plans, .. } => {
                plans.iter_mut().flat_map(|(_, limits)| limits).for_each(act);
            }
        }
    }

    pub(crate) fn plans(&self) -> impl Iterator<Item = (&str, &[PolicyLimit])> {
        let (same, by_header) = match self {
            Self::Same(limits) => (Some(("", limits.as_slice())), [].as_slice()),
            Self::ByHeader { plans, .. } => (None, plans.as_slice()),
        };
        same.into_iter()
            .chain(by_header.iter().map(|(name, limits)| (name.as_str(), limits.as_slice())))
    }
}

/// What a request costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CostSpec {
    Fixed(u64),
    Header { name: String, min: u64, max: u64, default: u64 },
}

/// A request's cost header that is no whole number within its bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header `{name}` is a whole number from {min} to {max}")]
pub struct CostError {
    name: String,
    min: u64,
    max: u64,
}

impl CostSpec {
    pub(crate) fn cost(&self, request: &Request<'_>) -> Result<u64, CostError> {
        let (name, min, max, default) = match self {
            Self::Fixed(cost) => return Ok(*cost),
            Self::Header { name, min, max, default } => (name, *min, *max, *default),
        };
        let Some(value) = request.header(name) else { return Ok(default) };
        let digits = value
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| std::str::from_utf8(&value).ok())
            .flatten();
        digits
            .and_then(|digits| digits.parse().ok())
            .filter(|cost| (min..=max).contains(cost))
            .ok_or_else(|| CostError { name: name.clone(), min, max })
    }

    /// Returns the most that a request can cost.
    pub(crate) const fn max(&self) -> u64 {
        match self {
            Self::Fixed(cost) => *cost,
            Self::Header { max, .. } => *max,
        }
    }
}
