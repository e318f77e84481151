//! Asking the limiter: once for each policy, whatever stands around.

use std::{
    net::IpAddr,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use http::{Extensions, HeaderMap, StatusCode, Uri, request::Parts};
use sekisho::{
    Algorithm, AnswerSettings, Asked, CanonicalPath, Decision, Part, PathError, Place, Policy,
    Request, Ruling, Slot, Store, StoreError, Timestamp,
};

use super::{
    Background, GrpcRefusal, LimitLayer, WhenStoreDown,
    grpc::Wire,
    observe::{Decided, Refunded, RefusedWith, Unasked, told},
};
use crate::{HeaderLines, Profile, answer::status, describe, headers};

/// A request's extension: the policies that it has been charged for.
#[derive(Clone, Default)]
struct Charged(Vec<Arc<str>>);

impl Charged {
    fn has(&self, policy: &Policy) -> bool {
        self.0.iter().any(|name| **name == *policy.name())
    }
}

/// Why a request goes no further.
pub(super) enum Refused {
    Path(PathError),
    // Boxed, since it is many times larger than the other.
    Decision(Box<Decision>),
}

/// A request that may go ahead, with what it was charged.
pub(super) struct Admitted {
    /// One decision, or one for each policy that was left to ask.
    decisions: Vec<Decision>,
    /// What the wall clock showed.
    pub(super) wall: Timestamp,
}

/// A request on its way to a decision.
#[derive(Clone, Copy)]
struct Asking<'a> {
    parts: &'a Parts,
    wire: &'a Wire,
    uri: &'a Uri,
    path: &'a CanonicalPath,
    client: Option<IpAddr>,
}

impl<S: Store + 'static> LimitLayer<S> {
    pub(super) async fn ask(&self, parts: &Parts, wire: &Wire) -> Result<Admitted, Refused> {
        let uri = self.target.as_ref().and_then(|target| target(&parts.extensions));
        let uri = uri.unwrap_or(&parts.uri);
        let client = self.client(parts);
        let path = &CanonicalPath::parse(uri.path()).map_err(|error| {
            self.tell_of_unasked(parts, uri, (client, error), wire);
            Refused::Path(error)
        })?;
        let asking = Asking { parts, wire, uri, path, client };
        let mut admitted = Admitted { decisions: Vec::new(), wall: Timestamp::EPOCH };
        for policy in self.left_to_ask(&parts.extensions) {
            let decision = self.put(asking, policy).await;
            match &decision.ruling {
                Ruling::Allow => admitted.decisions.push(decision),
                Ruling::StoreDown(_) if self.lets_pass(&decision) => {}
                _ => {
                    // Policies that were asked one by one are refused together all the same.
                    for earlier in &admitted.decisions {
                        let _told = self.refund(earlier, |_| true).await;
                    }
                    return Err(Refused::Decision(Box::new(decision)));
                }
            }
        }
        admitted.wall = self.clock.wall();
        Ok(admitted)
    }

    /// Returns whether a request passes that the store could not decide. Where a policy refuses it, the policy holds.
    fn lets_pass(&self, decision: &Decision) -> bool {
        self.when_store_down == WhenStoreDown::Allow && decision.degraded.is_none()
    }

    /// Returns what to ask for: everything at once, or, where an earlier layer has charged some of the policies, each of the
    /// others by its name.
    fn left_to_ask(&self, extensions: &Extensions) -> Vec<Option<&str>> {
        let policies = self.limiter.policies().policies();
        match extensions.get::<Charged>() {
            Some(charged) if policies.iter().any(|policy| charged.has(policy)) => {
                let left = policies.iter().filter(|policy| !charged.has(policy));
                left.map(|policy| Some(policy.name())).collect()
            }
            _ => vec![None],
        }
    }

    /// Puts the question.
    async fn put(&self, asking: Asking<'_>, policy: Option<&str>) -> Decision {
        let begin = self.observer.is_some().then(|| self.clock.now());
        let deciding = {
            let headers = HeaderLines(&asking.parts.headers);
            let request = self.request(asking, &headers);
            self.limiter.decide(&request, Asked { policy, ..Asked::default() })
        };
        let decision = told(self.observer.as_deref(), deciding, |observer, decision| {
            let now = self.clock.now();
            // The request cannot be kept over a wait; it is described once more.
            let headers = HeaderLines(&asking.parts.headers);
            observer.decided(&Decided {
                request: &self.request(asking, &headers),
                decision,
                at: if decision.parts.is_empty() { now } else { decision.at },
                took: now.since(begin.unwrap_or(now)),
                refused_with: self.refused_with(decision, asking.wire),
            });
        })
        .await;
        if asking.client.is_none() && decision.ruling == Ruling::MissingKey {
            self.warn_of_no_peer();
        }
        decision
    }

    fn request<'a>(&self, asking: Asking<'a>, headers: &'a HeaderLines<'a>) -> Request<'a> {
        Request {
            query: asking.uri.query(),
            principal: (self.principal)(&asking.parts.extensions),
            ..describe(asking.parts, headers, asking.path, asking.client)
        }
    }

    /// Returns what a decision is refused with, if it is.
    fn refused_with(&self, decision: &Decision, wire: &Wire) -> Option<RefusedWith> {
        match (&decision.ruling, wire) {
            (Ruling::Allow, _) => None,
            (Ruling::StoreDown(_), _) if self.lets_pass(decision) => None,
            (_, Wire::Http) => {
                let status = status(decision, Profile::Standard);
                Some(RefusedWith { status, grpc_status: None })
            }
            (_, Wire::Grpc(_)) => Some(self.grpc.refused_with(decision)),
        }
    }

    fn tell_of_unasked(
        &self,
        parts: &Parts,
        target: &Uri,
        (client, error): (Option<IpAddr>, PathError),
        wire: &Wire,
    ) {
        let Some(observer) = &self.observer else { return };
        let refused_with = match wire {
            Wire::Http => RefusedWith { status: StatusCode::BAD_REQUEST, grpc_status: None },
            Wire::Grpc(_) => GrpcRefusal::BAD_PATH,
        };
        observer.in_order(&mut || {
            let at = self.clock.now();
            observer.unasked(&Unasked { parts, target, client, error, at, refused_with });
        });
    }

    /// Waits until a request's turn has come. Whoever stops waiting gets back what was charged.
    pub(super) async fn wait(self: &Arc<Self>, admitted: &Admitted) {
        if admitted.decisions.iter().all(|decision| decision.delay.is_zero()) {
            return;
        }
        let (place, left) = self.limiter.line_up(&self.clock, &admitted.decisions);
        let mut waiting = Waiting { layer: self, admitted, place: Some(place) };
        for slot in left {
            self.free(slot).await;
        }
        if let Some(place) = &mut waiting.place {
            place.turn().await;
        }
        // Its turn has come: there is nothing to give back.
        waiting.place = None;
    }

    /// Gives back what was charged for an answer that does not count, and lets the numbers say so.
    pub(super) async fn settle(&self, admitted: &mut Admitted, status: u16) {
        let uncounted =
            |part: &Part| part.counted.as_ref().is_some_and(|counted| !counted.counts(status));
        for decision in &mut admitted.decisions {
            if decision.parts.iter().any(uncounted) && self.refund(decision, uncounted).await {
                decision.parts.iter_mut().filter(|part| uncounted(part)).for_each(uncharge);
            }
        }
    }

    /// Returns whether it was given back.
    async fn refund(
        &self,
        decision: &Decision,
        which: impl Fn(&Part) -> bool + Send + Sync,
    ) -> bool {
        let giving = self.limiter.refund(decision, &which);
        let refunded = told(self.observer.as_deref(), giving, |observer, refunded| {
            if refunded.is_ok() {
                let parts: Vec<_> = decision.parts.iter().filter(|part| which(part)).collect();
                let at = self.clock.now();
                observer.refunded(&Refunded { decision, parts: &parts, at });
            }
        })
        .await;
        if let Err(error) = &refunded {
            not_given_back(error, "what was charged for a request is not given back");
        }
        refunded.is_ok()
    }

    /// Gives back a slot that nobody in this process needs.
    async fn free(&self, slot: Slot) {
        let charge = slot.charge().clone();
        let giving = self.limiter.free(slot);
        let freed = told(self.observer.as_deref(), giving, |observer, freed| {
            if *freed == Ok(true) {
                let parts: Vec<_> = charge.parts.iter().collect();
                observer.refunded(&Refunded {
                    decision: &charge,
                    parts: &parts,
                    at: self.clock.now(),
                });
            }
        })
        .await;
        if let Err(error) = &freed {
            not_given_back(error, "the slot of an abandoned wait is not given back");
        }
    }

    /// Gives back all that an abandoned wait was charged, and waits for nothing.
    fn abandon(self: &Arc<Self>, admitted: &Admitted, place: Place) {
        let (layer, decisions) = (Arc::clone(self), admitted.decisions.clone());
        // Those behind move up at once, whatever the store takes.
        let left = place.leave();
        let mut work: Background = Box::pin(async move {
            let at_once = |part: &Part| part.verdict.delay.is_zero();
            for decision in decisions.iter().filter(|decision| decision.parts.iter().any(at_once)) {
                let _told = layer.refund(decision, at_once).await;
            }
            for slot in left {
                layer.free(slot).await;
            }
        });
        if work.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(()) {
            return;
        }
        if let Some(spawn) = &self.background {
            spawn(work);
        } else {
            tracing::warn!(
                "the slot of an abandoned wait is not given back: say with `LimitLayer::background` who does it"
            );
        }
    }
}

