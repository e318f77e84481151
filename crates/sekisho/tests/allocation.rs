//! A decision on a key that exists allocates nothing.
#![expect(unsafe_code, reason = "an allocator that counts is unsafe to write, and only forwards")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::Arc,
};

use sekisho::{FakeClock, KeyedLimiter, Span, Timestamp, UnkeyedLimiter};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns how often `run` allocates.
fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

const LIMITS: [&str; 6] = [
    "5/min",
    "7/min burst 5",
    "5/min fixed-window",
    "5/min anchored-window",
    "5/min sliding-window",
    "5/min burst 4 leaky-queue",
];

#[test]
fn what_is_counted_is_counted() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn a_decision_on_a_key_that_exists_allocates_nothing() {
    for text in LIMITS {
        let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1_800_000_000)));
        let limiter = KeyedLimiter::with_clock(text.parse().unwrap(), Arc::clone(&clock) as _);
        let first = limiter.check("a").unwrap();
        let taken = allocations(|| {
            for _ in 0..20 {
                let _answers = (limiter.check("a"), limiter.outcome("a"), limiter.look("a"));
                clock.advance(Span::from_secs(1));
            }
            // A debt is more than fits the entry: it, and only it, may take a place beside it.
            let _answers = (limiter.refund("a", 1, first.at), limiter.force("a", 1));
        });
        assert_eq!(taken, 0, "{text}");
    }
}

#[test]
fn a_denial_under_a_log_allocates_nothing() {
    let limiter = KeyedLimiter::new("5/min sliding-log".parse().unwrap());
    assert!((0..5).all(|_| limiter.check("a").unwrap().is_allowed()));
    let taken = allocations(|| {
        for _ in 0..20 {
            let _answers = (limiter.check("a"), limiter.outcome("a"), limiter.look("a"));
        }
    });
    assert_eq!(taken, 0);
}

#[test]
fn a_limiter_without_a_key_allocates_nothing() {
    for text in LIMITS {
        let limiter = UnkeyedLimiter::new(text.parse().unwrap());
        let taken = allocations(|| {
            let first = limiter.check();
            for _ in 0..20 {
                let _answers = (limiter.check(), limiter.outcome(), limiter.look());
            }
            let _answers = (limiter.force(2), limiter.refund(1, first.at));
        });
        assert_eq!(taken, 0, "{text}");
    }
}

#[test]
fn looking_at_a_key_that_is_not_there_allocates_nothing() {
    let limiter = KeyedLimiter::new("5/min".parse().unwrap());
    assert_eq!(allocations(|| drop(limiter.look("a"))), 0);
}
