//! Sentinels of one's own: three of them, who watch a master and its two replicas and name a new master when it is gone.

use std::{fmt::Write as _, time::Duration};

use crate::{
    redis_server::{Builder, Mode, RedisServer, Reply},
    wait,
};

/// What the sentinels call the master.
pub const NAME: &str = "mymaster";
const REPLICAS: usize = 2;
const SENTINELS: usize = 3;
const QUORUM: usize = 2;
/// How long the master may be silent.
const DOWN_AFTER_MS: u32 = 500;
/// How long a sentinel waits before it tries what has failed again.
const FAILOVER_TIMEOUT_MS: u32 = 2_000;
/// How long a sentinel has to answer: a paused one never does.
const LOOK: Duration = Duration::from_millis(500);

/// Running servers and sentinels.
///
/// ```no_run
/// use sekisho_testkit::redis_sentinels::RedisSentinels;
///
/// let mut sentinels = RedisSentinels::start();
/// let before = sentinels.kill_master();
/// assert_ne!(sentinels.await_new_master(), before);
/// ```
#[derive(Debug)]
pub struct RedisSentinels {
    servers: Vec<RedisServer>,
    sentinels: Vec<RedisServer>,
    killed: Option<u16>,
}

impl RedisSentinels {
    /// Starts them and waits until the sentinels know one another and the replicas.
    ///
    /// # Panics
    /// When there is no server to start, or they do not find one another.
    pub fn start() -> Self {
        Self::start_with(&RedisServer::builder())
    }

    /// Starts them, the servers set up like `setup`, without a password; the sentinels are of its program.
    ///
    /// # Panics
    /// When there is no server to start, or they do not find one another.
    pub fn start_with(setup: &Builder) -> Self {
        let ours = RedisServer::builder().config("repl-diskless-sync-delay", "0").and(setup);
        let master = ours.clone().start();
        let address = format!("127.0.0.1 {}", master.port());
        let replica = ours.config("replicaof", &address);
        let sentinel = sentinel(&address).program(setup.which());
        let (mut servers, sentinels) = (vec![master], sentinel.start_all(SENTINELS));
        servers.extend(replica.start_all(REPLICAS));
        let started = Self { servers, sentinels, killed: None };
        started.await_health();
        started
    }

    /// Returns the address of the whole, with every sentinel.
    pub fn url(&self) -> String {
        let mut url = "redis-sentinel://".to_owned();
        for (at, sentinel) in self.sentinels.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _never = write!(url, "{comma}127.0.0.1:{}", sentinel.port());
        }
        let _never = write!(url, "/{NAME}");
        url
    }

    /// Returns the servers, also those that do not run; the first began as the master.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// Returns the sentinels.
    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// Returns the server with a port.
    ///
    /// # Panics
    /// When there is none.
    pub fn server(&mut self, port: u16) -> &mut RedisServer {
        self.servers.iter_mut().find(|server| server.port() == port).expect("no server of ours")
    }

    /// Returns the master's port, as the first sentinel that answers says.
    ///
    /// # Panics
    /// When none answers.
    pub fn master_port(&self) -> u16 {
        self.ports().first().copied().expect("no sentinel answers")
    }

    /// Kills the master and returns the port that it had.
    ///
    /// # Panics
    /// When no sentinel answers.
    pub fn kill_master(&mut self) -> u16 {
        let port = self.master_port();
        self.server(port).stop();
        self.killed = Some(port);
        port
    }

    /// Waits until every sentinel that answers names another master than the killed one, and until that one takes writes
    /// and has a replica; returns its port.
    ///
    /// # Panics
    /// When they name none.
    pub fn await_new_master(&self) -> u16 {
        wait::until("a new master is named", || {
            let ports = self.ports();
            let port = *ports.first().filter(|port| Some(**port) != self.killed)?;
            let server = self.servers.iter().find(|server| server.port() == port)?;
            let well = ports.iter().all(|other| *other == port)
                && server.try_info("role", LOOK)? == "master"
                && server.try_info("connected_slaves", LOOK)? != "0";
            well.then_some(port)
        })
    }

    fn await_health(&self) {
        for sentinel in &self.sentinels {
            // They look around every ten seconds, and say who they are every two: too long for a test.
            let hurry = ["SENTINEL", "DEBUG", "info-period", "200", "publish-period", "100"];
            assert_eq!(sentinel.command(&hurry).error(), None);
        }
        let (slaves, others) = (format!("slaves={REPLICAS}"), format!("sentinels={SENTINELS}"));
        wait::until("the sentinels know one another and the replicas", || {
            let knows = |sentinel: &RedisServer| {
                let line = sentinel.try_info("master0", LOOK).unwrap_or_default();
                line.contains("status=ok") && line.contains(&slaves) && line.contains(&others)
            };
            self.sentinels.iter().all(knows).then_some(())
        });
        wait::until("a failover would have its votes, and its replicas", || {
            let quorum = |sentinel: &RedisServer| {
                sentinel.command(&["SENTINEL", "CKQUORUM", NAME]).error().is_none()
            };
            let follows = |server: &RedisServer| {
                server.try_info("master_link_status", LOOK).is_some_and(|link| link == "up")
            };
            let all = self.sentinels.iter().all(quorum) && self.servers[1..].iter().all(follows);
            all.then_some(())
        });
    }

    /// The master's port according to each sentinel that answers.
    fn ports(&self) -> Vec<u16> {
        let ask = |sentinel: &RedisServer| {
            let asked = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME];
            match sentinel.try_command(&asked, LOOK).ok()? {
                Reply::Array(address) => address.get(1)?.text().parse().ok(),
                _ => None,
            }
        };
        self.sentinels.iter().filter(|sentinel| sentinel.runs()).filter_map(ask).collect()
    }
}

fn sentinel(master: &str) -> Builder {
    let about = |what: &str, value: String| format!("{what} {NAME} {value}");
    RedisServer::builder()
        .mode(Mode::Sentinel)
        .config("sentinel", &about("monitor", format!("{master} {QUORUM}")))
        .config("sentinel", &about("down-after-milliseconds", DOWN_AFTER_MS.to_string()))
        .config("sentinel", &about("failover-timeout", FAILOVER_TIMEOUT_MS.to_string()))
        .config("sentinel", &about("parallel-syncs", REPLICAS.to_string()))
}
