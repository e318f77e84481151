//! Decisions for callers that can wait a while, but not as long as a queue may be.

use sekisho_core::{Mode, Outcome, Span};

use super::{Asked, Limiter, charges, conclude, ready};
use crate::{
    decision::Decision,
    queue::Slot,
    request::Request,
    store::{Ask, Now, Store, memory::Memory},
};

impl<S: Store> Limiter<S> {
    /// Decides a request as [`decide`](Self::decide) does, for a caller that waits for `longest` at most.
    ///
    /// A slot that is further away is given back at once, and the request is denied: it may come again when the slot would be
    /// near enough. Between the two, others see the queue one longer than it is, so nobody gets more than the limit.
    ///
    /// ```
    /// # use sekisho::{CanonicalPath, Limiter, Mode, NoHeaders, PolicySet, Request, Span, FakeClock, Timestamp};
    /// # use std::sync::Arc;
    /// let policies = PolicySet::parse(
    ///     "[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"1/s burst 10 leaky-queue\"]\n",
    /// )?;
    /// let limiter = Limiter::with_clock(policies, Arc::new(FakeClock::at(Timestamp::from_secs(1))));
    /// # let path = CanonicalPath::parse("/")?;
    /// # let request = Request {
    /// #     method: "GET", host: None, path: &path, query: None,
    /// #     client: Some("203.0.113.9".parse()?), principal: None, headers: &NoHeaders,
    /// # };
    /// let mut ask = || limiter.decide_within_now(&request, Mode::Check, Span::from_secs(2));
    /// let delays = [ask(), ask(), ask()].map(|decision| decision.delay.as_nanos() / 1_000_000_000);
    /// assert_eq!(delays, [0, 1, 2]);
    /// let fourth = ask();
    /// assert!(!fourth.is_allowed());
    /// assert_eq!(fourth.binding().and_then(|part| part.verdict.retry_after), Some(Span::from_secs(1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn decide_within<'q>(
        &self,
        request: &Request<'_>,
        ask: impl Into<Asked<'q>>,
        longest: Span,
    ) -> Decision {
        let ask = ask.into();
        let mut decision = self.decide(request, ask).await;
        if ask.mode != Mode::Check || !decision.is_allowed() || decision.delay <= longest {
            return decision;
        }
        let delays: Vec<_> = decision.parts.iter().map(|part| part.verdict.delay).collect();
        // What a store cannot take back stays charged: the safe side.
        let _given_back = self.refund(&decision, |part| part.verdict.delay.is_zero()).await;
        for part in decision.parts.iter().filter(|part| !part.verdict.delay.is_zero()) {
            let _given_back = self.free(Slot::of(&decision, part)).await;
        }
        let parts = std::mem::take(&mut decision.parts);
        let looked = {
            let charges = charges(&parts);
            let asks = [Ask { charges: &charges, mode: Mode::Look }];
            self.store.decide(&asks, Now::StoreClock).await.pop()
        };
        let mut looked = conclude(parts, looked);
        for (part, delay) in
            looked.parts.iter_mut().zip(delays).filter(|(_, delay)| *delay > longest)
        {
            part.verdict.outcome = Outcome::Deny;
            part.verdict.remaining = Some(0);
            let wait = Span::from_nanos(delay.as_nanos() - longest.as_nanos());
            part.verdict.retry_after = Some(wait);
            part.verdict.next_after = wait;
            part.verdict.quota_after = wait;
        }
        if looked.is_allowed() {
            looked = Decision::from_parts(looked.at, looked.parts);
        }
        self.with_refusal(looked)
    }
}

impl Limiter<Memory> {
    /// Decides a request as [`decide_within`](Self::decide_within) does, without waiting for anything.
    pub fn decide_within_now<'a>(
        &self,
        request: &Request<'_>,
        ask: impl Into<Asked<'a>>,
        longest: Span,
    ) -> Decision {
        ready(self.decide_within(request, ask, longest))
    }
}
