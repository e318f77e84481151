//! A server's snapshot: its last write comes after its last decision, and another server waits for it.

use std::{fs, path::PathBuf, sync::Arc};

use sekisho::{Clock, FakeClock, PolicySet, Snapshot, SnapshotError, Timestamp};
use sekisho_server::{ServeOptions, StartError};
use tokio::time::timeout;

use crate::harness::{BEGIN, Client, PATIENCE, Running};

/// A folder that is gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("sekisho-server-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> String {
        let state = self.0.join("state");
        format!(
            "[store]\nsnapshot = \"{}\"\n[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"60/h\"]\n",
            state.display()
        )
    }

    fn open(&self) -> Result<ServeOptions, StartError> {
        let clock: Arc<dyn Clock> = Arc::new(FakeClock::at(Timestamp::from_secs(BEGIN)));
        ServeOptions::open_with_clock(PolicySet::parse(&self.file()).unwrap(), clock)
    }

    async fn start(&self) -> Running {
        let opened = self.open().unwrap();
        Running::with(&self.file(), |options| {
            (options.limiter, options.snapshot) = (opened.limiter, opened.snapshot);
        })
        .await
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

const CHECK: &str = r#"{"limit": "1/h", "key": "k"}"#;

#[tokio::test]
async fn what_is_decided_while_the_server_drains_is_in_the_last_write() {
    let folder = Folder::new("drains");
    let mut server = folder.start().await;
    let mut running = Client::connect(server.http).await;
    let length = CHECK.len();
    running.send(format!("POST /v1/check HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n")).await;
    assert_eq!(running.head().await.status, 100);
    server.stop();
    let mut admin = Client::connect(server.admin).await;
    while admin.get("/readyz").await.status == 200 {}
    assert!(!folder.0.join("state").exists(), "a request still runs");
    running.send(CHECK).await;
    assert_eq!(running.receive().await.json()["outcome"], "allow");
    timeout(PATIENCE, server.ended).await.expect("an end").unwrap();

    let server = folder.start().await;
    assert_eq!(server.answer(CHECK).await["outcome"], "deny");
}

#[tokio::test]
async fn a_snapshot_is_one_servers_until_it_has_ended() {
    let folder = Folder::new("one");
    let mut server = folder.start().await;
    let open = || {
        let clock = Arc::new(FakeClock::default());
        Snapshot::open(folder.0.join("state"), sekisho::MemoryOptions::default(), clock)
    };
    assert!(matches!(open().unwrap_err(), SnapshotError::InUse { .. }));
    server.stop();
    timeout(PATIENCE, server.ended).await.expect("an end").unwrap();
    assert!(open().is_ok());
}

#[tokio::test]
async fn without_a_snapshot_nothing_is_told_of_one() {
    let server =
        Running::start("[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"60/h\"]\n").await;
    assert!(!server.page().await.body.contains("sekisho_snapshot"));
    let folder = Folder::new("told");
    let server = folder.start().await;
    let page = server.page().await.body;
    for line in [
        "sekisho_snapshot_last_success_timestamp_seconds 0.0",
        "sekisho_snapshot_write_seconds 0.0",
        "sekisho_snapshot_size_bytes 0.0",
        "sekisho_snapshot_entries 0.0",
        "sekisho_snapshot_failures_total 0",
    ] {
        assert!(page.lines().any(|other| other == line), "no `{line}` in\n{page}");
    }
}
