//! The server over real sockets, byte by byte.
#![expect(clippy::unwrap_used, reason = "a test may end early")]

mod auth;
mod bodies;
mod check;
mod crowds;
mod harness;
mod hold;
mod identity;
mod introduced;
mod keys;
mod life;
mod metrics;
mod outage;
mod peers;
mod resp;
mod snapshot;
mod sockets;
