//! Policies and a store, put together: plan the charges of a request, let the store decide, say what it means.

mod direct;
mod outage;
mod plan;

use std::sync::{Arc, OnceLock};

use sekisho_core::{Limit, Mode, Span, Timestamp};

use self::{
    direct::DirectLimits,
    outage::Fallback,
    plan::{Plan, charge, charges},
};
use crate::{
    clock::{Clock, SystemClock},
    decision::{Decision, Part},
    fullest::Fullest,
    policy::{PolicySet, StoreSettings},
    queue::Queues,
    request::Request,
    store::{
        Answer, Ask, Now, Store, StoreError,
        memory::{Memory, MemoryOptions},
    },
};

/// Policies, and the store that counts for them.
///
/// ```
/// use sekisho::{CanonicalPath, Limiter, Mode, NoHeaders, PolicySet, Request};
///
/// let limiter = Limiter::new(PolicySet::parse(r#"
///     [[policy]]
///     name = "login"
///     match = { method = "POST", path = "/login" }
///     key = ["ip"]
///     limits = ["2/min"]
/// "#)?);
/// let request = Request {
///     method: "POST",
///     host: None,
///     path: &CanonicalPath::parse("/login?next=/")?,
///     query: Some("next=/"),
///     client: Some("203.0.113.9".parse()?),
///     principal: None,
///     headers: &NoHeaders,
/// };
/// let allowed = (0..3).filter(|_| limiter.decide_now(&request, Mode::Check).is_allowed()).count();
/// assert_eq!(allowed, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Limiter<S = Memory> {
    policies: Arc<PolicySet>,
    store: S,
    queues: Arc<Queues>,
    /// Absent where nothing is decided without the store.
    fallback: Option<Fallback>,
    /// The limits that callers have named.
    named: DirectLimits,
    /// Empty until somebody wants to know.
    fullest: OnceLock<Fullest>,
}

/// A limit, a key and a cost that a caller names itself, without a policy.
#[derive(Clone, Debug)]
pub struct Direct<'a> {
    /// The limits, decided together; no two with the same id.
    pub limits: &'a [Limit],
    /// Who is counted.
    pub key: &'a [u8],
    /// How many units.
    pub cost: u64,
}

impl<S: Store> Limiter<S> {
    /// Returns a limiter that counts in `store`. Where the policies say that a store is shared, and one of them that this process
    /// decides while that is down (`on_store_error = "local"`), it has a memory of its own for that, bounded as their settings
    /// say.
    pub fn with_store(policies: PolicySet, store: S) -> Self {
        Self::with_store_and_clock(policies, store, Arc::new(SystemClock::new()))
    }

    /// The same on a clock of the caller's: what this process decides by itself is decided by it.
    pub fn with_store_and_clock(policies: PolicySet, store: S, clock: Arc<dyn Clock>) -> Self {
        let fallback = Fallback::of(&policies, clock);
        Self { fallback, ..Self::alone(policies, store) }
    }

    /// Returns a limiter that has nothing to fall back on.
    fn alone(policies: PolicySet, store: S) -> Self {
        Self {
            policies: Arc::new(policies),
            store,
            queues: Arc::default(),
            fallback: None,
            named: DirectLimits::default(),
            fullest: OnceLock::new(),
        }
    }

    /// Returns the policies.
    pub fn policies(&self) -> &PolicySet {
        &self.policies
    }

    /// Returns the store.
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Returns what this process counts in while the store is down, if it does then.
    pub fn fallback(&self) -> Option<&Memory> {
        self.fallback.as_ref().map(|fallback| &fallback.memory)
    }

    /// Begins to note which keys are nearest to the end of their limits, and returns where. What was decided before is not known;
    /// a second call changes nothing.
    ///
    /// With a store that others count in too, this is what this process has seen of it: the numbers are the store's, as of the
    /// last request that came here.
    pub fn keep_fullest(&self) -> &Fullest {
        self.fullest.get_or_init(Fullest::default)
    }

    /// Returns the fullest keys, if they are noted.
    pub fn fullest(&self) -> Option<&Fullest> {
        self.fullest.get()
    }

    /// Notes what limits said of their keys.
    fn note_fullest(&self, parts: &[Part], mode: Mode) {
        let Some(fullest) = self.fullest.get() else { return };
        for part in parts {
            fullest.note(&charge(part), &part.verdict, part.at, mode);
        }
    }

    pub(crate) const fn queues(&self) -> &Arc<Queues> {
        &self.queues
    }

