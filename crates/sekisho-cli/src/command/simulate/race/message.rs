//! What a race and its processes say to each other: one JSON value a line, on the standard input and output.

use serde::{Deserialize, Serialize};

/// The first line to a process: where the store is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) url: String,
    pub(super) prefix: String,
}

/// What a process is to get ready for. The next line, whatever it is, is the signal to begin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Heat {
    pub(super) limit: String,
    pub(super) key: String,
    /// How many requests the process has.
    pub(super) requests: u32,
    /// Whether it sends them all before it has an answer.
    pub(super) at_once: bool,
    /// How many of all requests may pass.
    pub(super) allowed: u64,
    /// `None` for ours; otherwise the pause of the faulty way.
    pub(super) pause_ns: Option<u64>,
}

/// What a process says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Said {
    /// It is connected, and waits for the signal.
    Ready,
    /// So many of its requests passed.
    Passed(u64),
    /// Why it cannot go on.
    Failed(String),
}
