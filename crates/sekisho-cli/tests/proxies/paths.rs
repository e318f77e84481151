//! Spellings of one path share its count.

use crate::{
    client::Ask,
    stack::{Proxy, Stack},
};

const AUTH: &str = r#"[[policy]]
name   = "auth"
match  = { path = "/v1/auth" }
key    = ["ip"]
limits = ["2/365d sliding-log"]
"#;

const SPELLINGS: [&str; 11] = [
    "/v1//auth",
    "/v1/%61uth",
    "/v1/./auth",
    "/v1/auth/",
    "/v1/auth/.",
    "//v1/auth",
    "/v1/x/../auth",
    "/v1/%2e/x/%2E%2e/auth//",
    "/%76%31/auth?x=/y",
    "/v1/auth?x=/../../z",
    "http://site.example/v1/auth",
];

behind_each_proxy!(every_spelling_is_counted_as_one_path, an_encoded_separator_is_refused);

fn every_spelling_is_counted_as_one_path(proxy: Proxy) {
    let stack = Stack::start(proxy, AUTH);
    for (number, spelling) in (2..).zip(SPELLINGS) {
        let mut client = stack.client(number);
        assert_eq!(client.ask(Ask::get("/v1/auth")).status, 200);
        assert_eq!(client.statuses(2, Ask::get(spelling)), [200, 429], "{spelling}");
        assert_eq!(client.ask(Ask::get("/v1/auth")).status, 429, "{spelling}");
        assert_eq!(client.ask(Ask::get("/v1/other")).status, 200);
    }
    assert_eq!(stack.site.reached().len(), 3 * SPELLINGS.len());
}

fn an_encoded_separator_is_refused(proxy: Proxy) {
    let stack = Stack::start(proxy, AUTH);
    for target in ["/v1%2Fauth", "/v1/%2fauth", "/v1%5cauth", "/x/..%2fv1/auth"] {
        let status = stack.client(2).ask(Ask::get(target)).status;
        // Envoy refuses it itself.
        assert!(status == 403 || status == 400 && proxy == Proxy::Envoy, "{target}: {status}");
    }
    assert_eq!(stack.site.reached(), [""; 0]);
}
