//! Scripts that the server forgets, again and again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use sekisho::{Mode, Outcome};
use sekisho_redis::RedisStore;
use sekisho_testkit::redis_server::RedisServer;
use tokio::task::JoinSet;

use crate::{
    load::percentile,
    support::{Counted, ask, beside, exact_again, now, patient, tell, used},
    table::Row,
};

const CALLERS: usize = 100;
const CALLS: usize = 20;

/// Every request is charged to a limit that all share and to one of the caller's own. So no two fit into one call of the
/// script, and many calls are on their way when it is forgotten.
pub(crate) async fn flushed() -> Row {
    let server = Arc::new(RedisServer::start());
    let store = patient(&server.url());
    let shared = Arc::new(Counted::new("1000/week anchored-window", "shared", "u"));
    let own: Vec<_> = (0..CALLERS)
        .map(|caller| {
            Arc::new(Counted::new("1000/week anchored-window", "own", &caller.to_string()))
        })
        .collect();
    exact_again(&store, &shared.key, now()).await;
    let ended = Arc::new(AtomicBool::new(false));
    let flushes = {
        let (server, ended) = (Arc::clone(&server), Arc::clone(&ended));
        thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                tell(&server, &["SCRIPT", "FLUSH"]);
                thread::yield_now();
            }
        })
    };
    let mut callers = JoinSet::new();
    for own in &own {
        callers.spawn(call(Arc::clone(&store), Arc::clone(&shared), Arc::clone(own)));
    }
    let (passed, took): (Vec<u64>, Vec<Vec<Duration>>) =
        callers.join_all().await.into_iter().unzip();
    ended.store(true, Ordering::Relaxed);
    beside(|| flushes.join().unwrap());
    let back = exact_again(&store, &shared.key, now()).await;
    let admitted: u64 = passed.iter().sum();
    assert_eq!((admitted, used(&store, &shared).await), (1_000, 1_000));
    let mut owned = 0;
    for own in &own {
        owned += used(&store, own).await;
    }
    assert_eq!(owned, 1_000, "both limits of a request are charged, or none");
    let unknown = beside(|| server.info("errorstat_NOSCRIPT"));
    let unknown: u64 = unknown.strip_prefix("count=").unwrap().parse().unwrap();
    assert!(unknown > 20, "the script was forgotten for {unknown} calls only");
    let mut took: Vec<_> = took.into_iter().flatten().collect();
    took.sort();
    Row {
        how: format!(
            "`SCRIPT FLUSH` again and again under {CALLERS} callers: {unknown} calls found no script"
        ),
        requests: (CALLERS * CALLS) as u64,
        errors: 0,
        admitted,
        most: 1_000,
        because: "the limit; exactly".to_owned(),
        back,
        p99: percentile(&took, 99),
        bare: beside(|| server.keys_without_expiry("sk1:").len() as u64),
    }
}

async fn call(
    store: Arc<RedisStore>,
    shared: Arc<Counted>,
    own: Arc<Counted>,
) -> (u64, Vec<Duration>) {
    let (mut passed, mut took) = (0, Vec::new());
    for _ in 0..CALLS {
        let at = now();
        let answer = ask(&store, &[shared.charge(1), own.charge(1)], Mode::Check).await.unwrap();
        took.push(at.elapsed());
        passed += u64::from(answer.joint().outcome == Outcome::Allow);
    }
    (passed, took)
}
