//! Policies and a store, put together: plan the charges of a request, let the store decide, say what it means.

use std::sync::Arc;

use sekisho_core::{Limit, Mode, Span, Timestamp, Verdict};

use crate::{
    clock::Clock,
    decision::{Decision, Part, Ruling},
    key::Key,
    policy::{PolicySet, compile::limits::default_id, identify::Identified},
    queue::Queues,
    request::Request,
    store::{
        Answer, Ask, Charge, Now, Scope, Store, StoreError,
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

/// What a request is to be charged, or why it is refused before that.
enum Plan {
    Charges(Vec<Part>),
    Refused(Ruling, Option<Arc<str>>),
}

impl PolicySet {
    /// Says what a request is charged under these policies: the first half of a decision.
    fn plan(&self, request: &Request<'_>, ask: &Asked<'_>) -> Plan {
        if self.lists.deny.has_address(request.client) {
            return Plan::Refused(Ruling::Blocked, None);
        }
        if self.lists.allow.has_address(request.client) {
            return Plan::Charges(Vec::new());
        }
        let mut parts = Vec::new();
        let (mut missing, mut bad) = (None, None);
        for policy in &self.policies {
            if ask.policy.is_some_and(|name| name != policy.name()) {
                continue;
            }
            let Some(matched) = policy.matcher.matches(request) else { continue };
            if policy.lists.deny.has_address(request.client) {
                return Plan::Refused(Ruling::Blocked, Some(Arc::clone(&policy.name)));
            }
            let key =
                match policy.key.identify(request, &matched, policy.on_missing_key, &self.seed) {
                    Identified::Key(key) => key,
                    Identified::Skip => continue,
                    Identified::Missing => {
                        missing.get_or_insert(&policy.name);
                        continue;
                    }
                };
            if policy.lists.deny.has_key(&key) {
                return Plan::Refused(Ruling::Blocked, Some(Arc::clone(&policy.name)));
            }
            if policy.lists.allow.has_address(request.client) || policy.lists.allow.has_key(&key) {
                continue;
            }
            let cost = match ask.cost.map_or_else(|| policy.cost.cost(request), Ok) {
                Ok(cost) => cost,
                Err(error) => {
                    bad.get_or_insert((error, &policy.name));
                    continue;
                }
            };
            let (plan, limits) = policy.limits.choose(request);
            let plan: Option<Arc<str>> = plan.map(Arc::from);
            parts.extend(limits.iter().map(|limit| Part {
                policy: Arc::clone(&policy.name),
                name: Arc::clone(&limit.name),
                scope: limit.scope.clone(),
                limit: limit.limit,
                plan: plan.clone(),
                key: key.clone(),
                cost,
                counted: policy.count.clone(),
                verdict: Verdict::UNLIMITED,
            }));
        }
        // A refusal of any policy is a refusal, whatever the order: blocked, then bad, then missing.
        match (bad, missing) {
            (Some((error, policy)), _) => {
                Plan::Refused(Ruling::BadRequest(error), Some(Arc::clone(policy)))
            }
            (None, Some(policy)) => Plan::Refused(Ruling::MissingKey, Some(Arc::clone(policy))),
            (None, None) => Plan::Charges(parts),
        }
    }

    /// Says what a request would be charged: for people who ask why. Nothing is counted.
    ///
    /// # Errors
    /// The ruling, and the policy that makes it, when the request is refused before any limit is asked.
    pub fn explain(&self, request: &Request<'_>) -> Result<Vec<Part>, (Ruling, Option<Arc<str>>)> {
        match self.plan(request, &Asked::default()) {
            Plan::Charges(parts) => Ok(parts),
            Plan::Refused(ruling, policy) => Err((ruling, policy)),
        }
    }

    fn plan_direct(&self, direct: &Direct<'_>) -> Vec<Part> {
        let key = Key::plain(direct.key, &self.seed);
        let part = |limit: &Limit| {
            let id = default_id(limit);
            Part {
                policy: "".into(),
                name: if direct.limits.len() == 1 { "default".into() } else { id.as_str().into() },
                scope: Scope::new("", &id),
                limit: *limit,
                plan: None,
                key: key.clone(),
                cost: direct.cost,
                counted: None,
                verdict: Verdict::UNLIMITED,
            }
        };
        direct.limits.iter().map(part).collect()
    }
}

fn charges(parts: &[Part]) -> Vec<Charge<'_>> {
    parts
        .iter()
        .map(|part| Charge {
            limit: &part.limit,
            scope: &part.scope,
            key: &part.key,
            cost: part.cost,
        })
        .collect()
}

/// What a store's answer means for the parts that it was asked about.
fn conclude(mut parts: Vec<Part>, answer: Option<Result<Answer, StoreError>>) -> Decision {
    match answer {
        Some(Ok(answer)) => {
            for (part, verdict) in parts.iter_mut().zip(answer.verdicts) {
                part.verdict = verdict;
            }
            Decision::from_parts(answer.at, parts)
        }
        Some(Err(error)) => {
            Decision::without_limits(Ruling::StoreDown(error), Timestamp::EPOCH, None)
        }
        None => Decision::without_limits(
            Ruling::StoreDown(StoreError::Unavailable("the store gave no answer".into())),
            Timestamp::EPOCH,
            None,
        ),
    }
}

impl<S: Store> Limiter<S> {
    /// Returns a limiter that counts in `store`.
    pub fn with_store(policies: PolicySet, store: S) -> Self {
        Self { policies: Arc::new(policies), store, queues: Arc::default() }
    }

    /// Returns the policies.
    pub fn policies(&self) -> &PolicySet {
        &self.policies
    }

    /// Returns the store.
    pub const fn store(&self) -> &S {
        &self.store
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
    /// What the store says.
    pub async fn refund(
        &self,
        decision: &Decision,
        which: impl Fn(&Part) -> bool + Send,
    ) -> Result<usize, StoreError> {
        if !decision.is_allowed() {
            return Ok(0);
        }
        let parts: Vec<_> = decision.parts.iter().filter(|part| which(part)).cloned().collect();
        if parts.is_empty() {
            return Ok(0);
        }
        let charges = charges(&parts);
        let asks = [Ask::new(&charges, Mode::Refund { at: decision.at })];
        match self.store.decide(&asks, Now::StoreClock).await.pop() {
            Some(Ok(_)) | None => Ok(parts.len()),
            Some(Err(error)) => Err(error),
        }
    }

    /// Decides limits that the caller names itself.
    pub async fn decide_direct(&self, direct: &Direct<'_>, mode: Mode) -> Decision {
        self.decide_parts(self.policies.plan_direct(direct), mode, None).await
    }

    async fn decide_parts(&self, parts: Vec<Part>, mode: Mode, longest: Option<Span>) -> Decision {
        if parts.is_empty() {
            return Decision::from_parts(Timestamp::EPOCH, parts);
        }
        let answer = {
            let charges = charges(&parts);
            let ask = Ask { longest, ..Ask::new(&charges, mode) };
            self.store.decide(&[ask], Now::StoreClock).await.pop()
        };
        conclude(parts, answer)
    }
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
    /// Returns a limiter that counts in this process's memory, bounded as the policies' settings say.
    pub fn new(policies: PolicySet) -> Self {
        let store = Memory::new(MemoryOptions::from(policies.settings().store));
        Self::with_store(policies, store)
    }

    /// The same on a clock of the caller's.
    pub fn with_clock(policies: PolicySet, clock: Arc<dyn Clock>) -> Self {
        let store = Memory::with_clock(MemoryOptions::from(policies.settings().store), clock);
        Self::with_store(policies, store)
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

impl From<crate::policy::StoreSettings> for MemoryOptions {
    fn from(settings: crate::policy::StoreSettings) -> Self {
        let default = Self::default();
        Self {
            max_bytes: settings.max_bytes.unwrap_or(default.max_bytes),
            max_entries: settings.max_entries.unwrap_or(default.max_entries),
            overflow: settings.overflow.unwrap_or(default.overflow),
            ..default
        }
    }
}
