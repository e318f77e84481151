//! A clock for one server, set by the test while the server runs.
//!
//! A small library in C stands in front of the C library's and adds an offset to every reading of the time of day; clocks
//! that only run on are left alone. It is compiled by `cc` when a test asks for it. Every reading becomes a call of the
//! kernel, so such a server is not one to measure.

use std::{
    env,
    fs::{self, File},
    io::Write,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

/// How long a server may go without reading the time of day, and a little.
const LAG: Duration = Duration::from_millis(2);
const SOURCE: &str = include_str!("../c/clock_shim.c");

/// A clock that servers may be started with: see [`Builder::clock`](crate::redis_server::Builder::clock).
///
/// ```no_run
/// use sekisho_testkit::{clock_shim::ClockShim, redis_server::RedisServer};
///
/// let clock = ClockShim::new();
/// let server = RedisServer::builder().clock(&clock).start();
/// clock.set_offset(-8 * 3_600 * 1_000_000);
/// // The server lives eight hours ago from here on.
/// server.command(&["TIME"]);
/// ```
#[derive(Debug)]
pub struct ClockShim {
    folder: PathBuf,
    offsets: File,
}

impl ClockShim {
    /// The variable that tells a server where the offset stands.
    pub(crate) const VARIABLE: &str = "SEKISHO_CLOCK_SHIM";

    /// Compiles the library; its clock is the machine's until it is set.
    ///
    /// # Panics
    /// When there is no C compiler, or it fails.
    #[expect(clippy::new_without_default, reason = "it compiles a library, which no default does")]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("sekisho-clock-{}-{count}", process::id()));
        fs::create_dir_all(&folder).expect("the folder for temporary files takes a folder");
        let offsets = File::create(folder.join("offsets")).expect("our own folder takes a file");
        let clock = Self { folder, offsets };
        clock.set_offset(0);
        compile(&clock.library());
        clock
    }

    /// Sets how far its clock is from the machine's, in microseconds; on return every server that has it is there.
    ///
    /// # Panics
    /// When the offset cannot be written.
    #[expect(clippy::disallowed_methods, reason = "a Valkey tells nobody when it looks again")]
    pub fn set_offset(&self, microseconds: i64) {
        // The copies differ while one is written, and the library waits until they do not.
        for place in [0, 8] {
            let bytes = microseconds.to_ne_bytes();
            self.offsets.write_all_at(&bytes, place).expect("our own file can be written");
        }
        // A Valkey reads the time of day once in a millisecond, and counts on from there on a clock that only runs on.
        thread::sleep(LAG);
    }

    /// Returns the library's path.
    pub fn library(&self) -> PathBuf {
        self.folder.join("clock_shim.so")
    }

    /// Returns the path of the file that holds the offset.
    pub fn file(&self) -> PathBuf {
        self.folder.join("offsets")
    }
}

impl Drop for ClockShim {
    fn drop(&mut self) {
        // A server that still runs has both files open and goes on.
        let _ignored = fs::remove_dir_all(&self.folder);
    }
}

fn compile(library: &Path) {
    let mut compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-x", "c", "-", "-o"])
        .arg(library)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cc: {error}; these tests need a C compiler"));
    let source = compiler.stdin.take().expect("its input is piped");
    // It may have failed before it read all; what it said tells why.
    let _ignored = { source }.write_all(SOURCE.as_bytes());
    let output = compiler.wait_with_output().expect("our own child can be waited for");
    assert!(output.status.success(), "cc: {}", String::from_utf8_lossy(&output.stderr));
}
