//! What this process holds, asked for when the page is: entries of the memory store, and names of the fullest keys.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
use sekisho::{Limiter, Occupancy};

use crate::store::{Counting as _, ServerStore};

#[derive(Debug)]
pub(super) struct Held(pub(super) Arc<Limiter<ServerStore>>);

impl Collector for Held {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        store(self.0.occupancy(), &mut encoder)?;
        let Some(fullest) = self.0.fullest() else { return Ok(()) };
        let help = "Names of the fullest keys that are held";
        gauge(&mut encoder, "fullest_keys", help, fullest.held())?;
        let help = "Names of the fullest keys that there is room for";
        gauge(&mut encoder, "fullest_keys_max", help, fullest.places())?;
        let help =
            "Times that an exhausted or refused key found no place among the fullest, or lost it";
        counter(&mut encoder, "fullest_keys_crowded_out", help, fullest.crowded_out())
    }
}

fn store(of: Occupancy, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Entries of the memory store, one a key and limit";
    gauge(encoder, "store_entries", help, of.entries)?;
    gauge(encoder, "store_bytes", "Bytes of the memory store", of.bytes)?;
    // What has no bound has no line.
    let bounds = [
        ("store_max_entries", "The most entries that the memory store may have", of.max_entries),
        ("store_max_bytes", "The most bytes that the memory store may have", of.max_bytes),
    ];
    for (name, help, most) in bounds {
        if !matches!(most, 0 | usize::MAX) {
            gauge(encoder, name, help, most)?;
        }
    }
    let help = "Entries of the memory store that were dropped because they equalled fresh ones";
    counter(encoder, "store_dropped_fresh", help, of.dropped)?;
    let help = "Entries of the memory store that were dropped while in use: always 0, by design, as that would hand out fresh quota";
    counter(encoder, "store_dropped_in_use", help, 0)?;
    let help = "Requests of unknown keys that found the memory store full: shared, denied or allowed, as overflow of the policy file says";
    counter(encoder, "store_overflow", help, of.overflowed)
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: usize) -> fmt::Result {
    let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let counter = ConstCounter::new(value);
    counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)
}
