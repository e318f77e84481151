//! `GET /v1/keys`: who is nearest to the end of a limit.

use sekisho::Span;
use sekisho_server::door::openapi::OPENAPI;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::{BEGIN, Client, PATIENCE, Reply, Running};

const FILE: &str = r#"
    [[policy]]
    name = "api"
    match = { path = "/v1/**" }
    key = ["ip"]
    limits = ["4/h", "9/day sliding-log"]

    [[policy]]
    name = "secret"
    match = { path = "/secret/**" }
    key = [{ header = "x-key" }, { cookie = "session" }]
    on_missing_key = "skip"
    limits = ["2/min"]
"#;

async fn ask(server: &Running, target: &str) -> Reply {
    Client::connect(server.admin).await.get(target).await
}

async fn keys(server: &Running, query: &str) -> Value {
    let reply = ask(server, &format!("/v1/keys{query}")).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    reply.json()
}

/// Returns who is there, how full, how often refused.
fn seen(answer: &Value) -> Vec<(String, u64, u64, u64)> {
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap();
    let seen = answer["keys"].as_array().unwrap().iter().map(|of| {
        let key = format!("{} {} {}", of["policy"].as_str().unwrap_or("-"), of["id"], of["key"]);
        (key.replace('"', ""), number(of, "used"), number(of, "capacity"), number(of, "denied"))
    });
    seen.collect()
}

#[tokio::test]
async fn nothing_decided_is_an_empty_list() {
    let server = Running::start(FILE).await;
    let (at, none) = (BEGIN.to_string(), json!([]));
    let wanted = json!({
        "scope": "process", "at": at, "places": 1024, "held": 0, "crowded_out": 0, "keys": none
    });
    assert_eq!(keys(&server, "").await, wanted);
    assert_eq!(ask(&server, "/v1/keys").await.names(), ["content-type"]);
}

#[tokio::test]
async fn exhausted_keys_come_first_with_the_numbers_that_hold() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.http).await;
    for status in [200, 200, 200, 200, 429, 429] {
        assert_eq!(client.get("/auth/v1/x").await.status, status);
    }
    for check in [
        r#"{"limit":"9/h","key":"alice","cost":5}"#,
        r#"{"limit":"1/h","key":"bob"}"#,
        r#"{"limit":"block","key":"x"}"#,
        r#"{"limit":"unlimited","key":"y"}"#,
    ] {
        let _answer = server.answer(check).await;
    }
    let answer = keys(&server, "").await;
    let bob = ("- 3600s-token-bucket =bob".to_owned(), 1, 1, 0);
    let alice = ("- 3600s-token-bucket =alice".to_owned(), 5, 9, 0);
    let bucket = ("api 3600s-token-bucket ip=127.0.0.1".to_owned(), 4, 4, 2);
    let log = ("api 86400s-sliding-log ip=127.0.0.1".to_owned(), 4, 9, 0);
    assert_eq!(seen(&answer), [bucket.clone(), bob.clone(), alice.clone(), log.clone()]);
    assert_eq!(
        answer["keys"][0],
        json!({
            "policy": "api", "id": "3600s-token-bucket", "limit": "4/h token-bucket", "key": "ip=127.0.0.1",
            "used": 4, "capacity": 4, "remaining": 0, "used_percent": 100, "outcome": "deny", "denied": 2,
            "seen": BEGIN.to_string(), "next_after_ns": 900_000_000_000_u64, "fresh_after_ns": 3_600_000_000_000_u64,
        })
    );
    // A quarter of an hour later one more is there; the answer still shows what was seen, and says when.
    server.clock.advance(Span::from_secs(1_000));
    let answer = keys(&server, "?policy=api&limit=4/h%20token-bucket").await;
    let first = &answer["keys"][0];
    assert_eq!((&first["used"], &first["next_after_ns"]), (&json!(4), &json!(0)));
    assert_eq!(first["fresh_after_ns"], 2_600_000_000_000_u64);
    assert_eq!(
        (&first["seen"], &answer["at"]),
        (&json!(BEGIN.to_string()), &json!((BEGIN + 1_000).to_string()))
    );

    for (query, wanted) in [
        ("?top=1", vec![bucket.clone()]),
        ("?top=2", vec![bucket.clone(), bob.clone()]),
        ("?policy=api", vec![bucket.clone(), log.clone()]),
        ("?policy=", vec![bob.clone(), alice.clone()]),
        ("?limit=86400s-sliding-log", vec![log.clone()]),
        ("?limit=9%2Fh+token-bucket", vec![alice.clone()]),
        ("?limit=9/h", vec![]),
        ("?policy=secret", vec![]),
        ("?min_used_percent=100", vec![bucket.clone(), bob.clone()]),
        ("?min_used_percent=55&policy=", vec![bob, alice]),
        ("?min_used_percent=56&policy=api", vec![bucket]),
    ] {
        assert_eq!(seen(&keys(&server, query).await), wanted, "{query}");
    }
    server.clock.advance(Span::from_secs(3_600));
    assert_eq!(seen(&keys(&server, "").await), [log], "the others are fresh again");
}

