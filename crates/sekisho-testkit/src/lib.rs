//! What the tests of the workspace share: slow, exact models to compare with, generators to feed
//! both sides, and the conformance suite that every store is held to. For the shared store also servers, clusters and
//! sentinels of a test's own, a wire that fails and a clock that is set.

pub mod beside;
pub mod clock_shim;
pub mod conformance;
pub mod faulty_wire;
pub mod generate;
pub mod model;
pub mod redis_cluster;
pub mod redis_sentinels;
pub mod redis_server;
pub mod wait;
