//! The first half of a decision: what a request is charged.

use std::sync::Arc;

use sekisho_core::{Limit, Timestamp, Verdict};

use super::{
    Asked, Direct,
    direct::{DirectLimits, Named},
};
use crate::{
    decision::{Part, Ruling},
    key::Key,
    policy::{Outage, PolicySet, identify::Identified},
    request::Request,
    store::Charge,
};

/// What a request is to be charged, or why it is refused before that.
pub(super) enum Plan {
    Charges(Vec<Part>),
    Refused(Ruling, Option<Arc<str>>),
}

impl PolicySet {
    /// Says what a request is charged under these policies: the first half of a decision.
    pub(super) fn plan(&self, request: &Request<'_>, ask: &Asked<'_>) -> Plan {
        if self.lists.deny.has_address(request.client) {
            return Plan::Refused(Ruling::Blocked, None);
        }
        if self.lists.allow.has_address(request.client) {
            return Plan::Charges(Vec::new());
        }
        let mut parts = Vec::new();
        let (mut missing, mut bad) = (None, None);
        for policy in &self.policies {
            if ask.policy.is_some_and(|name| name != policy.name()) {
                continue;
            }
            let Some(matched) = policy.matcher.matches(request) else { continue };
            if policy.lists.deny.has_address(request.client) {
                return Plan::Refused(Ruling::Blocked, Some(Arc::clone(&policy.name)));
            }
            let key =
                match policy.key.identify(request, &matched, policy.on_missing_key, &self.seed) {
                    Identified::Key(key) => key,
                    Identified::Skip => continue,
                    Identified::Missing => {
                        missing.get_or_insert(&policy.name);
                        continue;
                    }
                };
            if policy.lists.deny.has_key(&key) {
                return Plan::Refused(Ruling::Blocked, Some(Arc::clone(&policy.name)));
            }
            if policy.lists.allow.has_address(request.client) || policy.lists.allow.has_key(&key) {
                continue;
            }
            let cost = match ask.cost.map_or_else(|| policy.cost.cost(request), Ok) {
                Ok(cost) => cost,
                Err(error) => {
                    bad.get_or_insert((error, &policy.name));
                    continue;
                }
            };
            let (plan, limits) = policy.limits.choose(request);
            let plan: Option<Arc<str>> = plan.map(Arc::from);
            parts.extend(limits.iter().map(|limit| Part {
                policy: Arc::clone(&policy.name),
                name: Arc::clone(&limit.name),
                scope: limit.scope.clone(),
                limit: limit.limit,
                plan: plan.clone(),
                key: key.clone(),
                cost,
                counted: policy.count.clone(),
                verdict: Verdict::UNLIMITED,
                at: Timestamp::EPOCH,
                outage: limit.outage.clone(),
                warmed: None,
            }));
        }
        // A refusal of any policy is a refusal, whatever the order: blocked, then bad, then missing.
        match (bad, missing) {
            (Some((error, policy)), _) => {
                Plan::Refused(Ruling::BadRequest(error), Some(Arc::clone(policy)))
            }
            (None, Some(policy)) => Plan::Refused(Ruling::MissingKey, Some(Arc::clone(policy))),
            (None, None) => Plan::Charges(parts),
        }
    }

    /// Returns the key that a caller names itself, as the check API makes it.
    pub fn plain_key(&self, part: &[u8]) -> Key {
        Key::plain(part, &self.seed)
    }

    /// Says what a request would be charged: for people who ask why. Nothing is counted.
    ///
    /// # Errors
    /// The ruling, and the policy that makes it, when the request is refused before any limit is asked.
    pub fn explain(&self, request: &Request<'_>) -> Result<Vec<Part>, (Ruling, Option<Arc<str>>)> {
        match self.plan(request, &Asked::default()) {
            Plan::Charges(parts) => Ok(parts),
            Plan::Refused(ruling, policy) => Err((ruling, policy)),
        }
    }

    pub(super) fn plan_direct(&self, named: &DirectLimits, direct: &Direct<'_>) -> Vec<Part> {
        let key = self.plain_key(direct.key);
        let part = |limit: &Limit| {
            let Named { id, scope } = named.get(limit);
            Part {
                policy: Arc::clone(&named.policy),
                name: if direct.limits.len() == 1 { Arc::clone(&named.alone) } else { id },
                scope,
                limit: *limit,
                plan: None,
                key: key.clone(),
                cost: direct.cost,
                counted: None,
                verdict: Verdict::UNLIMITED,
                at: Timestamp::EPOCH,
                outage: Outage::Unsaid,
                warmed: None,
            }
        };
        direct.limits.iter().map(part).collect()
    }
}

pub(super) fn charges<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Vec<Charge<'a>> {
    parts.into_iter().map(charge).collect()
}

/// Returns what a part is charged.
pub(super) const fn charge(part: &Part) -> Charge<'_> {
    Charge { limit: &part.limit, scope: &part.scope, key: &part.key, cost: part.cost }
}
