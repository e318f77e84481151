//! What the tests of the workspace share: slow, exact models to compare with, generators to feed
//! both sides, and the conformance suite that every store is held to.

pub mod beside;
pub mod conformance;
pub mod generate;
pub mod model;
pub mod redis_server;
