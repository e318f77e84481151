//! Doors on unix sockets.

use std::{
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use sekisho::{ListenAddress, PolicySet, SystemClock};
use sekisho_server::{
    ServeError, ServeGateway, ServeOptions, Server,
    door::gateway::{GatewayOptions, ProxyOptions},
    serve,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    sync::oneshot,
    time::timeout,
};

use crate::harness::{PATIENCE, limiter};

const BY_HEADER: &str = r#"
    [identity]
    address = "x-forwarded-for"

    [[policy]]
    name = "api"
    key = ["ip"]
    on_missing_key = "deny"
    limits = ["1/min"]
"#;

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("sekisho-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("door.sock")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

fn options(path: &Path, file: &str) -> ServeOptions {
    let listen = format!("[listen]\nhttp = \"unix:{}\"\n", path.display());
    let policies = PolicySet::parse(&format!("{listen}{file}")).unwrap();
    ServeOptions::new(limiter(policies, Arc::new(SystemClock::new())))
}

async fn ask(path: &Path, lines: &str) -> String {
    let mut stream = UnixStream::connect(path).await.unwrap();
    let head = format!("GET /auth HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{lines}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _read = timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

#[tokio::test]
async fn a_proxy_on_a_socket_says_who_asks() {
    let folder = Folder::new("asks");
    let path = folder.socket();
    let server = Server::bind(options(&path, BY_HEADER)).await.unwrap();
    assert_eq!(server.http_address(), Some(&ListenAddress::Unix(path.clone())));
    let (stop, stopped) = oneshot::channel::<()>();
    let ended =
        tokio::spawn(async { Box::pin(server.run(async { drop(stopped.await) })).await.unwrap() });
    for (lines, status) in [
        ("x-forwarded-for: 203.0.113.9\r\n", "200"),
        ("x-forwarded-for: 203.0.113.9\r\n", "429"),
        ("x-forwarded-for: 203.0.113.8\r\n", "200"),
        ("", "401"),
        ("x-forwarded-for: junk\r\n", "401"),
    ] {
        let answer = ask(&path, lines).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{lines}{answer}");
    }
    stop.send(()).unwrap();
    timeout(PATIENCE, ended).await.expect("an end").unwrap();
    assert!(!path.exists(), "the file goes with its server");
}

#[tokio::test]
async fn what_a_dead_server_left_is_taken_over_and_nothing_else_is() {
    let folder = Folder::new("stale");
    let path = folder.socket();
    // A process that is killed leaves its file.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(std::fs::metadata(&path).unwrap().file_type().is_socket());
    let server = Server::bind(options(&path, BY_HEADER)).await.unwrap();

    let error = serve(options(&path, BY_HEADER), async {}).await.unwrap_err();
    assert!(matches!(error, ServeError::Bind { .. }), "{error}");
    assert_eq!(error.to_string(), format!("cannot listen on unix:{}", path.display()));
    assert!(path.exists(), "somebody listens there");

    // Another's file at the same path is not ours to remove.
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "kept").unwrap();
    timeout(PATIENCE, server.run(async {})).await.expect("an end").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
    assert!(serve(options(&path, BY_HEADER), async {}).await.is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
}

#[tokio::test]
async fn a_gateway_on_a_socket_believes_the_proxy_in_front_of_it() {
    let folder = Folder::new("gateway");
    let path = folder.socket();
    let mut options = options(&path, BY_HEADER);
    options.http = None;
    let at = ListenAddress::Unix(path.clone());
    // Nobody listens there: what passes is 502.
    let proxy = ProxyOptions::new("http://127.0.0.1:1".parse().unwrap());
    options.gateway = Some(ServeGateway { listen: GatewayOptions::new(at), proxy, log: None });
    let server = Server::bind(options).await.unwrap();
    let _running =
        tokio::spawn(async { Box::pin(server.run(std::future::pending())).await.unwrap() });
    for (lines, status) in [
        ("x-forwarded-for: 203.0.113.9\r\n", "502"),
        ("x-forwarded-for: 203.0.113.9\r\n", "429"),
        ("x-forwarded-for: 203.0.113.8\r\n", "502"),
        ("", "401"),
    ] {
        let answer = ask(&path, lines).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{lines}{answer}");
    }
}