    /// Decides a request under all policies that match it. `ask.cost`, when given, replaces the policies' costs.
    ///
    /// What is charged is settled when this is called; the future only waits for the store, and holds the request no more. So
    /// it may move between threads, which a request may not.
    pub fn decide<'s, 'q, A: Into<Asked<'q>>>(
        &'s self,
        request: &Request<'_>,
        ask: A,
    ) -> impl Future<Output = Decision> + Send + use<'s, 'q, S, A> {
        let ask = ask.into();
        let (mode, longest) = (ask.mode, ask.longest);
        let plan = self.policies.plan(request, &ask);
        async move {
            let decision = match plan {
                Plan::Refused(ruling, policy) => {
                    Decision::without_limits(ruling, Timestamp::EPOCH, policy)
                }
                Plan::Charges(parts) => self.decide_parts(parts, mode, longest).await,
            };
            self.with_refusal(decision)
        }
    }

    /// Adds how the policy that refuses wants to be heard.
    fn with_refusal(&self, mut decision: Decision) -> Decision {
        if !decision.is_allowed() {
            let refusing = decision
                .refused_by
                .clone()
                .or_else(|| decision.binding().map(|part| Arc::clone(&part.policy)));
            let policy = self
                .policies
                .policies()
                .iter()
                .find(|policy| refusing.as_deref() == Some(policy.name()));
            decision.refusal = policy.and_then(|policy| policy.refusal.clone());
        }
        decision
    }

    /// Gives back what some parts of an allowed decision were charged: for a request that turns out not to count, or that
    /// nobody waits for any more. Returns how many charges were given back.
    ///
    /// # Errors
    /// What the store says. What this process had noted beside it is given back all the same.
    pub async fn refund(
        &self,
        decision: &Decision,
        which: impl Fn(&Part) -> bool + Send,
    ) -> Result<usize, StoreError> {
        if !decision.is_allowed() {
            return Ok(0);
        }
        let parts: Vec<_> = decision.parts.iter().filter(|part| which(part)).collect();
        // Each time of its own is a refund of its own; a store with one clock has one.
        let mut left = parts.clone();
        let mut given_back = Ok(parts.len());
        while let Some(at) = left.first().map(|part| part.at) {
            let (same, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|part| part.at == at);
            if let Err(error) = self.give_back(decision, &same).await {
                given_back = Err(error);
            }
            left = others;
        }
        given_back
    }

    /// Gives back parts of a decision that were all charged at the same time, where they were charged.
    pub(crate) async fn give_back(
        &self,
        decision: &Decision,
        parts: &[&Part],
    ) -> Result<Answer, StoreError> {
        let Some(at) = parts.first().map(|part| part.at) else {
            return Ok(Answer::new(Timestamp::EPOCH, Vec::new()));
        };
        let charges = charges(parts.iter().copied());
        let asks = [Ask::new(&charges, Mode::Refund { at })];
        let answer = match &self.fallback {
            Some(fallback) if decision.degraded.is_some() => {
                fallback.memory.decide_now(&asks, Now::StoreClock).pop()
            }
            fallback => {
                if let Some(fallback) = fallback {
                    fallback.take_back(parts);
                }
                self.store.decide(&asks, Now::StoreClock).await.pop()
            }
        };
        let answer = answer.unwrap_or_else(|| Err(no_answer()))?;
        if let Some(fullest) = self.fullest.get() {
            for (index, (charge, verdict)) in charges.iter().zip(&answer.verdicts).enumerate() {
                fullest.note(charge, verdict, answer.time_of(index), Mode::Refund { at });
            }
        }
        Ok(answer)
    }

    /// Decides limits that the caller names itself.
    pub async fn decide_direct(&self, direct: &Direct<'_>, mode: Mode) -> Decision {
        self.decide_parts(self.policies.plan_direct(&self.named, direct), mode, None).await
    }

    async fn decide_parts(
        &self,
        mut parts: Vec<Part>,
        mode: Mode,
        longest: Option<Span>,
    ) -> Decision {
        if parts.is_empty() {
            return Decision::from_parts(Timestamp::EPOCH, parts);
        }
        let answer = {
            let charges = charges(&parts);
            let ask = Ask { longest, ..Ask::new(&charges, mode) };
            self.store.decide(&[ask], Now::StoreClock).await.pop()
        };
        match answer.unwrap_or_else(|| Err(no_answer())) {
            Ok(answer) => {
                note(&mut parts, &answer);
                let mut decision = Decision::from_parts(answer.at, parts);
                if let Some(fallback) = self.fallback.as_ref().filter(|_| decision.is_allowed()) {
                    fallback.warm(&mut decision.parts, mode);
                }
                self.note_fullest(&decision.parts, mode);
                decision
            }
            Err(error) => {
                let decision = self.decide_without_store(parts, error, (mode, longest));
                self.note_fullest(&decision.parts, mode);
                decision
            }
        }
    }
}

