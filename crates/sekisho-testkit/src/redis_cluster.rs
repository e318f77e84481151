//! A cluster of one's own: three masters with a replica each, the slots shared out among them.

mod view;

use std::{fmt::Write as _, time::Duration};

use crate::{
    redis_cluster::view::View,
    redis_server::{Builder, Mode, RedisServer, Reply},
    wait,
};

/// How many masters there are, and how many replicas.
pub const MASTERS: usize = 3;
/// How many slots there are.
const SLOTS: u16 = 16_384;
/// How long a node may be silent before the others ask each other; half of it lies between two looks.
const NODE_TIMEOUT_MS: u32 = 1_500;
/// How long a node has to say what it sees: a paused one never does.
const LOOK: Duration = Duration::from_millis(500);
/// Keys that are moved at once.
const PAGE: &str = "100";

/// A running cluster: nodes 0 to 2 begin as masters, and node `i + 3` as the replica of node `i`.
///
/// ```no_run
/// use sekisho_testkit::redis_cluster::RedisCluster;
///
/// let mut cluster = RedisCluster::start();
/// let slot = cluster.slot_of("{user}key");
/// let before = cluster.master_of(slot);
/// // Kills it; a replica takes over.
/// let after = cluster.fail_over(before);
/// assert_eq!(cluster.master_of(slot), after);
/// ```
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
    ids: Vec<String>,
}

impl RedisCluster {
    /// Starts one and waits until every node serves and every replica follows.
    ///
    /// # Panics
    /// When there is no server to start, or the nodes find no agreement.
    pub fn start() -> Self {
        Self::start_with(&RedisServer::builder())
    }

    /// Starts one whose nodes are all set up like `setup`, without TLS and without a password.
    ///
    /// # Panics
    /// When there is no server to start, or the nodes find no agreement.
    pub fn start_with(setup: &Builder) -> Self {
        let nodes = start_nodes(setup);
        let ids = nodes.iter().map(|node| node.command(&["CLUSTER", "MYID"]).text()).collect();
        let cluster = Self { nodes, ids };
        cluster.share_out();
        cluster.meet();
        for (replica, master) in (MASTERS..).zip(&cluster.ids[..MASTERS]) {
            cluster.tell(replica, &["CLUSTER", "REPLICATE", master]);
        }
        cluster.await_health();
        cluster
    }

