//! The workspace's own tool: `cargo xtask <task>...`.
//!
//! What a formatter and a linter cannot hold is held here: sizes, arrows between crates, the case
//! files that must exist and the files that are generated. Every check is a pure function over
//! text with a thin runner around it, so each has a test that shows it failing.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its report is this tool's output")]

mod arrows;
mod bench;
mod cases;
mod codegen;
mod features;
mod rust;
mod sabotage;
mod task;
mod tidy;
mod workspace;

use std::env;
use std::process::ExitCode;

use crate::task::Task;
use crate::workspace::Workspace;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match task::parse(&words).and_then(|tasks| run_all(&tasks)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs every task even after a failure, so that one call shows all there is to mend.
fn run_all(tasks: &[Task]) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    let mut code = ExitCode::SUCCESS;
    for task in tasks {
        if let Err(error) = run(task, &workspace) {
            eprintln!("{}: {error:#}", task.name());
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

fn run(task: &Task, workspace: &Workspace) -> anyhow::Result<()> {
    match task {
        Task::Help => {
            print!("{}", task::HELP);
            Ok(())
        }
        Task::Tidy => tidy::run(workspace),
        Task::Arrows => arrows::run(workspace),
        Task::Cases => cases::run(workspace),
        Task::Codegen { check } => codegen::run(workspace, *check),
        Task::Features => features::run(workspace),
        Task::Ci { args } => workspace.run("bash", &with_first("test", args)),
        Task::Bench { name, args } => bench::run(workspace, name, args),
        Task::Sabotage { name } => sabotage::run(workspace, name.as_deref()),
    }
}

fn with_first(first: &str, rest: &[String]) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(rest.iter().cloned()).collect()
}
