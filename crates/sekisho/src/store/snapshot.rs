//! A memory store's state in a file, so that a restart gives nobody a fresh quota.
//!
//! Whoever has the file has it alone, under a lock beside it. What is read is taken whole or not at all; what is written takes
//! the file's place only once all of it is on the disk. `format` has the layout.

mod error;
mod file;
mod format;
mod read;
mod write;

use std::{
    fs::{self, File},
    io::{self, BufReader, Cursor},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use sekisho_core::{Span, Timestamp};

pub use self::error::{SnapshotError, SnapshotFault};
use self::read::ReadError;
use super::memory::{Memory, MemoryOptions};
use crate::{clock::Clock, digest::Seed};

/// The file that a memory store's state survives a restart in.
///
/// [`open`](Self::open) takes the file for this process and reads it; [`save`](Self::save) writes it: at the end of the process,
/// after its last decision, and as often before as a crash may cost. It holds the secrets that digests are made with, so it is
/// made for its owner alone.
///
/// ```
/// use std::sync::Arc;
///
/// use sekisho::{CanonicalPath, Limiter, MemoryOptions, Mode, NoHeaders, PolicySet, Request, Snapshot, SystemClock};
///
/// # let folder = std::env::temp_dir().join(format!("sekisho-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let file = folder.join("state.snapshot");
/// # let path = CanonicalPath::parse("/")?;
/// # let request = Request {
/// #     method: "GET", host: None, path: &path, query: None,
/// #     client: Some("203.0.113.9".parse()?), principal: None, headers: &NoHeaders,
/// # };
/// for run in ["allowed", "refused, by what the first run has used"] {
///     let policies =
///         PolicySet::parse("[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"1/h\"]\n")?;
///     let options = MemoryOptions::from(&policies.settings().store);
///     let (snapshot, store) = Snapshot::open(&file, options, Arc::new(SystemClock::new()))?;
///     // The keys of headers and cookies are found again as well.
///     let policies = policies.with_seed(snapshot.keys().clone());
///     let limiter = Limiter::with_store(policies, store);
///
///     let decision = limiter.decide_now(&request, Mode::Check);
///     assert_eq!(decision.is_allowed(), run == "allowed");
///
///     let saved = snapshot.save(limiter.store())?;
///     assert_eq!(saved.entries, 1);
/// }
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Snapshot {
    path: PathBuf,
    /// Held as long as this is open.
    _lock: File,
    keys: Seed,
    restored: Option<Restored>,
    /// One write at a time: two would share the file that they write to first.
    writing: Mutex<()>,
}

/// What came back from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// Entries in the file: one a key and limit.
    pub entries: u64,
    /// Entries that found no room, since the store is smaller than the one that was written. A key of theirs is a new one to a
    /// full store, whose [`Overflow`](crate::Overflow) says what happens to it.
    pub left_out: u64,
    /// The file's bytes.
    pub bytes: u64,
    /// When it was written, by the clock of who wrote it.
    pub written_at: Timestamp,
    /// How far that is ahead of now: a clock was set back. What was used after now then counts as used now.
    pub ahead: Span,
    /// Whether others than its owner could read the file, or write to it.
    pub open_to_others: bool,
}

/// What went into a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// Entries: one a key and limit.
    pub entries: u64,
    /// The file's bytes.
    pub bytes: u64,
}

