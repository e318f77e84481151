//! A server whose clock is set back.

use std::{sync::Arc, time::Duration};

use sekisho_testkit::{clock_shim::ClockShim, redis_server::RedisServer};

use crate::{
    load::Load,
    support::{Counted, beside, exact_again, now, pass, store},
    table::Row,
};

/// Each is asked 16 times a second, and lets 5 pass.
const LIMITS: [&str; 6] = [
    "5/s",
    "5/s fixed-window",
    "5/s anchored-window",
    "5/s sliding-window",
    "5/s sliding-log",
    "5/s burst 4 leaky-queue",
];
const CAPACITY: u64 = 5;
/// The longest that a full limit keeps anybody: two periods under a sliding window, and one under the others.
const FULL: Duration = Duration::from_secs(2);
const LATE: Duration = Duration::from_millis(300);

/// Set back while the server runs, and left there.
pub(crate) async fn set_back(by: Duration, name: &str) -> Row {
    let clock = beside(ClockShim::new);
    let server = RedisServer::builder().clock(&clock).start();
    let store = store(&server.url());
    let limits = LIMITS.map(|limit| Arc::new(Counted::new(limit, limit, "u")));
    exact_again(&store, &limits[0].key, now()).await;
    let (began, load) = (now(), Load::start(&store, limits.to_vec()));
    pass(Duration::from_millis(1_200)).await;
    let step = now();
    beside(|| clock.set_offset(-i64::try_from(by.as_micros()).unwrap()));
    let whole = now();
    let back = exact_again(&store, &limits[0].key, whole).await;
    pass(FULL + LATE).await;
    let (ended, samples) = (now(), load.stop().await);
    // A period may be cut anywhere, so it begins once more often than whole ones fit; and one capacity is forgiven.
    let periods = (ended - began).as_secs() + 2;
    let most = CAPACITY * (periods + 1);
    // On a busy machine requests come late as well.
    let lost = 2 * samples.time_lost();
    for (limit, text) in LIMITS.iter().enumerate() {
        let admitted = samples.admitted(limit);
        println!("{text}: {admitted} of at most {most}");
        assert!(admitted <= most, "{text}: {admitted} of at most {most}");
        let mut after = samples.all.iter().filter(|sample| sample.at > whole);
        let first = after.find(|sample| sample.limit == limit && sample.said == Ok(true));
        let waited = first.unwrap_or_else(|| panic!("{text}: locked out")).at - whole;
        println!("{text}: let in {waited:?} after the step");
        assert!(waited < FULL + LATE + lost, "{text}: locked out for {waited:?}");
    }
    let [_, p99] = samples.latencies(step, ended);
    Row {
        how: format!("the server's clock is set back by {name}, under all six algorithms at 5/s"),
        requests: samples.all.len() as u64,
        errors: samples.errors().len() as u64,
        admitted: (0..LIMITS.len()).map(|limit| samples.admitted(limit)).sum(),
        most: most * LIMITS.len() as u64,
        because: "what the periods of the test hold, and one capacity more; nobody waits longer than a full limit takes"
            .to_owned(),
        back,
        p99,
        bare: beside(|| server.keys_without_expiry("sk1:").len() as u64),
    }
}
