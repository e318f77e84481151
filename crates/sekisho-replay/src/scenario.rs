//! An experiment of a user's own: limits, arrivals, servers and clients, from a file or from a command line.
//!
//! Both write the same fields ([`Fields`]); [`Fields::compile`] finds all that is wrong with them at once. All numbers are bounded
//! by a constant here, so that a scenario neither takes all memory nor runs for ever.

mod compile;
mod fields;
mod report;
mod traffic;

use sekisho::{Limit, Span};

pub use self::{
    compile::{Problem, Problems},
    fields::{ClientFields, Fields, ServerFields},
};
use crate::{
    pattern::{ARRIVALS_MAX, COST_MAX, Pattern},
    trace::TraceError,
    world::{World, WorldError},
};

/// The most bytes of a scenario file.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// The most limits that are compared.
pub const ROWS_MAX: usize = 32;
/// The most limits that are decided together.
pub const JOINT_MAX: usize = 8;
/// The most arrival patterns.
pub const PATTERNS_MAX: usize = 32;
/// The most keys.
pub const KEYS_MAX: u32 = 1_000_000;
/// The most servers.
pub const SERVERS_MAX: usize = 64;
/// The largest share of a server.
pub const SHARE_MAX: i64 = 1_000_000;
/// How often a client comes at most.
pub const TRIES_MAX: u32 = 1_000_000;

/// A compiled scenario: nothing in it can be wrong any more but its trace.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    title: String,
    rows: Vec<Vec<Limit>>,
    patterns: Vec<(String, Pattern)>,
    trace: Option<String>,
    window: Span,
    keys: u32,
    zipf_thousandths: Option<u32>,
    world: World,
}

/// Why a scenario did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// There are too many arrivals.
    #[error("more than {ARRIVALS_MAX} arrivals: make the run shorter or slower")]
    Arrivals,
    /// There are too many keys in the trace.
    #[error("the trace has more than {KEYS_MAX} keys")]
    Keys,
    /// The trace is wrong or cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A request of the trace costs more than the counts of a run have room for.
    #[error("line {line}: a request costs at most {COST_MAX}")]
    Cost {
        /// The line's number, from 1.
        line: u64,
    },
    /// The run stopped.
    #[error(transparent)]
    World(#[from] WorldError),
}

impl Scenario {
    /// Returns the trace that it wants to be given, as its file or command line names it.
    pub fn trace(&self) -> Option<&str> {
        self.trace.as_deref()
    }
}
