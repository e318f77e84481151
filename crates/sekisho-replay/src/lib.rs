//! Traces through the limiter: log time in, answers out, the same arithmetic as a live server.
//!
//! [`trace`] reads arrivals, and [`simulate`] runs them and writes one JSON object a request. [`experiment`] has the named
//! experiments and [`scenario`] those of a user's own; both send requests ([`pattern`]) through a [`world`] of servers and clients,
//! count what got through ([`measure`]) and give a report, which [`output`] writes in every form there is. [`worst`] makes the
//! arrivals that reach a limit's bound.
#![forbid(unsafe_code)]

pub mod arrivals;
pub mod chart;
pub mod experiment;
pub mod measure;
pub mod output;
pub mod pattern;
pub mod random;
pub mod scenario;
pub mod simulate;
pub mod trace;
pub mod world;
pub mod worst;