    /// Returns the nodes, also those that do not run.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// Returns the address of the whole, with every node.
    pub fn url(&self) -> String {
        let mut url = "redis-cluster://".to_owned();
        for (at, node) in self.nodes.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _never = write!(url, "{comma}127.0.0.1:{}", node.port());
        }
        url
    }

    /// Returns the slot of a key.
    ///
    /// # Panics
    /// When no node answers.
    pub fn slot_of(&self, key: &str) -> u16 {
        let reply = self
            .nodes
            .iter()
            .find_map(|node| node.try_command(&["CLUSTER", "KEYSLOT", key], LOOK).ok());
        let slot = reply.expect("no node answers").integer();
        u16::try_from(slot).expect("a slot is a small number")
    }

    /// Returns the node that serves a slot, once all that answer say the same.
    ///
    /// # Panics
    /// When they find no agreement.
    pub fn master_of(&self, slot: u16) -> usize {
        wait::until("the nodes agree on a slot's master", || {
            let mut views = self.views().into_iter();
            let owner = views.next()?.owner(slot)?;
            views.all(|view| view.owner(slot) == Some(owner)).then_some(owner)
        })
    }

    /// Kills a master and waits until a replica serves its slots; returns that node.
    ///
    /// # Panics
    /// When the node is no master with slots, or nobody takes over.
    pub fn fail_over(&mut self, node: usize) -> usize {
        let view = self.views().swap_remove(0);
        let slot = (0..SLOTS).find(|slot| view.owner(*slot) == Some(node));
        let slot = slot.expect("only a master with slots fails over");
        self.nodes[node].stop();
        wait::until("a replica takes over", || {
            let views = self.views();
            let heir = views.first()?.owner(slot).filter(|heir| *heir != node)?;
            let agreed = views.iter().all(|view| view.healthy && view.owner(slot) == Some(heir));
            agreed.then_some(heir)
        })
    }

    /// Starts a node again, empty, and waits until it is what the others take it for: mostly a replica, by now.
    ///
    /// # Panics
    /// When it does not start, or finds no place.
    pub fn restart(&mut self, node: usize) {
        self.nodes[node].restart();
        self.await_health();
    }

    /// Begins to move a slot, and leaves it halfway: `from` serves the keys that it still has and sends who asks for others
    /// to `to` (`ASK`).
    ///
    /// # Panics
    /// When a node refuses.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        self.tell(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &self.ids[from]]);
        self.tell(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &self.ids[to]]);
    }

    /// Moves the keys of a slot that is halfway.
    ///
    /// # Panics
    /// When a node refuses.
    pub fn move_keys(&self, slot: u16, from: usize, to: usize) {
        let (slot, port) = (slot.to_string(), self.nodes[to].port().to_string());
        loop {
            let page = self.nodes[from].command(&["CLUSTER", "GETKEYSINSLOT", &slot, PAGE]);
            if page.array().is_empty() {
                return;
            }
            let keys = page.array().iter().map(Reply::text);
            let mut words: Vec<String> =
                ["MIGRATE", "127.0.0.1", &port, "", "0", "10000", "KEYS"].map(str::to_owned).into();
            words.extend(keys);
            self.tell(from, &words);
        }
    }

    /// Gives a slot whose keys have been moved to `to`, and waits until every node knows: `from` answers `MOVED`.
    ///
    /// # Panics
    /// When a node refuses, or the nodes find no agreement.
    pub fn finish_move(&self, slot: u16, from: usize, to: usize) {
        let number = slot.to_string();
        // The new owner first: were it the other way, nobody would own the slot for a moment.
        for node in [to, from] {
            self.tell(node, &["CLUSTER", "SETSLOT", &number, "NODE", &self.ids[to]]);
        }
        wait::until("the nodes know of the move", || {
            self.views().iter().all(|view| view.owner(slot) == Some(to)).then_some(())
        });
    }

    /// Moves a slot with its keys.
    ///
    /// # Panics
    /// When a node refuses, or the nodes find no agreement.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_move(slot, from, to);
        self.move_keys(slot, from, to);
        self.finish_move(slot, from, to);
    }

    /// Gives each master its third of the slots, and an age of its own so that none has to give way.
    fn share_out(&self) {
        for (master, at) in (0_u16..).zip(0..MASTERS) {
            let bound = |part: u16| u32::from(SLOTS) * u32::from(part) / 3;
            let (first, last) = (bound(master).to_string(), (bound(master + 1) - 1).to_string());
            self.tell(at, &["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
        }
        for at in 0..self.nodes.len() {
            self.tell(at, &["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]);
        }
    }

    /// Makes every node know every other. Each pair is introduced, as hearsay takes longer.
    fn meet(&self) {
        for (at, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[..at] {
                let [port, bus] = [other.port(), other.bus_port()].map(|port| port.to_string());
                let reply = node.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
                assert_eq!(reply.error(), None, "CLUSTER MEET");
            }
        }
        wait::until("the nodes know one another", || {
            let views = self.views();
            let all = self.nodes.len();
            (views.len() == all && views.iter().all(|view| view.known == all)).then_some(())
        });
    }

    /// Waits until every running node serves, knows the replicas, and follows if it is one.
    fn await_health(&self) {
        wait::until("the cluster is well", || {
            let running = self.nodes.iter().filter(|node| node.runs()).count();
            let views = self.views();
            let well =
                |view: &View| view.healthy && view.follows && view.followers + MASTERS >= running;
            (views.len() == running && views.iter().all(well)).then_some(())
        });
    }

    /// What each node sees that runs and answers.
    fn views(&self) -> Vec<View> {
        let running = self.nodes.iter().filter(|node| node.runs());
        running.filter_map(|node| View::of(node, &self.ids, LOOK)).collect()
    }

    fn tell<W: AsRef<[u8]>>(&self, node: usize, words: &[W]) {
        let reply = self.nodes[node].command(words);
        assert_eq!(reply.error(), None, "node {node}");
    }
}

fn start_nodes(setup: &Builder) -> Vec<RedisServer> {
    let ours = RedisServer::builder()
        .mode(Mode::Cluster)
        .config("cluster-node-timeout", &NODE_TIMEOUT_MS.to_string())
        .config("cluster-announce-ip", "127.0.0.1")
        // A replica takes over however long ago it last heard of its master, and stays with it else.
        .config("cluster-replica-validity-factor", "0")
        .config("cluster-allow-replica-migration", "no")
        .config("repl-diskless-sync-delay", "0");
    let setup = ours.and(setup);
    setup.start_all(2 * MASTERS)
}
