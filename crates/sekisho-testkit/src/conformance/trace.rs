//! Traces: requests that bring their own times, and what any store must say of each.

mod judge;

use std::{collections::BTreeSet, fmt};

use sekisho::{Limit, Store};
use serde::Deserialize;

use super::{
    Failure,
    decimal::{span, written},
    parallel::block_on,
    steps::{Expected, Step},
    subject::{InCore, InModel, InStore, Subject},
};
use judge::Judge;

/// Requests with their own times, and what is to be said of each.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub struct Trace {
    /// What it shows.
    pub name: String,
    /// The limits; several are decided together.
    pub limits: Vec<Limit>,
    /// Whether stamps come late, so that no state may be dropped on the way.
    pub keep_all: bool,
    /// The requests.
    pub steps: Vec<Step>,
    /// The most that any stretch of a length admits.
    pub most_in: Option<MostIn>,
    needs: BTreeSet<Need>,
    case: String,
    number: usize,
}

/// What a store must be able to do before a trace can be run on it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Count in nanoseconds: the trace has stamps or periods that are no whole microseconds.
    Nanoseconds,
    /// Keep state that equals a fresh one: the trace's stamps go back.
    KeepAll,
    /// Know calendar windows in zones.
    Zones,
    /// Decide more than ten thousand requests in a while that a test may take.
    ManyCalls,
}

/// The most units that are admitted within a half-open stretch, and what the limit promises of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MostIn {
    /// The stretch, as `60s`.
    pub window: String,
    /// The most units of the first limit that were admitted in one such stretch.
    pub admitted: u64,
    /// The most that the limit says it would ever admit in one.
    pub bound: Option<u64>,
    /// The same when both ends belong to the stretch.
    pub bound_closed: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    limits: Vec<String>,
    #[serde(default)]
    keep_all: bool,
    #[serde(default)]
    needs: BTreeSet<Need>,
    steps: String,
    most_in: Option<MostIn>,
}

impl TryFrom<Written> for Trace {
    type Error = String;

    fn try_from(of: Written) -> Result<Self, String> {
        let of_trace = |why: String| format!("trace `{}`: {why}", of.name);
        let limit = |text: &String| text.parse().map_err(|error| format!("`{text}`: {error}"));
        let limits: Vec<Limit> =
            of.limits.iter().map(limit).collect::<Result<_, _>>().map_err(of_trace)?;
        let steps: Vec<Option<Step>> =
            of.steps.lines().map(Step::parse).collect::<Result<_, _>>().map_err(of_trace)?;
        if let Some(most_in) = &of.most_in {
            let _checked = span(&most_in.window).map_err(of_trace)?;
        }
        let steps: Vec<Step> = steps.into_iter().flatten().collect();
        if limits.is_empty() || steps.is_empty() {
            return Err(of_trace("it has no limit or no step".to_owned()));
        }
        let mut needs = of.needs;
        if of.keep_all {
            needs.insert(Need::KeepAll);
        }
        Ok(Self {
            name: of.name,
            limits,
            keep_all: of.keep_all,
            steps,
            most_in: of.most_in,
            needs,
            case: String::new(),
            number: 0,
        })
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} trace {} ({})", self.case, self.number, self.name)
    }
}

impl Trace {
    /// Returns the name of the case that it belongs to.
    pub fn case(&self) -> &str {
        &self.case
    }

    /// Returns what a store must be able to do for it.
    pub fn needs(&self) -> &BTreeSet<Need> {
        &self.needs
    }

    /// Returns the number of requests.
    pub fn calls(&self) -> u64 {
        self.steps.iter().map(|step| step.count).sum()
    }

    pub(super) fn belong_to(&mut self, case: &str, number: usize) {
        case.clone_into(&mut self.case);
        self.number = number;
    }

    /// Returns whether it has a stamp or a period that is no whole number of microseconds.
    #[cfg(test)]
    pub(super) fn is_below_a_microsecond(&self) -> bool {
        use sekisho::{Metered, Mode, Period};
        let fine = |ns: u64| !ns.is_multiple_of(1_000);
        let period = |limit: &Limit| match limit.as_metered().map(Metered::period) {
            Some(Period::Fixed(ns)) => fine(ns.get()),
            _ => false,
        };
        let stamp = |step: &Step| {
            let at = matches!(step.mode, Mode::Refund { at } if fine(at.as_nanos()));
            at || fine(step.first.as_nanos()) || fine(step.every.as_nanos())
        };
        self.limits.iter().any(period) || self.steps.iter().any(stamp)
    }
}

/// Runs a trace on a store. `scope_prefix` keeps its state apart from that of other runs.
///
/// # Errors
/// The first thing that was said and is not right.
pub async fn run_trace<S: Store>(
    store: &S,
    trace: &Trace,
    scope_prefix: &str,
) -> Result<(), Failure> {
    let scope = format!("{scope_prefix}{}-{}", trace.case, trace.number);
    walk(trace, InStore::new(store, &trace.limits, &scope)).await
}

/// Runs a trace on the core alone, and looks at what only the core can show: that what is refused changes no state, and that
/// every wait is honest to the nanosecond.
///
/// # Errors
/// The first thing that was said and is not right.
pub fn run_trace_on_core(trace: &Trace) -> Result<(), Failure> {
    block_on(walk(trace, InCore::new(&trace.limits)))
}

/// Runs a trace on the exact model, which tells whether the trace itself is right; `None` where the model has no such limit.
///
/// # Errors
/// The first thing that was said and is not right.
pub fn run_trace_on_model(trace: &Trace) -> Option<Result<(), Failure>> {
    InModel::new(&trace.limits).map(|model| block_on(walk(trace, model)))
}

async fn walk(trace: &Trace, mut subject: impl Subject) -> Result<(), Failure> {
    let mut judge = Judge::new(trace);
    for step in &trace.steps {
        judge.begin();
        for at in step.times() {
            let seen = subject.ask(step, at).await;
            seen.and_then(|seen| judge.call(step, at, &seen)).map_err(|why| {
                Failure::new(trace, format_args!("`{}` at {}: {why}", step.text, written(at)))
            })?;
        }
        judge
            .end(step)
            .map_err(|why| Failure::new(trace, format_args!("`{}`: {why}", step.text)))?;
    }
    judge.finish().map_err(|why| Failure::new(trace, why))
}

/// What became of every trace on a store.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The traces that came out right.
    pub passed: Vec<String>,
    /// Those that the store cannot run, and what it lacks.
    pub skipped: Vec<(String, Need)>,
    /// Those that came out wrong.
    pub failed: Vec<Failure>,
}

impl Report {
    /// Returns whether none came out wrong.
    pub fn is_good(&self) -> bool {
        self.failed.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, skipped, failed) = (self.passed.len(), self.skipped.len(), self.failed.len());
        write!(f, "{passed} passed, {skipped} skipped, {failed} failed")?;
        self.failed.iter().try_for_each(|failure| write!(f, "\n  {failure}"))
    }
}

/// Runs every trace that a store can run. `can` is what it is able to do.
///
/// # Panics
///
/// As [`cases`](super::cases).
pub async fn run_all<S: Store>(store: &S, scope_prefix: &str, can: &[Need]) -> Report {
    let mut report = Report::default();
    for trace in super::traces() {
        if let Some(lacking) = trace.needs.iter().find(|need| !can.contains(need)) {
            report.skipped.push((trace.to_string(), *lacking));
            continue;
        }
        match run_trace(store, &trace, scope_prefix).await {
            Ok(()) => report.passed.push(trace.to_string()),
            Err(failure) => report.failed.push(failure),
        }
    }
    report
}
