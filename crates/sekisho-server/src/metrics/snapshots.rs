//! What is told of the snapshot: asked for when the page is.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

use crate::snapshot::Keeper;

/// The writes of a server's snapshot.
#[derive(Debug)]
pub(super) struct Snapshots(pub(super) Arc<Keeper>);

impl Collector for Snapshots {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let stats = &self.0.stats;
        let mut gauge = |name, help, unit: Option<&Unit>, value: f64| {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?)
        };
        let help = "When the snapshot was written, since the epoch; 0 when there is none";
        let seconds = Some(&Unit::Seconds);
        gauge("snapshot_last_success_timestamp", help, seconds, number(&stats.written_at))?;
        let help = "Time that the last write of the snapshot took";
        gauge("snapshot_write", help, seconds, number(&stats.took) / 1e9)?;
        let help = "Bytes of the snapshot";
        gauge("snapshot_size", help, Some(&Unit::Bytes), number(&stats.bytes))?;
        gauge("snapshot_entries", "Entries of the snapshot", None, number(&stats.entries))?;
        let help = "Writes of the snapshot that failed";
        let failures = ConstCounter::new(stats.failures.load(Relaxed));
        let kind = MetricType::Counter;
        failures.encode(encoder.encode_descriptor("snapshot_failures", help, None, kind)?)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a page shows doubles, and these are far below 2⁵³")]
fn number(of: &AtomicU64) -> f64 {
    of.load(Relaxed) as f64
}
