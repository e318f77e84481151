//! The named experiments: each asks one question, is run by one word, and shows its figures beside the published ones.
//!
//! The published figures are those of two articles of November 2026 that describe such a system.

mod algorithms;
mod boundary;
mod burst;
mod equivalence;
mod estimate;
mod herd;
pub mod race;
mod split;
mod steady;
pub(crate) mod trial;

use sekisho::Span;

pub use self::algorithms::{Lesson, lessons};
use crate::{chart::Chart, world::WorldError};

/// What an experiment asks, and how it is run.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// The word that runs it.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub title: &'static str,
    /// What it asks, in a sentence for someone who has never seen a rate limiter.
    pub question: &'static str,
    /// What is done.
    setting: &'static str,
    /// What to see in it.
    reading: &'static str,
    run: fn() -> Result<Outcome, WorldError>,
}

/// The rows of an experiment, and its charts.
type Outcome = (Vec<Row>, Vec<Chart>);

/// What came out of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The word that names it.
    pub name: String,
    /// What it is about, in a few words.
    pub title: String,
    /// What it asks.
    pub question: String,
    /// What is done.
    pub setting: String,
    /// What to see in it.
    pub reading: String,
    /// One line a limit.
    pub rows: Vec<Row>,
    /// Its pictures.
    pub charts: Vec<Chart>,
}

/// What one limit did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The limit's canonical text; several that are decided together are joined by ` + `.
    pub limit: String,
    /// What else tells this row from others.
    pub method: Option<String>,
    /// Units that were admitted.
    pub passed: u64,
    /// Units that were not. A request that comes back counts each time.
    pub denied: u64,
    /// The most units of one key that were admitted in any half-open stretch of the window's length.
    /// `None` where many limits stand in one row.
    pub most_in_window: Option<u64>,
    /// The longest time from a first arrival to a start.
    pub longest_wait: Span,
    /// The figure that an article gives.
    pub published: Option<u64>,
    /// What that figure is.
    pub published_for: Figure,
    /// What was tried more than once: then `passed` and `denied` are those of the trial in which most passed.
    pub trials: Option<Trials>,
    /// Figures that only this experiment has.
    pub extras: Vec<Extra>,
}

/// What came out of the same thing tried several times, in real time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trials {
    /// How often it was tried.
    pub count: u64,
    /// The fewest units that were admitted in a trial.
    pub passed_min: u64,
    /// The most.
    pub passed_max: u64,
    /// In how many trials more were admitted than the limit says.
    pub over: u64,
    /// How many requests each process had on their way at once.
    pub at_once: u64,
    /// How many calls the store ran for them, in all trials. One call may decide several requests, and not every request needs
    /// one. `None` when the store does not say.
    pub calls: Option<u64>,
    /// How many requests were decided in a second.
    pub per_second: u64,
    /// The median of the store's replies to a call that does nothing.
    pub ping_median: Span,
}

/// What a published figure is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Figure {
    /// Units that passed.
    #[default]
    Passed,
    /// Units that were denied.
    Denied,
    /// The most that passed in any window.
    MostInWindow,
    /// The longest wait, in nanoseconds.
    LongestWait,
    /// Decisions that two ways of counting make differently; a row counts them as passed.
    Differ,
    /// The most units that passed in any trial. Chance has a part in it, so ours may be less or more.
    AtMost,
}

/// A figure that only one experiment has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra {
    /// Its name for machines.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The figure.
    pub value: u64,
}

/// Every named experiment that needs nothing but this program, in the order in which they are best read. [`race`] needs a store.
pub const ALL: [Experiment; 7] = [
    boundary::EXPERIMENT,
    steady::EXPERIMENT,
    estimate::EXPERIMENT,
    equivalence::EXPERIMENT,
    burst::EXPERIMENT,
    split::EXPERIMENT,
    herd::EXPERIMENT,
];

impl Experiment {
    /// Returns the experiment of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        const { &ALL }.iter().find(|experiment| experiment.name == name)
    }

    /// Runs it. Two runs give the same.
    ///
    /// ```
    /// use sekisho_replay::experiment::Experiment;
    ///
    /// let report = Experiment::named("boundary").expect("it exists").run()?;
    /// let fixed = &report.rows[0];
    /// assert_eq!((fixed.limit.as_str(), fixed.passed, fixed.published), ("60/min fixed-window", 120, Some(120)));
    /// # Ok::<(), sekisho_replay::world::WorldError>(())
    /// ```
    ///
    /// # Errors
    /// [`WorldError`], which no experiment meets while the memory store works.
    pub fn run(&self) -> Result<Report, WorldError> {
        let (rows, charts) = (self.run)()?;
        Ok(Report {
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            question: self.question.to_owned(),
            setting: self.setting.to_owned(),
            reading: self.reading.to_owned(),
            rows,
            charts,
        })
    }
}

impl Row {
    /// Returns the limit, and what else tells this row from others.
    pub fn title(&self) -> String {
        match &self.method {
            None => self.limit.clone(),
            Some(method) => format!("{}, {method}", self.limit),
        }
    }

    /// Returns our figure that the published one stands beside.
    pub fn ours(&self) -> u64 {
        match self.published_for {
            Figure::Passed | Figure::Differ | Figure::AtMost => self.passed,
            Figure::Denied => self.denied,
            Figure::MostInWindow => self.most_in_window.unwrap_or_default(),
            Figure::LongestWait => self.longest_wait.as_nanos(),
        }
    }

    #[must_use]
    fn published(mut self, figure: u64, published_for: Figure) -> Self {
        (self.published, self.published_for) = (Some(figure), published_for);
        self
    }

    #[must_use]
    fn called(mut self, method: impl Into<String>) -> Self {
        self.method = Some(method.into());
        self
    }
}

impl Figure {
    /// Returns what the figure is, in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Denied => "denied",
            Self::MostInWindow => "most in any window",
            Self::LongestWait => "longest wait",
            Self::Differ => "differ",
            Self::AtMost => "at most",
        }
    }
}

/// Reads a limit of ours.
///
/// # Panics
/// On a text that is no limit, which a test of every experiment would show.
pub(crate) fn limit(text: &str) -> sekisho::Limit {
    text.parse().expect("the experiments' limits are written correctly")
}
