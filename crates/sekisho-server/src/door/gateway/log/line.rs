//! What a line of the access log says.

use std::net::IpAddr;

use sekisho::{Decision, Part, Request, Timestamp};
use sekisho_http::{Answer, Profile};
use serde::Serialize;

/// A decision. Keys are encoded as they are counted: parts that are secrets are digests in them.
#[derive(Debug, Serialize)]
pub(in crate::door::gateway) struct Line<'a> {
    /// Seconds since the epoch, with all nine places.
    t: String,
    decision_ns: u64,
    client: Option<IpAddr>,
    method: &'a str,
    path: String,
    /// The refusal's; nothing for what passes, since it is written before it is answered.
    status: Option<u16>,
    policies: Vec<PolicyLine<'a>>,
    outcome: &'static str,
}

/// What one limit said.
#[derive(Debug, Serialize)]
struct PolicyLine<'a> {
    policy: &'a str,
    limit: &'a str,
    key: &'a str,
    plan: Option<&'a str>,
    cost: u64,
    mode: &'static str,
    outcome: &'static str,
}

/// Units that were given back.
#[derive(Debug, Serialize)]
struct RefundLine<'a> {
    refund: Refund<'a>,
}

#[derive(Debug, Serialize)]
struct Refund<'a> {
    t: String,
    decision_ns: u64,
    /// The decision that is taken back.
    at_ns: u64,
    policies: Vec<PolicyLine<'a>>,
}

impl<'a> Line<'a> {
    pub(in crate::door::gateway) fn new(
        request: &Request<'a>,
        decision: &'a Decision,
        at: Timestamp,
    ) -> Self {
        let refused = !decision.is_allowed();
        Self {
            t: seconds(at),
            decision_ns: at.as_nanos(),
            client: request.client,
            method: request.method,
            path: request.path.to_string(),
            status: refused.then(|| Answer::of(decision, Profile::Standard).status.as_u16()),
            policies: policies(decision),
            outcome: decision.ruling.as_str(),
        }
    }

    pub(in crate::door::gateway) fn to_json(&self) -> Vec<u8> {
        json(self)
    }
}

/// Returns the line that says that a decision was taken back.
pub(in crate::door::gateway) fn refund_line(decision: &Decision, at: Timestamp) -> Vec<u8> {
    let refund = Refund {
        t: seconds(at),
        decision_ns: at.as_nanos(),
        at_ns: decision.at.as_nanos(),
        policies: policies(decision),
    };
    json(&RefundLine { refund })
}

fn policies(decision: &Decision) -> Vec<PolicyLine<'_>> {
    decision.parts.iter().map(policy).collect()
}

fn policy(part: &Part) -> PolicyLine<'_> {
    PolicyLine {
        policy: &part.policy,
        limit: part.scope.limit(),
        key: part.key.as_str(),
        plan: part.plan.as_deref(),
        cost: part.cost,
        mode: "enforce",
        outcome: part.verdict.outcome.as_str(),
    }
}

fn seconds(at: Timestamp) -> String {
    let ns = at.as_nanos();
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn json(line: &impl Serialize) -> Vec<u8> {
    // Text and numbers always have a JSON form.
    let mut json = serde_json::to_vec(line).unwrap_or_default();
    json.push(b'\n');
    json
}
