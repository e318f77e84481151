//! Exactly the limit, however many ask at once.

use tokio::task::JoinSet;

use crate::harness::{Client, Running};

const FILE: &str = r#"
    [[policy]]
    name = "api"
    key = [{ header = "x-key" }]
    on_missing_key = "deny"
    limits = ["50/h"]
"#;

const CLIENTS: usize = 200;
const ADMITTED: usize = 50;

/// How often; more with `SEKISHO_LONG=1`.
fn rounds() -> usize {
    if std::env::var_os("SEKISHO_LONG").is_some() { 500 } else { 20 }
}

/// Lets two hundred clients ask at once, again and again with a fresh key, and counts who is let through.
async fn crowd(ask: impl AsyncRound) {
    let server = Running::start(FILE).await;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(Client::connect(server.http).await);
    }
    for round in 0..rounds() {
        let mut asking = JoinSet::new();
        for client in clients.drain(..) {
            asking.spawn(ask.ask(client, round));
        }
        let mut admitted = 0;
        while let Some(asked) = asking.join_next().await {
            let (client, passed) = asked.unwrap();
            admitted += usize::from(passed);
            clients.push(client);
        }
        assert_eq!(admitted, ADMITTED, "round {round}");
    }
}

/// What each client does in a round.
trait AsyncRound: Copy {
    fn ask(
        self,
        client: Client,
        round: usize,
    ) -> impl Future<Output = (Client, bool)> + Send + 'static;
}

#[derive(Clone, Copy)]
struct Auth;

impl AsyncRound for Auth {
    async fn ask(self, mut client: Client, round: usize) -> (Client, bool) {
        let reply =
            client.ask(&format!("GET /auth HTTP/1.1\r\nhost: a\r\nx-key: {round}\r\n")).await;
        assert!(matches!(reply.status, 200 | 429), "{reply:?}");
        (client, reply.status == 200)
    }
}

#[derive(Clone, Copy)]
struct Check;

impl AsyncRound for Check {
    async fn ask(self, mut client: Client, round: usize) -> (Client, bool) {
        let reply =
            client.check("/v1/check", &format!(r#"{{"limit": "50/h", "key": "{round}"}}"#)).await;
        assert_eq!(reply.status, 200);
        let passed = reply.json()["outcome"] == "allow";
        (client, passed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn forward_auth_admits_exactly_the_limit() {
    crowd(Auth).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_check_api_admits_exactly_the_limit() {
    crowd(Check).await;
}
