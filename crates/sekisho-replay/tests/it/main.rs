//! The published experiments come out with exactly the published figures, and the trace interface as it is documented.
#![expect(clippy::unwrap_used, reason = "a test may end early")]

mod experiments;
mod traces;
