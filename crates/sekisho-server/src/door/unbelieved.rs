//! Says that a proxy is not believed, once a minute at most: a site behind it asks thousands of times a second.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use sekisho::{Clock, Span};

/// Between two lines of the log.
const QUIET: Span = Span::from_secs(60);

/// Counts requests from peers that claim to speak for others, and are not trusted.
#[derive(Debug)]
pub(crate) struct Unbelieved {
    clock: Arc<dyn Clock>,
    since_last: AtomicU64,
    /// When the next line may be written, in nanoseconds.
    next: AtomicU64,
}

impl Unbelieved {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, since_last: AtomicU64::new(0), next: AtomicU64::new(0) }
    }

    pub(crate) fn note(&self, peer: Option<IpAddr>) {
        let count = self.since_last.fetch_add(1, Relaxed) + 1;
        let (now, next) = (self.clock.now(), self.next.load(Relaxed));
        let later = now.plus(QUIET).as_nanos();
        // Of several at once, one writes.
        if now.as_nanos() >= next
            && self.next.compare_exchange(next, later, Relaxed, Relaxed).is_ok()
        {
            let _counted = self.since_last.fetch_sub(count, Relaxed);
            tracing::warn!(
                peer = %peer.map_or("unknown".to_owned(), |peer| peer.to_string()), requests = count,
                "a peer that is not in `trusted_proxies` says for whom it asks; add it there, or let clients connect to another door",
            );
        }
    }
}
