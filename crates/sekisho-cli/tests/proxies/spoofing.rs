//! What a client says about itself changes nothing: not its address, its method, its path.

use crate::{
    client::{Answer, Ask},
    program::Folder,
    site::Site,
    stack::{Proxy, Stack},
};

const LOGIN: &str = r#"[[policy]]
name   = "login"
match  = { method = "POST", path = "/login", host = "site.example" }
key    = ["ip"]
limits = ["3/365d sliding-log"]
"#;

/// What each spoof says: someone else's address (a new one each time for `N`), another method, another path, another host.
const SPOOFS: [&[(&str, &str)]; 21] = [
    &[("X-Forwarded-For", "203.0.113.N")],
    &[("X-Forwarded-For", "127.0.0.99")],
    &[("X-Forwarded-For", "203.0.113.N, 127.0.0.99"), ("x-forwarded-for", "203.0.113.N")],
    &[("X-Forwarded-For", "203.0.113.N"), ("X-Forwarded-For", "127.0.0.1")],
    &[("X-Real-IP", "203.0.113.N")],
    &[("X-Real-IP", "127.0.0.99"), ("x-real-ip", "127.0.0.99")],
    &[("Forwarded", "for=203.0.113.N;by=127.0.0.1"), ("Forwarded", "for=127.0.0.99")],
    &[("X-Original-Method", "GET")],
    &[("X-Forwarded-Method", "GET"), ("X-Forwarded-Method", "GET")],
    &[("X-HTTP-Method-Override", "GET")],
    &[("X-HTTP-Method", "GET"), ("X-Method-Override", "GET")],
    &[("X-Original-URI", "/free")],
    &[("X-Original-URI", "/free"), ("X-Original-Uri", "/free")],
    &[("X-Forwarded-Uri", "/free"), ("X-Forwarded-Path", "/free")],
    &[("X-Rewrite-URL", "/free"), ("X-Original-URL", "/free"), ("X-Forwarded-Prefix", "/free")],
    &[("X-Forwarded-Host", "free.example"), ("X-Original-Host", "free.example")],
    // Some proxies drop what this names, their own lines among it.
    &[("Connection", "close, X-Real-IP, X-Forwarded-For, X-Forwarded-Host")],
    &[("Connection", "X-Original-Method, X-Original-URI, X-Original-Host, keep-alive")],
    &[("Connection", "X-Forwarded-Method, X-Forwarded-Uri, Host, keep-alive")],
    &[("X_Real_IP", "203.0.113.N"), ("X_Original_URI", "/free"), ("X_Forwarded_Uri", "/free")],
    &[
        ("Proxy", "http://127.0.0.1:9"),
        ("Via", "1.1 203.0.113.N"),
        ("True-Client-IP", "203.0.113.N"),
    ],
];

/// Lines that some sites read the request from.
const READ_BY_SITES: [&str; 13] = [
    "forwarded",
    "x-forwarded-method",
    "x-forwarded-path",
    "x-forwarded-prefix",
    "x-forwarded-uri",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-host",
    "x-original-method",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
];

const NGINX_ASKS: &str = "\
GET /auth403 HTTP/1.1
Host: sekisho
X-Real-IP: 127.0.0.2
X-Original-Method: POST
X-Original-URI: /login?next=/
X-Original-Host: site.example

";

/// Two of these lines are Caddy's library's own.
const CADDY_ASKS: &str = "\
GET /auth HTTP/1.1
Host: site.example
User-Agent: Go-http-client/1.1
X-Forwarded-For: 127.0.0.2
X-Forwarded-Method: POST
X-Forwarded-Uri: /login?next=/
Accept-Encoding: gzip

";

