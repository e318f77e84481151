//! The file of a snapshot: its mode, its lock, its replacement, and its errors.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    thread,
};

use sekisho::{
    KeyedLimiter, Memory, MemoryOptions, Snapshot, SnapshotError, SnapshotFault, SystemClock,
};

/// A folder that is gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Relaxed);
        let name = format!("sekisho-snapshots-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("state")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn open(&self) -> Result<(Snapshot, Memory), SnapshotError> {
        Snapshot::open(self.file(), MemoryOptions::default(), Arc::new(SystemClock::new()))
    }

    /// Leaves a snapshot with so many keys that have used all they may.
    fn written(&self, keys: u32) {
        let (snapshot, store) = self.open().unwrap();
        let limiter = KeyedLimiter::with_store("1/h".parse().unwrap(), store);
        for key in 0..keys {
            assert!(limiter.check(key.to_be_bytes()).unwrap().is_allowed());
        }
        assert_eq!(snapshot.save(limiter.store()).unwrap().entries, u64::from(keys));
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &PathBuf) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_first_start_finds_nothing_and_a_second_finds_all() {
    let folder = Folder::new();
    assert!(folder.open().unwrap().0.restored().is_none());
    assert_eq!(folder.names(), ["state.lock"]);
    folder.written(100);
    assert_eq!(folder.names(), ["state", "state.lock"]);
    assert_eq!([folder.file(), folder.0.join("state.lock")].each_ref().map(mode), [0o600; 2]);
    let (snapshot, store) = folder.open().unwrap();
    assert_eq!((snapshot.restored().unwrap().entries, store.occupancy().entries), (100, 100));
    assert!(!snapshot.restored().unwrap().open_to_others);
}

#[test]
fn one_process_has_it_at_a_time() {
    let folder = Folder::new();
    let held = folder.open().unwrap();
    let error = folder.open().unwrap_err();
    let id = std::process::id();
    assert!(matches!(error, SnapshotError::InUse { holder: Some(holder), .. } if holder == id));
    let text = error.to_string();
    for words in [&folder.file().display().to_string(), &format!("process {id}"), "two servers"] {
        assert!(text.contains(words), "{words} is missing in {text}");
    }
    drop(held);
    assert!(folder.open().is_ok());
}

#[test]
fn a_file_that_others_can_read_is_taken_and_said_to_be_and_closed_at_the_next_write() {
    let folder = Folder::new();
    folder.written(1);
    fs::set_permissions(folder.file(), Permissions::from_mode(0o644)).unwrap();
    let (snapshot, store) = folder.open().unwrap();
    assert!(snapshot.restored().unwrap().open_to_others);
    let _saved = snapshot.save(&store).unwrap();
    assert_eq!(mode(&folder.file()), 0o600);
}

#[test]
fn a_file_cut_at_every_page_is_refused_and_stays() {
    let folder = Folder::new();
    folder.written(2_000);
    let bytes = fs::read(folder.file()).unwrap();
    assert!(bytes.len() > 20 * 4_096);
    for length in (0..bytes.len()).step_by(4_096) {
        fs::write(folder.file(), &bytes[..length]).unwrap();
        let error = folder.open().unwrap_err();
        let fault = SnapshotFault::CutShort {
            found: length as u64,
            wanted: if length == 0 { 80 } else { bytes.len() as u64 },
        };
        assert!(matches!(error, SnapshotError::Refused { fault: found, .. } if found == fault));
        assert_eq!(fs::metadata(folder.file()).unwrap().len(), length as u64);
    }
}

#[test]
fn what_is_no_snapshot_is_refused_by_name() {
    let folder = Folder::new();
    let refused = |fault| {
        let error = folder.open().unwrap_err();
        assert!(matches!(&error, SnapshotError::Refused { fault: found, .. } if *found == fault));
        assert!(error.to_string().contains(&folder.file().display().to_string()), "{error}");
    };
    fs::write(folder.file(), "[[policy]]\n").unwrap();
    refused(SnapshotFault::Foreign);
    fs::remove_file(folder.file()).unwrap();
    fs::create_dir(folder.file()).unwrap();
    refused(SnapshotFault::NoFile);
    fs::remove_dir(folder.file()).unwrap();
    folder.written(1);
    let mut bytes = fs::read(folder.file()).unwrap();
    bytes[16] = 2;
    fs::write(folder.file(), bytes).unwrap();
    refused(SnapshotFault::Version(2));
}

#[test]
fn a_write_that_fails_leaves_the_file_before_and_nothing_else() {
    let folder = Folder::new();
    folder.written(3);
    let (snapshot, store) = folder.open().unwrap();
    let before = fs::read(folder.file()).unwrap();
    // Where the new file would be made lies a folder, which no file replaces.
    fs::create_dir(folder.0.join("state.new")).unwrap();
    let error = snapshot.save(&store).unwrap_err();
    assert!(matches!(error, SnapshotError::System { doing: "written", .. }), "{error:?}");
    assert_eq!(fs::read(folder.file()).unwrap(), before);
    fs::remove_dir(folder.0.join("state.new")).unwrap();
    // What a killed process left is no obstacle.
    fs::write(folder.0.join("state.new"), "half").unwrap();
    assert_eq!(snapshot.save(&store).unwrap().entries, 3);
    assert_eq!(folder.names(), ["state", "state.lock"]);
    let nowhere = folder.0.join("no/such/folder");
    let error = Snapshot::open(nowhere, MemoryOptions::default(), Arc::new(SystemClock::new()));
    assert!(matches!(error.unwrap_err(), SnapshotError::System { doing: "locked", .. }));
}

/// Decisions that are made while a snapshot is written are in it whole or not at all, and every file on the way is good.
#[test]
fn a_store_that_decides_is_written_all_the_same() {
    let folder = Folder::new();
    let (snapshot, store) = folder.open().unwrap();
    let limiter = KeyedLimiter::with_store("3/h sliding-log".parse().unwrap(), store);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _deciding = scope.spawn(|| {
            for key in 0..20_000_u32 {
                assert!(limiter.check(key.to_be_bytes()).unwrap().is_allowed());
            }
            over.store(true, Relaxed);
        });
        let mut entries = 0;
        while !over.load(Relaxed) {
            let saved = snapshot.save(limiter.store()).unwrap();
            assert!(saved.entries >= entries, "what was used is used");
            entries = saved.entries;
            let bytes = fs::read(folder.file()).unwrap();
            let read =
                Snapshot::decode(&bytes, MemoryOptions::default(), Arc::new(SystemClock::new()));
            assert_eq!(read.unwrap().2.entries, entries);
        }
    });
    assert_eq!(snapshot.save(limiter.store()).unwrap().entries, 20_000);
}
