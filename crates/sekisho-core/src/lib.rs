//! The arithmetic of a rate limiter: rates, limits, the algorithms, verdicts.
//!
//! Everything here is a pure function of a limit, a state, an instant and a cost. Nothing reads a clock, waits, or uses a
//! float, and only the sliding log allocates (feature `alloc`, on by default). The same inputs give the same answer in a
//! process, in a replay of last month's log, and on every machine.
//!
//! ```
//! use sekisho_core::{Call, Limit, Mode, Outcome, State, Timestamp, Utc};
//!
//! let limit: Limit = "3/10s burst 3".parse()?;
//! let mut state = State::Fresh;
//! let now = Timestamp::from_nanos(0);
//! for left in [2, 1, 0] {
//!     let verdict = limit.decide(&mut state, Call { now, cost: 1, mode: Mode::Check }, &Utc);
//!     assert_eq!((verdict.outcome, verdict.remaining), (Outcome::Allow, Some(left)));
//! }
//! let verdict = limit.decide(&mut state, Call { now, cost: 1, mode: Mode::Check }, &Utc);
//! assert_eq!(verdict.outcome, Outcome::Deny);
//! assert_eq!(verdict.retry_after.map(|wait| wait.as_nanos()), Some(3_333_333_334));
//! # Ok::<(), sekisho_core::LimitError>(())
//! ```
//!
//! The definitions follow the ATM Forum's GCRA (Traffic Management 4.1, section 4.4.2) and the usual window counters;
//! each file under `algorithm` begins with its own and with its worst case.
#![no_std]
#![forbid(unsafe_code)]
#![warn(
    clippy::arithmetic_side_effects,
    clippy::float_arithmetic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm
)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod algorithm;
mod bound;
mod calendar;
mod exact;
mod joint;
mod limit;
mod rate;
mod time;
mod verdict;

#[cfg(feature = "alloc")]
pub use crate::algorithm::sliding_log::{Entry, SlidingLog};
pub use crate::{
    algorithm::{
        Algorithm, State, anchored_window::AnchoredWindow, fixed_window::FixedWindow,
        leaky_queue::LeakyQueue, sliding_window::SlidingWindow, token_bucket::TokenBucket,
    },
    bound::Bound,
    calendar::{Calendar, CalendarUnit, Utc, Window, Zone},
    exact::ExactTime,
    joint::{Joint, Slot, decide, judge, settle},
    limit::{Limit, LimitError, Metered, text::LimitId},
    rate::{Period, Rate},
    time::{Span, Timestamp},
    verdict::{Call, Mode, Outcome, Verdict},
};

/// The ceilings that keep every product inside 128 bits.
pub mod limits {
    /// Nanoseconds of a day; a year is 365 of them.
    pub const DAY_NS: u64 = 86_400_000_000_000;
    /// Longest period, in nanoseconds: ten years of 365 days.
    pub const PERIOD_NS_MAX: u64 = 3_650 * DAY_NS;
    /// Longest wait that a limit may name (`burst * period / amount`) and longest debt, in nanoseconds: a hundred years.
    pub const WAIT_NS_MAX: u64 = 36_500 * DAY_NS;
    /// The end of time, in nanoseconds since the Unix epoch: the year 2286.
    pub const TIMESTAMP_NS_MAX: u64 = 10_000_000_000_000_000_000;
    /// Longest name of a time zone, in bytes; the longest in the IANA database has 32.
    pub const ZONE_BYTES_MAX: usize = 40;
}
