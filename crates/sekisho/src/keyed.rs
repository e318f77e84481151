//! The direct use: a limit and a key, without a policy file.

mod line;
mod waiting;

use std::{fmt, ops::Deref, sync::Arc, time::Duration};

use sekisho_core::{Limit, Mode, Outcome, Timestamp, Verdict};

pub(crate) use self::{line::Lines, waiting::Waiting};
use crate::{
    clock::Clock,
    policy::compile::limits::default_id,
    store::{
        Now, Scope, StoreError,
        memory::{Memory, MemoryOptions, One, PREFETCH_MAX, Reply, Told},
    },
};

/// One limit, counted for each key by itself, in this process's memory.
///
/// Keys are any bytes. Cheap to share behind an [`Arc`]; every call takes `&self`.
///
/// ```
/// use sekisho::KeyedLimiter;
///
/// let limiter = KeyedLimiter::new("2/min sliding-log".parse()?);
/// assert!(limiter.check("alice")?.is_allowed());
/// assert!(limiter.check("alice")?.is_allowed());
/// let refused = limiter.check("alice")?;
/// assert!(!refused.is_allowed() && refused.retry_after.is_some());
/// assert!(limiter.check("bob")?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct KeyedLimiter {
    limit: Limit,
    scope: Scope,
    /// The scope's mark under the store's seed.
    mark: u128,
    store: Memory,
    lines: Arc<Lines>,
}

/// A verdict, and when it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The time of the decision: what a refund names.
    pub at: Timestamp,
    /// What the limit said.
    pub verdict: Verdict,
}

impl Deref for Checked {
    type Target = Verdict;

    fn deref(&self) -> &Verdict {
        &self.verdict
    }
}

/// Why a wait ended without a place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The units cost more than the limit ever holds.
    #[error("the cost is more than the limit ever holds")]
    Never(Verdict),
    /// The place would come after the deadline. Nothing was charged.
    #[error("the deadline comes before the next free place")]
    TooLate,
    /// As many wait for this key already as may ([`WAITERS_MAX`]).
    #[error("too many wait for this key already")]
    LineFull,
    /// The store could not decide.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How many may wait for one key.
pub const WAITERS_MAX: usize = 1_024;

impl KeyedLimiter {
    /// Returns a limiter on the machine's clock, with the default bounds of [`MemoryOptions`].
    pub fn new(limit: Limit) -> Self {
        Self::with_store(limit, Memory::default())
    }

    /// Returns a limiter on a clock of the caller's; [`FakeClock`](crate::FakeClock) has an example.
    pub fn with_clock(limit: Limit, clock: Arc<dyn Clock>) -> Self {
        Self::with_store(limit, Memory::with_clock(MemoryOptions::default(), clock))
    }

    /// Returns a limiter that counts in a store of its own, bounded as the caller likes.
    pub fn with_store(limit: Limit, store: Memory) -> Self {
        let scope = Scope::new("keyed", &default_id(&limit));
        let mark = store.mark(&scope);
        Self { limit, scope, mark, store, lines: Arc::default() }
    }

    /// Returns the limit.
    pub const fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Returns the store.
    pub const fn store(&self) -> &Memory {
        &self.store
    }

    /// Charges one unit if the limit admits it.
    ///
    /// # Errors
    /// [`StoreError::Full`] when the store holds no more, as its `overflow` says.
    pub fn check(&self, key: impl AsRef<[u8]>) -> Result<Checked, StoreError> {
        self.call(key.as_ref(), 1, Mode::Check)
    }

