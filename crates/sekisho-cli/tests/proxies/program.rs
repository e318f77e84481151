//! A program in the foreground for one test, ended by its own handle.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Duration,
};

/// How long a program may be silent before it is ready.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A running program, which is killed when this is dropped.
pub(crate) struct Program {
    child: Child,
    said: Receiver<String>,
}

impl Program {
    /// Starts it and waits for a line that contains `ready`. Returns that line too, or all that it said instead.
    pub(crate) fn start(
        command: &mut Command,
        ready: &str,
        missing: &str,
    ) -> Result<(Self, String), String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{}: {error}; {missing}", command.get_program().display())
            });
        let (sender, said) = mpsc::channel();
        pass_on(child.stdout.take().unwrap(), sender.clone());
        pass_on(child.stderr.take().unwrap(), sender);
        let program = Self { child, said };
        let mut before = String::new();
        loop {
            match program.said.recv_timeout(START_TIMEOUT) {
                Ok(line) if line.contains(ready) => return Ok((program, line)),
                Ok(line) => before.extend([line.as_str(), "\n"]),
                Err(_) => return Err(before),
            }
        }
    }

    /// Returns what it has said since it was ready, or since this was last asked.
    pub(crate) fn said(&self) -> String {
        self.said.try_iter().map(|line| line + "\n").collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended itself.
        let _over = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Reads to the end, so that a pipe never fills. The thread ends with the program.
fn pass_on(output: impl Read + Send + 'static, to: Sender<String>) {
    drop(thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // Nobody listens any more once the test is over.
            let _unheard = to.send(line);
        }
    }));
}

/// A folder that is gone when the test is.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("sekisho-proxies-{}-{count}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Left behind at worst: a few small files.
        let _gone = fs::remove_dir_all(&self.0);
    }
}
