//! How the program says what went wrong: a message, what to do, and an exit code that means something.

use std::{fmt, io, process::ExitCode};

/// What an exit code means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The work could not be done: an address in use, a full disk.
    Failed = 1,
    /// The input is wrong: an argument, a policy file, a trace.
    Input = 2,
}

/// What went wrong.
#[derive(Debug)]
pub(crate) struct Report {
    kind: Kind,
    message: String,
    hint: Option<String>,
}

impl Report {
    pub(crate) fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), hint: None }
    }

    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Self::new(Kind::Input, message)
    }

    pub(crate) fn failed(message: impl fmt::Display) -> Self {
        Self::new(Kind::Failed, message)
    }

    /// The same with all that lies behind the error.
    pub(crate) fn caused(error: &dyn std::error::Error) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Self::failed(message)
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says it on the standard error, and returns the exit code.
    #[expect(clippy::print_stderr, reason = "this is where the program says what went wrong")]
    pub(crate) fn print(&self) -> ExitCode {
        eprintln!("error: {}", self.message);
        if let Some(hint) = &self.hint {
            eprintln!("hint: {hint}");
        }
        ExitCode::from(self.kind as u8)
    }
}

/// Writes to the standard output. A reader that has gone away has seen enough: that is a success.
pub(crate) fn out(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> Result<(), Report> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| io::Write::flush(&mut out)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Report::failed(format!("the output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}
