//! The instruments for a shared store, each held to what it promises, on real servers.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may end early, and says how long it took"
)]

mod clock;
mod cluster;
mod sentinels;
mod server;
mod tls;
mod wire;
