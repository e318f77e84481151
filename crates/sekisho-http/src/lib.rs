//! Sekisho over HTTP: what a decision becomes, and what a request looks like to the limiter.
//!
//! * [`Answer`]: the one table from a [`Decision`](sekisho::Decision) to status, headers and body. Every HTTP door uses it, so
//!   no two of them drift apart.
//! * [`headers`]: the fields `RateLimit-Policy`, `RateLimit` and `X-RateLimit-*`, also behind another limiter.
//! * [`Problem`]: the body of a refusal (RFC 9457).
//! * [`layer`]: the same for a service of this process, as a tower layer.
//! * [`HeaderLines`] and [`describe`]: a request of the [`http`] crate as the limiter sees it.
//!
//! Nothing but the layer reads a clock, and nothing a socket: the same decision gives the same bytes.
#![forbid(unsafe_code)]

mod answer;
mod client_addr;
pub mod headers;
pub mod layer;
mod problem;
mod request;

pub use crate::{
    answer::{Answer, Profile},
    client_addr::{ClientAddr, client_addr},
    problem::{PROBLEM_JSON, Problem, ProblemQuota, ProblemType, RATE_LIMIT_EXCEEDED},
    request::{HeaderLines, describe, host},
};
