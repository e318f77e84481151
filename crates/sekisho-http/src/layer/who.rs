//! Who is asking, as far as a request's extensions and headers tell.

use std::{
    net::IpAddr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use http::request::Parts;
use sekisho::{AddressSource, Store};

use super::LimitLayer;
use crate::{HeaderLines, client_addr};

/// A request's extension: the address that its connection came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer(pub IpAddr);

/// A request's extension: who its caller is, as a layer before this one has verified. Policies count by it with the key part
/// `principal`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal(pub String);

/// What has been warned of: once is enough, whatever arrives.
#[derive(Debug, Default)]
pub(super) struct Warned {
    unbelieved: AtomicBool,
    no_peer: AtomicBool,
}

impl<S: Store + 'static> LimitLayer<S> {
    /// Returns the client's address. A header from a peer that is not trusted does not count: the peer itself does.
    pub(super) fn client(&self, parts: &Parts) -> Option<IpAddr> {
        let peer = (self.peer)(&parts.extensions);
        if peer.is_none() && !self.peerless {
            // For the servers' doors no peer means a unix socket, whose headers count. Here it means that nobody knows.
            if !matches!(self.source, AddressSource::Peer | AddressSource::ProxyProtocol) {
                self.warn_of_no_peer();
            }
            return None;
        }
        let identity = &self.limiter.policies().settings().identity;
        let lines = HeaderLines(&parts.headers);
        let client = client_addr(identity, &self.source, peer, &lines);
        if let Some(peer) = peer.filter(|_| client.unbelieved) {
            self.warn_of_unbelieved(peer);
        }
        client.address
    }

    /// Says that a peer is counted for all whom it speaks for, unless the observer says so.
    fn warn_of_unbelieved(&self, peer: IpAddr) {
        let said = self.observer.as_ref().is_some_and(|observer| observer.unbelieved(peer));
        if !said && !self.warned.unbelieved.swap(true, Relaxed) {
            tracing::warn!(
                %peer,
                "a peer that is not in `trusted_proxies` says for whom it asks, and is counted itself: if it is a proxy of \
                 yours, add it there, or all its clients share one quota"
            );
        }
    }

    /// Says that requests have no address, which is a matter of how the stack was put together.
    pub(super) fn warn_of_no_peer(&self) {
        if !self.peerless && !self.warned.no_peer.swap(true, Relaxed) {
            tracing::warn!(
                "a request does not tell where it came from, so it has no address to be counted by: say with \
                 `LimitLayer::peer` where the address is"
            );
        }
    }
}
