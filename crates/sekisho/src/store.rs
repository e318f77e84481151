//! Where state lives. A store takes the charges of a request, all or none, and returns verdicts.

pub(crate) mod memory;
pub(crate) mod snapshot;
mod table;

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

use sekisho_core::{Joint, Limit, Mode, Outcome, Span, Timestamp, Verdict};

use crate::{digest::Seed, key::Key};

/// Names the state of one limit: the policy and the limit's id. The limit's number is not part of it.
#[derive(Clone)]
pub struct Scope {
    inner: Arc<Named>,
}

struct Named {
    policy: Box<str>,
    limit: Box<str>,
    // Invariant: the policy's length, the policy and the limit's id.
    encoded: Box<[u8]>,
    /// The mark under the seed that asked first. A scope is nearly always used with one store.
    mark: OnceLock<(Seed, u128)>,
}

impl Scope {
    /// Returns the scope of a policy's limit.
    pub fn new(policy: &str, limit: &str) -> Self {
        let mut encoded = Vec::with_capacity(8 + policy.len() + limit.len());
        encoded.extend_from_slice(&(policy.len() as u64).to_le_bytes());
        encoded.extend_from_slice(policy.as_bytes());
        encoded.extend_from_slice(limit.as_bytes());
        let (policy, limit) = (policy.into(), limit.into());
        let named = Named { policy, limit, encoded: encoded.into(), mark: OnceLock::new() };
        Self { inner: Arc::new(named) }
    }

    /// Returns the policy's name; empty for a limit that is used without a policy.
    pub fn policy(&self) -> &str {
        &self.inner.policy
    }

    /// Returns the limit's id.
    pub fn limit(&self) -> &str {
        &self.inner.limit
    }

    /// Returns bytes that no other scope has.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.inner.encoded
    }

    /// Returns what tells this scope's digests from those of all others.
    #[inline]
    pub(crate) fn mark(&self, seed: &Seed) -> u128 {
        let (made_with, mark) =
            self.inner.mark.get_or_init(|| (seed.clone(), seed.mark(self.as_bytes())));
        if made_with == seed { *mark } else { seed.mark(self.as_bytes()) }
    }
}

impl PartialEq for Scope {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Scope {}

impl Hash for Scope {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.as_bytes().hash(hasher);
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scope({}:{})", self.policy(), self.limit())
    }
}

/// One limit, key and cost that a request must pass.
#[derive(Clone, Copy, Debug)]
pub struct Charge<'a> {
    /// The limit, with the numbers that hold now.
    pub limit: &'a Limit,
    /// Which state is counted in.
    pub scope: &'a Scope,
    /// Who is counted.
    pub key: &'a Key,
    /// How many units.
    pub cost: u64,
}

/// The charges of one request, decided together: all or none.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The charges; no two of the same scope and key.
    pub charges: &'a [Charge<'a>],
    /// How they are charged.
    pub mode: Mode,
    /// The longest that the caller waits for a slot: a check whose delay would be longer is denied, and charged nothing. As long
    /// as it takes when absent.
    pub longest: Option<Span>,
}

impl<'a> Ask<'a> {
    /// Returns a question of a caller that waits as long as it takes.
    pub const fn new(charges: &'a [Charge<'a>], mode: Mode) -> Self {
        Self { charges, mode, longest: None }
    }

    /// Returns what a verdict is for this caller: a denial when the slot is too far away. The same request has a slot that is
    /// near enough once the rest of the delay is over, and not before.
    pub fn in_time(&self, verdict: Verdict) -> Verdict {
        let too_late = |longest: &Span| self.mode == Mode::Check && verdict.delay > *longest;
        let Some(longest) = self.longest.filter(too_late) else { return verdict };
        let wait = Span::from_nanos(verdict.delay.as_nanos() - longest.as_nanos());
        Verdict {
            outcome: Outcome::Deny,
            retry_after: Some(wait),
            quota_after: wait,
            delay: Span::ZERO,
            ..verdict
        }
    }
}

/// The time at which a store decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Now {
    /// The caller's: replays and traces bring their own.
    At(Timestamp),
    /// The store's own clock, taken once the state is held, so that no request is judged at a time before its predecessor's.
    StoreClock,
}

/// What a store says of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The time at which it was decided: what a refund names.
    pub at: Timestamp,
    /// One verdict a charge, in order.
    pub verdicts: Vec<Verdict>,
    /// One time a charge, in order, where the charges were decided by servers with clocks of their own: a refund names each
    /// charge's. Empty when all were decided at [`at`](Self::at).
    pub apart: Vec<Timestamp>,
}

impl Answer {
    /// Returns the answer of a store that decided all charges at one time.
    pub const fn new(at: Timestamp, verdicts: Vec<Verdict>) -> Self {
        Self { at, verdicts, apart: Vec::new() }
    }

    /// Returns the time at which the charge at `index` was decided.
    pub fn time_of(&self, index: usize) -> Timestamp {
        self.apart.get(index).copied().unwrap_or(self.at)
    }

    /// Returns what the verdicts say together.
    pub fn joint(&self) -> Joint {
        Joint::of(&self.verdicts)
    }
}

/// Why a store could not decide.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Every entry is in use, and the store is told to refuse new keys then. The state has not changed.
    #[error("the store is full of keys in use, and `overflow` is `deny`")]
    Full,
    /// Two charges of one request name the same state.
    #[error("one request is charged twice to the same limit and key")]
    Twice,
    /// No answer in time. The state may or may not have changed.
    #[error("the store did not answer within {0}")]
    Timeout(Span),
    /// The store cannot be reached or refuses the call. The state has not changed, unless the connection broke after the
    /// call was sent: then nobody knows.
    #[error("the store cannot be used: {0}")]
    Unavailable(Box<str>),
    /// The store cannot do what was asked: a limit of an algorithm or period that it has not learned.
    #[error("this store has no {0}")]
    Unsupported(Box<str>),
}

impl StoreError {
    /// Returns whether the store is away, and the same may work later.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Timeout(_) | Self::Unavailable(_) => true,
            Self::Full | Self::Twice | Self::Unsupported(_) => false,
        }
    }
}

/// Where state lives.
///
/// Batch first: a store that many requests share decides what has queued up in one go. Answers come in the order of the asks.
pub trait Store: fmt::Debug + Send + Sync {
    /// Decides some requests, each all or none.
    fn decide(
        &self,
        asks: &[Ask<'_>],
        now: Now,
    ) -> impl Future<Output = Vec<Result<Answer, StoreError>>> + Send;

    /// Drops what is known of a key under a limit, as if it had never come. Returns whether there was anything.
    fn forget(
        &self,
        scope: &Scope,
        key: &Key,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;
}