const HAPROXY_ASKS: &str = "\
GET /auth HTTP/1.1
Host: sekisho
User-Agent: HAProxy
Accept: */*
X-Real-IP: 127.0.0.2
X-Original-Method: POST
X-Original-URI: /login?next=/
X-Original-Host: site.example

";

const TRAEFIK_ASKS: &str = "\
GET /auth HTTP/1.1
Host: sekisho
User-Agent: Go-http-client/1.1
X-Forwarded-For: 127.0.0.2
X-Forwarded-Host: site.example
X-Forwarded-Method: POST
X-Forwarded-Port: 80
X-Forwarded-Proto: http
X-Forwarded-Uri: /login?next=/
Accept-Encoding: gzip

";

/// The request itself, with an address that Envoy has set.
const ENVOY_ASKS: &str = "\
POST /auth/login?next=/ HTTP/1.1
Host: site.example
Content-Length: 0
X-Forwarded-For: 127.0.0.2
X-Envoy-Internal: true
X-Envoy-Expected-Rq-Timeout-Ms: 20000

";

behind_each_proxy!(
    a_spoof_changes_no_count,
    a_question_has_nothing_of_the_client_but_what_the_proxy_says,
    a_site_is_told_nothing_that_a_client_made_up,
);

fn ask_spoofed(stack: &Stack, number: u8, spoof: &[(&str, &str)]) -> Vec<u16> {
    let mut client = stack.client(number);
    let mut statuses = Vec::new();
    for time in 0..5 {
        let values: Vec<_> =
            spoof.iter().map(|(_, value)| value.replace('N', &time.to_string())).collect();
        let names = spoof.iter().map(|(name, _)| *name);
        let headers: Vec<_> = names.zip(values.iter().map(String::as_str)).collect();
        let Answer { status, .. } = client.ask(Ask::post("/login?next=/").with(&headers));
        statuses.push(status);
    }
    statuses
}

fn a_spoof_changes_no_count(proxy: Proxy) {
    let stack = Stack::start(proxy, LOGIN);
    let honest = ask_spoofed(&stack, 2, &[]);
    assert_eq!(honest, [200, 200, 200, 429, 429]);
    let mut refused = 0;
    for (number, spoof) in (3..).zip(SPOOFS) {
        let statuses = ask_spoofed(&stack, number, spoof);
        if is_refused(proxy, spoof, &statuses) {
            refused += 1;
        } else {
            assert_eq!(statuses, honest, "{spoof:?}");
        }
    }
    // Nobody has spent the share of the one whose address they named.
    assert_eq!(ask_spoofed(&stack, 99, &[]), honest);
    assert_eq!(stack.site.reached().len(), 3 * (SPOOFS.len() + 2 - refused));
    // Nor does a request become one that is limited.
    let posing = [("X-Original-Method", "POST"), ("X-Forwarded-Method", "POST")];
    assert_eq!(stack.client(98).statuses(5, Ask::get("/login").with(&posing)), [200; 5]);
    assert_eq!(ask_spoofed(&stack, 98, &[]), honest);
}

/// Returns whether Envoy has refused it itself: it lets nobody drop headers of its own.
fn is_refused(proxy: Proxy, spoof: &[(&str, &str)], statuses: &[u16]) -> bool {
    proxy == Proxy::Envoy && spoof[0].0 == "Connection" && *statuses == [400; 5]
}

/// Returns the lines of a head in an order of their own: whoever asks may write them in any.
fn lines(head: &str) -> Vec<String> {
    let mut lines: Vec<_> = head.lines().map(str::to_ascii_lowercase).collect();
    lines.sort_unstable();
    lines
}

/// Whatever header a policy file takes addresses from, and however long the client's own lines are.
fn a_question_has_nothing_of_the_client_but_what_the_proxy_says(proxy: Proxy) {
    let asked = Site::start();
    let stack = Stack::between(proxy, Folder::new(), &asked.address().to_string(), Site::start());
    let _before = asked.reached();
    let question = match proxy {
        Proxy::Nginx => NGINX_ASKS,
        Proxy::Caddy => CADDY_ASKS,
        Proxy::Haproxy => HAPROXY_ASKS,
        Proxy::Traefik => TRAEFIK_ASKS,
        Proxy::Envoy => ENVOY_ASKS,
    };
    for spoof in SPOOFS {
        let statuses = ask_spoofed(&stack, 2, spoof);
        assert!(statuses == [200; 5] || is_refused(proxy, spoof, &statuses), "{spoof:?}");
        for head in asked.reached() {
            let head = head.replace(&asked.address().to_string(), "sekisho");
            assert_eq!(lines(&head), lines(question), "{spoof:?}");
        }
    }
}

/// A site that believed it would handle another request than the one that was counted.
fn a_site_is_told_nothing_that_a_client_made_up(proxy: Proxy) {
    let stack = Stack::start(proxy, LOGIN);
    for (number, spoof) in (3..).zip(SPOOFS) {
        let _counted = ask_spoofed(&stack, number, spoof);
        for head in stack.site.reached() {
            for line in head.lines() {
                // To CGI and its like the two are one.
                let name = line.split(':').next().unwrap().to_ascii_lowercase().replace('_', "-");
                assert!(!READ_BY_SITES.contains(&name.as_str()), "{spoof:?} arrives: {head}");
                if let "x-forwarded-for" | "x-real-ip" = name.as_str() {
                    assert!(line.ends_with(&format!(": 127.0.0.{number}")), "{spoof:?}: {head}");
                }
                if name == "x-forwarded-host" {
                    assert!(line.contains(": site.example"), "{spoof:?}: {head}");
                }
            }
        }
    }
}
