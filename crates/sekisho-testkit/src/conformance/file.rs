//! Policy files: what is said of them, and requests under them.

mod request;

use std::{collections::BTreeSet, sync::Arc};

use sekisho::{Diagnostic, FakeClock, Limiter, PolicySet, Span, Timestamp};
use serde::Deserialize;

pub use self::request::RequestStep;
use super::Failure;

/// A policy file, what is said of it, and requests under it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// What it shows.
    pub name: String,
    /// The file.
    pub text: String,
    /// Why it is refused, each error in the file's order; none when it is accepted.
    #[serde(default)]
    pub error: Vec<Said>,
    /// What else is said of it, in the file's order.
    #[serde(default)]
    pub warning: Vec<Said>,
    /// The requests, in order.
    #[serde(default)]
    pub request: Vec<RequestStep>,
    /// How many keys of all policies the requests had.
    pub keys: Option<usize>,
    /// How many entries the store has at the end.
    pub stored: Option<usize>,
}

/// What is said of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// The code, as `SK011`.
    pub code: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The field.
    pub field: Option<String>,
    /// Words that the message has.
    #[serde(default)]
    pub words: Vec<String>,
}

/// The requests' own time begins here: on a full day.
const BEGIN: Timestamp = Timestamp::from_secs(19_675 * 86_400);

/// Reads the file, sends the requests, and compares.
///
/// # Errors
/// The first thing that is not as it should be.
pub fn run_file(case: &str, file: &File) -> Result<(), Failure> {
    run(file).map_err(|what| Failure::new(format_args!("{case} file ({})", file.name), what))
}

fn run(file: &File) -> Result<(), String> {
    let policies = match PolicySet::parse(&file.text) {
        Ok(policies) => policies,
        Err(errors) => {
            compare("errors", &file.error, errors.diagnostics())?;
            return compare("warnings", &file.warning, errors.warnings());
        }
    };
    compare("errors", &file.error, &[])?;
    compare("warnings", &file.warning, policies.warnings())?;
    let clock = Arc::new(FakeClock::at(BEGIN));
    let limiter = Limiter::with_clock(policies, Arc::clone(&clock) as _);
    let (mut now, mut keys) = (Span::ZERO, BTreeSet::new());
    for (index, step) in file.request.iter().enumerate() {
        let at = |what: String| format!("request {}: {what}", index + 1);
        let time = step.time().map_err(at)?;
        clock.advance(Span::from_nanos(time.as_nanos().saturating_sub(now.as_nanos())));
        now = time.max(now);
        keys.append(&mut step.run(&limiter).map_err(at)?);
    }
    if let Some(wanted) = file.keys.filter(|wanted| *wanted != keys.len()) {
        return Err(format!("wanted {wanted} keys, got {}: {keys:?}", keys.len()));
    }
    let stored = limiter.store().occupancy().entries;
    match file.stored {
        Some(wanted) if wanted != stored => Err(format!("wanted {wanted} entries, got {stored}")),
        _ => Ok(()),
    }
}

fn compare(what: &str, wanted: &[Said], said: &[Diagnostic]) -> Result<(), String> {
    let all = || said.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    if wanted.len() != said.len() {
        return Err(format!("wanted {} {what}, got {}: {}", wanted.len(), said.len(), all()));
    }
    for (wanted, said) in wanted.iter().zip(said) {
        let field = wanted.field.as_ref().is_none_or(|field| *field == said.field);
        let line = wanted.line.is_none_or(|line| line == said.line);
        let words = wanted.words.iter().all(|word| said.message.contains(word.as_str()));
        if wanted.code != said.code.as_str() || !field || !line || !words {
            return Err(format!("wanted {wanted:?}, got: {said}"));
        }
    }
    Ok(())
}
