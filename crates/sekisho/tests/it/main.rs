//! The library beside its promises.
#![expect(clippy::unwrap_used, reason = "a test may end early")]

mod concurrency;
mod decisions;
mod files;
mod fullest;
mod memory;
mod outage;
mod patience;
mod snapshots;
mod stores;
mod waits;
