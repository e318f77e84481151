//! Sekisho as a server: the doors that speak HTTP, the admin listener, and metrics.
//!
//! [`serve()`] runs until it is told to stop. [`Server::bind`] opens the sockets first, for those who need their addresses:
//!
//! ```
//! use std::net::SocketAddr;
//!
//! use sekisho::PolicySet;
//! use sekisho_server::{ServeOptions, Server};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let policies = PolicySet::parse("[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"60/min\"]\n")?;
//! let mut options = ServeOptions::open(policies)?;
//! options.http = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
//! let server = Server::bind(options).await?;
//! assert_ne!(server.http_address().and_then(|address| Some(address.tcp()?.port())), Some(0));
//! let told_to_stop = async {};
//! server.run(told_to_stop).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The doors translate and nothing else: what an outcome becomes is [`sekisho_http`]'s table, what is counted is [`sekisho`]'s.
#![forbid(unsafe_code)]

mod admin;
pub mod door;
pub mod limits;
mod metrics;
mod reply;
mod serve;
mod snapshot;
mod store;

pub use crate::{
    serve::{ServeError, ServeGateway, ServeOptions, Server, serve},
    snapshot::StartError,
    store::ServerStore,
};
#[doc(no_inline)]
pub use sekisho_redis::OpenError;
