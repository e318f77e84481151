//! A Redis of one's own for one test: on a port that nobody else has, keeping nothing, gone with the test.
//!
//! The program is `redis-server` on the `PATH`, or what `SEKISHO_REDIS_SERVER` names; a [`Builder`] starts a Valkey just
//! as well. A test that finds none fails: a skipped test would promise what nobody has seen.

mod builder;
mod certificate;
mod client;
mod process;
mod questions;

use std::{
    env,
    fs::{self, File},
    net::TcpListener,
    path::PathBuf,
    process::{self as this, Child, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

pub(crate) use crate::redis_server::builder::Mode;
pub use crate::redis_server::{
    builder::{Builder, Program},
    client::Reply,
};
use crate::{
    redis_server::{builder::Place, certificate::Certificates},
    wait::PATIENCE,
};

/// How often other free ports are tried, as somebody may take one between our look and the server's.
const PORTS_TRIED: usize = 5;

/// A running server, which is killed when this is dropped.
///
/// ```no_run
/// use sekisho_testkit::redis_server::RedisServer;
///
/// let server = RedisServer::start();
/// server.command(&["SET", "key", "1"]);
/// assert_eq!(server.command(&["INCR", "key"]).integer(), 2);
/// assert_eq!(server.keys_without_expiry(""), ["key"]);
/// ```
#[derive(Debug)]
pub struct RedisServer {
    child: Option<Child>,
    setup: Builder,
    folder: PathBuf,
    port: u16,
    bus_port: u16,
    tls_port: u16,
    certificates: Option<Certificates>,
}

impl RedisServer {
    /// Starts a server on a free port of 127.0.0.1 and waits until it answers.
    ///
    /// # Panics
    /// When there is no server to start, with how to get one; or when it does not start, with what it said.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// A server with settings of its own.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts it again, empty, on the same port, after [`stop`](Self::stop).
    ///
    /// # Panics
    /// When it does not start, with what it said.
    pub fn restart(&mut self) {
        self.stop();
        if let Err(said) = self.launch() {
            panic!("the server does not start again; it said:\n{said}");
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

    /// Stops its every thread, as a machine does that swaps or is moved: connections stay, and nobody answers.
    ///
    /// # Panics
    /// When it does not run.
    pub fn pause(&self) {
        process::pause(self.pid());
    }

    /// Lets it go on after [`pause`](Self::pause), with all that was sent to it meanwhile.
    ///
    /// # Panics
    /// When it does not run.
    pub fn resume(&self) {
        process::resume(self.pid());
    }

    /// Returns whether it was started and not stopped since; a paused server runs.
    pub fn runs(&self) -> bool {
        self.child.is_some()
    }

    /// Returns the number of its process.
    ///
    /// # Panics
    /// When it does not run.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it does not run").id()
    }

    /// Returns how long its threads have been on a processor since it started, in steps of the kernel's 10 ms.
    ///
    /// # Panics
    /// When it does not run, or the system has no `/proc`.
    pub fn cpu(&self) -> Duration {
        process::cpu(self.pid())
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the address over TCP, with the password if there is one.
    pub fn url(&self) -> String {
        format!("redis://{}127.0.0.1:{}/", self.credentials(), self.port)
    }

    /// Returns the address over TLS.
    ///
    /// # Panics
    /// When it has none: see [`Builder::tls`].
    pub fn tls_url(&self) -> String {
        format!("rediss://{}127.0.0.1:{}/", self.credentials(), self.tls_port())
    }

    /// Returns the port for TLS on 127.0.0.1.
    ///
    /// # Panics
    /// When it has none: see [`Builder::tls`].
    pub fn tls_port(&self) -> u16 {
        assert!(self.setup.tls, "it was started without TLS");
        self.tls_port
    }

    /// Returns the authority that signed its certificate, which clients are to trust.
    ///
    /// # Panics
    /// When it has none: see [`Builder::tls`].
    pub fn authority_pem(&self) -> &str {
        &self.certificates.as_ref().expect("it was started without TLS").authority_pem
    }

    /// Returns the path of its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("redis.sock")
    }

    /// Returns the port that the nodes of a cluster talk to one another through.
    pub(crate) fn bus_port(&self) -> u16 {
        self.bus_port
    }

    /// Starts what `setup` says.
    fn start_with(setup: Builder) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("sekisho-redis-{}-{count}", this::id()));
        fs::create_dir_all(&folder).expect("the folder for temporary files takes a folder");
        let certificates = setup.tls.then(|| Certificates::make(&folder));
        let mut server =
            Self { child: None, setup, folder, port: 0, bus_port: 0, tls_port: 0, certificates };
        let mut said = String::new();
        for _ in 0..PORTS_TRIED {
            [server.port, server.bus_port, server.tls_port] = free_ports();
            match server.launch() {
                Ok(()) => return server,
                Err(why) => said = why,
            }
        }
        panic!("{} does not start; it said:\n{said}", server.setup.which().path().display());
    }

    /// Starts the program and waits until it is ready, or returns what it said before it ended.
    fn launch(&mut self) -> Result<(), String> {
        let [file, errors] = ["redis.conf", "errors"].map(|name| self.folder.join(name));
        let socket = self.socket();
        let place = Place {
            folder: &self.folder,
            socket: &socket,
            port: self.port,
            bus_port: self.bus_port,
            tls: self.certificates.as_ref().map(|files| (self.tls_port, files)),
        };
        fs::write(&file, self.setup.settings(&place)).expect("our own folder takes a file");
        let mut command = self.setup.command(&file);
        let stderr = File::create(&errors).expect("our own folder takes a file");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().unwrap_or_else(|error| {
            let program = self.setup.which();
            panic!("{}: {error}; {}", program.path().display(), program.missing())
        });
        let output = child.stdout.take().expect("its output is piped");
        // Kept from here on, so that a panic below ends it too.
        self.child = Some(child);
        if let Err(said) = process::await_ready(output) {
            self.stop();
            // What is wrong with its settings stands here.
            return Err(said + &fs::read_to_string(&errors).unwrap_or_default());
        }
        // The socket's name is ours alone, so it is our server that answers; and it ends when it cannot have its port.
        match self.try_command(&["PING"], PATIENCE) {
            Ok(Reply::Status(word)) if word == "PONG" => Ok(()),
            other => Err(format!("{other:?} to PING")),
        }
    }

    fn credentials(&self) -> String {
        self.setup.password.as_ref().map(|word| format!(":{word}@")).unwrap_or_default()
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
    let [port] = free_ports();
    port
}

/// Returns several, held together for a moment so that none comes twice.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners =
        [(); N].map(|()| TcpListener::bind(("127.0.0.1", 0)).expect("127.0.0.1 has a free port"));
    listeners.each_ref().map(|one| one.local_addr().expect("a listener has an address").port())
}