#[tokio::test]
async fn modes_change_the_numbers_and_only_decisions_the_rest() {
    let server = Running::start(FILE).await;
    let check = |rest: &str| format!(r#"{{"limit":"4/h","key":"k"{rest}}}"#);
    let _answer = server.answer(&check(r#","mode":"look""#)).await;
    let _answer = server.answer(&check(r#","cost":0"#)).await;
    assert_eq!(seen(&keys(&server, "").await), [], "looks bring in no name");
    let _answer = server.answer(&check(r#","cost":6,"mode":"force""#)).await;
    let _answer = server.answer(&check("")).await;
    let of = |used, denied| vec![("- 3600s-token-bucket =k".to_owned(), used, 4, denied)];
    assert_eq!(seen(&keys(&server, "").await), of(4, 1));
    let _answer = server.answer(&check(r#","mode":"look""#)).await;
    let refund = |cost: u64| check(&format!(r#","cost":{cost},"mode":"refund","at":{BEGIN}"#));
    let _answer = server.answer(&refund(3)).await;
    let answer = keys(&server, "").await;
    assert_eq!(seen(&answer), of(3, 1));
    assert_eq!(
        answer["keys"][0]["outcome"], "deny",
        "of the last check, which no look and no refund is"
    );
    let _answer = server.answer(&refund(3)).await;
    assert_eq!(seen(&keys(&server, "").await), []);
}

#[tokio::test]
async fn no_secret_ever_comes_out() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.http).await;
    for _ in 0..3 {
        let head = "GET /auth/secret/x HTTP/1.1\r\nhost: a\r\nx-key: hunter2\r\ncookie: session=swordfish\r\n";
        let _reply = client.ask(head).await;
    }
    let reply = ask(&server, "/v1/keys").await;
    let key = reply.json()["keys"][0]["key"].as_str().unwrap().to_owned();
    assert!(key.starts_with("header.x-key=#") && key.contains(",cookie.session=#"), "{key}");
    assert!(!reply.body.contains("hunter2") && !reply.body.contains("swordfish"), "{reply:?}");
    assert_eq!(reply.json()["keys"][0]["denied"], 1);
}

#[tokio::test]
async fn a_hundred_thousand_made_up_keys_push_out_nobody() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.http).await;
    for key in 0..40 {
        let check = format!(r#"{{"limit":"5/h","key":"real-{key}"}}"#);
        let _reply =
            client.check("/v1/check", &format!("[{}]", [check.as_str(); 6].join(","))).await;
    }
    for thousand in 0..100 {
        let checks: Vec<_> = (0..1_000)
            .map(|key| json!({"limit": "5/h", "key": format!("made-up-{thousand}-{key}")}))
            .collect();
        let reply = client.check("/v1/check", &json!(checks).to_string()).await;
        assert_eq!(reply.status, 200);
    }
    let answer = keys(&server, "?top=1000").await;
    assert_eq!((&answer["held"], &answer["crowded_out"]), (&json!(1_024), &json!(0)));
    let seen = seen(&answer);
    assert_eq!(seen.len(), 1_000);
    assert!(
        seen[..40].iter().all(|(key, used, _, denied)| {
            key.contains(" =real-") && (*used, *denied) == (5, 1)
        })
    );
    assert!(seen[40..].iter().all(|(_, used, ..)| *used == 1));
    let page = server.page().await.body;
    for line in [
        "sekisho_fullest_keys 1024",
        "sekisho_fullest_keys_max 1024",
        "sekisho_fullest_keys_crowded_out_total 0",
    ] {
        assert!(page.lines().any(|other| other == line), "no `{line}` in\n{page}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_query_is_a_problem_that_names_it() {
    let server = Running::start(FILE).await;
    for (query, words) in [
        ("?top=0", "top: a whole number from 1 to 1000"),
        ("?top=1&top=2", "top: it comes twice"),
        ("?Policy=api", "`Policy`: there is no such parameter"),
        ("?policy=nobody", "policy: there is no policy of that name"),
        ("?policy=%00%ff", "policy: this is not UTF-8"),
        ("?limit=%2", "limit: this is not UTF-8"),
        ("?min_used_percent=101", "min_used_percent: "),
        ("?%3Cscript%3E%1b[31m=1", "`<script>\u{fffd}[31m`: there is no such"),
    ] {
        let detail = ask(&server, &format!("/v1/keys{query}")).await.problem(400);
        assert!(detail.starts_with(words), "{query}: {detail}");
    }
    let long = ask(&server, &format!("/v1/keys?{}=1", "x".repeat(10_000))).await.problem(400);
    assert!(long.len() < 400, "{long}");
    assert_eq!(ask(&server, "/v1/keys?&&").await.status, 200);
}

#[tokio::test]
async fn it_is_read_and_only_on_the_admin_address() {
    let server = Running::start(FILE).await;
    let mut client = Client::connect(server.admin).await;
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let reply = client.ask(&format!("{method} /v1/keys HTTP/1.1\r\nhost: a\r\n")).await;
        let _detail = reply.problem(405);
        assert_eq!(reply.header("allow"), Some("GET, HEAD"));
    }
    let head = client.ask("HEAD /v1/keys HTTP/1.1\r\nhost: a\r\n").await;
    let get = client.get("/v1/keys").await;
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-length"), Some(get.body.len().to_string().as_str()));
    for target in ["/v1/keys/", "/v1", "/v1/key"] {
        let _detail = client.get(target).await.problem(404);
    }
    let _detail = Client::connect(server.http).await.get("/v1/keys").await.problem(404);
}

#[tokio::test]
async fn who_reads_slowly_holds_up_nobody() {
    let server = Running::with(FILE, |options| {
        options.limits.write_timeout = std::time::Duration::from_millis(300);
    })
    .await;
    for hundred in 0..10 {
        let checks: Vec<_> = (0..100)
            .map(|key| json!({"limit": "1/h", "key": format!("{hundred}{key:0>200}")}))
            .collect();
        let _reply = server.answer(&json!(checks).to_string()).await;
    }
    let all = keys(&server, "?top=1000").await;
    // Far more than the system's buffers hold, and nobody reads it.
    let mut slow = Client::connect(server.admin).await;
    slow.send("GET /v1/keys?top=1000 HTTP/1.1\r\nhost: a\r\n\r\n".repeat(50)).await;
    let meanwhile = async {
        for _ in 0..20 {
            let reply = server.ask("GET /auth/elsewhere HTTP/1.1\r\nhost: a\r\n").await;
            let answer = keys(&server, "?top=1000").await;
            assert_eq!((reply.status, &answer), (200, &all));
        }
    };
    timeout(PATIENCE, meanwhile).await.expect("answers meanwhile");
    slow.closed().await;
}

#[tokio::test]
async fn the_answer_is_the_one_that_is_described() {
    let server = Running::start(FILE).await;
    let _answer = server.answer(r#"{"limit": "60/min", "key": "k"}"#).await;
    let (document, answer) =
        (serde_json::from_str::<Value>(OPENAPI).unwrap(), keys(&server, "").await);
    let names = |of: &Value| of.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for (schema, given) in [("FullestKeys", &answer), ("FullKey", &answer["keys"][0])] {
        let schema = &document["components"]["schemas"][schema];
        assert_eq!(names(&schema["properties"]), names(given));
        let mut required: Vec<_> = schema["required"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect();
        required.sort_unstable();
        assert_eq!(required, names(given));
    }
    let parameters = document["paths"]["/v1/keys"]["get"]["parameters"].as_array().unwrap();
    for parameter in parameters {
        let name = parameter["name"].as_str().unwrap();
        let value =
            parameter["schema"]["default"].as_u64().map_or_else(String::new, |of| of.to_string());
        let reply = ask(&server, &format!("/v1/keys?{name}={value}")).await;
        assert_eq!(reply.status, 200, "{name}");
    }
    assert_eq!(parameters.len(), 4);
}
