//! A shared store where nobody listens: what each door answers, and what is counted of it.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
};

use sekisho::{PolicySet, Span};
use sekisho_server::{OpenError, ServerStore};

use crate::harness::{Client, Reply, Running};

/// Returns an address where nothing listens: the socket that had it is gone.
fn nowhere() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

/// One policy of each kind, each for paths of its own.
fn file(store: &str) -> String {
    let policy = |name: &str, limit: &str| {
        format!(
            "[[policy]]\nname = \"{name}\"\nmatch = {{ path = \"/{name}/**\" }}\nkey = [\"ip\"]\n\
             limits = [\"{limit}\"]\non_store_error = \"{name}\"\n"
        )
    };
    let policies = [policy("allow", "1/h"), policy("local", "3/h"), policy("deny", "9/h")];
    format!(
        "[answer]\nheaders = [\"retry-after\", \"ratelimit\", \"x-ratelimit\"]\n[store]\n{store}\n{}",
        policies.concat()
    )
}

async fn down() -> Running {
    Running::start(&file(&format!("url = \"redis://{}\"", nowhere()))).await
}

async fn ask(server: &Running, times: usize, target: &str) -> Vec<Reply> {
    let mut client = Client::connect(server.http).await;
    let mut replies = Vec::new();
    for _ in 0..times {
        replies.push(client.get(target).await);
    }
    replies
}

fn statuses(replies: &[Reply]) -> Vec<u16> {
    replies.iter().map(|reply| reply.status).collect()
}

