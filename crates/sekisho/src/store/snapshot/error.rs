//! What can be wrong with a snapshot.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::format::VERSION;

/// Why a snapshot cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Another process has the file. Stop it, or give this one another file.
    #[error(
        "the snapshot {} is in use{}: two servers cannot keep their counts in one file",
        path.display(),
        holder.map(|id| format!(" by process {id}")).unwrap_or_default()
    )]
    InUse {
        /// The file.
        path: PathBuf,
        /// The process, when the lock says which.
        holder: Option<u32>,
    },
    /// The file is not what was written, and nothing of it is used. Put a good copy in its place; or remove it to start anew, with
    /// a full quota for everybody.
    #[error("the snapshot {} cannot be used: {fault}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: SnapshotFault,
    },
    /// The system does not let us. Its folder must be there, and this user must be allowed to write into it.
    #[error("the snapshot {} cannot be {doing}", path.display())]
    System {
        /// What was being done: `locked`, `read` or `written`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl SnapshotError {
    pub(super) fn system(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::System { doing, path: path.to_owned(), source }
    }
}

/// What is wrong with a snapshot's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotFault {
    /// Something else than a file has its name.
    #[error("it is no regular file")]
    NoFile,
    /// Another program's file.
    #[error("it is not a snapshot of Sekisho's")]
    Foreign,
    /// Written by another version of this program. Start that one, or remove the file.
    #[error("it has version {0}, and this program reads version {VERSION}")]
    Version(u32),
    /// Its end is missing.
    #[error("it is cut short: {found} of {wanted} bytes are there")]
    CutShort {
        /// How many bytes there are.
        found: u64,
        /// How many there were; when the head itself is cut, the head's.
        wanted: u64,
    },
    /// Something stands behind its end.
    #[error("it is too long: {found} bytes where there were {wanted}")]
    TooLong {
        /// How many bytes there are.
        found: u64,
        /// How many there were.
        wanted: u64,
    },
    /// Its bytes are not those that were written.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
}
