//! Requests under a policy file: many alike, or each with a number in it.

use std::collections::{BTreeMap, BTreeSet};

use sekisho::{CanonicalPath, Decision, Limiter, Mode, Request, Span};
use serde::Deserialize;

use super::super::decimal::{seconds, span};

/// Requests that differ in nothing, or in a number: `{n}` in any text stands for 0, 1 and so on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestStep {
    /// When, in decimal seconds after the first.
    #[serde(default = "zero")]
    pub at: String,
    /// The method.
    #[serde(default = "get")]
    pub method: String,
    /// The path.
    #[serde(default = "root")]
    pub path: String,
    /// The query, without its question mark.
    pub query: Option<String>,
    /// The client's address; none on a unix socket.
    pub peer: Option<String>,
    /// The header lines.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// How many.
    #[serde(default = "one")]
    pub count: u64,
    /// How many there are of each ruling, by its word.
    pub expect: BTreeMap<String, u64>,
    /// How many keys they have.
    pub keys: Option<usize>,
    /// What the last of them has left.
    pub remaining: Option<u64>,
    /// How long the last of them has to wait.
    pub retry: Option<String>,
    /// The name of the limit that binds the last of them, or of the policy that refuses it.
    pub by: Option<String>,
}

fn zero() -> String {
    "0".to_owned()
}

fn get() -> String {
    "GET".to_owned()
}

fn root() -> String {
    "/".to_owned()
}

const fn one() -> u64 {
    1
}

/// The keys that requests had, with their policies' names.
type Keys = BTreeSet<(String, String)>;

impl RequestStep {
    pub(super) fn time(&self) -> Result<Span, String> {
        seconds(&self.at).map(Span::from_nanos)
    }

    /// Sends the requests, and returns their keys.
    pub(super) fn run(&self, limiter: &Limiter) -> Result<Keys, String> {
        let (mut rulings, mut keys) = (BTreeMap::new(), Keys::new());
        let mut last = None;
        for number in 0..self.count {
            let decision = self.send(limiter, number)?;
            *rulings.entry(decision.ruling.as_str().to_owned()).or_insert(0) += 1;
            keys.extend(
                decision.parts.iter().map(|part| (part.policy.to_string(), part.key.to_string())),
            );
            last = Some(decision);
        }
        if rulings != self.expect {
            return Err(format!("wanted {:?}, got {rulings:?}", self.expect));
        }
        if let Some(wanted) = self.keys.filter(|wanted| *wanted != keys.len()) {
            return Err(format!("wanted {wanted} keys, got {}", keys.len()));
        }
        last.map_or(Ok(()), |last| self.compare(&last))?;
        Ok(keys)
    }

    fn send(&self, limiter: &Limiter, number: u64) -> Result<Decision, String> {
        let with = |text: &String| text.replace("{n}", &number.to_string());
        let path = with(&self.path);
        let path = CanonicalPath::parse(&path).map_err(|error| format!("`{path}`: {error}"))?;
        let peer = self.peer.as_ref().map(with);
        let client =
            peer.as_ref().map(|peer| peer.parse().map_err(|_| format!("`{peer}`: no address")));
        let headers: Vec<(String, String)> =
            self.headers.iter().map(|(name, value)| (name.clone(), with(value))).collect();
        let query = self.query.as_ref().map(with);
        let request = Request {
            principal: None,
            method: &self.method,
            host: None,
            path: &path,
            query: query.as_deref(),
            client: client.transpose()?,
            headers: &headers.as_slice(),
        };
        Ok(limiter.decide_now(&request, Mode::Check))
    }

    fn compare(&self, last: &Decision) -> Result<(), String> {
        let binding = last.binding();
        let remaining = binding.and_then(|part| part.verdict.remaining);
        if self.remaining.is_some() && self.remaining != remaining {
            return Err(format!("wanted {:?} left, got {remaining:?}", self.remaining));
        }
        let wanted = self.retry.as_deref().map(span).transpose()?;
        let retry = binding.and_then(|part| part.verdict.retry_after);
        if wanted.is_some() && wanted != retry {
            return Err(format!("wanted a wait of {wanted:?}, got {retry:?}"));
        }
        let by =
            binding.map(|part| &part.name).or(last.refused_by.as_ref()).map(ToString::to_string);
        if self.by.is_some() && self.by != by {
            return Err(format!("wanted it to be by {:?}, got {by:?}", self.by));
        }
        Ok(())
    }
}
