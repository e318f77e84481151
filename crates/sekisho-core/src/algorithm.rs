//! The closed set of algorithms, and what every one of them must be able to do.
//!
//! Adding an algorithm means a file of its own with an [`Account`], an arm in [`Algorithm`] and one in [`State`].

pub(crate) mod anchored_window;
pub(crate) mod fixed_window;
pub(crate) mod leaky_queue;
#[cfg(feature = "alloc")]
pub(crate) mod sliding_log;
pub(crate) mod sliding_window;
pub(crate) mod token_bucket;

use core::fmt;

#[cfg(feature = "alloc")]
use self::sliding_log::SlidingLog;
use self::{
    anchored_window::AnchoredWindow, fixed_window::FixedWindow, leaky_queue::LeakyQueue,
    sliding_window::SlidingWindow, token_bucket::TokenBucket,
};
use crate::{
    Calendar, Call, Limit, Metered, Mode, Outcome, Period, Span, Timestamp, Utc, Verdict, Window,
    rate,
};

/// How a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// A count that starts anew at every multiple of the period.
    FixedWindow,
    /// A count that starts with a key's first request and lasts a period.
    AnchoredWindow,
    /// The time of every request of the last period: exact in every stretch.
    SlidingLog,
    /// Two counts, the older one weighed by how much of it is still inside the last period.
    SlidingWindow,
    /// Tokens that come back evenly, up to a burst; GCRA under its other name.
    TokenBucket,
    /// Evenly spaced slots, and a place to wait for them.
    LeakyQueue,
}

impl Algorithm {
    /// Every algorithm, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::FixedWindow,
        Self::AnchoredWindow,
        Self::SlidingLog,
        Self::SlidingWindow,
        Self::TokenBucket,
        Self::LeakyQueue,
    ];

    /// Returns the name used in a limit's text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FixedWindow => "fixed-window",
            Self::AnchoredWindow => "anchored-window",
            Self::SlidingLog => "sliding-log",
            Self::SlidingWindow => "sliding-window",
            Self::TokenBucket => "token-bucket",
            Self::LeakyQueue => "leaky-queue",
        }
    }

    /// Returns the algorithm of that name or alias (`gcra` and `leaky-bucket` are the token bucket).
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "gcra" | "leaky-bucket" => Some(Self::TokenBucket),
            _ => Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == word),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What one key has used of one limit.
///
/// A state of another algorithm than the limit's counts as fresh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing is used.
    #[default]
    Fresh,
    /// Of `fixed-window`.
    FixedWindow(FixedWindow),
    /// Of `anchored-window`.
    AnchoredWindow(AnchoredWindow),
    /// Of `sliding-window`.
    SlidingWindow(SlidingWindow),
    /// Of `token-bucket`.
    TokenBucket(TokenBucket),
    /// Of `leaky-queue`.
    LeakyQueue(LeakyQueue),
    /// Of `sliding-log`.
    #[cfg(feature = "alloc")]
    SlidingLog(SlidingLog),
}

/// The limit and the instant that an account is looked at with.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) limit: &'a Metered,
    pub(crate) now: Timestamp,
    pub(crate) calendar: &'a dyn Calendar,
}

impl Context<'_> {
    /// Returns the limit's window that holds `at`.
    pub(crate) fn window(&self, at: Timestamp) -> Window {
        match self.limit.period() {
            Period::Fixed(period) => rate::fixed_window(*period, at),
            Period::Calendar(unit, zone) => self.calendar.window(*unit, zone, at),
        }
    }
}

/// The numbers of an answer, as things stand.
pub(crate) struct Standing {
    pub(crate) remaining: u64,
    pub(crate) reset_after: Span,
    pub(crate) next_after: Span,
    pub(crate) quota_after: Span,
}

