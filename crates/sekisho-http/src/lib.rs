//! Sekisho over HTTP: what a decision becomes, and what a request looks like to the limiter.
//!
//! * [`Answer`]: the one table from a [`Decision`](sekisho::Decision) to status, headers and body. Every HTTP door uses it, so
//!   no two of them drift apart.
//! * [`headers`]: the fields `RateLimit-Policy` and `RateLimit`.
//! * [`Problem`]: the body of a refusal (RFC 9457).
//! * [`HeaderLines`] and [`describe`]: a request of the [`http`] crate as the limiter sees it.
//!
//! Nothing here reads a clock or a socket: the same decision gives the same bytes.
#![forbid(unsafe_code)]

mod answer;
mod client_addr;
pub mod headers;
mod problem;
mod request;

pub use crate::{
    answer::{Answer, Profile},
    client_addr::{ClientAddr, client_addr},
    problem::{PROBLEM_JSON, Problem, ProblemType},
    request::{HeaderLines, describe, host},
};
