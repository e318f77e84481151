//! The store on every kind of address, on real servers: the same answers everywhere, and what each topology adds.
//!
//! `SEKISHO_DECISIONS` sets how many decisions a random trace has (3,000 by default, 30,000 with `SEKISHO_LONG=1`),
//! `SEKISHO_SEED` its first seed. Without a server these tests fail.
#![expect(clippy::unwrap_used, reason = "a test may end early")]
#![expect(clippy::print_stdout, reason = "a trace names its seed, and a wait its length")]
#![expect(
    clippy::disallowed_methods,
    reason = "how long somebody waits is a part of what is promised"
)]

mod batching;
mod cluster;
mod common;
mod denials;
mod places;
mod rights;
mod sentinel;
mod shards;
mod split;
mod trace;
mod versions;