/// Says that something stays charged. While the store is away it does for every request, and that has been said once.
fn not_given_back(error: &StoreError, what: &'static str) {
    if error.is_transient() {
        tracing::debug!(%error, "{what}");
    } else {
        tracing::warn!(%error, "{what}");
    }
}

impl Admitted {
    /// Notes in a request what it has been charged for.
    pub(super) fn mark(&self, extensions: &mut Extensions) {
        let charged = extensions.get_or_insert_default::<Charged>();
        for part in self.decisions.iter().flat_map(|decision| &decision.parts) {
            if !charged.0.contains(&part.policy) {
                charged.0.push(Arc::clone(&part.policy));
            }
        }
    }

    /// Tells a response's reader of the quota.
    pub(super) fn tell(&self, headers: &mut HeaderMap, settings: &AnswerSettings) {
        for decision in &self.decisions {
            headers::merge_into(headers, decision, settings, self.wall);
        }
    }
}

/// Shows what would be left if the request had not been charged.
fn uncharge(part: &mut Part) {
    // A place in a queue is given back only while nobody stands behind it.
    let metered = part.limit.as_metered().filter(|of| of.algorithm() != Algorithm::LeakyQueue);
    if let (Some(metered), Some(remaining)) = (metered, &mut part.verdict.remaining) {
        *remaining = remaining.saturating_add(part.cost).min(metered.capacity());
    }
}

/// A wait that gives back what was charged unless it is over.
struct Waiting<'a, S: Store + 'static> {
    layer: &'a Arc<LimitLayer<S>>,
    admitted: &'a Admitted,
    place: Option<Place>,
}

impl<S: Store + 'static> Drop for Waiting<'_, S> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.layer.abandon(self.admitted, place);
        }
    }
}
