//! Masters that die, and replicas that take over.

use std::{sync::Arc, time::Duration};

use sekisho_testkit::{
    redis_cluster::RedisCluster, redis_sentinels::RedisSentinels, redis_server::RedisServer,
};

use crate::{
    load::Load,
    scene::{Scene, TIGHT},
    support::{Counted, beside, pass, store, used},
    table::Row,
};

const LOST: &str = "the limit, and once more, were all of it lost";

/// The replicas are cut off for a while before the master dies, so that they lack what was charged then.
pub(crate) async fn sentinels() -> Row {
    let mut group = beside(RedisSentinels::start);
    let mut scene = Scene::of(store(&group.url()), 45, "u").await;
    let port = beside(|| group.master_port());
    beside(|| cut_off_replicas(&group, port));
    pass(Duration::from_millis(300)).await;
    scene.begins();
    let killed = beside(|| group.kill_master());
    assert_eq!(killed, port);
    replicas(&group, port).for_each(RedisServer::resume);
    beside(|| group.await_new_master());
    let took = scene.began.elapsed();
    scene.is_whole().await;
    let servers: Vec<&RedisServer> = group.servers().iter().collect();
    let seen = scene.close(&servers).await;
    seen.check_waits();
    let _why = seen.errors();
    let lost = seen.samples.admitted(TIGHT).saturating_sub(seen.capacity);
    assert!(lost > 0, "nothing was lost, so this row shows nothing");
    let how = format!(
        "replicas cut off for 0.3 s, master killed; Sentinel took {took:.1?}; {lost} charges lost"
    );
    seen.row(&how, 2, LOST)
}

fn replicas(group: &RedisSentinels, master: u16) -> impl Iterator<Item = &RedisServer> {
    group.servers().iter().filter(move |server| server.port() != master)
}

fn cut_off_replicas(group: &RedisSentinels, master: u16) {
    replicas(group, master).for_each(RedisServer::pause);
    let server = group.servers().iter().find(|server| server.port() == master).unwrap();
    // What is sent to a paused server would wait for it in its sockets.
    let reply = server.command(&["CLIENT", "KILL", "TYPE", "replica"]);
    assert_eq!(reply.integer(), 2);
}

/// One master of three dies. Who is counted on the others must notice nothing.
pub(crate) async fn cluster() -> Row {
    let setup = RedisServer::builder().config("cluster-require-full-coverage", "no");
    let mut cluster = beside(|| RedisCluster::start_with(&setup));
    let names = beside(|| [0, 1, 2].map(|node| name_on(&cluster, node)));
    let mut scene = Scene::of(store(&cluster.url()), 15, &names[0]).await;
    let steady = [&names[1], &names[2]]
        .map(|name| Arc::new(Counted::new("100/week anchored-window", "steady", name)));
    let beside_it = Load::start(&scene.store, steady.to_vec());
    pass(Duration::from_millis(200)).await;
    scene.begins();
    beside(|| cluster.fail_over(0));
    let took = scene.began.elapsed();
    scene.is_whole().await;
    let store = Arc::clone(&scene.store);
    let samples = beside_it.stop().await;
    let servers: Vec<&RedisServer> = cluster.nodes().iter().collect();
    let seen = scene.close(&servers).await;
    seen.check_waits();
    let _why = seen.errors();
    let failed = samples.errors();
    let starved = samples.had_a_stop();
    assert!(starved || failed.is_empty(), "the other masters: {:?}", failed[0]);
    for (limit, counted) in steady.iter().enumerate() {
        let (admitted, counted) = (samples.admitted(limit), used(&store, counted).await);
        assert!(admitted <= counted && counted <= 100, "{admitted} of {counted}");
        assert!(starved || admitted == counted, "{admitted} of {counted}");
    }
    let how = format!(
        "one of three masters killed; a replica took over after {took:.1?}; {} requests on the others: {} errors",
        samples.all.len(),
        failed.len(),
    );
    seen.row(&how, 2, LOST)
}

/// Returns somebody who is counted on a node.
fn name_on(cluster: &RedisCluster, node: usize) -> String {
    let mut names = (0..).map(|number| format!("user-{number}"));
    let name = names.find(|name| {
        let slot = cluster.slot_of(&format!("{{={name}}}"));
        cluster.master_of(slot) == node
    });
    name.unwrap()
}
