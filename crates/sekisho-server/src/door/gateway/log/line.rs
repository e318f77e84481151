//! What a line of the access log says.

use std::{borrow::Cow, net::IpAddr};

use sekisho::{Degraded, OnStoreError, Part, Timestamp};
use sekisho_http::layer::{Decided, Refunded, RefusedWith, Unasked};
use serde::Serialize;

/// A request, and what was said of it. Keys are encoded as they are counted: parts that are secrets are digests in them.
#[derive(Debug, Serialize)]
struct Line<'a> {
    /// Seconds since the epoch, with all nine places.
    t: String,
    decision_ns: u64,
    client: Option<IpAddr>,
    method: &'a str,
    path: Cow<'a, str>,
    /// The refusal's; nothing for what passes, since it is written before it is answered.
    status: Option<u16>,
    /// The refusal's, for those who speak gRPC: its `status` is 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    grpc_status: Option<u16>,
    policies: Vec<PolicyLine<'a>>,
    outcome: &'static str,
    /// What was done instead of asking the store, when that could not decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_store_error: Option<&'static str>,
}

/// What one limit said.
#[derive(Debug, Serialize)]
struct PolicyLine<'a> {
    policy: &'a str,
    /// As people write it.
    limit: String,
    /// Its name in `RateLimit` and `RateLimit-Policy`.
    limit_id: &'a str,
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

/// Returns the line of a decision.
pub(in crate::door::gateway) fn decision_line(decided: &Decided<'_>) -> Vec<u8> {
    let (status, grpc_status) = statuses(decided.refused_with);
    json(&Line {
        t: seconds(decided.at),
        decision_ns: decided.at.as_nanos(),
        client: decided.request.client,
        method: decided.request.method,
        path: decided.request.path.to_string().into(),
        status,
        grpc_status,
        policies: decided.decision.parts.iter().map(policy).collect(),
        outcome: decided.decision.ruling.as_str(),
        on_store_error: decided.decision.degraded.as_deref().map(instead),
    })
}

/// Returns the line of a request that no policy could be asked about. Its path is as it was sent, since it has no other form.
pub(in crate::door::gateway) fn bad_request_line(unasked: &Unasked<'_>) -> Vec<u8> {
    let (status, grpc_status) = statuses(Some(unasked.refused_with));
    json(&Line {
        t: seconds(unasked.at),
        decision_ns: unasked.at.as_nanos(),
        client: unasked.client,
        method: unasked.parts.method.as_str(),
        path: unasked.target.path().into(),
        status,
        grpc_status,
        policies: Vec::new(),
        outcome: "bad-request",
        on_store_error: None,
    })
}

/// Returns the line that says that a decision was taken back.
pub(in crate::door::gateway) fn refund_line(refunded: &Refunded<'_>) -> Vec<u8> {
    let refund = Refund {
        t: seconds(refunded.at),
        decision_ns: refunded.at.as_nanos(),
        at_ns: refunded.decision.at.as_nanos(),
        policies: refunded.parts.iter().copied().map(policy).collect(),
    };
    json(&RefundLine { refund })
}

/// Returns the word of the policy that had the say.
fn instead(degraded: &Degraded) -> &'static str {
    if !degraded.denied.is_empty() {
        OnStoreError::Deny.as_str()
    } else if !degraded.local.is_empty() {
        OnStoreError::Local.as_str()
    } else {
        OnStoreError::Allow.as_str()
    }
}

fn statuses(refused_with: Option<RefusedWith>) -> (Option<u16>, Option<u16>) {
    let status = refused_with.map(|refused| refused.status.as_u16());
    (status, refused_with.and_then(|refused| refused.grpc_status))
}

fn policy(part: &Part) -> PolicyLine<'_> {
    PolicyLine {
        policy: &part.policy,
        limit: part.limit.to_string(),
        limit_id: &part.name,
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