/// Notes in each part what the store said of it.
fn note(parts: &mut [Part], answer: &Answer) {
    for (index, (part, verdict)) in parts.iter_mut().zip(&answer.verdicts).enumerate() {
        part.verdict = *verdict;
        part.at = answer.time_of(index);
    }
}

fn no_answer() -> StoreError {
    StoreError::Unavailable("the store gave no answer".into())
}

/// How a request is asked about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// How it is charged.
    pub mode: Mode,
    /// A cost that replaces the policies' own.
    pub cost: Option<u64>,
    /// The one policy that is asked; all that match when absent.
    pub policy: Option<&'a str>,
    /// The longest that the caller waits for a slot of a `leaky-queue`: a check with a longer delay is denied, charged nothing,
    /// and may come again when a slot is near enough. As long as it takes when absent.
    ///
    /// ```
    /// # use sekisho::{Asked, CanonicalPath, Limiter, NoHeaders, PolicySet, Request, Span, FakeClock, Timestamp};
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
    /// let two_seconds = Asked { longest: Some(Span::from_secs(2)), ..Asked::default() };
    /// let ask = || limiter.decide_now(&request, two_seconds);
    /// let delays = [ask(), ask(), ask()].map(|decision| decision.delay.as_nanos() / 1_000_000_000);
    /// assert_eq!(delays, [0, 1, 2]);
    /// let fourth = ask();
    /// assert!(!fourth.is_allowed());
    /// assert_eq!(fourth.binding().and_then(|part| part.verdict.retry_after), Some(Span::from_secs(1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub longest: Option<Span>,
}

impl From<Mode> for Asked<'_> {
    fn from(mode: Mode) -> Self {
        Self { mode, ..Self::default() }
    }
}

impl Limiter<Memory> {
    /// Returns a limiter that counts in this process's memory, bounded as the policies' settings say. It begins empty: the
    /// `snapshot` that they may name is read with [`Snapshot::open`](crate::Snapshot::open).
    pub fn new(policies: PolicySet) -> Self {
        let store = Memory::new(MemoryOptions::from(&policies.settings().store));
        Self::alone(policies, store)
    }

    /// The same on a clock of the caller's.
    pub fn with_clock(policies: PolicySet, clock: Arc<dyn Clock>) -> Self {
        let store = Memory::with_clock(MemoryOptions::from(&policies.settings().store), clock);
        Self::alone(policies, store)
    }

    /// Decides a request as [`decide`](Self::decide) does, without waiting for anything.
    pub fn decide_now<'a>(&self, request: &Request<'_>, ask: impl Into<Asked<'a>>) -> Decision {
        ready(self.decide(request, ask.into()))
    }

    /// Gives back as [`refund`](Self::refund) does, without waiting for anything.
    ///
    /// # Errors
    /// What the store says.
    pub fn refund_now(
        &self,
        decision: &Decision,
        which: impl Fn(&Part) -> bool + Send,
    ) -> Result<usize, StoreError> {
        ready(self.refund(decision, which))
    }

    /// Decides limits that the caller names itself, without waiting for anything.
    pub fn decide_direct_now(&self, direct: &Direct<'_>, mode: Mode) -> Decision {
        ready(self.decide_direct(direct, mode))
    }
}

/// Runs a future that never waits: the memory store's decisions are ready when they are asked for.
pub(crate) fn ready<T>(future: impl Future<Output = T>) -> T {
    let future = std::pin::pin!(future);
    match future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => unreachable!("the memory store never waits"),
    }
}

impl From<&StoreSettings> for MemoryOptions {
    fn from(settings: &StoreSettings) -> Self {
        let default = Self::default();
        Self {
            max_bytes: settings.max_bytes.unwrap_or(default.max_bytes),
            max_entries: settings.max_entries.unwrap_or(default.max_entries),
            overflow: settings.overflow.unwrap_or(default.overflow),
            ..default
        }
    }
}
