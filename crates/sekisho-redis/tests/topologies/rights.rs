//! Who may ask: the least rights with which all works, what is said when one is missing, and that no password is ever shown.

use sekisho::{Mode, Span, Store, StoreError};
use sekisho_redis::{RedisOptions, RedisStore};
use sekisho_testkit::{
    redis_cluster::{MASTERS, RedisCluster},
    redis_server::{Program, RedisServer, free_port},
};

use crate::common::{Counted, ask, check, is_allowed, left, patient, store};

pub(crate) const PASSWORD: &str = "s3cret-Pa55";
/// The least rights on one server, as `docs/redis.md` has them.
pub(crate) const RIGHTS: [&str; 9] =
    ["~sk1:*", "+evalsha", "+eval", "+time", "+get", "+set", "+pttl", "+pexpire", "+del"];

#[test]
fn the_rights_are_those_that_operators_are_told() {
    let told = include_str!("../../../../docs/redis.md");
    let line = format!("user {}", rules(&RIGHTS).replace(PASSWORD, "PASSWORD"));
    assert!(told.lines().any(|of| of == line), "{line}");
}

/// Returns the rules of a user who has some rights and no others.
pub(crate) fn rules(rights: &[&str]) -> String {
    format!("app on >{PASSWORD} resetchannels -@all {}", rights.join(" "))
}

fn grant(server: &RedisServer, rights: &[&str]) {
    let rules = rules(rights);
    let words: Vec<&str> = ["ACL", "SETUSER"].into_iter().chain(rules.split(' ')).collect();
    let mut words = words;
    words.insert(3, "reset");
    assert_eq!(server.command(&words).error(), None);
}

fn url(server: &RedisServer) -> String {
    format!("redis://app:{PASSWORD}@127.0.0.1:{}", server.port())
}

/// Does everything that a store does.
async fn everything(store: &RedisStore, server: &RedisServer, who: &str) -> Result<(), StoreError> {
    let bucket = Counted::new("10/week", "bucket", who);
    let log = Counted::new("10/week sliding-log", "log", who);
    let both = [bucket.charge(1), log.charge(1)];
    // A script that is not known is sent in full.
    server.command(&["SCRIPT", "FLUSH"]);
    let charged = check(store, &bucket, 1).await?;
    ask(store, &both, Mode::Check).await?;
    for mode in [Mode::Look, Mode::Force, Mode::Refund { at: charged.at }] {
        ask(store, &both, mode).await?;
    }
    // A state that has lost its expiry gets one again, be it by a denial.
    for limits in [&both[..1], &both[..]] {
        let stored = bucket.stored();
        server.command(&["PERSIST", &stored]);
        let charges: Vec<_> =
            limits.iter().map(|one| sekisho::Charge { cost: 10, ..*one }).collect();
        let denied = ask(store, &charges, Mode::Check).await?;
        assert!(!is_allowed(&denied));
        assert_ne!(server.command(&["PTTL", &stored]).integer(), -1);
    }
    for counted in [&bucket, &log] {
        assert!(store.forget(&counted.scope, &counted.key).await?);
        assert_eq!(left(store, counted).await, 10);
    }
    Ok(())
}

async fn each_right_is_needed(program: Program) {
    let server = RedisServer::builder().program(program).start();
    grant(&server, &RIGHTS);
    everything(&store(&url(&server)), &server, "all").await.unwrap();
    for (at, missing) in RIGHTS.iter().enumerate() {
        let mut fewer = RIGHTS.to_vec();
        fewer.remove(at);
        grant(&server, &fewer);
        let store = store(&url(&server));
        let error = everything(&store, &server, missing).await.unwrap_err().to_string();
        println!("without {missing}: {error}");
        let name = missing.strip_prefix('+').map_or("a key", |name| name);
        // A Redis before 7.2 does not say what a script lacks. All that it may lack is named.
        let said = error.contains(&format!("'{name}'"))
            || error.to_lowercase().contains("no permissions to access");
        let vague = error.contains("The user executing the script can't run this command");
        assert!(said || vague && program == Program::Redis, "without {missing}: {error}");
        assert!(
            error.contains(name.trim_start_matches("a ")) && error.contains("needs"),
            "{error}"
        );
        assert!(!error.contains(PASSWORD), "{error}");
    }
}

#[tokio::test]
async fn the_least_rights_suffice_and_each_is_named_when_it_is_missing() {
    each_right_is_needed(Program::Redis).await;
}

#[tokio::test]
async fn a_valkey_wants_the_same_rights() {
    each_right_is_needed(Program::Valkey).await;
}

#[tokio::test]
async fn another_database_wants_one_right_more() {
    let server = RedisServer::start();
    grant(&server, &RIGHTS);
    let ten = Counted::new("10/week", "ten", "u");
    let url = format!("{}/3", url(&server));
    let error = check(&store(&url), &ten, 1).await.unwrap_err().to_string();
    assert!(error.contains("'select'"), "{error}");
    grant(&server, &[&RIGHTS[..], &["+select"]].concat());
    assert!(is_allowed(&check(&store(&url), &ten, 1).await.unwrap()));
}

