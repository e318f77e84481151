//! Experiments of a user's own: from a file, or from the command line. Both come to the same fields.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use sekisho_replay::{
    experiment::Report as Outcome,
    scenario::{
        ClientFields, FILE_BYTES_MAX, Fields, Problem, Problems, Scenario, ScenarioError,
        ServerFields,
    },
    world::title,
};
use toml::Spanned;

use super::trace::{open, wrong};
use crate::{args::Simulate, report::Report};

/// Runs a scenario file.
pub(super) fn from_file(path: &Path) -> Result<Outcome, Report> {
    let text = read(path)?;
    let shown = path.display().to_string();
    let scenario = Fields::parse(&text).and_then(|fields| fields.compile()).map_err(|wrong| {
        told(&wrong, |problem| match problem.line(&text) {
            Some(line) => format!("{shown}:{line}: {problem}"),
            None => format!("{shown}: {problem}"),
        })
    })?;
    let trace = scenario.trace().map(|trace| match trace {
        "-" => PathBuf::from("-"),
        // Beside the scenario, wherever the program was started.
        trace => path.parent().unwrap_or(Path::new("")).join(trace),
    });
    if trace.as_deref() == Some(Path::new("-")) && path == Path::new("-") {
        return Err(Report::input("`trace`: the standard input is the scenario itself")
            .hint("put the trace, or the scenario, into a file"));
    }
    run(&scenario, trace.as_deref())
}

/// Runs what the command line says.
pub(super) fn from_flags(args: &Simulate) -> Result<Outcome, Report> {
    let fields = fields(args);
    let scenario = fields.compile().map_err(|wrong| {
        told(&wrong, |problem| format!("`{}`: {}", flag(problem.field), problem.message))
    })?;
    run(&scenario, args.trace.as_deref())
}

fn fields(args: &Simulate) -> Fields {
    let own = &args.own;
    // A trace alone is decided by all limits together, in every form of output.
    let rows: Vec<_> = if own.is_given() {
        args.limits.iter().map(|limits| title(&limits.0)).collect()
    } else {
        vec![args.limits.iter().map(|limits| title(&limits.0)).collect::<Vec<_>>().join(" + ")]
    };
    Fields {
        limits: rows.into_iter().map(placeless).collect(),
        arrivals: own.arrivals.iter().cloned().map(placeless).collect(),
        trace: args.trace.as_ref().map(|trace| placeless(trace.display().to_string())),
        window: own.window.clone().map(placeless),
        seed: own.seed.map(placeless),
        keys: own.keys.map(placeless),
        zipf: own.zipf.map(placeless),
        servers: ServerFields {
            count: own.servers.map(placeless),
            shares: own.shares.clone().map(placeless),
            counting: own.counting.clone().map(placeless),
            ahead: own.ahead.clone().map(placeless),
        },
        clients: ClientFields {
            retry: own.retry.clone().map(placeless),
            jitter: own.jitter.clone().map(placeless),
            tries: own.tries.map(placeless),
        },
        ..Fields::default()
    }
}

fn placeless<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

/// Returns the argument that stands for a field of the file.
fn flag(field: &str) -> String {
    match field {
        "limits" => "--limit".to_owned(),
        "servers.count" => "--servers".to_owned(),
        field => format!("--{}", field.rsplit('.').next().unwrap_or(field)),
    }
}

fn run(scenario: &Scenario, trace: Option<&Path>) -> Result<Outcome, Report> {
    let mut reader = trace.map(open).transpose()?;
    let result = match &mut reader {
        Some(reader) => scenario.run(Some(reader)),
        None => scenario.run(None),
    };
    let path = trace.unwrap_or(Path::new(""));
    result.map_err(|error| match error {
        ScenarioError::Trace(error) => wrong(path, &error),
        ScenarioError::Keys => Report::input(format!("{}: {error}", path.display())),
        error => Report::input(error),
    })
}

/// Reads a scenario's text, as much as one may have.
fn read(path: &Path) -> Result<String, Report> {
    let mut bytes = Vec::new();
    let most = FILE_BYTES_MAX as u64 + 1;
    open(path)?
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|error| Report::input(format!("{}: {error}", path.display())))?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(Report::input(format!(
            "{}: a scenario has at most {FILE_BYTES_MAX} bytes",
            path.display()
        ))
        .hint("requests belong into a trace file, which the scenario names with `trace`"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + String::from_utf8_lossy(&error.as_bytes()[..valid]).matches('\n').count();
        Report::input(format!("{}:{line}: this is not UTF-8", path.display()))
    })
}

/// Says all that is wrong.
fn told(wrong: &Problems, line: impl Fn(&Problem) -> String) -> Report {
    let lines: Vec<_> = wrong.0.iter().map(line).collect();
    match lines.as_slice() {
        [line] => Report::input(line),
        lines => {
            Report::input(format!("the scenario has {} errors\n{}", lines.len(), lines.join("\n")))
        }
    }
}
