//! The direct use: a limit and a key, without a policy file.

mod line;

use std::{fmt, future::poll_fn, ops::Deref, sync::Arc, task::Poll, time::Duration};

use sekisho_core::{Limit, Mode, Span, Timestamp, Verdict};

use self::line::Lines;
use crate::{
    clock::{Clock, Wait},
    policy::compile::limits::default_id,
    store::{
        Ask, Now, Scope, StoreError,
        memory::{Memory, MemoryOptions},
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
        Self { limit, scope, store, lines: Arc::default() }
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
        let (key, clock) = (key.as_ref(), self.store.clock());
        let deadline = clock.now().plus(Span::from(within));
        let mut ticket = Lines::join(&self.lines, key).ok_or(WaitError::LineFull)?;
        let mut too_late = clock.wait_until(deadline.plus(Span::from_nanos(1)));
        let checked = loop {
            poll_fn(|context| {
                if ticket.is_first(context.waker()) {
                    return Poll::Ready(Ok(()));
                }
                too_late.as_mut().poll(context).map(|()| Err(WaitError::TooLate))
            })
            .await?;
            let checked = self.call(key, units, Mode::Check)?;
            match (checked.outcome, checked.retry_after) {
                (sekisho_core::Outcome::Allow, _) => break checked,
                (sekisho_core::Outcome::Never, _) | (_, None) => {
                    return Err(WaitError::Never(checked.verdict));
                }
                (sekisho_core::Outcome::Deny, Some(wait)) => {
                    let free = checked.at.plus(wait);
                    if free > deadline {
                        return Err(WaitError::TooLate);
                    }
                    clock.wait_until(free).await;
                }
            }
        };
        // The place is taken: whoever is next may look for theirs while this one waits for its slot.
        drop(ticket);
        self.wait_for_slot(key, units, checked, deadline).await
    }

    /// Waits for the slot of a queue, and gives it back when it comes too late or nobody waits for it any more.
    async fn wait_for_slot(
        &self,
        key: &[u8],
        units: u64,
        checked: Checked,
        deadline: Timestamp,
    ) -> Result<Checked, WaitError> {
        if checked.delay.is_zero() {
            return Ok(checked);
        }
        let slot = checked.at.plus(checked.delay);
        let mut taken = Some(TakenSlot { limiter: self, key, units, at: checked.at });
        if slot > deadline {
            drop(taken);
            return Err(WaitError::TooLate);
        }
        let wait: Wait = self.store.clock().wait_until(slot);
        wait.await;
        if let Some(taken) = taken.take() {
            taken.keep();
        }
        Ok(checked)
    }

    fn call(&self, key: &[u8], units: u64, mode: Mode) -> Result<Checked, StoreError> {
        let (at, verdict) = self.store.one(
            &self.limit,
            (&self.scope, key),
            (units, &Ask::new(&[], mode)),
            Now::StoreClock,
        )?;
        Ok(Checked { at, verdict })
    }
}

/// A slot that is given back unless it is used.
struct TakenSlot<'a> {
    limiter: &'a KeyedLimiter,
    key: &'a [u8],
    units: u64,
    at: Timestamp,
}

impl TakenSlot<'_> {
    fn keep(mut self) {
        self.units = 0;
    }
}

impl Drop for TakenSlot<'_> {
    fn drop(&mut self) {
        if self.units > 0 {
            // Whatever the store says, there is nobody left to tell.
            let _told_nobody = self.limiter.refund(self.key, self.units, self.at);
        }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.outcome.as_str())
    }
}
