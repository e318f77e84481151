//! What a client sees of a decision.

use std::thread;

use crate::{
    client::{Ask, Client},
    site::GREETING,
    stack::{Proxy, Stack},
};

const THREE: &str = r#"[[policy]]
name   = "three"
key    = ["ip"]
limits = ["3/365d sliding-log"]
"#;

behind_each_proxy!(
    an_allowed_request_reaches_the_site,
    a_denied_request_does_not_reach_the_site,
    each_client_has_its_own_count,
    what_is_not_wanted_at_all_is_forbidden,
    ten_thousand_over_kept_connections_are_counted_exactly,
);

fn an_allowed_request_reaches_the_site(proxy: Proxy) {
    let stack = Stack::start(proxy, THREE);
    let answer = stack.client(2).ask(Ask { body: "hello", ..Ask::post("/a%20b?c=%2Fd") });
    assert_eq!((answer.status, answer.text()), (200, format!("{GREETING}: hello")));
    let reached = stack.site.reached();
    assert_eq!(reached.len(), 1);
    assert!(reached[0].starts_with("POST /a%20b?c=%2Fd HTTP/1.1\r\n"), "{}", reached[0]);
    // These two can add what their question brought only to the request.
    if !matches!(proxy, Proxy::Caddy | Proxy::Traefik) {
        assert_eq!(answer.field("ratelimit"), "\"three\";r=2;t=31536000");
        assert_eq!(answer.field("ratelimit-policy"), "\"three\";q=3;w=31536000");
    }
}

fn a_denied_request_does_not_reach_the_site(proxy: Proxy) {
    let stack = Stack::start(proxy, THREE);
    let mut client = stack.client(2);
    assert_eq!(client.statuses(3, Ask::get("/")), [200; 3]);
    assert_eq!(stack.site.reached().len(), 3);
    for ask in [Ask::get("/"), Ask { body: "hello", ..Ask::post("/login?x=1") }] {
        let answer = client.ask(ask);
        assert_eq!(answer.status, 429);
        assert_eq!(answer.field("content-type"), "application/problem+json");
        assert_eq!(answer.field("cache-control"), "no-store");
        assert!(answer.field("retry-after").parse::<u64>().unwrap() > 31_535_000, "{answer:?}");
        assert!(answer.field("ratelimit").starts_with("\"three\";r=0;t=315"), "{answer:?}");
        assert_eq!(answer.field("ratelimit-policy"), "\"three\";q=3;w=31536000");
        let problem: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        let kind = problem["type"].as_str().unwrap();
        assert!(kind.ends_with("http-problem-types#quota-exceeded"), "{problem}");
        assert_eq!(problem["status"], 429);
    }
    assert_eq!(stack.site.reached(), [""; 0]);
}

/// Counted by the proxy's address, everybody would be one client.
fn each_client_has_its_own_count(proxy: Proxy) {
    let stack = Stack::start(proxy, THREE);
    for number in 2..6 {
        let statuses = stack.client(number).statuses(4, Ask::get("/"));
        assert_eq!(statuses, [200, 200, 200, 429], "127.0.0.{number}");
    }
}

fn what_is_not_wanted_at_all_is_forbidden(proxy: Proxy) {
    let listed = format!("[deny]\ncidr = [\"127.0.0.7\"]\n{THREE}");
    let stack = Stack::start(proxy, &listed);
    let answer = stack.client(7).ask(Ask::get("/"));
    assert_eq!((answer.status, answer.field("retry-after")), (403, ""));
    assert_eq!(answer.field("content-type"), "application/problem+json");
    assert_eq!(stack.site.reached(), [""; 0]);
    assert_eq!(stack.client(8).ask(Ask::get("/")).status, 200);
}

fn ten_thousand_over_kept_connections_are_counted_exactly(proxy: Proxy) {
    const THREADS: usize = 8;
    const EACH: usize = 1_250;
    let stack = Stack::start(proxy, &THREE.replace("3/365d", "1000/365d"));
    let statuses: Vec<u16> = thread::scope(|scope| {
        let spawn = |mut client: Client| {
            scope.spawn(move || client.statuses(EACH, Ask::get("/v1/things?page=2")))
        };
        let threads: Vec<_> = (0..THREADS).map(|_| spawn(stack.client(2))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let count = |wanted| statuses.iter().filter(|status| **status == wanted).count();
    let said = stack.proxy_said();
    assert_eq!((count(200), count(429)), (1_000, THREADS * EACH - 1_000), "{said}");
    assert_eq!(stack.site.reached().len(), 1_000);
}
