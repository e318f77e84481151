//! Servers that answer, and refuse.

use std::{fs, process::Command, sync::Arc, thread, time::Duration};

use sekisho::Span;
use sekisho_redis::{RedisOptions, RedisStore};
use sekisho_testkit::{
    faulty_wire::FaultyWire,
    redis_server::{Builder, RedisServer, free_port},
    wait,
};

use crate::{
    scene::{Scene, Seen},
    support::{TIMEOUT, beside, now, pass, store, tell},
    switch::Switch,
    table::Row,
};

const LIMIT: &str = "the limit";
const FORGOT: &str = "the limit, and once more, as the other server had nothing";
const WHILE: Duration = Duration::from_millis(600);

/// A refusal that begins and ends with a setting.
async fn by_setting(word: &str, name: &str, values: [&str; 2]) -> Seen {
    let server = RedisServer::start();
    let mut scene = Scene::open(&server.url()).await;
    scene.begins();
    beside(|| tell(&server, &["CONFIG", "SET", name, values[0]]));
    pass(WHILE).await;
    beside(|| tell(&server, &["CONFIG", "SET", name, values[1]]));
    scene.is_whole().await;
    ended(scene, &server, word).await
}

async fn ended(scene: Scene, server: &RedisServer, word: &str) -> Seen {
    let seen = scene.close(&[server]).await;
    seen.check_charges();
    seen.check_waits();
    seen.check_named(word);
    seen
}

/// A master without the replicas that it must have.
pub(crate) async fn no_replicas() -> Row {
    let seen = by_setting("NOREPLICAS", "min-replicas-to-write", ["1", "0"]).await;
    seen.row("`min-replicas-to-write 1` without a replica, for 0.6 s", 1, LIMIT)
}

/// The last snapshot failed, as its process was killed, and writes are refused for it.
pub(crate) async fn no_snapshot() -> Row {
    let server = RedisServer::builder().config("rdb-key-save-delay", "10000000").start();
    let mut scene = Scene::open(&server.url()).await;
    scene.begins();
    beside(|| fail_snapshot(&server));
    pass(WHILE).await;
    beside(|| tell(&server, &["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]));
    scene.is_whole().await;
    let seen = ended(scene, &server, "MISCONF").await;
    seen.row("a snapshot fails under `stop-writes-on-bgsave-error yes`, for 0.6 s", 1, LIMIT)
}

fn fail_snapshot(server: &RedisServer) {
    tell(server, &["CONFIG", "SET", "save", "3600 1000000"]);
    tell(server, &["BGSAVE"]);
    let pid = server.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let [child] = children.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("one process writes the snapshot, and not `{children}`");
    };
    assert!(Command::new("kill").args(["-9", child]).status().unwrap().success());
    wait::until("the snapshot has failed", || {
        (server.info("rdb_last_bgsave_status") == "err").then_some(())
    });
}

/// A script of somebody else's takes long.
pub(crate) async fn busy() -> Row {
    let server = Arc::new(RedisServer::builder().config("busy-reply-threshold", "1").start());
    let mut scene = Scene::open(&server.url()).await;
    scene.begins();
    let slow = {
        let server = Arc::clone(&server);
        thread::spawn(move || server.command(&["EVAL", "while true do end", "0"]))
    };
    pass(WHILE).await;
    beside(|| {
        tell(&server, &["SCRIPT", "KILL"]);
        slow.join().unwrap();
    });
    scene.is_whole().await;
    let seen = ended(scene, &server, "BUSY").await;
    seen.row("somebody's script runs for 0.6 s, `busy-reply-threshold 1`", 1, LIMIT)
}

/// A server reads its data back.
pub(crate) async fn loading() -> Row {
    let setup = RedisServer::builder()
        .config("enable-debug-command", "yes")
        .config("loading-process-events-interval-bytes", "1024");
    let server = Arc::new(setup.start());
    beside(|| {
        tell(&server, &["DEBUG", "POPULATE", "2000", "other", "200"]);
        tell(&server, &["CONFIG", "SET", "key-load-delay", "300"]);
    });
    let mut scene = Scene::open(&server.url()).await;
    scene.begins();
    beside(|| tell(&server, &["DEBUG", "RELOAD"]));
    scene.is_whole().await;
    let seen = ended(scene, &server, "LOADING").await;
    seen.row("`DEBUG RELOAD` of 2,000 slow keys", 1, LIMIT)
}

/// The password is changed, and the connection breaks.
pub(crate) async fn password(ours: Option<&str>, word: &str) -> Row {
    let setup = RedisServer::builder();
    let server = ours.iter().fold(setup, |setup: Builder, ours| setup.password(ours)).start();
    let wire = FaultyWire::to(server.port());
    let options = RedisOptions {
        timeout: Span::from_nanos(u64::try_from(TIMEOUT.as_nanos()).unwrap()),
        password: ours.map(str::to_owned),
        ..RedisOptions::default()
    };
    let store = Arc::new(RedisStore::new(&wire.url(), options).unwrap());
    let mut scene = Scene::of(store, 60, "u").await;
    scene.begins();
    beside(|| {
        tell(&server, &["CONFIG", "SET", "requirepass", "another"]);
        wire.cut();
    });
    pass(WHILE).await;
    beside(|| tell(&server, &["CONFIG", "SET", "requirepass", ours.unwrap_or_default()]));
    scene.is_whole().await;
    let seen = scene.close(&[&server]).await;
    seen.check_charges();
    seen.check_waits();
    assert!(seen.errors().iter().any(|error| error.to_string().contains(word)));
    let have = if ours.is_some() { "the old one" } else { "none" };
    seen.row(
        &format!("`requirepass` is changed, we have {have}, the connection is cut, 0.6 s"),
        1,
        LIMIT,
    )
}

/// The master becomes a replica for a while.
pub(crate) async fn read_only() -> Row {
    let server = RedisServer::start();
    let mut scene = Scene::open(&server.url()).await;
    scene.begins();
    let nobody = free_port().to_string();
    beside(|| tell(&server, &["REPLICAOF", "127.0.0.1", &nobody]));
    pass(WHILE).await;
    beside(|| tell(&server, &["REPLICAOF", "NO", "ONE"]));
    scene.is_whole().await;
    let seen = ended(scene, &server, "READONLY").await;
    seen.row("`REPLICAOF` another, for 0.6 s", 1, LIMIT)
}

/// The master becomes a replica for good, its connection stays, and whoever dials anew reaches another.
pub(crate) async fn demoted() -> Row {
    let (server, heir) = (RedisServer::start(), RedisServer::start());
    let switch = Switch::to(server.port()).await;
    let mut scene = Scene::of(store(&switch.url()), 15, "u").await;
    scene.begins();
    switch.set(heir.port());
    let (port, whole) = (heir.port().to_string(), now());
    beside(|| tell(&server, &["REPLICAOF", "127.0.0.1", &port]));
    pass(Duration::from_millis(100)).await;
    scene.is_whole_since(whole).await;
    let seen = scene.close(&[&heir]).await;
    seen.check_waits();
    seen.check_named("READONLY");
    seen.row("the master is made a replica for good; new connections reach another", 2, FORGOT)
}
