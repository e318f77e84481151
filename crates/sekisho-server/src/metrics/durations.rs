//! How long decisions take, as a histogram.
//!
//! Our own, because every decision of every worker is counted: atomics do not make them wait for each other.

use std::{
    array, fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, TypedMetric},
};
use sekisho::Span;

/// The upper bounds of all buckets but the last, in nanoseconds: a decision in memory takes around one microsecond.
const BOUNDS_NS: [u64; 12] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    10_000_000,
    100_000_000,
];

/// A histogram of times. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Durations(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    buckets: [AtomicU64; BOUNDS_NS.len() + 1],
    sum_ns: AtomicU64,
}

impl Durations {
    pub(crate) fn observe(&self, took: Span) {
        let bucket = BOUNDS_NS.partition_point(|bound| *bound < took.as_nanos());
        let _before = self.0.buckets[bucket].fetch_add(1, Relaxed);
        let _before = self.0.sum_ns.fetch_add(took.as_nanos(), Relaxed);
    }
}

impl TypedMetric for Durations {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Durations {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let counts: [u64; BOUNDS_NS.len() + 1] =
            array::from_fn(|index| self.0.buckets[index].load(Relaxed));
        let seconds = |ns| Duration::from_nanos(ns).as_secs_f64();
        let bounds = BOUNDS_NS.into_iter().map(seconds).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let sum = seconds(self.0.sum_ns.load(Relaxed));
        encoder.encode_histogram::<NoLabelSet>(sum, counts.iter().sum(), &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text::encode, registry::Registry};

    use super::*;

    #[test]
    fn a_time_falls_into_the_bucket_that_holds_it() {
        let durations = Durations::default();
        for ns in [0, 1_000, 1_001, 100_000_001] {
            durations.observe(Span::from_nanos(ns));
        }
        let mut registry = Registry::default();
        registry.register("d", "Help", durations);
        let mut page = String::new();
        encode(&mut page, &registry).unwrap();
        for line in [
            "d_count 4",
            r#"d_bucket{le="0.000001"} 2"#,
            r#"d_bucket{le="0.000002"} 3"#,
            r#"d_bucket{le="0.1"} 3"#,
            r#"d_bucket{le="+Inf"} 4"#,
        ] {
            assert!(page.contains(line), "no `{line}` in\n{page}");
        }
    }
}
