//! The machine's uptime, read from the processor's tick counter between readings of the kernel's clock.
//!
//! The kernel's clock costs more than all the rest of a decision. Where the kernel itself counts ticks (its clock source is
//! `tsc`), so can we: every millisecond the kernel is asked, and in between ticks are added at the rate of the last tenth of a
//! second. So a suspend, which the kernel's clock counts, is noticed within a millisecond, a clock that is slewed is followed,
//! and an error of the rate ends after a millisecond. It never goes back: where ticks ran ahead of the kernel, the next
//! millisecond is counted more slowly.

use std::sync::OnceLock;

use parking_lot::Mutex;

use super::{
    anchor::{Anchor, From, RATE_SHIFT},
    kernel_uptime,
};
use crate::machine;

/// How long ticks are added before the kernel is asked again.
const SLICE_NS: u64 = 1_000_000;
/// How long a stretch must be to take a rate from it: long enough that the time of one reading is a small part.
const STRETCH_NS: u64 = 100_000_000;
/// Two rates agree when they differ by less than this part.
const AGREES: u64 = 512;

/// Returns the uptime in nanoseconds. Two calls of one thread, or of threads that have met in between, never see it go back by
/// more than the processor reorders instructions: some tens of nanoseconds, which every state takes as a late stamp.
#[inline]
pub(super) fn uptime() -> u64 {
    static TICKING: Ticking = Ticking::new();
    TICKING.now()
}

/// Returns whether the kernel trusts the tick counter: that it runs evenly, on all cores alike, through every state of sleep.
fn kernel_counts_ticks() -> bool {
    static COUNTS: OnceLock<bool> = OnceLock::new();
    *COUNTS.get_or_init(|| {
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        machine::ticks().is_some()
            && std::fs::read_to_string(source).is_ok_and(|name| name.trim() == "tsc")
    })
}

/// The anchor, and what it is made from.
#[derive(Debug)]
struct Ticking {
    anchor: Anchor,
    measured: Mutex<Measured>,
}

/// What the readings of the kernel's clock have said.
#[derive(Debug)]
struct Measured {
    /// The last reading.
    last: Reading,
    /// The reading that the current stretch began with.
    began: Reading,
    /// The rate that the next one must agree with.
    rate: Option<u64>,
    /// Whether one has.
    agreed: bool,
    /// No earlier time may be told any more.
    told: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    tick: u64,
    ns: u64,
}

impl Ticking {
    const fn new() -> Self {
        let nothing = Reading { tick: 0, ns: 0 };
        let measured =
            Measured { last: nothing, began: nothing, rate: None, agreed: false, told: 0 };
        Self { anchor: Anchor::new(), measured: Mutex::new(measured) }
    }

    #[inline]
    fn now(&self) -> u64 {
        let tick = machine::ticks().unwrap_or_default();
        match self.anchor.get().and_then(|from| from.at(tick)) {
            Some(ns) => ns,
            None => self.asked(),
        }
    }

    /// Asks the kernel, and says where ticks are counted from now.
    #[cold]
    fn asked(&self) -> u64 {
        if !kernel_counts_ticks() {
            return kernel_uptime();
        }
        let mut measured = self.measured.lock();
        let reading = read();
        let from = self.anchor.get().unwrap_or_default();
        if let Some(ns) = from.at(reading.tick) {
            // Another thread has asked meanwhile.
            return ns;
        }
        if from.ticks > 0 && from.tick.wrapping_sub(reading.tick) < from.ticks {
            // So have cores whose counters are a hair apart.
            return from.ns;
        }
        // What may have been told: as far as ticks were to be counted.
        measured.told = measured.told.max(from.end());
        let now = reading.ns.max(measured.told);
        measured.told = now;
        let rate = measured.learn(reading).unwrap_or_default();
        let ticks = (SLICE_NS << RATE_SHIFT).checked_div(rate).unwrap_or_default();
        // What is ahead of the kernel is made good in the next slice, at most half of it.
        let ahead = (now - reading.ns).min(SLICE_NS / 2);
        let slower = rate.saturating_sub((ahead << RATE_SHIFT) / ticks.max(1));
        self.anchor.set(From { tick: reading.tick, ns: now, rate: slower, ticks });
        now
    }
}

impl Measured {
    /// Takes a reading in. Returns the rate, once two stretches in a row agree on it.
    fn learn(&mut self, reading: Reading) -> Option<u64> {
        let slice = rate_between(self.last, reading);
        // Not since the last reading, which may be a moment ago: since the last that was a slice away.
        if reading.ns.saturating_sub(self.last.ns) < SLICE_NS / 2 {
            return self.trusted();
        }
        self.last = reading;
        let agrees = |a: u64, b: u64| a.abs_diff(b) < b / AGREES;
        match (self.rate, slice) {
            // A suspend, a machine that was moved, or a first reading: begin anew.
            (_, None) => self.begin(reading, None),
            (None, Some(slice)) => self.begin(reading, Some(slice)),
            (Some(rate), Some(slice)) if !agrees(slice, rate) => self.begin(reading, Some(slice)),
            (Some(_), Some(_)) => {
                self.agreed = true;
                if reading.ns.saturating_sub(self.began.ns) >= STRETCH_NS {
                    self.rate = rate_between(self.began, reading).or(self.rate);
                    self.began = reading;
                }
            }
        }
        self.trusted()
    }

    const fn begin(&mut self, reading: Reading, rate: Option<u64>) {
        (self.rate, self.agreed, self.began) = (rate, false, reading);
    }

    /// Returns the rate, if a slice after the one that it comes from has agreed.
    fn trusted(&self) -> Option<u64> {
        self.rate.filter(|_| self.agreed)
    }
}

/// Returns the rate that two readings tell; nothing when either clock has not gone forward.
fn rate_between(from: Reading, to: Reading) -> Option<u64> {
    let ticks = to.tick.checked_sub(from.tick).filter(|ticks| *ticks > 0)?;
    let ns = to.ns.checked_sub(from.ns).filter(|ns| *ns > 0)?;
    let rate = (u128::from(ns) << RATE_SHIFT) / u128::from(ticks);
    // A tick of a processor is a fraction of a nanosecond to a few of them.
    u64::try_from(rate)
        .ok()
        .filter(|rate| (1 << (RATE_SHIFT - 8)..1 << (RATE_SHIFT + 8)).contains(rate))
}

/// Reads both clocks at nearly the same time.
fn read() -> Reading {
    let once = || {
        let before = machine::ticks().unwrap_or_default();
        let ns = kernel_uptime();
        let after = machine::ticks().unwrap_or_default();
        (after.wrapping_sub(before), Reading { tick: before, ns })
    };
    // The quickest of three was not interrupted. The tick is the one before: so time is rather told late than early.
    let (_, reading) = (0..3).map(|_| once()).min_by_key(|(took, _)| *took).unwrap_or_default();
    reading
}
