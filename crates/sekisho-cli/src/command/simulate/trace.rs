//! The trace interface: a trace in, one JSON object a request out.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Write},
    path::Path,
};

use sekisho_replay::{
    simulate::{SimulateError, Simulation},
    trace::TraceError,
};

use crate::{args::Limits, report::Report};

/// Answers each request under all limits together.
pub(super) fn answer(limits: &[Limits], path: &Path, out: Option<&Path>) -> Result<(), Report> {
    let reader = open(path)?;
    let limits = limits.iter().flat_map(|limits| limits.0.iter().copied()).collect();
    let mut to = destination(out)?;
    match Simulation::new(limits).run(reader, &mut to) {
        Ok(()) => Ok(()),
        // Whoever read the answers has seen enough.
        Err(SimulateError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(SimulateError::Trace(error)) => Err(wrong(path, &error)),
        Err(error) => Err(Report::failed(error)),
    }
}

/// Returns where the answers go.
pub(super) fn destination(out: Option<&Path>) -> Result<Box<dyn Write>, Report> {
    Ok(match out {
        None => Box::new(BufWriter::new(io::stdout().lock())),
        Some(out) => Box::new(BufWriter::new(
            File::create(out)
                .map_err(|error| Report::failed(format!("{}: {error}", out.display())))?,
        )),
    })
}

/// Says what is wrong with a trace, and what a line is like.
pub(super) fn wrong(path: &Path, error: &TraceError) -> Report {
    Report::input(format!("{}: {error}", path.display()))
        .hint("a trace line is `seconds[,key[,cost]]`, like `100.5,alice,2`")
}

/// Opens a file, or the standard input for `-`.
pub(super) fn open(path: &Path) -> Result<Box<dyn BufRead>, Report> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file =
        File::open(path).map_err(|error| Report::input(format!("{}: {error}", path.display())))?;
    Ok(Box::new(BufReader::new(file)))
}