/// Asks for somebody whose slot is on its way, and again once another server has it.
async fn halfway(cluster: &RedisCluster, store: &RedisStore, who: &str) -> Result<(), StoreError> {
    let ten = Counted::new("10/week", "ten", who);
    assert!(is_allowed(&check(store, &ten, 1).await?));
    let slot = cluster.slot_of(&ten.stored());
    let from = cluster.master_of(slot);
    let to = (from + 1) % MASTERS;
    cluster.begin_move(slot, from, to);
    cluster.move_keys(slot, from, to);
    let halfway = check(store, &ten, 1).await;
    cluster.finish_move(slot, from, to);
    halfway?;
    assert_eq!(left(store, &ten).await, 8);
    Ok(())
}

#[tokio::test]
async fn a_cluster_wants_two_rights_more() {
    let cluster = RedisCluster::start();
    let all = [&RIGHTS[..], &["+cluster|slots", "+asking"]].concat();
    let allow = |rights: &[&str]| cluster.nodes().iter().for_each(|node| grant(node, rights));
    let url = cluster.url().replace("://", &format!("://app:{PASSWORD}@"));
    let timeout = Span::from_nanos(600_000_000);
    let store =
        || RedisStore::new(&url, RedisOptions { timeout, ..RedisOptions::default() }).unwrap();
    allow(&all);
    for who in ["a", "b", "c"] {
        halfway(&cluster, &store(), who).await.unwrap();
    }
    let without =
        |missing| all.iter().copied().filter(|right| *right != missing).collect::<Vec<_>>();
    allow(&without("+asking"));
    let error = halfway(&cluster, &store(), "d").await.unwrap_err().to_string();
    assert!(error.contains("NOPERM") && error.contains("+asking"), "{error}");
    // As long as all servers are there, each says of a question where it belongs.
    allow(&without("+cluster|slots"));
    halfway(&cluster, &store(), "e").await.unwrap();
    let lost = format!(
        "redis-cluster://app:{PASSWORD}@127.0.0.1:{},127.0.0.1:{}",
        free_port(),
        cluster.nodes()[0].port()
    );
    let ten = Counted::new("10/week", "ten", "f");
    let lost =
        || RedisStore::new(&lost, RedisOptions { timeout, ..RedisOptions::default() }).unwrap();
    let error = check(&lost(), &ten, 1).await.unwrap_err().to_string();
    assert!(error.contains("CLUSTER SLOTS") && error.contains("+cluster|slots"), "{error}");
    allow(&all);
    assert!(is_allowed(&check(&lost(), &ten, 1).await.unwrap()));
}

#[tokio::test]
async fn who_does_not_get_in_is_told_why_and_never_shows_a_password() {
    let server = RedisServer::builder().password(PASSWORD).user(&rules(&RIGHTS)).start();
    let ten = Counted::new("10/week", "ten", "u");
    let port = server.port();
    for good in [
        format!("redis://:{PASSWORD}@127.0.0.1:{port}"),
        format!("redis://default:{PASSWORD}@127.0.0.1:{port}"),
        format!("redis://app:{PASSWORD}@127.0.0.1:{port}"),
        format!("redis+unix://{}?user=app&password={PASSWORD}", server.socket().display()),
    ] {
        assert!(is_allowed(&check(&store(&good), &ten, 1).await.unwrap()));
    }
    // The password of the options wins.
    let options = RedisOptions { password: Some(PASSWORD.to_owned()), ..patient() };
    let other = format!("redis://app:wrong@127.0.0.1:{port}");
    let inside = RedisStore::new(&other, options.clone()).unwrap();
    assert!(is_allowed(&check(&inside, &ten, 1).await.unwrap()));
    let wrong = "wr0ng-Pa55";
    let dead = free_port();
    for (url, word) in [
        (format!("redis://127.0.0.1:{port}"), "NOAUTH"),
        (format!("redis://:{wrong}@127.0.0.1:{port}"), "WRONGPASS"),
        (format!("redis://app:{wrong}@127.0.0.1:{port}"), "WRONGPASS"),
        (format!("redis://nobody:{wrong}@127.0.0.1:{port}"), "WRONGPASS"),
        (format!("redis-cluster://app:{wrong}@127.0.0.1:{port}"), "WRONGPASS"),
        (format!("redis-sentinel://app:{wrong}@127.0.0.1:{dead}/x"), "the sentinel at"),
        (format!("redis://app:{wrong}@127.0.0.1:{dead}"), "cannot be reached"),
    ] {
        let outside = store(&url);
        let error = check(&outside, &ten, 1).await.unwrap_err();
        let address: sekisho::StoreAddress = url.parse().unwrap();
        let shown =
            format!("{error} {error:?} {outside:?} {address} {address:?} {:?}", outside.stats());
        assert!(shown.contains(word) && !shown.contains(wrong), "{shown}");
    }
    assert!(!format!("{options:?} {inside:?} {:?}", inside.stats()).contains(PASSWORD));
    // Nor what is no address.
    for bad in [
        format!("redis://app:{wrong}@"),
        format!("redis://app:{wrong}@a@b"),
        format!("http://{wrong}@a"),
    ] {
        let error = RedisStore::new(&bad, RedisOptions::default()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(wrong), "{error}");
    }
}