impl Snapshot {
    /// Takes a file for this process, and returns the store that it holds: an empty one when there is no file yet. The seed of
    /// `options` is the file's where there is one.
    ///
    /// Beside the file lies another of the same name and `.lock`, which two processes cannot have at once; it stays.
    ///
    /// # Errors
    /// [`SnapshotError::InUse`] at once when another process has the file, [`SnapshotError::Refused`] when it is not whole or not
    /// ours: nothing of it is used then, [`SnapshotError::System`] when the system does not let us.
    pub fn open(
        path: impl Into<PathBuf>,
        options: MemoryOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Memory), SnapshotError> {
        let path = path.into();
        let lock = file::lock(&path)?;
        let (store, keys, restored) = match load(&path, &options, &clock)? {
            Some((store, keys, restored)) => (store, keys, Some(restored)),
            None => (Memory::with_clock(options, clock), Seed::random(), None),
        };
        Ok((Self { path, _lock: lock, keys, restored, writing: Mutex::default() }, store))
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what the digests in keys are made with: for [`PolicySet::with_seed`](crate::PolicySet::with_seed).
    pub const fn keys(&self) -> &Seed {
        &self.keys
    }

    /// Returns what came back; `None` when there was no file.
    pub const fn restored(&self) -> Option<&Restored> {
        self.restored.as_ref()
    }

    /// Writes the state of a store, and returns once it is on the disk. Until then the file is the one before.
    ///
    /// Decisions go on meanwhile: one part of the table is held at a time, and never while the disk is waited for. The memory that
    /// this takes is that of one part.
    ///
    /// # Errors
    /// [`SnapshotError::System`]: the file is the one before.
    pub fn save(&self, store: &Memory) -> Result<Saved, SnapshotError> {
        let _alone = self.writing.lock();
        file::replace(&self.path, |file| write::write(file, store, &self.keys))
    }

    /// Returns the bytes that [`save`](Self::save) writes, all at once in memory.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use sekisho::{KeyedLimiter, MemoryOptions, Seed, Snapshot, SystemClock};
    ///
    /// let limiter = KeyedLimiter::new("1/h".parse()?);
    /// assert!(limiter.check("alice")?.is_allowed());
    /// let bytes = Snapshot::encode(limiter.store(), &Seed::random())?;
    ///
    /// let options = MemoryOptions::default();
    /// let (store, _, restored) = Snapshot::decode(&bytes, options, Arc::new(SystemClock::new()))?;
    /// assert_eq!(restored.entries, 1);
    /// let limiter = KeyedLimiter::with_store("1/h".parse()?, store);
    /// assert!(!limiter.check("alice")?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// None that is known: memory takes all that is written.
    pub fn encode(store: &Memory, keys: &Seed) -> io::Result<Vec<u8>> {
        let mut bytes = Cursor::new(Vec::new());
        let _saved = write::write(&mut bytes, store, keys)?;
        Ok(bytes.into_inner())
    }

    /// Returns the store that the bytes of a file hold, and what its keys' digests are made with.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn decode(
        bytes: &[u8],
        options: MemoryOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<(Memory, Seed, Restored), SnapshotFault> {
        match read::read(bytes, bytes.len() as u64, options, clock) {
            Ok(read) => Ok(read),
            Err(ReadError::Fault(fault)) => Err(fault),
            // Bytes in memory end, and do nothing else.
            Err(ReadError::System(_)) => Err(SnapshotFault::Damaged("its end is missing")),
        }
    }
}

/// Reads a file, if there is one.
fn load(
    path: &Path,
    options: &MemoryOptions,
    clock: &Arc<dyn Clock>,
) -> Result<Option<(Memory, Seed, Restored)>, SnapshotError> {
    let failed = |source| SnapshotError::system("read", path, source);
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(failed)?,
    };
    let refused = |fault| SnapshotError::Refused { path: path.to_owned(), fault };
    // To open a pipe would be to wait for its writer.
    if !found.is_file() {
        return Err(refused(SnapshotFault::NoFile));
    }
    let file = File::open(path).map_err(failed)?;
    let (length, mode) = {
        let opened = file.metadata().map_err(failed)?;
        (opened.len(), opened.permissions().mode())
    };
    let input = BufReader::with_capacity(READ_BYTES, file);
    match read::read(input, length, options.clone(), Arc::clone(clock)) {
        Ok((store, keys, restored)) => {
            let open_to_others = mode & 0o077 != 0;
            Ok(Some((store, keys, Restored { open_to_others, ..restored })))
        }
        Err(ReadError::Fault(fault)) => Err(refused(fault)),
        Err(ReadError::System(source)) => Err(failed(source)),
    }
}

/// How much is read at once.
const READ_BYTES: usize = 64 * 1_024;
