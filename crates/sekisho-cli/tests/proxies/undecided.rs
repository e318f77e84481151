//! When the service gives no answer, or one that is none.

use std::fs;

use crate::{
    client::Ask,
    site::GREETING,
    stack::{Proxy, Stack},
};

const ONE: &str = r#"[[policy]]
name   = "one"
key    = ["ip"]
limits = ["1/365d sliding-log"]
"#;

behind_each_proxy!(
    without_the_service_one_place_passes_and_the_other_refuses,
    a_proxy_that_is_not_trusted_is_refused_whatever_the_place,
    a_site_that_fails_is_not_taken_for_the_service,
    no_request_is_made_so_odd_that_it_passes_undecided,
);

fn without_the_service_one_place_passes_and_the_other_refuses(proxy: Proxy) {
    let mut stack = Stack::start(proxy, ONE);
    let mut client = stack.client(2);
    assert_eq!(client.ask(Ask::get("/")).status, 200);
    stack.stop_service();
    assert_eq!(stack.site.reached().len(), 1);
    for _ in 0..3 {
        let passed = client.ask(Ask { body: "hello", ..Ask::post("/anything?x=1") });
        assert_eq!((passed.status, passed.text()), (200, format!("{GREETING}: hello")));
        assert_eq!(passed.field("ratelimit"), "");
    }
    let reached = stack.site.reached();
    assert_eq!(reached.len(), 3, "each once");
    assert!(reached[0].starts_with("POST /anything?x=1 HTTP/1.1\r\n"), "{}", reached[0]);
    for target in ["/login", "/login?x=1", "/login/", "//login", "/%6Cogin"] {
        let refused = client.ask(Ask { body: "hello", ..Ask::post(target) });
        if proxy == Proxy::Traefik {
            // It has words of its own, and no others.
            assert_eq!((refused.status, refused.text()), (500, String::new()), "{target}");
            continue;
        }
        assert_eq!(refused.status, 503, "{target}");
        assert_eq!(refused.field("retry-after"), "1");
        assert_eq!(refused.field("cache-control"), "no-store");
        assert_eq!(refused.field("content-type"), "application/problem+json");
        let problem: serde_json::Value = serde_json::from_slice(&refused.body).unwrap();
        assert_eq!(problem["status"], 503);
    }
    assert_eq!(stack.site.reached(), [""; 0]);
}

/// An answer is an answer: where a missing one passes, 503 does not. But to Envoy a 503 is no answer.
fn a_proxy_that_is_not_trusted_is_refused_whatever_the_place(proxy: Proxy) {
    let shipped = fs::read_to_string(proxy.folder().join("sekisho.toml")).unwrap();
    let elsewhere = shipped.replace("[\"127.0.0.1\"]", "[\"192.0.2.1\"]");
    assert_ne!(shipped, elsewhere);
    let stack = Stack::with_file(proxy, &elsewhere);
    let open = if proxy == Proxy::Envoy { 200 } else { 503 };
    for (ask, wanted) in [(Ask::get("/"), open), (Ask::post("/login"), 503)] {
        assert_eq!(stack.client(2).ask(ask).status, wanted);
    }
    assert_eq!(stack.site.reached().len(), usize::from(open == 200));
}

/// Whoever takes it for that sends the request a second time.
fn a_site_that_fails_is_not_taken_for_the_service(proxy: Proxy) {
    let stack = Stack::with_broken_site(proxy);
    for target in ["/", "/login"] {
        let answer = stack.client(2).ask(Ask { body: "once", ..Ask::post(target) });
        let wanted = if proxy == Proxy::Envoy { 503 } else { 502 };
        assert_eq!(answer.status, wanted, "{target}");
        assert_eq!(stack.site.reached().len(), 1, "{target}");
    }
}

/// Where no answer lets a request pass, a client must not be able to prevent the answer.
fn no_request_is_made_so_odd_that_it_passes_undecided(proxy: Proxy) {
    let stack = Stack::start(proxy, ONE);
    assert_eq!(stack.client(2).ask(Ask::get("/")).status, 200);
    assert_eq!(stack.site.reached().len(), 1);
    let long = |length: usize| "a".repeat(length);
    let (host, value) = (long(7_900), long(7_900));
    let many: Vec<_> = (0..150).map(|number| format!("x-{number}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), "a")).collect();
    let targets: Vec<Vec<u8>> = vec![
        format!("/{}", long(3_000)).into(),
        format!("/{}", long(7_900)).into(),
        format!("/?{}", long(11_900)).into(),
        format!("/?{}", long(30_000)).into(),
        format!("/?{}", long(300_000)).into(),
        format!("/?{}", long(900_000)).into(),
        format!("/{}", "%61".repeat(2_600)).into(),
        b"/?\xff\xfe".to_vec(),
        b"/\xff".to_vec(),
        b"/%zz".to_vec(),
        b"/%".to_vec(),
        b"/a/../..".to_vec(),
        b"/a%00b".to_vec(),
        b"/a\\b".to_vec(),
        b"*".to_vec(),
        b"http://site.example/".to_vec(),
    ];
    let headers: [&[(&str, &str)]; 5] = [
        &[],
        &[("host", &host)],
        &[("a", &value), ("b", &value), ("c", &value)],
        &many,
        &[("x-original-uri", "\u{ff}"), ("x-forwarded-uri", "\u{ff}")],
    ];
    for target in &targets {
        for headers in headers {
            let ask = Ask { target, ..Ask::get("/") }.with(headers);
            // Some are cut off before they are read.
            let Ok(answer) = stack.client(2).try_ask(ask) else { continue };
            let start = String::from_utf8_lossy(&target[..target.len().min(20)]);
            let refused = (400..=503).contains(&answer.status) && answer.status != 502;
            assert!(refused, "{start}, {} headers: {answer:?}", headers.len());
        }
    }
    assert_eq!(stack.site.reached(), [""; 0]);
}
