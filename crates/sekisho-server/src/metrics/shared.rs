//! What is told of a shared store: asked for when the page is.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{
        MetricType,
        counter::{ConstCounter, Counter},
        family::Family,
        gauge::ConstGauge,
    },
    registry::{Registry, Unit},
};
use sekisho::{Decision, Degraded, Limiter};
use sekisho_redis::{Histogram, ServerStats};

use crate::store::ServerStore;

/// The names of servers come from the policy file, or from the cluster or sentinels that it names: there are as many as there
/// are servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Server {
    server: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Trouble {
    server: String,
    kind: &'static str,
}

/// The servers of a shared store.
#[derive(Debug)]
pub(super) struct Shared(pub(super) Arc<Limiter<ServerStore>>);

impl Collector for Shared {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(store) = self.0.store().as_redis() else { return Ok(()) };
        let stats = store.stats();
        let servers = &stats.servers[..];
        let help = "Whether a server of the shared store can be asked";
        let up = encoder.encode_descriptor("store_up", help, None, MetricType::Gauge)?;
        each(up, servers, |server, encoder| ConstGauge::new(i64::from(server.up)).encode(encoder))?;
        let help = "Time that a round trip to the shared store took";
        let seconds = Some(&Unit::Seconds);
        let kind = MetricType::Histogram;
        let took = encoder.encode_descriptor("store_round_trip", help, seconds, kind)?;
        // Microseconds, as a store counts them.
        each(took, servers, |server, encoder| encode(&server.latency, 1e-6, encoder))?;
        let help = "Decisions that one round trip to the shared store carried";
        let carried = encoder.encode_descriptor("store_batch_size", help, None, kind)?;
        each(carried, servers, |server, encoder| encode(&server.sizes, 1.0, encoder))?;
        let help = "Round trips to the shared store that brought no answer";
        let kind = MetricType::Counter;
        let mut errors = encoder.encode_descriptor("store_errors", help, None, kind)?;
        for server in servers {
            for (kind, count) in &server.errors {
                let labels = Trouble { server: server.name.clone(), kind };
                ConstCounter::new(*count).encode(errors.encode_family(&labels)?)?;
            }
        }
        let help = "Denials that were repeated without asking the shared store";
        let cached = encoder.encode_descriptor("store_cached_denials", help, None, kind)?;
        ConstCounter::new(stats.cached_denials).encode(cached)
    }
}

fn each(
    mut metric: MetricEncoder<'_>,
    servers: &[ServerStats],
    mut write: impl FnMut(&ServerStats, MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    for server in servers {
        let labels = Server { server: server.name.clone() };
        write(server, metric.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Writes a histogram whose bounds and sum are multiples of `unit`.
#[expect(clippy::cast_precision_loss, reason = "a page shows doubles, and these are far below 2⁵³")]
fn encode(of: &Histogram, unit: f64, mut encoder: MetricEncoder<'_>) -> fmt::Result {
    let mut below = 0;
    let mut buckets = Vec::with_capacity(of.buckets.len() + 1);
    for (bound, at_most) in &of.buckets {
        // Ours are each bound's own; theirs hold all that is below.
        buckets.push((*bound as f64 * unit, at_most.saturating_sub(below)));
        below = *at_most;
    }
    buckets.push((f64::INFINITY, of.count.saturating_sub(below)));
    encoder.encode_histogram::<NoLabelSet>(of.sum as f64 * unit, of.count, &buckets, None)
}

const HOW: [&str; 3] = ["allow", "local", "deny"];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FallbackLabels {
    policy: String,
    how: &'static str,
}

/// Decisions that policies made while the store could not, by policy and by what it says.
#[derive(Debug)]
pub(super) struct Fallbacks(Vec<(Box<str>, [Counter; HOW.len()])>);

impl Fallbacks {
    pub(super) fn register(limiter: &Limiter<ServerStore>, registry: &mut Registry) -> Self {
        let family = Family::<FallbackLabels, Counter>::default();
        let help = "Decisions that a policy made while the shared store was down";
        registry.register("store_fallback_decisions", help, family.clone());
        let counters = |policy: &str| {
            HOW.map(|how| {
                family.get_or_create(&FallbackLabels { policy: policy.into(), how }).clone()
            })
        };
        let policies = limiter.policies().policies().iter();
        Self(policies.map(|policy| (policy.name().into(), counters(policy.name()))).collect())
    }

    pub(super) fn count(&self, decision: &Decision) {
        let Some(degraded) = decision.degraded.as_deref() else { return };
        let Degraded { allowed, local, denied, .. } = degraded;
        for (place, policies) in [allowed, local, denied].into_iter().enumerate() {
            for (_, counters) in
                self.0.iter().filter(|(name, _)| policies.iter().any(|policy| **policy == **name))
            {
                let _before = counters[place].inc();
            }
        }
    }
}
