//! Asking the limiter: once for each policy, whatever stands around.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

use http::{Extensions, HeaderMap, request::Parts};
use sekisho::{
    Algorithm, AnswerSettings, Asked, CanonicalPath, Decision, Part, PathError, Policy, Request,
    Ruling, Span, Store, Timestamp,
};

use super::{Background, LimitLayer, WhenStoreDown};
use crate::{HeaderLines, describe, headers};

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

impl<S: Store + 'static> LimitLayer<S> {
    pub(super) async fn ask(&self, parts: &Parts) -> Result<Admitted, Refused> {
        let uri = self.target.as_ref().and_then(|target| target(&parts.extensions));
        let uri = uri.unwrap_or(&parts.uri);
        let path = CanonicalPath::parse(uri.path()).map_err(Refused::Path)?;
        let mut admitted = Admitted { decisions: Vec::new(), wall: Timestamp::EPOCH };
        for policy in self.left_to_ask(&parts.extensions) {
            let asking = self.put(parts, (&path, uri.query()), policy);
            let decision = asking.await;
            match &decision.ruling {
                Ruling::Allow => admitted.decisions.push(decision),
                Ruling::StoreDown(_) if self.when_store_down == WhenStoreDown::Allow => {}
                _ => {
                    // Policies that were asked one by one are refused together all the same.
                    for earlier in &admitted.decisions {
                        let _told = self.refund(earlier, |_| true).await;
                    }
                    return Err(Refused::Decision(Box::new(decision)));
                }
            }
        }
        admitted.wall = self.clock.now();
        Ok(admitted)
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

    /// Puts the question. It holds the request only while it is put.
    fn put<'a>(
        &'a self,
        parts: &Parts,
        (path, query): (&CanonicalPath, Option<&str>),
        policy: Option<&'a str>,
    ) -> impl Future<Output = Decision> + Send + use<'a, S> {
        let headers = HeaderLines(&parts.headers);
        let client = self.client(parts);
        let request = Request {
            query,
            principal: (self.principal)(&parts.extensions),
            ..describe(parts, &headers, path, client)
        };
        let asking = self.limiter.decide(&request, Asked { policy, ..Asked::default() });
        async move {
            let decision = asking.await;
            if client.is_none() && decision.ruling == Ruling::MissingKey {
                self.warn_of_no_peer();
            }
            decision
        }
    }

    /// Waits until a request's turn has come. Whoever stops waiting gets back what was charged.
    pub(super) async fn wait(&self, admitted: &Admitted) {
        let delays = admitted.decisions.iter().filter(|decision| decision.delay > Span::ZERO);
        let Some(slot) = delays.map(|decision| decision.at.plus(decision.delay)).max() else {
            return;
        };
        let mut waiting = Waiting { layer: self, admitted, over: false };
        self.clock.wait_until(slot).await;
        waiting.over = true;
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
    async fn refund(&self, decision: &Decision, which: impl Fn(&Part) -> bool + Send) -> bool {
        let refunded = self.limiter.refund(decision, which).await;
        if let Err(error) = &refunded {
            tracing::warn!(%error, "what was charged for a request is not given back");
        }
        refunded.is_ok()
    }

    /// Gives back all of a decision, and waits for nothing.
    fn refund_now(&self, decision: &Decision) {
        let (limiter, decision) = (Arc::clone(&self.limiter), decision.clone());
        let mut work: Background = Box::pin(async move {
            if let Err(error) = limiter.refund(&decision, |_| true).await {
                tracing::warn!(%error, "the slot of an abandoned wait is not given back");
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
    layer: &'a LimitLayer<S>,
    admitted: &'a Admitted,
    over: bool,
}

impl<S: Store + 'static> Drop for Waiting<'_, S> {
    fn drop(&mut self) {
        if !self.over {
            self.admitted.decisions.iter().for_each(|decision| self.layer.refund_now(decision));
        }
    }
}
