//! The `sekisho` binary: a table of contents.

mod args;
mod command;
mod report;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match args::parse().and_then(command::run) {
        Ok(code) => code,
        Err(report) => report.print(),
    }
}
