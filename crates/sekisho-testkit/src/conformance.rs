//! The conformance suite: cases as data, and what holds any store, the core and the model to them.
//!
//! A case is a file under `cases/`: a fault that some limiter in the world has had, and what is
//! right instead. Most of it is data, so a new store is held to it by one call:
//!
//! ```
//! use sekisho::{Memory, MemoryOptions};
//! use sekisho_testkit::conformance::{Need, block_on, run_all};
//!
//! let store = Memory::new(MemoryOptions { keep_all: true, ..Default::default() });
//! let can = [Need::Nanoseconds, Need::KeepAll, Need::Zones];
//! let report = block_on(run_all(&store, "doc-", &can));
//! assert!(report.is_good() && report.passed.len() > 50, "{report}");
//! assert!(!report.skipped.is_empty(), "a trace of many calls was not asked for");
//! ```
//!
//! # What a file holds
//!
//! * `[[trace]]`: requests with their own times, and what is to be said of each ([`Trace`]).
//! * `[[text]]`: a limit's text, and its canonical form or why it is refused ([`Text`]).
//! * `[[file]]`: a policy file, what is said of it, and requests under it ([`File`]).
//! * `[[parallel]]`: threads that meet on one key, and how many may pass ([`Parallel`]).
//! * `[[rust]]`: the name of a test function, for what needs code ([`RustTest`]).

mod decimal;
mod file;
mod list;
mod parallel;
mod steps;
mod subject;
mod text;
mod trace;

use std::fmt;

use serde::Deserialize;

use self::list::FILES;
pub use self::{
    file::{File, RequestStep, Said, run_file},
    parallel::{Parallel, Runtime, ThisThread, block_on, run_parallel},
    steps::{Expected, Numbers, Step},
    text::{Text, run_text},
    trace::{
        MostIn, Need, Report, Trace, run_all, run_trace, run_trace_on_core, run_trace_on_model,
    },
};

/// One case: a fault that others have had, turned into checks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name, which is its file's: `B06`.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// How bad the fault is: `S1` an outage or bypass, `S2` a wrong decision, `S3` a misleading answer.
    pub kind: String,
    /// Which fault was put in to see it fail, and what failed.
    pub seen_failing: String,
    /// What it says of parts that are not there yet.
    #[serde(default)]
    pub pending: Vec<String>,
    /// Requests with times of their own.
    #[serde(default)]
    pub trace: Vec<Trace>,
    /// Limits' texts.
    #[serde(default)]
    pub text: Vec<Text>,
    /// Policy files.
    #[serde(default)]
    pub file: Vec<File>,
    /// Threads that meet.
    #[serde(default)]
    pub parallel: Vec<Parallel>,
    /// Test functions.
    #[serde(default)]
    pub rust: Vec<RustTest>,
}

/// A test function that checks what data cannot say.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RustTest {
    /// Its module and name, as in `flood::caps_hold`.
    pub test: String,
    /// What it checks.
    pub says: String,
}

/// A check that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which check: the case, and the name within it.
    pub check: String,
    /// What was wanted, and what there was.
    pub what: String,
}

impl Failure {
    fn new(check: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self { check: check.to_string(), what: what.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.what)
    }
}

impl std::error::Error for Failure {}

/// Returns every case, in order.
///
/// # Panics
///
/// When a file is not a case; the message says which and why.
pub fn cases() -> Vec<Case> {
    FILES.iter().map(|(id, text)| parse(id, text).unwrap_or_else(|why| panic!("{why}"))).collect()
}

/// Returns every case's traces, in order.
///
/// # Panics
///
/// As [`cases`].
pub fn traces() -> Vec<Trace> {
    cases().into_iter().flat_map(|case| case.trace).collect()
}

fn parse(id: &str, text: &str) -> Result<Case, String> {
    let mut case: Case = toml::from_str(text).map_err(|error| format!("{id}: {error}"))?;
    if case.id != id {
        return Err(format!("{id}: its `id` is `{}`", case.id));
    }
    for (number, trace) in case.trace.iter_mut().enumerate() {
        trace.belong_to(&case.id, number + 1);
    }
    Ok(case)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_in_the_list() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
        let names: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let listed: BTreeSet<String> = FILES.iter().map(|(id, _)| format!("{id}.toml")).collect();
        assert_eq!(names, listed);
    }

    #[test]
    fn names_within_a_case_are_its_own() {
        for case in cases() {
            let names: Vec<&str> = (case.trace.iter().map(|trace| trace.name.as_str()))
                .chain(case.file.iter().map(|file| file.name.as_str()))
                .chain(case.parallel.iter().map(|parallel| parallel.name.as_str()))
                .collect();
            let distinct: BTreeSet<&str> = names.iter().copied().collect();
            assert_eq!(names.len(), distinct.len(), "{}: {names:?}", case.id);
        }
    }

    #[test]
    fn a_trace_below_a_microsecond_says_so() {
        for trace in traces() {
            let fine = trace.is_below_a_microsecond();
            assert_eq!(fine, trace.needs().contains(&Need::Nanoseconds), "{trace}");
        }
    }

    #[test]
    fn a_file_that_is_no_case_is_refused() {
        let frame = "id = \"B99\"\ntitle = \"t\"\nkind = \"S1\"\nseen_failing = \"f\"\n";
        assert!(parse("B99", frame).is_ok());
        assert!(parse("B98", frame).is_err());
        assert!(parse("B99", &format!("{frame}tracing = 1\n")).is_err());
        let steps = "[[trace]]\nname = \"n\"\nlimits = [\"1/s\"]\nsteps = \"0 | | perhaps\"\n";
        assert!(parse("B99", &format!("{frame}{steps}")).unwrap_err().contains("perhaps"));
    }
}
