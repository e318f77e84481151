//! The arrival patterns of the published experiments.

use sekisho::Timestamp;

use crate::pattern::Request;

const SECOND: u64 = 1_000_000_000;

/// Returns a request of one unit from the only key there is.
pub(crate) fn unit(ns: u64) -> Request {
    Request { at: Timestamp::from_nanos(ns), key: 0, cost: 1 }
}

/// *boundary*: 60 requests in the last second of a minute and 60 in the first second of the next, evenly.
pub fn boundary() -> Vec<Request> {
    (0..120).map(|i| unit(59 * SECOND + i * SECOND / 60)).collect()
}

/// *steady*: nothing until 100 s, then two requests a second until 220 s.
pub fn steady() -> Vec<Request> {
    (0..240).map(|i| unit(100 * SECOND + i * SECOND / 2)).collect()
}

/// *split*: 60 requests in a minute, evenly, from the minute's beginning.
pub fn split() -> Vec<Request> {
    (0..60).map(|i| unit((60 + i) * SECOND)).collect()
}

/// *herd*: 2,000 requests in a minute, evenly, from the minute's beginning.
pub fn herd() -> Vec<Request> {
    (0..2_000).map(|i| unit(60 * SECOND + i * 60 * SECOND / 2_000)).collect()
}
