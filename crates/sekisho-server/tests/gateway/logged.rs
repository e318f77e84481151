//! The access log: one line a decision, in the order in which they were made.

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use sekisho::{FakeClock, Span, Timestamp};
use sekisho_server::door::gateway::AccessLog;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::harness::{Setup, get, ok};

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    /// Returns the lines, once there are that many.
    async fn lines(&self, count: usize) -> Vec<Value> {
        loop {
            let text = String::from_utf8(self.0.lock().clone()).unwrap();
            let lines: Vec<_> = text.lines().collect();
            assert!(lines.len() <= count, "{text}");
            if lines.len() == count && text.ends_with('\n') {
                return lines.into_iter().map(|line| serde_json::from_str(line).unwrap()).collect();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn logging(setup: &mut Setup) -> Memory {
    let memory = Memory::default();
    setup.log = Some(AccessLog::to(Box::new(memory.clone())).unwrap());
    memory
}

#[tokio::test]
async fn a_line_says_who_asked_for_what_and_what_was_said() {
    let mut setup = Setup::to(ok().await).limits("1/min");
    let memory = logging(&mut setup);
    let gateway = setup.start().await;
    assert_eq!(gateway.get("/a//b?c").await.status, 200);
    assert_eq!(gateway.get("/x").await.status, 429);
    let part = |outcome: &str| {
        json!({
            "policy": "api", "limit": "limit1", "key": "127.0.0.1", "plan": null, "cost": 1,
            "mode": "enforce", "outcome": outcome,
        })
    };
    let line = |path: &str, status: Value, outcome: &str| {
        json!({
            "t": "1700000000.000000000", "decision_ns": 1_700_000_000_000_000_000_u64,
            "client": "127.0.0.1", "method": "GET", "path": path, "status": status,
            "policies": [part(outcome)], "outcome": outcome,
        })
    };
    let mut lines = memory.lines(2).await;
    for line in &mut lines {
        for name in ["limit", "key"] {
            let field = &mut line["policies"][0][name];
            assert!(!field.as_str().unwrap().is_empty());
            *field = part("")[name].clone();
        }
    }
    assert_eq!(lines, [line("/a/b", Value::Null, "allow"), line("/x", json!(429), "deny")]);
}

#[tokio::test]
async fn a_slot_that_is_given_back_has_a_line_of_its_own() {
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1_700_000_000)));
    let mut setup = Setup::to(ok().await).limits("1/min burst 1 leaky-queue");
    setup.clock = Arc::clone(&clock) as Arc<_>;
    let memory = logging(&mut setup);
    let gateway = setup.start().await;
    assert_eq!(gateway.get("/").await.status, 200);
    clock.advance(Span::from_secs(1));
    let mut waiting = gateway.connect().await;
    waiting.send(format!("{}\r\n", get("/"))).await;
    let _lines = memory.lines(2).await;
    drop(waiting);
    let lines = memory.lines(3).await;
    assert_eq!(lines[2]["refund"]["at_ns"], lines[1]["decision_ns"]);
    assert_eq!(lines[2]["refund"]["policies"][0]["policy"], "api");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lines_come_in_the_order_of_the_decisions() {
    let mut setup = Setup::to(ok().await).limits("50/h").real_time();
    let memory = logging(&mut setup);
    let gateway = setup.start().await;
    let mut asking = JoinSet::new();
    for _ in 0..20 {
        let mut client = gateway.connect().await;
        asking.spawn(async move {
            for _ in 0..50 {
                let _reply = client.get("/").await;
            }
        });
    }
    let _all = asking.join_all().await;
    let lines = memory.lines(1_000).await;
    let times: Vec<_> = lines.iter().map(|line| line["decision_ns"].as_u64().unwrap()).collect();
    assert!(times.is_sorted());
    let first_denied = lines.iter().position(|line| line["outcome"] == "deny").unwrap();
    assert!(first_denied >= 50);
    assert!(lines[..50].iter().all(|line| line["outcome"] == "allow"));
}
