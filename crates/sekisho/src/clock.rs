//! Where now comes from. The arithmetic never asks: it is told.

mod anchor;
#[cfg(not(sekisho_loom))]
mod ticking;

use std::{
    collections::BTreeMap,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::Mutex;

#[cfg(not(sekisho_loom))]
use self::ticking::uptime;
use crate::{Span, Timestamp};

/// A wait that a [`Clock`] hands out.
pub type Wait = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tells the time and waits for it.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns now. Never earlier than what it returned before.
    fn now(&self) -> Timestamp;

    /// Returns a future that is ready once [`now`](Self::now) is `until` or later.
    fn wait_until(&self, until: Timestamp) -> Wait;

    /// Returns the wall clock's time, for what people read as a date. Nothing is decided by it: it may go back.
    fn wall(&self) -> Timestamp {
        self.now()
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn wait_until(&self, until: Timestamp) -> Wait {
        (**self).wait_until(until)
    }

    fn wall(&self) -> Timestamp {
        (**self).wall()
    }
}

/// The machine's clock: the wall clock as it was at the start, plus a clock that never goes back and counts suspend.
///
/// It is never set anew, so a wall clock that jumps moves no window and locks nobody out.
#[derive(Clone, Debug)]
pub struct SystemClock {
    /// What to add to the machine's uptime.
    offset: u64,
}

impl SystemClock {
    /// Returns a clock that starts at the wall clock's time.
    pub fn new() -> Self {
        Self { offset: wall().saturating_sub(uptime()) }
    }
}

/// Returns the wall clock's nanoseconds since the epoch.
#[expect(clippy::disallowed_methods, reason = "this is the one place that asks the wall clock")]
fn wall() -> u64 {
    let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Span::from(wall.unwrap_or_default()).as_nanos()
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

/// The model of threads has no ticks.
#[cfg(sekisho_loom)]
fn uptime() -> u64 {
    kernel_uptime()
}

/// Returns the nanoseconds of the kernel's clock that never goes back.
fn kernel_uptime() -> u64 {
    // Linux's monotonic clock stops in suspend, and so would every window.
    #[cfg(target_os = "linux")]
    let id = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let id = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(id);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.offset.saturating_add(uptime()))
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_nanos(wall())
    }

    fn wait_until(&self, until: Timestamp) -> Wait {
        let clock = self.clone();
        Box::pin(async move {
            // A timer may fire early, and the clock that it counts with may not be ours.
            loop {
                match until.since(clock.now()) {
                    Span::ZERO => return,
                    left => futures_timer::Delay::new(Duration::from(left)).await,
                }
            }
        })
    }
}

/// A clock that stands still until it is told to go on: for tests.
///
/// ```
/// use std::sync::Arc;
/// use sekisho::{Clock, FakeClock, KeyedLimiter, Span};
///
/// let clock = Arc::new(FakeClock::default());
/// let limiter = KeyedLimiter::with_clock("1/min".parse()?, clock.clone());
/// assert!(limiter.check("alice")?.is_allowed());
/// assert!(!limiter.check("alice")?.is_allowed());
/// clock.advance(Span::from_secs(60));
/// assert!(limiter.check("alice")?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct FakeClock {
    inner: Arc<Mutex<Fake>>,
}

#[derive(Debug, Default)]
struct Fake {
    now: Timestamp,
    waiting: BTreeMap<(Timestamp, u64), Waker>,
    tickets: u64,
}

impl FakeClock {
    /// Returns a clock that shows `now`.
    pub fn at(now: Timestamp) -> Self {
        let clock = Self::default();
        clock.inner.lock().now = now;
        clock
    }

    /// Lets time pass, and wakes those who waited for it, in order.
    pub fn advance(&self, by: Span) {
        let mut due = Vec::new();
        {
            let mut fake = self.inner.lock();
            fake.now = fake.now.plus(by);
            let now = fake.now;
            while let Some(first) = fake.waiting.first_entry().filter(|first| first.key().0 <= now)
            {
                due.push(first.remove());
            }
        }
        due.into_iter().for_each(Waker::wake);
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        self.inner.lock().now
    }

    fn wait_until(&self, until: Timestamp) -> Wait {
        let mut fake = self.inner.lock();
        fake.tickets += 1;
        let ticket = fake.tickets;
        Box::pin(FakeWait { inner: Arc::clone(&self.inner), until, ticket })
    }
}

struct FakeWait {
    inner: Arc<Mutex<Fake>>,
    until: Timestamp,
    ticket: u64,
}

impl Future for FakeWait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut fake = self.inner.lock();
        if fake.now >= self.until {
            return Poll::Ready(());
        }
        let _replaced = fake.waiting.insert((self.until, self.ticket), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for FakeWait {
    fn drop(&mut self) {
        let _removed = self.inner.lock().waiting.remove(&(self.until, self.ticket));
    }
}
