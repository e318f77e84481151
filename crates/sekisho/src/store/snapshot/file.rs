//! The file itself: had by one process at a time, and replaced whole.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use super::error::SnapshotError;

/// Who may read and write: the owner. Given when a file is made, so that it is never wider, not for a moment.
const MODE: u32 = 0o600;
/// How often a lock is taken of which the file has just been removed.
const LOCK_TRIES: usize = 16;

/// Returns the lock of a file, which ends with the process if not before, however that ends. The file itself cannot be locked,
/// since another one takes its place at each write.
pub(super) fn lock(path: &Path) -> Result<File, SnapshotError> {
    let failed = |source| SnapshotError::system("locked", path, source);
    let beside = beside(path, ".lock");
    for _ in 0..LOCK_TRIES {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(MODE);
        let mut lock = options.open(&beside).map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(SnapshotError::InUse { path: path.to_owned(), holder: holder(&lock) });
            }
            Err(error) => return Err(failed(error.into())),
        }
        // A file that was removed in between is nobody else's to find.
        let ours = lock.metadata().map_err(failed)?;
        let is_there = fs::metadata(&beside)
            .is_ok_and(|found| (found.dev(), found.ino()) == (ours.dev(), ours.ino()));
        if is_there {
            // For the message that somebody else gets; without it that one names no process.
            let _said = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
            return Ok(lock);
        }
    }
    Err(failed(io::Error::other("its lock is removed again and again")))
}

/// Returns which process has a lock, if it says so.
fn holder(lock: &File) -> Option<u32> {
    let mut text = String::new();
    let _length = lock.take(16).read_to_string(&mut text).ok()?;
    text.trim_end().parse().ok()
}

/// Has a file written beside the one of that name, and puts it in its place once all of it is on the disk.
pub(super) fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<T>,
) -> Result<T, SnapshotError> {
    let beside = beside(path, ".new");
    let written = written(path, &beside, write);
    written.map_err(|source| {
        // What is left of it is removed before the next write at the latest.
        let _removed = fs::remove_file(&beside);
        SnapshotError::system("written", path, source)
    })
}

fn written<T>(
    path: &Path,
    beside: &Path,
    write: impl FnOnce(&mut File) -> io::Result<T>,
) -> io::Result<T> {
    match fs::remove_file(beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(beside)?;
    let result = write(&mut file)?;
    file.sync_all()?;
    fs::rename(beside, path)?;
    // Without this the name may still be the old file's after the machine has crashed.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(result)
}

/// Returns the path of a file of the same name and more, in the same folder.
fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(more);
    name.into()
}
