//! The conformance suite, as any store is held to it.

use sekisho_testkit::conformance::{Need, Runtime, cases, run_all, run_parallel};
use tokio::runtime::Handle;

use crate::support::{Pair, all_expire};

/// The runtime of a test, for threads that are not its own.
struct OnTokio(Handle);

impl Runtime for OnTokio {
    fn run<F: Future>(&self, future: F) -> F::Output {
        self.0.block_on(future)
    }
}

#[tokio::test]
async fn traces() {
    let pair = Pair::start();
    let report = run_all(&pair.redis, "redis-", &[Need::KeepAll, Need::Zones]).await;
    println!("{} passed, skipped: {:?}", report.passed.len(), report.skipped);
    let failed: Vec<_> = report.failed.iter().map(ToString::to_string).collect();
    // What Lua cannot count is refused by name; nothing else may go wrong.
    let refused = [
        ("B20 trace 3 ", "this store has no time so far ahead"),
        ("B20 trace 7 ", "this store has no amount above 2251799813685248"),
    ];
    assert_eq!(failed.len(), refused.len(), "{report}");
    for (failed, (trace, why)) in failed.iter().zip(refused) {
        assert!(failed.starts_with(trace) && failed.ends_with(why), "{failed}");
    }
    assert!(report.passed.len() > 80, "{report}");
    let _keys = all_expire(&mut pair.connection().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallels() {
    let pair = Pair::start();
    let runtime = OnTokio(Handle::current());
    let store = pair.redis;
    let failures = tokio::task::spawn_blocking(move || {
        let mut failures = Vec::new();
        for case in cases() {
            let run = |parallel| run_parallel(&store, (&case.id, parallel), "redis-", &runtime);
            failures.extend(case.parallel.iter().map(run).filter_map(Result::err));
        }
        failures
    });
    let failures = failures.await.unwrap();
    assert!(failures.is_empty(), "{failures:#?}");
}