/// What each algorithm's state can do. Costs are at least 1 here; a look is [`Account::standing`].
pub(crate) trait Account: Sized {
    /// Returns the state of a key that has used nothing.
    fn fresh(limit: &Metered) -> Self;
    /// Returns the delay with which `cost` units are admitted, or the wait after which they are. `cost` fits the capacity.
    fn admit(&self, context: &Context<'_>, cost: u64) -> Result<Span, Span>;
    /// Admits `cost` units and counts them: returns the delay, or the wait after which they would be admitted.
    #[inline]
    fn take(&mut self, context: &Context<'_>, cost: u64) -> Result<Span, Span> {
        let delay = self.admit(context, cost)?;
        self.charge(context, cost);
        Ok(delay)
    }
    /// Does the same, and returns the numbers as they then stand.
    #[inline]
    fn check(&mut self, context: &Context<'_>, cost: u64) -> (Result<Span, Span>, Standing) {
        let taken = self.take(context, cost);
        (taken, self.standing(context))
    }
    /// Counts `cost` units that were admitted.
    fn charge(&mut self, context: &Context<'_>, cost: u64);
    /// Counts `cost` units, whether or not there is room.
    fn force(&mut self, context: &Context<'_>, cost: u64) {
        self.charge(context, cost);
    }
    /// Gives back at most `cost` units that were charged at `at`.
    fn refund(&mut self, context: &Context<'_>, cost: u64, at: Timestamp);
    /// Returns the numbers of an answer.
    fn standing(&self, context: &Context<'_>) -> Standing;
    /// Moves what lies after `now` to now: a shared clock was set back.
    fn repair(&mut self, context: &Context<'_>);
    /// Returns the first instant at which this equals a fresh state.
    fn fresh_at(&self, context: &Context<'_>) -> Timestamp;
}

/// Runs an expression with the limit's account bound to a name: the state's own, or a fresh one.
macro_rules! with_account {
    ($state:expr, $limit:expr, |$account:ident| $body:expr) => {
        match $limit.algorithm() {
            Algorithm::FixedWindow => with_account!(@one $state, $limit, FixedWindow, $account, $body),
            Algorithm::AnchoredWindow => {
                with_account!(@one $state, $limit, AnchoredWindow, $account, $body)
            }
            Algorithm::SlidingWindow => {
                with_account!(@one $state, $limit, SlidingWindow, $account, $body)
            }
            Algorithm::TokenBucket => with_account!(@one $state, $limit, TokenBucket, $account, $body),
            Algorithm::LeakyQueue => with_account!(@one $state, $limit, LeakyQueue, $account, $body),
            #[cfg(feature = "alloc")]
            Algorithm::SlidingLog => with_account!(@one $state, $limit, SlidingLog, $account, $body),
            #[cfg(not(feature = "alloc"))]
            Algorithm::SlidingLog => unreachable!("a sliding log is refused without `alloc`"),
        }
    };
    (@one $state:expr, $limit:expr, $kind:ident, $account:ident, $body:expr) => {
        if let State::$kind($account) = $state {
            $body
        } else {
            let $account = &$kind::fresh($limit);
            $body
        }
    };
}

/// The same for an account that changes: a fresh or foreign state is replaced first.
macro_rules! with_account_mut {
    ($state:expr, $limit:expr, |$account:ident| $body:expr) => {
        match $limit.algorithm() {
            Algorithm::FixedWindow => with_account_mut!(@one $state, $limit, FixedWindow, $account, $body),
            Algorithm::AnchoredWindow => {
                with_account_mut!(@one $state, $limit, AnchoredWindow, $account, $body)
            }
            Algorithm::SlidingWindow => {
                with_account_mut!(@one $state, $limit, SlidingWindow, $account, $body)
            }
            Algorithm::TokenBucket => with_account_mut!(@one $state, $limit, TokenBucket, $account, $body),
            Algorithm::LeakyQueue => with_account_mut!(@one $state, $limit, LeakyQueue, $account, $body),
            #[cfg(feature = "alloc")]
            Algorithm::SlidingLog => with_account_mut!(@one $state, $limit, SlidingLog, $account, $body),
            #[cfg(not(feature = "alloc"))]
            Algorithm::SlidingLog => unreachable!("a sliding log is refused without `alloc`"),
        }
    };
    (@one $state:expr, $limit:expr, $kind:ident, $account:ident, $body:expr) => {{
        if !matches!($state, State::$kind(_)) {
            *$state = State::$kind($kind::fresh($limit));
        }
        if let State::$kind($account) = $state {
            $body
        }
    }};
}

impl Limit {
    /// Decides one call on one key: checks and, where the mode and the outcome say so, changes `state`.
    ///
    /// Several limits on one request are for [`decide`](crate::decide), which charges all or none.
    #[inline]
    pub fn decide(&self, state: &mut State, call: Call, calendar: &dyn Calendar) -> Verdict {
        if let Some(limit) = self.counted(call) {
            let context = Context { limit, now: call.now, calendar };
            let mut verdict = Verdict::UNLIMITED;
            with_account_mut!(state, limit, |account| verdict =
                checked(account, &context, call.cost));
            return verdict;
        }
        let verdict = self.judge(state, call, calendar);
        if verdict.is_allowed() {
            return self.settle(state, call, verdict, calendar);
        }
        verdict
    }

    /// Decides as [`decide`](Self::decide) does, and says no more than the outcome: the numbers cost as much as the decision.
    ///
    /// ```
    /// use sekisho_core::{Call, Limit, Mode, Outcome, State, Timestamp, Utc};
    ///
    /// let (limit, mut state): (Limit, _) = ("1/s".parse()?, State::Fresh);
    /// let call = Call { now: Timestamp::from_secs(1), cost: 1, mode: Mode::Check };
    /// assert_eq!(limit.outcome(&mut state, call, &Utc), Outcome::Allow);
    /// assert_eq!(limit.outcome(&mut state, call, &Utc), Outcome::Deny);
    /// # Ok::<(), sekisho_core::LimitError>(())
    /// ```
    #[inline]
    pub fn outcome(&self, state: &mut State, call: Call, calendar: &dyn Calendar) -> Outcome {
        let Some(limit) = self.counted(call) else {
            return self.decide(state, call, calendar).outcome;
        };
        let context = Context { limit, now: call.now, calendar };
        let mut outcome = Outcome::Allow;
        with_account_mut!(state, limit, |account| outcome = taken(account, &context, call.cost));
        outcome
    }

    /// Returns the limit, for a check of one unit or more that a limit could admit: what nearly every call is. A fresh state
    /// admits it, so it may be made an account before that is known.
    #[inline]
    const fn counted(&self, call: Call) -> Option<&Metered> {
        match (self, call.mode, call.cost) {
            (Self::Metered(limit), Mode::Check, 1..) if call.cost <= limit.capacity() => {
                Some(limit)
            }
            _ => None,
        }
    }

    /// Says what [`decide`](Self::decide) would, and changes nothing; the numbers are those before a charge.
    pub fn judge(&self, state: &State, call: Call, calendar: &dyn Calendar) -> Verdict {
        let checks = call.cost > 0 && call.mode == Mode::Check;
        let limit = match self {
            Self::Unlimited => return Verdict::UNLIMITED,
            // A force and a refund are of what has happened already: they are never refused.
            Self::Block if matches!(call.mode, Mode::Force | Mode::Refund { .. }) => {
                return Verdict { outcome: Outcome::Allow, ..Verdict::BLOCK };
            }
            Self::Block => return Verdict::BLOCK,
            Self::Metered(limit) => limit,
        };
        let context = Context { limit, now: call.now, calendar };
        with_account!(state, limit, |account| {
            let mut verdict = as_it_stands(limit, &account.standing(&context));
            if checks && call.cost > limit.capacity() {
                verdict.outcome = Outcome::Never;
            } else if checks {
                match account.admit(&context, call.cost) {
                    Ok(delay) => verdict.delay = delay,
                    Err(wait) => {
                        verdict.outcome = Outcome::Deny;
                        verdict.retry_after = Some(wait);
                        verdict.quota_after = wait;
                    }
                }
            }
            verdict
        })
    }

    /// Carries out a call that `verdict` allowed, and returns the verdict with the numbers after it.
    pub fn settle(
        &self,
        state: &mut State,
        call: Call,
        verdict: Verdict,
        calendar: &dyn Calendar,
    ) -> Verdict {
        let Self::Metered(limit) = self else { return verdict };
        let context = Context { limit, now: call.now, calendar };
        match call.mode {
            _ if call.cost == 0 => return verdict,
            Mode::Look => return verdict,
            Mode::Check => {
                with_account_mut!(state, limit, |account| account.charge(&context, call.cost));
            }
            Mode::Force => {
                with_account_mut!(state, limit, |account| account.force(&context, call.cost));
            }
            // Nothing can be given back to a key that has used nothing.
            Mode::Refund { .. } if *state == State::Fresh => {}
            Mode::Refund { at } => {
                with_account_mut!(state, limit, |account| account.refund(&context, call.cost, at));
            }
        }
        let standing = with_account!(&*state, limit, |account| account.standing(&context));
        Verdict { delay: verdict.delay, ..as_it_stands(limit, &standing) }
    }

    /// Moves what `state` has after `now` to now, so that a shared clock that was set back locks nobody out. Usage is kept.
    ///
    /// In one process the clock never goes back, and a replay's late stamps are not a clock set back: this is for a store
    /// that several machines share.
    pub fn repair(&self, state: &mut State, now: Timestamp, calendar: &dyn Calendar) {
        let Self::Metered(limit) = self else { return };
        if *state != State::Fresh {
            let context = Context { limit, now, calendar };
            with_account_mut!(state, limit, |account| account.repair(&context));
        }
    }

    /// Returns the first instant from which `state` cannot be told from a fresh one, and so may be dropped.
    pub fn fresh_at(&self, state: &State, calendar: &dyn Calendar) -> Timestamp {
        match (self, state) {
            (Self::Block | Self::Unlimited, _) | (_, State::Fresh) => Timestamp::EPOCH,
            (Self::Metered(limit), _) => {
                let context = Context { limit, now: Timestamp::EPOCH, calendar };
                with_account!(state, limit, |account| account.fresh_at(&context))
            }
        }
    }
}

impl Metered {
    /// Decides a check of `cost` units, at least 1, on a bucket that its owner keeps without a [`State`] around it. The limit is a
    /// `token-bucket`.
    ///
    /// ```
    /// use sekisho_core::{Limit, Timestamp, TokenBucket};
    ///
    /// let limit: Limit = "2/s".parse()?;
    /// let metered = limit.as_metered().ok_or("a limit that counts")?;
    /// let mut bucket = TokenBucket::full_of(metered);
    /// let verdict = metered.decide_bucket(&mut bucket, Timestamp::from_secs(1), 1);
    /// assert_eq!((verdict.is_allowed(), verdict.remaining), (true, Some(1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline(always)]
    pub fn decide_bucket(&self, bucket: &mut TokenBucket, now: Timestamp, cost: u64) -> Verdict {
        checked(bucket, &Context { limit: self, now, calendar: &Utc }, cost)
    }

    /// Decides as [`decide_bucket`](Self::decide_bucket) does, and says no more than the outcome.
    #[inline(always)]
    pub fn outcome_of_bucket(
        &self,
        bucket: &mut TokenBucket,
        now: Timestamp,
        cost: u64,
    ) -> Outcome {
        taken(bucket, &Context { limit: self, now, calendar: &Utc }, cost)
    }
}

/// Decides a check of one unit or more.
#[inline(always)]
fn checked<A: Account>(account: &mut A, context: &Context<'_>, cost: u64) -> Verdict {
    if cost > context.limit.capacity() {
        let standing = account.standing(context);
        return Verdict { outcome: Outcome::Never, ..as_it_stands(context.limit, &standing) };
    }
    let (taken, standing) = account.check(context, cost);
    let mut verdict = as_it_stands(context.limit, &standing);
    match taken {
        Ok(delay) => verdict.delay = delay,
        Err(wait) => {
            verdict.outcome = Outcome::Deny;
            verdict.retry_after = Some(wait);
            verdict.quota_after = wait;
        }
    }
    verdict
}

/// Decides the same without the numbers.
#[inline(always)]
fn taken<A: Account>(account: &mut A, context: &Context<'_>, cost: u64) -> Outcome {
    if cost > context.limit.capacity() {
        return Outcome::Never;
    }
    match account.take(context, cost) {
        Ok(_) => Outcome::Allow,
        Err(_) => Outcome::Deny,
    }
}

#[inline]
fn as_it_stands(limit: &Metered, standing: &Standing) -> Verdict {
    Verdict {
        outcome: Outcome::Allow,
        capacity: Some(limit.capacity()),
        remaining: Some(standing.remaining),
        retry_after: None,
        reset_after: standing.reset_after,
        delay: Span::ZERO,
        next_after: standing.next_after,
        quota_after: standing.quota_after,
    }
}
