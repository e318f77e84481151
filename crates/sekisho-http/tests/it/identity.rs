//! Who is counted: peers, headers of trusted proxies, verified principals.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use http::Request;
use parking_lot::Mutex;
use sekisho::{AddressSource, IdentityDoor};
use sekisho_http::layer::{LimitLayer, Principal};

use crate::support::{from, layer, limiter, send};

const BEHIND: &str = r#"
    [identity]
    address = "x-forwarded-for"
    trusted_proxies = ["10.0.0.0/8"]
    [[policy]]
    name = "all"
    key = ["ip"]
    limits = ["100/min sliding-log"]
"#;

/// What was logged on this thread.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .without_time()
            .with_writer(move || writer.clone());
        (log, tracing::subscriber::set_default(subscriber.finish()))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.0.lock()).lines().map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn passed(layer: &LimitLayer, requests: impl Iterator<Item = Request<()>>) -> usize {
    let mut passed = 0;
    for request in requests {
        passed += usize::from(send(layer, request).await.status == 200);
    }
    passed
}

fn forwarded(peer: &str, client: &str) -> Request<()> {
    from(peer, "/", &[("x-forwarded-for", client)])
}

#[tokio::test]
async fn one_network_is_one_client_in_every_spelling() {
    let layer =
        layer("[[policy]]\nname = \"all\"\nkey = [\"ip\"]\nlimits = [\"100/min sliding-log\"]\n");
    let rotating = (1..=0xffff_u16).map(|last| from(&format!("2001:db8:1:2::{last:x}"), "/", &[]));
    assert_eq!(passed(&layer, rotating).await, 100);
    let same = from("2001:DB8:1:2:0:0:0:1", "/", &[]);
    assert_eq!(send(&layer, same).await.status, 429);
    for _ in 0..50 {
        assert_eq!(send(&layer, from("192.0.2.1", "/", &[])).await.status, 200);
        assert_eq!(send(&layer, from("::ffff:192.0.2.1", "/", &[])).await.status, 200);
    }
    assert_eq!(send(&layer, from("::ffff:192.0.2.1", "/", &[])).await.status, 429);
    assert_eq!(send(&layer, from("::ffff:192.0.2.2", "/", &[])).await.status, 200);
}

#[tokio::test]
async fn a_trusted_proxys_clients_are_told_apart() {
    let (log, _guard) = Log::start();
    let layer = layer(BEHIND);
    let clients =
        (0..300).map(|at| forwarded("10.0.0.5", &format!("6.6.6.6, 203.0.113.{}", at % 3)));
    assert_eq!(passed(&layer, clients).await, 300, "a hundred each");
    assert_eq!(send(&layer, forwarded("10.0.0.5", "fe80::1%eth0")).await.status, 200);
    assert_eq!(log.lines(), [""; 0]);
}

#[tokio::test]
async fn a_proxy_that_nobody_trusts_is_counted_itself_and_named_once() {
    let (log, _guard) = Log::start();
    let layer = layer(BEHIND);
    let clients = (0..200).map(|at| forwarded("198.51.100.7", &format!("203.0.113.{at}")));
    assert_eq!(passed(&layer.clone(), clients).await, 100, "they share the proxy's quota");
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("WARN") && lines[0].contains("198.51.100.7"), "{lines:?}");
    assert!(lines[0].contains("trusted_proxies"), "{lines:?}");
}

#[tokio::test]
async fn without_a_peer_no_header_is_believed() {
    let (log, _guard) = Log::start();
    let layer = layer(BEHIND);
    for _ in 0..3 {
        let mut request = forwarded("10.0.0.5", "203.0.113.9");
        request.extensions_mut().clear();
        assert_eq!(send(&layer, request).await.status, 401, "it has no address to be counted by");
    }
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("LimitLayer::peer"), "{lines:?}");
}

