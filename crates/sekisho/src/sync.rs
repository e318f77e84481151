//! A lock for a few dozen instructions.
//!
//! Taking it is one atomic exchange and giving it back one store, where a lock that threads sleep on needs a second exchange to
//! learn whether anybody does. Who finds it held waits a moment, then longer: so one thread gets several decisions done while
//! the line is in its cache, instead of every decision waiting for the line to travel. After that it lets others run, for the
//! holder may be one that the scheduler has stopped.
#![expect(unsafe_code, reason = "a lock hands out what only its holder may touch")]

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

#[cfg(sekisho_loom)]
use loom::cell::UnsafeCell;
#[cfg(sekisho_loom)]
pub(crate) use loom::sync::atomic;
#[cfg(not(sekisho_loom))]
use std::cell::UnsafeCell;
#[cfg(not(sekisho_loom))]
pub(crate) use std::sync::atomic;

use self::atomic::{AtomicBool, Ordering};

/// Rounds of waiting on the spot, each twice as long as the one before.
const SPINS: u32 = 7;
/// Rounds of letting other threads run before sleeping for a moment, which also lets those of a lower priority run.
#[cfg(not(sekisho_loom))]
const YIELDS: u32 = 64;

/// A value that one thread at a time may touch.
pub(crate) struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached through a guard, and there is one guard at a time, so sharing the lock hands the value from
// thread to thread, as sending it does.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits until nobody else holds it.
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        if !self.take() {
            self.wait();
        }
        Guard { lock: self }
    }

    #[inline]
    fn take(&self) -> bool {
        self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self) {
        let mut round = 0;
        loop {
            pause(round);
            round += 1;
            // A look costs the holder less than an attempt. The model has none: there it could see an old value for ever.
            let looks_free = cfg!(sekisho_loom) || !self.held.load(Ordering::Relaxed);
            if looks_free && self.take() {
                return;
            }
        }
    }
}

#[cfg(not(sekisho_loom))]
fn pause(round: u32) {
    if round < SPINS {
        (0..1_u32 << round).for_each(|_| std::hint::spin_loop());
    } else if round < SPINS + YIELDS {
        std::thread::yield_now();
    } else {
        std::thread::park_timeout(std::time::Duration::from_micros(50));
    }
}

#[cfg(sekisho_loom)]
fn pause(_: u32) {
    loom::thread::yield_now();
}

/// The right to touch the value; given back when dropped.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

// SAFETY: a shared guard gives shared access to the value, which is as good as a shared reference to it.
unsafe impl<T: Sync> Sync for Guard<'_, T> {}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        #[cfg(not(sekisho_loom))]
        let value = self.lock.value.get();
        #[cfg(sekisho_loom)]
        let value = self.lock.value.with(|value| value);
        // SAFETY: this guard is the only one, and nobody writes through it while it is borrowed here.
        unsafe { &*value }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        #[cfg(not(sekisho_loom))]
        let value = self.lock.value.get();
        #[cfg(sekisho_loom)]
        let value = self.lock.value.with_mut(|value| value);
        // SAFETY: this guard is the only one, and it is borrowed for writing.
        unsafe { &mut *value }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.held.store(false, Ordering::Release);
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lock(..)")
    }
}

impl<T: fmt::Debug> fmt::Debug for Guard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(all(test, sekisho_loom))]
mod model;