/// What a shared store cannot count is the question's fault, whether it is there or not: nobody is told to come again.
#[tokio::test]
async fn a_limit_that_the_store_cannot_count_is_a_bad_question() {
    let server = down().await;
    let mut client = Client::connect(server.http).await;
    for (limit, what) in
        [("1/500ns", "between two microseconds"), ("2251799813685249/s", "above 2251799813685248")]
    {
        for target in ["/v1/check", "/v1/check?status=decision"] {
            let reply = client.check(target, &format!(r#"{{"limit":"{limit}","key":"q"}}"#)).await;
            assert_eq!(reply.status, 400, "{reply:?}");
            assert!(reply.body.contains(what) && reply.body.contains("limit"), "{reply:?}");
        }
    }
}

/// Case B52: refused at the start and at run time, open on failure.
#[tokio::test]
async fn b52_an_open_policy_answers_200_without_numbers() {
    let server = down().await;
    for target in ["/auth/allow/x", "/auth403/allow/x"] {
        for reply in ask(&server, 5, target).await {
            assert_eq!(reply.status, 200, "{reply:?}");
            assert_eq!(reply.names(), Vec::<&str>::new(), "no number is known: {reply:?}");
        }
    }
    let ready = Client::connect(server.admin).await.get("/readyz").await;
    assert_eq!(ready.status, 200, "policies say what happens: it is no less ready");
}

/// Case B53: one policy of each kind.
#[tokio::test]
async fn b53_each_policy_does_what_it_says() {
    let server = down().await;
    assert_eq!(statuses(&ask(&server, 5, "/auth/allow/x").await), [200; 5]);
    let refused = ask(&server, 5, "/auth/deny/x").await;
    assert_eq!(statuses(&refused), [503; 5], "not 429");
    for reply in &refused {
        assert_eq!(reply.header("retry-after"), Some("1"));
        assert_eq!(reply.header("ratelimit"), None);
        let problem = reply.json()["type"].as_str().unwrap().to_owned();
        assert!(problem.ends_with("#temporary-reduced-capacity"), "{problem}");
    }
    assert_eq!(statuses(&ask(&server, 2, "/auth403/deny/x").await), [503; 2]);
    let local = ask(&server, 5, "/auth/local/x").await;
    assert_eq!(statuses(&local), [200, 200, 200, 429, 429], "exactly the limit");
    assert_eq!(local[0].header("x-ratelimit-remaining"), Some("2"));
    assert_eq!(local[3].header("retry-after"), Some("1200"));
    server.clock.advance(Span::from_secs(1_200));
    assert_eq!(statuses(&ask(&server, 2, "/auth/local/x").await), [200, 429]);
}

#[tokio::test]
async fn the_check_api_says_the_same() {
    let server = down().await;
    let check =
        |path: &str| format!(r#"{{"request": {{"path": "/{path}/x", "peer": "192.0.2.1"}}}}"#);
    let array = format!("[{}, {}, {}]", check("allow"), check("local"), check("deny"));
    let answer = server.answer(&array).await;
    let outcomes = ["allow", "allow", "store-down"];
    for (line, outcome) in answer.as_array().unwrap().iter().zip(outcomes) {
        assert_eq!(line["outcome"], outcome, "{line}");
    }
    assert_eq!(answer[0]["remaining"], serde_json::Value::Null);
    assert_eq!((&answer[1]["remaining"], &answer[1]["t"]), (&2.into(), &"1700000000".into()));
    assert_eq!(answer[2]["policy"], "deny");
    // A limit of the caller's own has no policy that could say anything.
    let direct = server.answer(r#"{"limit": "1/s", "key": "k"}"#).await;
    assert_eq!(direct["outcome"], "store-down");
}

#[tokio::test]
async fn the_page_tells_of_the_store_and_of_what_policies_did() {
    let at = nowhere();
    let server = Running::start(&file(&format!("url = \"redis://:hunter2@{at}\""))).await;
    for (target, times) in [("/auth/allow/x", 2), ("/auth/local/x", 4), ("/auth/deny/x", 3)] {
        let _replies = ask(&server, times, target).await;
    }
    let page = server.page().await.body;
    for line in [
        r#"sekisho_store_fallback_decisions_total{policy="allow",how="allow"} 2"#,
        r#"sekisho_store_fallback_decisions_total{policy="local",how="local"} 4"#,
        r#"sekisho_store_fallback_decisions_total{policy="deny",how="deny"} 3"#,
        r#"sekisho_store_fallback_decisions_total{policy="deny",how="allow"} 0"#,
        r#"sekisho_decisions_total{policy="deny",outcome="store-down",door="auth"} 3"#,
        "sekisho_store_cached_denials_total 0",
        "sekisho_store_entries 1",
        &format!(r#"sekisho_store_up{{server="{at}"}} 0"#),
        &format!(r#"sekisho_store_round_trip_seconds_count{{server="{at}"}} 0"#),
        &format!(r#"sekisho_store_batch_size_count{{server="{at}"}} 0"#),
    ] {
        assert!(page.lines().any(|other| other == line), "no `{line}` in\n{page}");
    }
    let errors = format!(r#"sekisho_store_errors_total{{server="{at}",kind="connect"}} "#);
    let errors = page.lines().find_map(|line| line.strip_prefix(&errors));
    assert!(errors.is_some_and(|count| count != "0"), "{page}");
    assert!(!page.contains("hunter2"), "{page}");
    // In memory there is no such line.
    let alone =
        Running::start("[[policy]]\nname = \"p\"\nkey = [\"ip\"]\nlimits = [\"1/s\"]\n").await;
    let page = alone.page().await.body;
    assert!(!page.contains("store_up") && !page.contains("fallback"), "{page}");
}

/// A file that is gone when the test is.
struct File(PathBuf);

impl File {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("sekisho-{name}-{}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn files_of_the_store_are_read_at_the_start() {
    let open = |field: &str, path: &str| {
        let store = format!("url = \"rediss://127.0.0.1:1\"\n{field} = \"{path}\"");
        let set = PolicySet::parse(&file(&store)).unwrap();
        ServerStore::open(&set.settings().store)
    };
    let long = vec![b'a'; 65_537];
    for (name, bytes, words) in [
        ("empty", &b""[..], "is empty"),
        ("line", b"\n", "is empty"),
        ("latin", b"p\xe9", "is not UTF-8"),
        ("long", &long, "is too long"),
    ] {
        let secret = File::new(name, bytes);
        let error = open("password_file", secret.0.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains("`password_file`") && error.contains(words), "{error}");
        assert!(error.contains(secret.0.to_str().unwrap()), "{error}");
    }
    for field in ["password_file", "ca_file"] {
        let error = open(field, "/nowhere/at/all").unwrap_err();
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
        assert!(matches!(error, OpenError::File { field: named, .. } if named == field));
    }
    for line in ["hunter2", "hunter2\n", "hunter2\r\n"] {
        let secret = File::new("right", line.as_bytes());
        let store = open("password_file", secret.0.to_str().unwrap()).unwrap();
        assert!(!format!("{store:?}").contains("hunter2"), "{store:?}");
    }
    let roots = File::new("roots", b"no certificate at all");
    let error = open("ca_file", roots.0.to_str().unwrap()).unwrap_err();
    assert!(matches!(error, OpenError::Setup(_)), "{error}");
}
