//! The arrival patterns of the published experiments.

use sekisho::Timestamp;

use crate::trace::{Arrival, NO_KEY};

const SECOND: u64 = 1_000_000_000;

/// Returns one arrival of one unit.
fn unit(ns: u64) -> Arrival {
    Arrival { at: Timestamp::from_nanos(ns), key: NO_KEY.to_owned(), cost: 1 }
}

/// *boundary*: 60 requests in the last second of a minute and 60 in the first second of the next, evenly.
pub fn boundary() -> Vec<Arrival> {
    (0..120).map(|i| unit(59 * SECOND + i * SECOND / 60)).collect()
}

/// *steady*: nothing until 100 s, then two requests a second until 220 s.
pub fn steady() -> Vec<Arrival> {
    (0..240).map(|i| unit(100 * SECOND + i * SECOND / 2)).collect()
}
