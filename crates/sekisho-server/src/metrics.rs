//! What is counted of the server itself.
//!
//! Every label is of a closed set: the policies of the file, and words of this program. No text of a client's is ever one, so
//! no client can make the page grow. All lines are there from the start, at zero, and counting touches one atomic each.

mod durations;
mod held;
mod shared;
mod snapshots;

use std::{collections::HashMap, fmt, sync::Arc};

use http::StatusCode;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text::encode},
    metrics::{
        counter::{ConstCounter, Counter},
        family::Family,
        info::Info,
    },
    registry::{Registry, Unit},
};
use sekisho::{Decision, Limiter, Ruling, Span};

use self::{
    durations::Durations,
    held::Held,
    shared::{Fallbacks, Shared},
    snapshots::Snapshots,
};
use crate::{door::gateway::AccessLog, snapshot::Keeper, store::ServerStore};

/// The media type of the page.
pub(crate) const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What a request came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Auth,
    Auth403,
    Check,
    Gateway,
    Resp,
    Other,
    Admin,
}

impl Door {
    const ALL: [Self; 7] = [
        Self::Auth,
        Self::Auth403,
        Self::Check,
        Self::Gateway,
        Self::Resp,
        Self::Other,
        Self::Admin,
    ];

    /// The doors that decide, the first of them all.
    const DECIDING: usize = 5;

    const fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Auth403 => "auth403",
            Self::Check => "check",
            Self::Gateway => "gateway",
            Self::Resp => "resp",
            Self::Other => "other",
            Self::Admin => "admin",
        }
    }
}

const OUTCOMES: [&str; 7] =
    ["allow", "deny", "never", "blocked", "missing-key", "store-down", "bad-request"];

/// Returns the place of an outcome in [`OUTCOMES`].
const fn place(ruling: &Ruling) -> usize {
    match ruling {
        Ruling::Allow => 0,
        Ruling::Deny => 1,
        Ruling::Never => 2,
        Ruling::Blocked => 3,
        Ruling::MissingKey => 4,
        Ruling::StoreDown(_) => 5,
        Ruling::BadRequest(_) => 6,
    }
}

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The label of decisions that no policy made.
const NO_POLICY: &str = "(none)";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DecisionLabels {
    policy: String,
    outcome: &'static str,
    door: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    door: &'static str,
    status_class: &'static str,
}

/// The counters of one policy, by outcome and door.
type PolicyCounters = [[Counter; Door::DECIDING]; OUTCOMES.len()];

/// The metrics of one server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    by_policy: HashMap<Box<str>, PolicyCounters>,
    without_policy: PolicyCounters,
    durations: Durations,
    /// Absent where no store is shared.
    fallbacks: Option<Fallbacks>,
    requests: [[Counter; CLASSES.len()]; Door::ALL.len()],
}

impl Metrics {
    pub(crate) fn new(
        limiter: &Arc<Limiter<ServerStore>>,
        log: Option<AccessLog>,
        keeper: Option<&Arc<Keeper>>,
    ) -> Self {
        let mut registry = Registry::with_prefix("sekisho");
        let decisions = Family::<DecisionLabels, Counter>::default();
        registry.register("decisions", "Decisions made", decisions.clone());
        let counters = |policy: &str| {
            std::array::from_fn(|outcome| {
                std::array::from_fn(|door| {
                    let (outcome, door) = (OUTCOMES[outcome], Door::ALL[door].as_str());
                    decisions
                        .get_or_create(&DecisionLabels { policy: policy.into(), outcome, door })
                        .clone()
                })
            })
        };
        let policies = limiter.policies().policies().iter();
        let by_policy =
            policies.map(|policy| (policy.name().into(), counters(policy.name()))).collect();

        let durations = Durations::default();
        registry.register_with_unit(
            "decision",
            "Time that a decision took",
            Unit::Seconds,
            durations.clone(),
        );

        let requests = Family::<RequestLabels, Counter>::default();
        registry.register("http_requests", "Requests answered", requests.clone());
        let requests = Door::ALL.map(|door| {
            CLASSES.map(|status_class| {
                requests.get_or_create(&RequestLabels { door: door.as_str(), status_class }).clone()
            })
        });

        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What runs", build);
        registry.register_collector(Box::new(Held(Arc::clone(limiter))));
        let fallbacks = limiter.store().as_redis().map(|_| {
            registry.register_collector(Box::new(Shared(Arc::clone(limiter))));
            Fallbacks::register(limiter, &mut registry)
        });
        if let Some(keeper) = keeper {
            registry.register_collector(Box::new(Snapshots(Arc::clone(keeper))));
        }
        if let Some(log) = log {
            registry.register_collector(Box::new(Lost(log)));
        }
        let without_policy = counters(NO_POLICY);
        Self { registry, by_policy, without_policy, durations, fallbacks, requests }
    }

    /// Counts a decision under the policy that binds it.
    pub(crate) fn decided(&self, door: Door, decision: &Decision, took: Span) {
        let policy = decision.binding().map(|part| &part.policy).or(decision.refused_by.as_ref());
        let counters =
            policy.and_then(|name| self.by_policy.get(&**name)).unwrap_or(&self.without_policy);
        if let Some(counter) = counters[place(&decision.ruling)].get(door as usize) {
            counter.inc();
        }
        self.durations.observe(took);
        if let Some(fallbacks) = &self.fallbacks {
            fallbacks.count(decision);
        }
    }

    /// Counts what became of a limit that a caller named itself.
    pub(crate) fn ruled(&self, door: Door, ruling: &Ruling, took: Span) {
        if let Some(counter) = self.without_policy[place(ruling)].get(door as usize) {
            counter.inc();
        }
        self.durations.observe(took);
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, door: Door, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(counter) = self.requests[door as usize].get(class) {
            counter.inc();
        }
    }

    /// Returns the page.
    pub(crate) fn render(&self) -> String {
        let mut page = String::with_capacity(16 * 1024);
        // Written to a string, which never fails.
        let _never = encode(&mut page, &self.registry);
        page
    }
}

/// The lines that the access log has lost.
#[derive(Debug)]
struct Lost(AccessLog);

impl Collector for Lost {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let lost = ConstCounter::new(self.0.lost());
        let help = "Lines that the access log could not write";
        lost.encode(encoder.encode_descriptor(
            "access_log_lost_lines",
            help,
            None,
            lost.metric_type(),
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_stand_at_their_own_place() {
        for (place, door) in Door::ALL.into_iter().enumerate() {
            assert_eq!(door as usize, place);
        }
    }
}
