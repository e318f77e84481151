//! The time that timeouts and pauses run on. Decisions are made on the server's clock, or at the time that is given.

use std::time::SystemTime;

use sekisho::Timestamp;
use tokio::time::Instant;

/// Returns the instant that timeouts are counted from. A test that stops tokio's clock stops it.
#[expect(clippy::disallowed_methods, reason = "no decision is made by it")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the wall clock, which is near enough to know the calendar windows that a server will need.
#[expect(clippy::disallowed_methods, reason = "a server says when it needs another window")]
pub(crate) fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(0))
}
