//! Wherever the counts are, the answers are the same: the conformance suite and random traces, on every kind of address.

use sekisho::Span;
use sekisho_redis::{RedisOptions, RedisStore};
use sekisho_testkit::{
    conformance::{Need, Runtime, cases, run_all, run_parallel},
    redis_cluster::RedisCluster,
    redis_server::{Program, RedisServer},
};
use tokio::runtime::Handle;

use crate::{
    common::{Counted, check, keys, patient, shards, store},
    trace::{Requests, agree},
};

/// The runtime of a test, for threads that are not its own.
struct OnTokio(Handle);

impl Runtime for OnTokio {
    fn run<F: Future>(&self, future: F) -> F::Output {
        self.0.block_on(future)
    }
}

/// Holds a store to the suite, and compares it with memory.
async fn hold(store: RedisStore) {
    let report = run_all(&store, "place-", &[Need::KeepAll, Need::Zones]).await;
    let failed: Vec<_> = report.failed.iter().map(ToString::to_string).collect();
    // What Lua cannot count is refused by name; nothing else may go wrong.
    let refused = ["this store has no time so far ahead", "no amount above 2251799813685248"];
    assert_eq!(failed.len(), refused.len(), "{report}");
    for (failed, why) in failed.iter().zip(refused) {
        assert!(failed.ends_with(why), "{failed}");
    }
    assert!(report.passed.len() > 80, "{report}");
    let _said = agree(&store, Requests::OfOne).await;
    let runtime = OnTokio(Handle::current());
    let meeting = tokio::task::spawn_blocking(move || {
        let mut failures = Vec::new();
        for case in cases() {
            let run = |parallel| run_parallel(&store, (&case.id, parallel), "place-", &runtime);
            failures.extend(case.parallel.iter().map(run).filter_map(Result::err));
        }
        failures
    });
    assert_eq!(meeting.await.unwrap(), []);
}

/// The same where people are counted apart, and requests that are of several of them.
async fn hold_apart(store: RedisStore) {
    let _said = agree(&store, Requests::OfSeveral).await;
    hold(store).await;
}

/// Fails unless each of some servers has counted something, and nothing that stays for ever.
fn all_took_part<'s>(servers: impl IntoIterator<Item = &'s RedisServer>) {
    for server in servers {
        assert!(keys(server) > 0, "port {} has nothing", server.port());
        assert_eq!(server.keys_without_expiry(""), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster() {
    let cluster = RedisCluster::start();
    hold_apart(store(&cluster.url())).await;
    all_took_part(&cluster.nodes()[..3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_valkeys() {
    let cluster = RedisCluster::start_with(&RedisServer::builder().program(Program::Valkey));
    hold_apart(store(&cluster.url())).await;
    all_took_part(&cluster.nodes()[..3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_valkey() {
    let server = RedisServer::builder().program(Program::Valkey).start();
    assert!(server.info("server_name").contains("valkey"));
    hold(store(&server.url())).await;
    all_took_part([&server]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_shards() {
    let servers = [RedisServer::start(), RedisServer::start()];
    hold_apart(shards(&servers)).await;
    all_took_part(&servers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_shards_of_two_kinds() {
    let valkey = RedisServer::builder().program(Program::Valkey).start();
    let servers = [RedisServer::start(), valkey, RedisServer::start()];
    hold_apart(shards(&servers)).await;
    all_took_part(&servers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_tls() {
    let server = RedisServer::builder().tls().password("s3cr:t").start();
    let roots = Some(server.authority_pem().as_bytes().to_vec());
    let url = server.tls_url().replace("s3cr:t", "s3cr%3At");
    hold(RedisStore::new(&url, RedisOptions { roots, ..patient() }).unwrap()).await;
    all_took_part([&server]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_a_socket_in_database_2() {
    let server = RedisServer::start();
    let url = format!("redis+unix://{}?db=2", server.socket().display());
    hold(store(&url)).await;
    // Everything is there, and nothing where one looks by default.
    assert!(server.info("db2").starts_with("keys="));
    assert_eq!(keys(&server), 0);
}

#[tokio::test]
async fn database_2() {
    let server = RedisServer::start();
    let _said = agree(&store(&format!("{}2", server.url())), Requests::OfOne).await;
    assert!(server.info("db2").starts_with("keys="));
    assert_eq!(keys(&server), 0);
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_an_error() {
    let [server, other] = [(), ()].map(|()| RedisServer::builder().tls().start());
    let ten = Counted::new("10/week", "ten", "u");
    for roots in [Some(other.authority_pem().as_bytes().to_vec()), None] {
        let store = RedisStore::new(&server.tls_url(), RedisOptions { roots, ..patient() });
        // A machine may have no roots of its own.
        let error = match store {
            Ok(store) => check(&store, &ten, 1).await.unwrap_err(),
            Err(error) => error,
        };
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    let roots = Some(b"no certificate".to_vec());
    let error =
        RedisStore::new(&server.tls_url(), RedisOptions { roots, ..patient() }).unwrap_err();
    assert!(error.to_string().contains("no certificate to check servers with"), "{error}");
    // Who speaks TLS to the other port, or none to this one, hears nothing that makes sense.
    let plain = format!("redis://127.0.0.1:{}", server.tls_port());
    check(&store(&plain), &ten, 1).await.unwrap_err();
    let roots = Some(server.authority_pem().as_bytes().to_vec());
    let tls = format!("rediss://127.0.0.1:{}", server.port());
    let timeout = Span::from_nanos(300_000_000);
    let tls = RedisStore::new(&tls, RedisOptions { roots, timeout, ..patient() }).unwrap();
    check(&tls, &ten, 1).await.unwrap_err();
}
