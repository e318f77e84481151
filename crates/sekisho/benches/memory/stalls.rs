//! The slowest decisions: while a table fills, when it is full of keys, and under a flood.
use crate::report::Report;
pub(crate) fn run(_: &mut Report) {}
