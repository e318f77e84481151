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
    let mut setup = Setup::to(ok().await).limits("1/min sliding-window");
    let memory = logging(&mut setup);
    let gateway = setup.start().await;
    assert_eq!(gateway.get("/a//b?c").await.status, 200);
    assert_eq!(gateway.get("/x").await.status, 429);
    let part = |outcome: &str| {
        json!({
            "policy": "api", "limit": "1/min sliding-window", "limit_id": "api", "key": "ip",
            "plan": null, "cost": 1, "mode": "enforce", "outcome": outcome,
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
        let key = &mut line["policies"][0]["key"];
        assert!(key.as_str().unwrap().contains("127.0.0.1"));
        *key = json!("ip");
    }
    assert_eq!(lines, [line("/a/b", Value::Null, "allow"), line("/x", json!(429), "deny")]);
}

#[tokio::test]
async fn of_several_limits_each_is_named_as_the_headers_name_it() {
    let mut setup = Setup::to(ok().await).limits("9/min\", \"90/h burst 10");
    let memory = logging(&mut setup);
    let gateway = setup.start().await;
    let reply = gateway.get("/").await;
    let lines = memory.lines(1).await;
    let policies = lines[0]["policies"].as_array().unwrap();
    let told = reply.header("ratelimit-policy").unwrap();
    for (policy, limit) in policies.iter().zip(["9/min token-bucket", "90/h burst 10"]) {
        assert!(policy["limit"].as_str().unwrap().starts_with(limit), "{policy}");
        let name = format!("\"{}\";", policy["limit_id"].as_str().unwrap());
        assert!(told.contains(&name), "{name} in {told}");
    }
    assert_eq!(policies.len(), 2);
}

#[tokio::test]
async fn a_path_that_servers_read_differently_has_a_line() {
    let mut setup = Setup::to(ok().await).limits("1/min");
    let memory = logging(&mut setup);
    let gateway = setup.start().await;
    gateway.get("/a%2Fb?c").await.is_problem(400);
    let lines = memory.lines(1).await;
    assert_eq!(
        lines[0],
        json!({
            "t": "1700000000.000000000", "decision_ns": 1_700_000_000_000_000_000_u64,
            "client": "127.0.0.1", "method": "GET", "path": "/a%2Fb", "status": 400,
            "policies": [], "outcome": "bad-request",
        })
    );
}

#[tokio::test]
async fn a_call_of_grpc_is_logged_with_its_own_status() {
    let mut setup = Setup::to(ok().await).limits("block");
    let memory = logging(&mut setup);
    let gateway = setup.start().await;
    let grpc = format!("{}content-type: application/grpc\r\n", get("/svc/Call"));
    assert_eq!(gateway.ask(&grpc).await.status, 200);
    let lines = memory.lines(1).await;
    assert_eq!((&lines[0]["status"], &lines[0]["grpc_status"]), (&json!(200), &json!(7)));
    assert_eq!(lines[0]["outcome"], "blocked");
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
