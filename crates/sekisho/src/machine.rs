//! What Rust has no safe word for: the processor's tick counter, and a hint to load a line early.
#![expect(unsafe_code, reason = "two instructions that the standard library offers as unsafe only")]

/// Returns the processor's tick counter, which never stops and never slows where the kernel itself tells the time by it. Other
/// processors have none that a process may read as fast as this.
#[inline]
#[cfg(target_arch = "x86_64")]
#[expect(clippy::unnecessary_wraps, reason = "other processors have none")]
pub(crate) fn ticks() -> Option<u64> {
    // SAFETY: every x86-64 processor has the instruction. It reads a register and touches no memory; an operating system that
    // forbids it does not name it as its own clock, and `clock::ticking` asks that first.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// Returns nothing: there is no counter.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const fn ticks() -> Option<u64> {
    None
}

/// Asks for a value's cache line, and does not wait for it.
#[inline]
#[cfg(target_arch = "x86_64")]
pub(crate) fn prefetch<T>(value: &T) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint that no program can observe but by the time it takes; the address is that of a value that is there.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(value).cast()) }
}

/// Does nothing: stable Rust has no such hint for other processors.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const fn prefetch<T>(_: &T) {}