    /// Charges `units` if the limit admits all of them.
    ///
    /// ```
    /// # use sekisho::{KeyedLimiter, Outcome};
    /// let limiter = KeyedLimiter::new("10/min fixed-window".parse()?);
    /// assert_eq!(limiter.check_n("alice", 8)?.remaining, Some(2));
    /// assert_eq!(limiter.check_n("alice", 5)?.remaining, Some(2)); // a denial is free
    /// assert_eq!(limiter.check_n("alice", 11)?.outcome, Outcome::Never);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_n(&self, key: impl AsRef<[u8]>, units: u64) -> Result<Checked, StoreError> {
        self.call(key.as_ref(), units, Mode::Check)
    }

    /// Charges one unit if the limit admits it, and says no more than whether it did: the numbers of an answer cost as much as the
    /// decision.
    ///
    /// ```
    /// # use sekisho::{KeyedLimiter, Outcome};
    /// let limiter = KeyedLimiter::new("1/min".parse()?);
    /// assert_eq!(limiter.outcome("alice")?, Outcome::Allow);
    /// assert_eq!(limiter.outcome("alice")?, Outcome::Deny);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`check`](Self::check).
    #[inline]
    pub fn outcome(&self, key: impl AsRef<[u8]>) -> Result<Outcome, StoreError> {
        let digest = self.locate(key.as_ref());
        self.one(digest, 1, Mode::Check, self.store.told(Now::StoreClock))
            .map(|(_, outcome)| outcome)
    }

    /// Charges one unit to each of some keys if the limit admits it, each by itself and in order. `checked` is emptied first, and
    /// then has one answer a key. Keys that are not in the processor's caches are loaded together, so of many keys one costs a
    /// fraction of what it costs alone. The clock is read once for some of them (at most 256).
    ///
    /// ```
    /// # use sekisho::KeyedLimiter;
    /// let limiter = KeyedLimiter::new("1/min".parse()?);
    /// let mut checked = Vec::new();
    /// limiter.check_each(&["alice", "bob", "alice"], &mut checked);
    /// let allowed: Vec<bool> = checked.iter().flatten().map(|one| one.is_allowed()).collect();
    /// assert_eq!(allowed, [true, true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_each<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        checked: &mut Vec<Result<Checked, StoreError>>,
    ) {
        checked.clear();
        for keys in keys.chunks(PREFETCH_MAX) {
            let mut digests = [0; PREFETCH_MAX];
            for (key, digest) in keys.iter().zip(&mut digests) {
                *digest = self.locate(key.as_ref());
                self.store.prefetch(*digest);
            }
            // Reading the clock waits for every load that is on its way, so it is read once for them all.
            let told = self.store.told(Now::StoreClock);
            checked.extend(digests.iter().take(keys.len()).map(|digest| {
                self.one(*digest, 1, Mode::Check, told).map(|(at, verdict)| Checked { at, verdict })
            }));
        }
    }

    /// Shows what a key has left, and charges nothing.
    ///
    /// ```
    /// # use sekisho::KeyedLimiter;
    /// let limiter = KeyedLimiter::new("10/min".parse()?);
    /// assert_eq!(limiter.look("alice")?.remaining, Some(10));
    /// assert_eq!(limiter.store().occupancy().entries, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn look(&self, key: impl AsRef<[u8]>) -> Result<Checked, StoreError> {
        self.call(key.as_ref(), 0, Mode::Look)
    }

    /// Charges `units` whatever the limit says: for a cost that is known only afterwards. A debt is paid back with time.
    ///
    /// ```
    /// # use sekisho::KeyedLimiter;
    /// let limiter = KeyedLimiter::new("10/min".parse()?);
    /// assert_eq!(limiter.force("alice", 25)?.remaining, Some(0));
    /// assert!(!limiter.check("alice")?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn force(&self, key: impl AsRef<[u8]>, units: u64) -> Result<Checked, StoreError> {
        self.call(key.as_ref(), units, Mode::Force)
    }

    /// Gives back `units` that were charged at `at`; never more than was used.
    ///
    /// ```
    /// # use sekisho::KeyedLimiter;
    /// let limiter = KeyedLimiter::new("10/min sliding-log".parse()?);
    /// let charged = limiter.check_n("alice", 3)?;
    /// assert_eq!(limiter.refund("alice", 3, charged.at)?.remaining, Some(10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn refund(
        &self,
        key: impl AsRef<[u8]>,
        units: u64,
        at: Timestamp,
    ) -> Result<Checked, StoreError> {
        self.call(key.as_ref(), units, Mode::Refund { at })
    }

    /// Drops what is known of a key. Returns whether there was anything.
    ///
    /// ```
    /// # use sekisho::KeyedLimiter;
    /// let limiter = KeyedLimiter::new("1/day".parse()?);
    /// assert!(limiter.check("alice")?.is_allowed());
    /// assert!(limiter.forget("alice"));
    /// assert!(limiter.check("alice")?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn forget(&self, key: impl AsRef<[u8]>) -> bool {
        self.store.forget_now(&self.scope, key.as_ref())
    }

    /// Waits until one unit is admitted and charged, at most `within`. Those who wait for one key get their places in the
    /// order in which they came. Giving up gives the place back.
    ///
    /// Needs no runtime of a particular kind. A `leaky-queue` is waited for at its own slots.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, sync::Arc, task::{Context, Poll, Waker}, time::Duration};
    /// # use sekisho::{FakeClock, KeyedLimiter, Span};
    /// let clock = Arc::new(FakeClock::default());
    /// let limiter = KeyedLimiter::with_clock("1/s".parse()?, clock.clone());
    /// assert!(limiter.check("alice")?.is_allowed());
    ///
    /// let mut waiting = pin!(limiter.until_ready("alice", Duration::from_secs(5)));
    /// let mut context = Context::from_waker(Waker::noop());
    /// assert!(waiting.as_mut().poll(&mut context).is_pending());
    /// clock.advance(Span::from_secs(1));
    /// assert!(waiting.as_mut().poll(&mut context).is_ready());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`WaitError`]; nothing is charged then.
    pub async fn until_ready(
        &self,
        key: impl AsRef<[u8]>,
        within: Duration,
    ) -> Result<Checked, WaitError> {
        self.until_n_ready(key, 1, within).await
    }

    /// Waits until `units` are admitted and charged together; otherwise as [`until_ready`](Self::until_ready).
    ///
    /// # Errors
    /// [`WaitError`]; nothing is charged then.
    pub async fn until_n_ready(
        &self,
        key: impl AsRef<[u8]>,
        units: u64,
        within: Duration,
    ) -> Result<Checked, WaitError> {
        let key = key.as_ref();
        let waiting = Waiting { lines: &self.lines, key, clock: self.store.clock() };
        waiting.until_ready(units, within, |units, mode| self.call(key, units, mode)).await
    }

    fn call(&self, key: &[u8], units: u64, mode: Mode) -> Result<Checked, StoreError> {
        let (at, verdict) =
            self.one(self.locate(key), units, mode, self.store.told(Now::StoreClock))?;
        Ok(Checked { at, verdict })
    }

    #[inline]
    fn locate(&self, key: &[u8]) -> u128 {
        self.mark ^ self.store.digest(key)
    }

    #[inline]
    fn one<R: Reply>(
        &self,
        digest: u128,
        cost: u64,
        mode: Mode,
        told: Told,
    ) -> Result<(Timestamp, R), StoreError> {
        let one = One { limit: &self.limit, scope: &self.scope, cost, mode, longest: None };
        self.store.one(one, digest, told)
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.outcome.as_str())
    }
}
