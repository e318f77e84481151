//! The store beside its promises, on a real server. Without one these tests fail.
#![expect(clippy::unwrap_used, reason = "a test may end early")]

mod agree;
mod clock;
mod concurrent;
mod conformance;
mod expiry;
mod keys;
mod outage;
mod refused;
mod script;
mod suite;
mod support;
mod wide;
