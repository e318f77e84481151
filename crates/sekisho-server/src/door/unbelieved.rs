//! What an operator should know of peers, once a minute at most: a site behind a proxy asks thousands of times a second.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use sekisho::{Clock, Span};

/// Between two lines of one kind.
const QUIET: Span = Span::from_secs(60);

/// Counts what goes wrong between lines of the log.
#[derive(Debug, Default)]
struct Seldom {
    since_last: AtomicU64,
    /// When the next line may be written, in nanoseconds.
    next: AtomicU64,
}

impl Seldom {
    /// Counts once. Returns how often it happened since the last line, when it is time for another.
    fn count(&self, clock: &dyn Clock) -> Option<u64> {
        let count = self.since_last.fetch_add(1, Relaxed) + 1;
        let (now, next) = (clock.now(), self.next.load(Relaxed));
        let later = now.plus(QUIET).as_nanos();
        // Of several at once, one writes.
        let mine = now.as_nanos() >= next
            && self.next.compare_exchange(next, later, Relaxed, Relaxed).is_ok();
        mine.then(|| {
            let _counted = self.since_last.fetch_sub(count, Relaxed);
            count
        })
    }
}

/// Peers that claim to speak for others and are not trusted, and those that should and do not.
#[derive(Debug)]
pub(crate) struct Unbelieved {
    clock: Arc<dyn Clock>,
    untrusted: Seldom,
    silent: Seldom,
}

impl Unbelieved {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, untrusted: Seldom::default(), silent: Seldom::default() }
    }

    /// Says that a peer that is not trusted names somebody.
    pub(crate) fn note(&self, peer: Option<IpAddr>) {
        if let Some(requests) = self.untrusted.count(&*self.clock) {
            tracing::warn!(
                peer = %named(peer), requests,
                "a peer that is not in `trusted_proxies` says for whom it asks; add it there, or let clients connect to another door",
            );
        }
    }

    /// Says that a trusted peer does not name anybody where it must.
    pub(crate) fn note_silent(&self, peer: Option<IpAddr>, why: &std::io::Error) {
        if let Some(connections) = self.silent.count(&*self.clock) {
            tracing::warn!(
                peer = %named(peer), connections, %why,
                "a trusted proxy's connection does not begin with a PROXY protocol header, and is closed; have it send one, or \
                 choose another `[identity] address`",
            );
        }
    }
}

fn named(peer: Option<IpAddr>) -> String {
    peer.map_or("a unix socket's".to_owned(), |peer| peer.to_string())
}
