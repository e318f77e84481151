//! A Redis of one's own for one test: on a port that nobody else has, keeping nothing, gone with the test.
//!
//! The program is `redis-server` on the `PATH`, or what `SEKISHO_REDIS_SERVER` names. A test that finds none fails: a
//! skipped test would promise what nobody has seen.

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{self, Child, ChildStdout, Command, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

/// How long a server may be silent before it is ready.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How often another free port is tried, as somebody may take one between our look and the server's.
const PORTS_TRIED: usize = 5;
const MISSING: &str = "these tests need a Redis server: install one (`apt-get install redis-server`, \
    `brew install redis`) or name its program in SEKISHO_REDIS_SERVER";

/// A running server, which is killed when this is dropped.
#[derive(Debug)]
pub struct RedisServer {
    child: Option<Child>,
    folder: PathBuf,
    port: u16,
}

impl RedisServer {
    /// Starts a server on a free port of 127.0.0.1 and waits until it answers.
    ///
    /// # Panics
    /// When there is no server to start, with how to get one; or when it does not start, with what it said.
    pub fn start() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("sekisho-redis-{}-{count}", process::id()));
        fs::create_dir_all(&folder).expect("the folder for temporary files takes a folder");
        let mut server = Self { child: None, folder, port: 0 };
        let mut said = String::new();
        for _ in 0..PORTS_TRIED {
            server.port = free_port();
            match server.launch() {
                Ok(()) => return server,
                Err(why) => said = why,
            }
        }
        panic!("redis-server does not start; it said:\n{said}");
    }

    /// Starts it again, empty, on the same port, after [`stop`](Self::stop).
    ///
    /// # Panics
    /// When it does not start, with what it said.
    pub fn restart(&mut self) {
        self.stop();
        if let Err(said) = self.launch() {
            panic!("redis-server does not start again; it said:\n{said}");
        }
    }

    /// Kills it, as a crash would.
    ///
    /// # Panics
    /// When it cannot be killed.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("our own child can be killed");
            child.wait().expect("our own child can be waited for");
        }
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the address over TCP.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Returns the path of its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("redis.sock")
    }

    /// Starts the program and waits until it is ready, or returns what it said before it ended.
    fn launch(&mut self) -> Result<(), String> {
        let program = env::var_os("SEKISHO_REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
        let mut child = Command::new(&program)
            .args(["--bind", "127.0.0.1", "--port", &self.port.to_string()])
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", ""])
            .arg("--dir")
            .arg(&self.folder)
            .arg("--unixsocket")
            .arg(self.socket())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; {MISSING}", program.display()));
        let output = child.stdout.take().expect("its output is piped");
        // Kept from here on, so that a panic below ends it too.
        self.child = Some(child);
        let ready = await_ready(output);
        if ready.is_err() {
            self.stop();
            return ready;
        }
        // The socket's name is ours alone, so it is our server that answers; and it ends when it cannot have its port.
        ping(&self.socket()).map_err(|error| error.to_string())
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
        // Left behind at worst: a folder without data.
        let _ignored = fs::remove_dir_all(&self.folder);
    }
}

/// Returns a port of 127.0.0.1 that nobody listens on: for a server that is not there.
///
/// # Panics
/// When the machine has none.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("127.0.0.1 has a free port");
    listener.local_addr().expect("a listener has an address").port()
}

/// Reads what the server says until it says that it is ready, and goes on reading so that its pipe never fills.
fn await_ready(output: ChildStdout) -> Result<(), String> {
    let (sender, lines) = mpsc::channel();
    // Ends with the output, which ends with the server.
    drop(thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // Nobody listens any more once it is ready.
            let _ignored = sender.send(line);
        }
    }));
    let mut said = String::new();
    loop {
        match lines.recv_timeout(START_TIMEOUT) {
            Ok(line) if line.to_ascii_lowercase().contains("ready to accept connections") => {
                return Ok(());
            }
            Ok(line) => said.extend([line.as_str(), "\n"]),
            Err(_) => return Err(said),
        }
    }
}

fn ping(socket: &Path) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(START_TIMEOUT))?;
    stream.write_all(b"PING\r\n")?;
    let mut reply = [0; 7];
    stream.read_exact(&mut reply)?;
    if &reply == b"+PONG\r\n" { Ok(()) } else { Err(io::Error::other("no answer to PING")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_answers_starts_again_and_goes_with_its_test() {
        let mut one = RedisServer::start();
        let other = RedisServer::start();
        assert_ne!(one.port(), other.port());
        one.stop();
        assert!(ping(&one.socket()).is_err());
        ping(&other.socket()).unwrap();
        one.restart();
        ping(&one.socket()).unwrap();
        let folder = one.folder.clone();
        drop(one);
        assert!(!folder.exists());
    }
}
