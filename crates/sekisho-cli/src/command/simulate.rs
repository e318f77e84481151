//! `sekisho simulate`: a trace in, one JSON object a request out.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, BufWriter},
};

use sekisho_replay::simulate::{SimulateError, Simulation};

use crate::{
    args::{Lines, Simulate},
    report::Report,
};

pub(super) fn run(args: Simulate) -> Result<(), Report> {
    let Simulate { limits, trace, output: Lines::Jsonl } = args;
    let reader: Box<dyn BufRead> = if trace.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(&trace)
            .map_err(|error| Report::input(format!("{}: {error}", trace.display())))?;
        Box::new(BufReader::new(file))
    };
    let mut out = BufWriter::new(io::stdout().lock());
    match Simulation::new(limits).run(reader, &mut out) {
        Ok(()) => Ok(()),
        // Whoever read the answers has seen enough.
        Err(SimulateError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error @ (SimulateError::Line { .. } | SimulateError::Read(_))) => {
            Err(Report::input(format!("{}: {error}", trace.display()))
                .hint("a trace line is `seconds[,key[,cost]]`, like `100.5,alice,2`"))
        }
        Err(error) => Err(Report::failed(error)),
    }
}
