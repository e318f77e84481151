//! Being told what a layer does, in the order in which it does it: for logs and counters.

use std::{
    fmt,
    future::poll_fn,
    net::IpAddr,
    pin::pin,
    task::{Context, Poll},
};

use http::{StatusCode, Uri, request::Parts};
use sekisho::{Decision, Part, PathError, Request, Span, Timestamp};

/// Is told what a layer decides, gives back and refuses.
///
/// Every method is called by the task that serves the request, and holds it up: be brief, and never call the layer from here.
///
/// # Order
///
/// The layer does what it tells of, and tells of it, within one call of [`in_order`](Self::in_order). An observer that holds a
/// lock over that call hears of decisions in the order in which they were made, with none between a decision and the telling.
/// This holds for every store that answers at once, like [`Memory`](sekisho::Memory). Of a store that is waited for, no lock is
/// held over the wait: the order is then that in which answers arrive, and only [`Decision::at`] says when each was made.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering::Relaxed}};
/// use sekisho::{Limiter, PolicySet};
/// use sekisho_http::layer::{Decided, LimitLayer, Observe};
///
/// #[derive(Default)]
/// struct Refusals(AtomicU64);
///
/// impl Observe for Refusals {
///     fn decided(&self, decided: &Decided<'_>) {
///         if decided.refused_with.is_some() {
///             self.0.fetch_add(1, Relaxed);
///         }
///     }
/// }
///
/// let policies = PolicySet::parse("[[policy]]\nname = \"all\"\nkey = [\"ip\"]\nlimits = [\"1/min\"]\n")?;
/// let refusals = Arc::new(Refusals::default());
/// let limit = LimitLayer::new(Arc::new(Limiter::new(policies))).observe(Arc::clone(&refusals));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Observe: Send + Sync {
    /// Calls `step` once. A decision is made, or units are given back, and [`decided`](Self::decided),
    /// [`refunded`](Self::refunded) or [`unasked`](Self::unasked) is called, all before `step` returns. Of a store that is
    /// waited for, most steps do neither.
    fn in_order(&self, step: &mut dyn FnMut()) {
        step();
    }

    /// Is told of a decision. A request may have several: one for each policy that an earlier layer has not charged.
    fn decided(&self, _: &Decided<'_>) {}

    /// Is told of units that were given back.
    fn refunded(&self, _: &Refunded<'_>) {}

    /// Is told of a request that was refused without a decision: its path has no form that all servers agree on.
    fn unasked(&self, _: &Unasked<'_>) {}

    /// Is told of a peer that says for whom it asks and is not trusted, so that it is counted itself. Outside of
    /// [`in_order`](Self::in_order).
    ///
    /// Returns whether that has been logged. If not, the layer warns of it, once.
    fn unbelieved(&self, _: IpAddr) -> bool {
        false
    }

    /// Is told of the head of an answer: a refusal's, or what the inner service said. Outside of
    /// [`in_order`](Self::in_order).
    fn answered(&self, _: StatusCode) {}
}

impl<T: Observe + ?Sized> Observe for std::sync::Arc<T> {
    fn in_order(&self, step: &mut dyn FnMut()) {
        (**self).in_order(step);
    }

    fn decided(&self, decided: &Decided<'_>) {
        (**self).decided(decided);
    }

    fn refunded(&self, refunded: &Refunded<'_>) {
        (**self).refunded(refunded);
    }

    fn unasked(&self, unasked: &Unasked<'_>) {
        (**self).unasked(unasked);
    }

    fn unbelieved(&self, peer: IpAddr) -> bool {
        (**self).unbelieved(peer)
    }

    fn answered(&self, status: StatusCode) {
        (**self).answered(status);
    }
}

/// A decision that was made.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Decided<'a> {
    /// What was asked about.
    pub request: &'a Request<'a>,
    /// What was said.
    pub decision: &'a Decision,
    /// When: the decision's own time, or the layer's clock where no limit was asked.
    pub at: Timestamp,
    /// How long deciding took, from the question on, by the layer's clock.
    pub took: Span,
    /// What the request is refused with; nothing when it passes.
    pub refused_with: Option<RefusedWith>,
}

/// Units that were given back: of an answer that does not count, of an abandoned wait, or of a request that another policy
/// refused.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Refunded<'a> {
    /// The decision that they were charged by.
    pub decision: &'a Decision,
    /// Its parts that were taken back.
    pub parts: &'a [&'a Part],
    /// When, by the layer's clock.
    pub at: Timestamp,
}

/// A request that no policy could be asked about.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Unasked<'a> {
    /// The request.
    pub parts: &'a Parts,
    /// What it asks for, as it was sent.
    pub target: &'a Uri,
    /// Who asks.
    pub client: Option<IpAddr>,
    /// What is wrong with the path.
    pub error: PathError,
    /// When, by the layer's clock.
    pub at: Timestamp,
    /// What it is refused with.
    pub refused_with: RefusedWith,
}

/// The status of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedWith {
    /// The answer's status; 200 for gRPC.
    pub status: StatusCode,
    /// The status of gRPC, for those who speak that.
    pub grpc_status: Option<u16>,
}

/// Does something, and tells an observer of it in the same breath.
pub(super) async fn told<T: Send>(
    observer: Option<&dyn Observe>,
    work: impl Future<Output = T> + Send,
    mut tell: impl FnMut(&dyn Observe, &T) + Send,
) -> T {
    let Some(observer) = observer else { return work.await };
    let mut work = pin!(work);
    poll_fn(|context: &mut Context<'_>| {
        let mut polled = Poll::Pending;
        observer.in_order(&mut || {
            // An observer that steps twice does not poll what is over.
            if polled.is_pending() {
                polled = work.as_mut().poll(context);
                if let Poll::Ready(done) = &polled {
                    tell(observer, done);
                }
            }
        });
        polled
    })
    .await
}

impl fmt::Debug for dyn Observe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observe")
    }
}
