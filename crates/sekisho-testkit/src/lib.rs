//! What the tests of the workspace share: slow, exact models to compare with, and generators to
//! feed both sides.

pub mod generate;
pub mod model;
