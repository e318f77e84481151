//! Traces through the limiter: log time in, answers out, the same arithmetic as a live server.
//!
//! [`trace`] reads arrivals, [`simulate`] runs them and writes one JSON object a request, [`arrivals`] makes the patterns of
//! the experiments and [`measure`] counts what got through.
#![forbid(unsafe_code)]

pub mod arrivals;
pub mod measure;
pub mod simulate;
pub mod trace;