#[tokio::test]
async fn over_a_unix_socket_every_header_is_believed() {
    let (log, _guard) = Log::start();
    let layer = layer(&BEHIND.replace("100/min", "1/min")).trust_peerless();
    let local = |client: &str| {
        let mut request = forwarded("10.0.0.5", client);
        request.extensions_mut().clear();
        request
    };
    assert_eq!(send(&layer, local("203.0.113.9")).await.status, 200);
    assert_eq!(send(&layer, local("203.0.113.9")).await.status, 429);
    assert_eq!(send(&layer, local("203.0.113.8")).await.status, 200);
    assert_eq!(send(&layer, forwarded("198.51.100.7", "203.0.113.7")).await.status, 200);
    assert_eq!(send(&layer, forwarded("198.51.100.7", "203.0.113.6")).await.status, 429);
    assert_eq!(log.lines().len(), 1, "one peer that is not believed");
}

#[tokio::test]
async fn the_peer_may_be_anywhere_in_the_extensions() {
    let (limiter, _) =
        limiter("[[policy]]\nname = \"all\"\nkey = [\"ip\"]\nlimits = [\"1/min\"]\n");
    let layer = LimitLayer::new(limiter)
        .peer(|extensions| extensions.get::<SocketAddr>().map(SocketAddr::ip));
    let request = |peer: &str| {
        let peer: SocketAddr = peer.parse().expect("an address");
        Request::get("/").extension(peer).body(()).expect("a request")
    };
    assert_eq!(send(&layer, request("192.0.2.1:1000")).await.status, 200);
    assert_eq!(send(&layer, request("192.0.2.1:2000")).await.status, 429);
    assert_eq!(send(&layer, request("192.0.2.2:1000")).await.status, 200);
}

#[tokio::test]
async fn a_source_may_be_chosen_for_the_layer() {
    let file = format!(
        "{}\n[identity.gateway]\naddress = \"x-real-ip\"\n",
        BEHIND.replace("100/min", "1/min")
    );
    let (limiter, _) = limiter(&file);
    let common = LimitLayer::new(limiter);
    let real = |client: &str| {
        from("10.0.0.5", "/", &[("x-real-ip", client), ("x-forwarded-for", "192.0.2.99")])
    };
    assert_eq!(send(&common, real("192.0.2.1")).await.status, 200, "counted as 192.0.2.99");
    let gateway = common.clone().door(IdentityDoor::Gateway);
    assert_eq!(send(&gateway, real("192.0.2.1")).await.status, 200);
    assert_eq!(send(&gateway, real("192.0.2.99")).await.status, 429, "spent by the first");
    let own = common.source(AddressSource::Peer);
    assert_eq!(send(&own, real("192.0.2.7")).await.status, 200);
    assert_eq!(send(&own, real("192.0.2.8")).await.status, 429, "the peer of both");
}

const PRINCIPAL: &str = r#"
    [[policy]]
    name = "customer"
    key = ["principal"]
    on_missing_key = "skip"
    limits = ["120/min sliding-log"]
    [[policy]]
    name = "address"
    key = ["ip"]
    limits = ["120/min sliding-log"]
"#;

#[tokio::test]
async fn a_made_up_authorization_is_nobody() {
    let layer = layer(PRINCIPAL);
    // Nothing has verified them, so the address is all that there is.
    let made_up = (0..150)
        .map(|at| from("203.0.113.9", "/", &[("authorization", &format!("x Bearer {at}"))]));
    assert_eq!(passed(&layer, made_up).await, 120);
    assert_eq!(layer.limiter().store().occupancy().entries, 1, "one client, one entry");
}

#[tokio::test]
async fn a_verified_principal_is_one_wherever_it_calls_from() {
    #[derive(Clone)]
    struct Customer {
        id: String,
    }

    let (limiter, _) = limiter(PRINCIPAL);
    let usual = LimitLayer::new(Arc::clone(&limiter));
    let own = LimitLayer::new(limiter)
        .principal(|extensions| Some(extensions.get::<Customer>()?.id.as_str()));
    let mut passed = 0;
    for at in 0..150_u8 {
        let mut request = from(&IpAddr::from([192, 0, 2, at]).to_string(), "/", &[]);
        let layer = if at % 2 == 0 {
            let _first = request.extensions_mut().insert(Principal("alice".to_owned()));
            &usual
        } else {
            let _first = request.extensions_mut().insert(Customer { id: "alice".to_owned() });
            &own
        };
        passed += usize::from(send(layer, request).await.status == 200);
    }
    assert_eq!(passed, 120);
}
