//! Where ticks are counted from: four numbers that are read together without a lock (Lamport 1977; a *seqlock*).

use crate::sync::atomic::{AtomicU64, Ordering, fence};

/// Rates are nanoseconds a tick, times 2³².
pub(super) const RATE_SHIFT: u32 = 32;

/// An instant, and how many nanoseconds a tick is from there on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct From {
    pub(super) tick: u64,
    pub(super) ns: u64,
    pub(super) rate: u64,
    /// For how many ticks this holds: 0 until the rate is known.
    pub(super) ticks: u64,
}

impl From {
    /// Returns the time at a tick, if this holds there.
    #[inline]
    pub(super) const fn at(self, tick: u64) -> Option<u64> {
        let since = tick.wrapping_sub(self.tick);
        if since < self.ticks { Some(self.after(since)) } else { None }
    }

    /// Returns the time until which this holds.
    pub(super) const fn end(self) -> u64 {
        self.after(self.ticks)
    }

    #[inline]
    const fn after(self, ticks: u64) -> u64 {
        // It holds for a million nanoseconds, 2⁵² when shifted.
        self.ns.saturating_add(ticks.saturating_mul(self.rate) >> RATE_SHIFT)
    }
}

/// A [`From`] that many threads read while one replaces it.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Anchor {
    /// Odd while the others are written.
    version: AtomicU64,
    tick: AtomicU64,
    ns: AtomicU64,
    rate: AtomicU64,
    ticks: AtomicU64,
}

impl Anchor {
    #[cfg(not(sekisho_loom))]
    pub(super) const fn new() -> Self {
        Self {
            version: AtomicU64::new(0),
            tick: AtomicU64::new(0),
            ns: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            ticks: AtomicU64::new(0),
        }
    }

    #[cfg(sekisho_loom)]
    pub(super) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self { version: zero(), tick: zero(), ns: zero(), rate: zero(), ticks: zero() }
    }

    /// Returns what was set last; nothing when that is being replaced.
    #[inline]
    pub(super) fn get(&self) -> Option<From> {
        let version = self.version.load(Ordering::Acquire);
        let from = From {
            tick: self.tick.load(Ordering::Relaxed),
            ns: self.ns.load(Ordering::Relaxed),
            rate: self.rate.load(Ordering::Relaxed),
            ticks: self.ticks.load(Ordering::Relaxed),
        };
        // The four are read before the version is read again.
        fence(Ordering::Acquire);
        let whole = version % 2 == 0 && self.version.load(Ordering::Relaxed) == version;
        whole.then_some(from)
    }

    /// Replaces it. One thread at a time does.
    pub(super) fn set(&self, from: From) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        // The version is odd before any of the four changes.
        fence(Ordering::Release);
        self.tick.store(from.tick, Ordering::Relaxed);
        self.ns.store(from.ns, Ordering::Relaxed);
        self.rate.store(from.rate, Ordering::Relaxed);
        self.ticks.store(from.ticks, Ordering::Relaxed);
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }
}

#[cfg(all(test, sekisho_loom))]
mod model {
    use loom::{sync::Arc, thread};

    use super::*;

    fn all(n: u64) -> From {
        From { tick: n, ns: n, rate: n, ticks: n }
    }

    #[test]
    fn a_reader_never_mixes_two_anchors() {
        loom::model(|| {
            let anchor = Arc::new(Anchor::new());
            let writer = Arc::clone(&anchor);
            let writer = thread::spawn(move || {
                writer.set(all(1));
                writer.set(all(2));
            });
            let read = anchor.get();
            assert!(read.is_none_or(|from| from == all(from.tick)), "{read:?}");
            writer.join().unwrap();
            assert_eq!(anchor.get(), Some(all(2)));
        });
    }
}
