//! The library beside its promises.
#![expect(clippy::unwrap_used, reason = "a test may end early")]

mod files;
