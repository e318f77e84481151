//! What stands in front of the proxy: the tower layer, and what the gateway hears of it.

use std::{net::IpAddr, sync::Arc};

use http::StatusCode;
use sekisho::{Clock, IdentityDoor, Limiter, Store};
use sekisho_http::layer::{Decided, LimitLayer, Observe, Refunded, Unasked};

use super::{
    log::{AccessLog, bad_request_line, decision_line, refund_line},
    proxy::Peer,
};
use crate::{
    door::unbelieved::Unbelieved,
    metrics::{Door, Metrics},
};

/// Returns the layer that decides for a gateway: clients' addresses are taken from where the policy file says for that door,
/// and what happens is written to `log`.
pub fn gate(limiter: Arc<Limiter>, log: Option<AccessLog>) -> LimitLayer {
    let clock = Arc::clone(limiter.store().clock());
    observed((limiter, clock), log, None)
}

/// The same with any store, counted.
pub(crate) fn counted_gate<S: Store + 'static>(
    (limiter, clock): (&Arc<Limiter<S>>, &Arc<dyn Clock>),
    log: Option<AccessLog>,
    metrics: Arc<Metrics>,
) -> LimitLayer<S> {
    observed((Arc::clone(limiter), Arc::clone(clock)), log, Some(metrics))
}

fn observed<S: Store + 'static>(
    (limiter, clock): (Arc<Limiter<S>>, Arc<dyn Clock>),
    log: Option<AccessLog>,
    metrics: Option<Arc<Metrics>>,
) -> LimitLayer<S> {
    let unbelieved = Unbelieved::new(Arc::clone(&clock));
    LimitLayer::with_clock(limiter, clock)
        .door(IdentityDoor::Gateway)
        .peer(|extensions| extensions.get::<Peer>().map(|peer| peer.0.ip()))
        // The listener names every peer that has an address; the others came over a unix socket.
        .trust_peerless()
        .background(|work| drop(tokio::spawn(work)))
        .observe(Watch { log, metrics, unbelieved })
}

/// Writes and counts what the layer does.
struct Watch {
    log: Option<AccessLog>,
    metrics: Option<Arc<Metrics>>,
    unbelieved: Unbelieved,
}

impl Observe for Watch {
    fn in_order(&self, step: &mut dyn FnMut()) {
        match &self.log {
            Some(log) => log.in_order(step),
            None => step(),
        }
    }

    fn decided(&self, decided: &Decided<'_>) {
        if let Some(log) = &self.log {
            log.put(decision_line(decided));
        }
        if let Some(metrics) = &self.metrics {
            metrics.decided(Door::Gateway, decided.decision, decided.took);
        }
    }

    fn refunded(&self, refunded: &Refunded<'_>) {
        if let Some(log) = &self.log {
            log.put(refund_line(refunded));
        }
    }

    fn unasked(&self, unasked: &Unasked<'_>) {
        if let Some(log) = &self.log {
            log.put(bad_request_line(unasked));
        }
    }

    fn unbelieved(&self, peer: IpAddr) -> bool {
        // It is counted itself: a client may write what it likes.
        self.unbelieved.note(Some(peer));
        true
    }

    fn answered(&self, status: StatusCode) {
        if let Some(metrics) = &self.metrics {
            metrics.answered(Door::Gateway, status);
        }
    }
}
