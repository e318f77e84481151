//! What the metrics say of a gateway.

use std::{net::SocketAddr, sync::Arc};

use sekisho::{Clock, FakeClock, Limiter, Memory, MemoryOptions, PolicySet, Timestamp};
use sekisho_server::{ServeGateway, ServeOptions, Server, ServerStore};
use tokio::sync::oneshot;

use super::harness::{Client, Setup, get, ok};

const FILE: &str = r#"
    [[policy]]
    name = "api"
    match = { path = "/v1/**" }
    key = ["ip"]
    limits = ["2/h"]

    [[policy]]
    name = "staff"
    match = { path = "/staff" }
    key = [{ header = "x-key" }]
    on_missing_key = "deny"
    limits = ["1/h"]
"#;

/// Starts a server with a gateway in front of a site that says 200, and returns where it and the admin listener are.
async fn start(file: &str) -> (SocketAddr, SocketAddr, oneshot::Sender<()>) {
    let clock: Arc<dyn Clock> = Arc::new(FakeClock::at(Timestamp::from_secs(1_700_000_000)));
    let memory = Memory::with_clock(MemoryOptions::default(), clock);
    let store = ServerStore::Memory(memory);
    let limiter = Limiter::with_store(PolicySet::parse(file).unwrap(), store);
    let mut options = ServeOptions::new(Arc::new(limiter));
    options.http = None;
    options.admin = Some(([127, 0, 0, 1], 0).into());
    let Setup { proxy, gateway: listen, .. } = Setup::to(ok().await);
    options.gateway = Some(ServeGateway { listen, proxy, log: None });
    let server = Server::bind(options).await.unwrap();
    let [gateway, admin] = [server.gateway_address(), server.admin_address()]
        .map(|address| address.unwrap().tcp().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let _running = tokio::spawn(async {
        Box::pin(server.run(async { drop(stopped.await) })).await.unwrap();
    });
    (gateway, admin, stop)
}

#[tokio::test]
async fn decisions_and_answers_are_counted_at_the_gateways_own_door() {
    let (gateway, admin, _stop) = start(FILE).await;
    let mut client = Client::connect(gateway).await;
    for status in [200, 200, 429, 429, 429] {
        assert_eq!(client.get("/v1/x").await.status, status);
    }
    assert_eq!(client.get("/elsewhere").await.status, 200);
    assert_eq!(client.get("/staff").await.status, 401);
    assert_eq!(client.get("/%zz").await.status, 400);
    let grpc = format!("{}content-type: application/grpc\r\n", get("/v1/Call"));
    assert_eq!(client.ask(&grpc).await.header("grpc-status"), Some("8"));

    let page = Client::connect(admin).await.get("/metrics").await.body;
    for line in [
        r#"sekisho_decisions_total{policy="api",outcome="allow",door="gateway"} 2"#,
        r#"sekisho_decisions_total{policy="api",outcome="deny",door="gateway"} 4"#,
        r#"sekisho_decisions_total{policy="staff",outcome="missing-key",door="gateway"} 1"#,
        r#"sekisho_decisions_total{policy="(none)",outcome="allow",door="gateway"} 1"#,
        r#"sekisho_decisions_total{policy="api",outcome="allow",door="auth"} 0"#,
        r#"sekisho_http_requests_total{door="gateway",status_class="2xx"} 4"#,
        r#"sekisho_http_requests_total{door="gateway",status_class="4xx"} 5"#,
        r#"sekisho_http_requests_total{door="other",status_class="4xx"} 0"#,
        "sekisho_decision_seconds_count 8",
    ] {
        assert!(page.lines().any(|other| other == line), "no `{line}` in\n{page}");
    }
}

#[tokio::test]
async fn what_an_answer_gives_back_is_not_among_the_fullest_keys() {
    let file = "[[policy]]\nname = \"login\"\nkey = [\"ip\"]\nlimits = [\"3/h\"]\ncount = { status = [401] }\n\
                [[policy]]\nname = \"all\"\nkey = [\"ip\"]\nlimits = [\"9/h\"]\n";
    let (gateway, admin, _stop) = start(file).await;
    let mut client = Client::connect(gateway).await;
    for _ in 0..5 {
        assert_eq!(client.get("/").await.status, 200);
    }
    let body = Client::connect(admin).await.get("/v1/keys").await.body;
    let used = r#""policy":"all","id":"3600s-token-bucket","limit":"9/h token-bucket","key":"ip=127.0.0.1","used":5,"#;
    assert!(body.contains(used) && !body.contains("login"), "{body}");
}
