//! The shared store of Sekisho: limits that several machines count together in Redis or Valkey.
//!
//! One script call decides all charges of a request, all or none, on the server's clock or at a given time. The script counts
//! and tells the states that it found; what a request is told is made of these by the core, so that it is what memory says,
//! to the last nanosecond. Time is in whole microseconds here.
//!
//! ```no_run
//! use sekisho::{Ask, Charge, Key, Limit, Mode, Now, Scope, Seed, Store};
//! use sekisho_redis::{RedisOptions, RedisStore};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = RedisStore::new("redis://127.0.0.1:6379", RedisOptions::default())?;
//! let limit: Limit = "60/min burst 10".parse()?;
//! let (scope, key) = (Scope::new("api", "60s-token-bucket"), Key::plain(b"alice", &Seed::random()));
//! let charges = [Charge { limit: &limit, scope: &scope, key: &key, cost: 1 }];
//! let answers = store.decide(&[Ask::new(&charges, Mode::Check)], Now::StoreClock).await;
//! # let _ = answers; Ok(())
//! # }
//! ```
//!
//! What Lua cannot count exactly is refused by name with [`StoreError::Unsupported`](sekisho::StoreError::Unsupported): times
//! and periods that are no whole microseconds, amounts above 2⁵¹, and counts and times that would go beyond 2⁵³.
#![forbid(unsafe_code)]

mod call;
mod cluster;
mod command;
mod denials;
mod instant;
mod key;
mod link;
mod question;
mod refusal;
mod script;
mod sentinel;
mod servers;
mod shards;
mod state;
mod stats;
mod store;
mod wire;
mod words;

pub use crate::{
    link::Change,
    stats::{Histogram, ServerStats, Stats},
    store::{OpenError, RedisOptions, RedisStore},
};
