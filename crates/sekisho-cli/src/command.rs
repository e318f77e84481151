//! One file a command.

mod bound;
mod completions;
mod explain;
mod keys;
mod lint;
mod proxy;
mod reference;
mod schema;
mod serve;
mod simulate;

use std::{fs, path::Path, process::ExitCode};

use sekisho::PolicySet;

use crate::{
    args::{Cli, Command},
    report::Report,
};

/// Runs what was asked for.
pub(crate) fn run(cli: Cli) -> Result<ExitCode, Report> {
    match cli.command {
        Command::Serve(args) => serve::run(&args),
        Command::Proxy(args) => proxy::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Simulate(args) => simulate::run(args),
        Command::Bound(args) => bound::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Reference => reference::run(),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Reads a policy file's text.
fn read(path: &Path) -> Result<String, Report> {
    let bytes =
        fs::read(path).map_err(|error| Report::input(format!("{}: {error}", path.display())))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + String::from_utf8_lossy(&error.as_bytes()[..valid]).matches('\n').count();
        Report::input(format!("{}:{line}: this is not UTF-8", path.display()))
    })
}

/// Reads and compiles a policy file, or says all that is wrong with it.
fn policies(path: &Path) -> Result<PolicySet, Report> {
    let text = read(path)?;
    PolicySet::parse(&text).map_err(|errors| {
        let lines: Vec<_> = errors
            .diagnostics()
            .iter()
            .map(|error| error.in_file(&path.display().to_string()))
            .collect();
        let count = match lines.len() {
            1 => "the policy file has an error".to_owned(),
            count => format!("the policy file has {count} errors"),
        };
        Report::input(format!("{count}\n{}", lines.join("\n")))
            .hint(format!("`sekisho lint -c {}` shows warnings too", path.display()))
    })
}
