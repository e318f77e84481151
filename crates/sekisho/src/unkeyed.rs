//! One limit for everybody: no key, no table.

use std::{sync::Arc, time::Duration};

use sekisho_core::{
    Algorithm, Call, Limit, Metered, Mode, Outcome, State, Timestamp, TokenBucket, Verdict,
};

use crate::{
    calendar::Zones,
    clock::{Clock, SystemClock},
    keyed::{Checked, Lines, WaitError, Waiting},
    store::memory::Reply,
    sync::{
        Lock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// One limit that all calls share: of a resource, not of a caller.
///
/// Cheap to share behind an [`Arc`]; every call takes `&self`. A `sliding-log` keeps up to 16 bytes a unit here, like anywhere; no
/// other state grows.
///
/// ```
/// use sekisho::UnkeyedLimiter;
///
/// let limiter = UnkeyedLimiter::new("2/min".parse()?);
/// assert!(limiter.check().is_allowed());
/// assert_eq!(limiter.check().remaining, Some(0));
/// assert!(limiter.check().retry_after.is_some());
/// # Ok::<(), sekisho::LimitError>(())
/// ```
#[derive(Debug)]
pub struct UnkeyedLimiter {
    limit: Limit,
    held: Padded,
    clock: Arc<dyn Clock>,
    lines: Arc<Lines>,
}

/// A state that shares its cache line with no other limiter's.
#[derive(Debug)]
#[repr(align(64))]
struct Padded(Held);

/// The state of a limiter, as few words as it takes.
#[derive(Debug)]
enum Held {
    /// The instant at which a bucket is full again, where that is always a whole nanosecond: no lock, and a denial writes nothing.
    Instant(AtomicU64),
    /// Any other state, and the time of the last decision.
    State(Lock<(State, Timestamp)>),
}

impl Held {
    fn of(limit: &Limit) -> Self {
        let bucket = limit.as_metered().filter(|of| of.algorithm() == Algorithm::TokenBucket);
        match bucket.and_then(Metered::interval) {
            Some(_) => Self::Instant(AtomicU64::new(0)),
            None => Self::State(Lock::new((State::Fresh, Timestamp::EPOCH))),
        }
    }
}

impl UnkeyedLimiter {
    /// Returns a limiter on the machine's clock.
    pub fn new(limit: Limit) -> Self {
        Self::with_clock(limit, Arc::new(SystemClock::new()))
    }

    /// Returns a limiter on a clock of the caller's; [`FakeClock`](crate::FakeClock) has an example.
    pub fn with_clock(limit: Limit, clock: Arc<dyn Clock>) -> Self {
        let held = Padded(Held::of(&limit));
        Self { limit, held, clock, lines: Arc::default() }
    }

    /// Returns the limit.
    pub const fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Charges one unit if the limit admits it.
    #[inline]
    pub fn check(&self) -> Checked {
        self.call(1, Mode::Check)
    }

    /// Charges `units` if the limit admits all of them.
    ///
    /// ```
    /// # use sekisho::{Outcome, UnkeyedLimiter};
    /// let limiter = UnkeyedLimiter::new("10/min fixed-window".parse()?);
    /// assert_eq!(limiter.check_n(8).remaining, Some(2));
    /// assert_eq!(limiter.check_n(5).remaining, Some(2)); // a denial is free
    /// assert_eq!(limiter.check_n(11).outcome, Outcome::Never);
    /// # Ok::<(), sekisho::LimitError>(())
    /// ```
    #[inline]
    pub fn check_n(&self, units: u64) -> Checked {
        self.call(units, Mode::Check)
    }

    /// Charges one unit if the limit admits it, and says no more than whether it did: the numbers of an answer cost as much as the
    /// decision.
    ///
    /// ```
    /// # use sekisho::{Outcome, UnkeyedLimiter};
    /// let limiter = UnkeyedLimiter::new("1/min".parse()?);
    /// assert_eq!((limiter.outcome(), limiter.outcome()), (Outcome::Allow, Outcome::Deny));
    /// # Ok::<(), sekisho::LimitError>(())
    /// ```
    #[inline]
    pub fn outcome(&self) -> Outcome {
        self.reply(1, Mode::Check).1
    }

    /// Shows what is left, and charges nothing.
    pub fn look(&self) -> Checked {
        self.call(0, Mode::Look)
    }

    /// Charges `units` whatever the limit says: for a cost that is known only afterwards. A debt is paid back with time.
    pub fn force(&self, units: u64) -> Checked {
        self.call(units, Mode::Force)
    }

    /// Gives back `units` that were charged at `at`; never more than was used.
    ///
    /// ```
    /// # use sekisho::UnkeyedLimiter;
    /// let limiter = UnkeyedLimiter::new("10/min sliding-log".parse()?);
    /// let charged = limiter.check_n(3);
    /// assert_eq!(limiter.refund(3, charged.at).remaining, Some(10));
    /// # Ok::<(), sekisho::LimitError>(())
    /// ```
    pub fn refund(&self, units: u64, at: Timestamp) -> Checked {
        self.call(units, Mode::Refund { at })
    }

    /// Waits until one unit is admitted and charged, at most `within`; as
    /// [`KeyedLimiter::until_ready`](crate::KeyedLimiter::until_ready).
    ///
    /// # Errors
    /// [`WaitError`]; nothing is charged then.
    pub async fn until_ready(&self, within: Duration) -> Result<Checked, WaitError> {
        self.until_n_ready(1, within).await
    }

    /// Waits until `units` are admitted and charged together.
    ///
    /// # Errors
    /// [`WaitError`]; nothing is charged then.
    pub async fn until_n_ready(&self, units: u64, within: Duration) -> Result<Checked, WaitError> {
        let waiting = Waiting { lines: &self.lines, key: b"", clock: &self.clock };
        waiting.until_ready(units, within, |units, mode| Ok(self.call(units, mode))).await
    }

    #[inline]
    fn call(&self, cost: u64, mode: Mode) -> Checked {
        let (at, verdict) = self.reply(cost, mode);
        Checked { at, verdict }
    }

    #[inline]
    fn reply<R: Reply>(&self, cost: u64, mode: Mode) -> (Timestamp, R) {
        let now = self.clock.now();
        match (&self.held.0, &self.limit) {
            (Held::Instant(instant), Limit::Metered(limit)) => {
                Self::moved(limit, instant, |bucket| match (mode, cost) {
                    (Mode::Check, 1..) => (now, R::check_bucket(limit, bucket, now, cost)),
                    _ => (now, self.seldom(bucket, Call { now, cost, mode })),
                })
            }
            (Held::State(held), _) => {
                let mut held = held.lock();
                let (state, latest) = &mut *held;
                // Whoever held it before may have been told a later time.
                *latest = now.max(*latest);
                let call = Call { now: *latest, cost, mode };
                (*latest, R::of(self.limit.decide(state, call, &Zones)))
            }
            (Held::Instant(_), _) => (now, R::of(Verdict::UNLIMITED)),
        }
    }

    /// Decides on the bucket that an instant stands for, until nobody else has decided meanwhile. A time that was told before another
    /// decision's is late, and the instant stays ahead of it.
    #[inline]
    fn moved<R>(
        limit: &Metered,
        instant: &AtomicU64,
        mut decide: impl FnMut(&mut TokenBucket) -> R,
    ) -> R {
        let mut ns = instant.load(Relaxed);
        loop {
            let mut bucket = TokenBucket::full_of(limit);
            bucket.tat.ns = ns;
            let reply = decide(&mut bucket);
            if bucket.tat.ns == ns {
                return reply;
            }
            match instant.compare_exchange_weak(ns, bucket.tat.ns, Relaxed, Relaxed) {
                Ok(_) => return reply,
                Err(other) => ns = other,
            }
        }
    }

    #[cold]
    fn seldom<R: Reply>(&self, bucket: &mut TokenBucket, call: Call) -> R {
        let mut state = State::TokenBucket(*bucket);
        let verdict = self.limit.decide(&mut state, call, &Zones);
        if let State::TokenBucket(after) = state {
            *bucket = after;
        }
        R::of(verdict)
    }
}
