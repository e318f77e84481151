//! `keys`, asked of servers that run, and of others.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
};

use sekisho_testkit::redis_server::RedisServer;
use serde_json::{Value, json};

use crate::{sekisho, serving::File};

const POLICIES: &str = r#"
[[policy]]
name = "api"
match = { path = "/v1/**" }
key = ["ip"]
limits = ["3/h"]

[[policy]]
name = "partners"
match = { path = "/partners/**" }
key = [{ header = "x-key" }]
on_missing_key = "deny"
limits = ["2/h sliding-log", "9/day"]
"#;

/// A server of a test's own, with all its addresses.
struct Running {
    child: Child,
    /// The check API, the gateway and the admin listener, as far as there are any.
    at: [Option<String>; 3],
}

impl Running {
    fn start(file: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sekisho"))
            .args(["serve", "-c", file, "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut at = [const { None }; 3];
        // What it says at its start ends with the admin listener.
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            let words = [
                "listening on ",
                "gateway on ",
                "health, readiness, metrics and the fullest keys on ",
            ];
            for (at, words) in at.iter_mut().zip(words) {
                let address = line.strip_prefix(words).and_then(|rest| rest.split(';').next());
                *at = at.take().or_else(|| Some(address?.trim_start_matches("http://").to_owned()));
            }
            if at[2].is_some() {
                break;
            }
        }
        Self { child, at }
    }

    fn admin(&self) -> &str {
        self.at[2].as_deref().unwrap()
    }

    fn ask(&self, place: usize, request: &str) -> String {
        send(self.at[place].as_deref().unwrap(), request)
    }

    fn get(&self, place: usize, path: &str, headers: &str) -> String {
        let rest = "connection: close\r\n\r\n";
        self.ask(place, &format!("GET {path} HTTP/1.1\r\nhost: x\r\n{headers}{rest}"))
    }

    fn check(&self, body: &str) -> String {
        let length = body.len();
        let rest = "connection: close\r\n\r\n";
        let head = format!("POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n");
        self.ask(0, &format!("{head}{rest}{body}"))
    }

    /// Runs `keys`, which succeeds, and returns what it prints.
    fn keys(&self, arguments: &[&str]) -> String {
        let (out, err, code) =
            sekisho(&[&["keys", "--admin", self.admin()], arguments].concat(), "");
        assert_eq!((err.as_str(), code), ("", 0), "{out}");
        out
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let out = self.keys(&[&["--output", "json"], arguments].concat());
        serde_json::from_str(&out).unwrap()
    }

    fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _over = self.child.kill();
        let _status = self.child.wait();
    }
}

fn send(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Answers every connection with some bytes, until the test ends.
fn says(answer: impl Into<Vec<u8>>) -> String {
    let (listener, answer) = (TcpListener::bind("127.0.0.1:0").unwrap(), answer.into());
    let address = listener.local_addr().unwrap().to_string();
    let _serving = thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let _gone = stream.write_all(&answer);
        }
    });
    address
}

fn http(status: u16, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} Said\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn numbers(answer: &Value) -> Vec<(&str, &str, u64, u64, u64, &str)> {
    let keys = answer["keys"].as_array().unwrap().iter();
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap();
    keys.map(|of| {
        let text = |name: &str| of[name].as_str().unwrap_or("-");
        let denied = number(of, "denied");
        (
            text("policy"),
            text("key"),
            number(of, "used"),
            number(of, "capacity"),
            denied,
            text("outcome"),
        )
    })
    .collect()
}

#[test]
fn what_comes_through_every_door_is_shown() {
    let site = says(http(200, "site"));
    let gateway =
        format!("[listen]\ngateway = {{ at = \"127.0.0.1:0\", to = \"http://{site}\" }}\n");
    let file = File::new("keys", &format!("{gateway}{POLICIES}"));
    let server = Running::start(file.path(), &["--admin", "127.0.0.1:0"]);
    assert!(
        server
            .keys(&[])
            .starts_with("no key uses any of what was asked for\n0 keys, as seen by one")
    );

    // Two through the gateway, one through forward-auth, and two more that are refused.
    let statuses = [(1, "/v1/x"), (1, "/v1/y"), (0, "/auth/v1/x"), (0, "/auth/v1/x"), (1, "/v1/x")]
        .map(|(place, path)| server.get(place, path, "")[9..12].to_owned());
    assert_eq!(statuses, ["200", "200", "200", "429", "429"]);
    let _answer = server.check(r#"{"limit": "10/min", "key": "a:\u001b[2J", "cost": 9}"#);
    for _ in 0..3 {
        let _answer = server.get(1, "/partners/x", "x-key: hunter2\r\n");
    }

    let answer = server.json(&[]);
    let seen = numbers(&answer);
    let partner = seen[1].1;
    assert!(partner.starts_with("header.x-key=#") && partner.len() == 14 + 32, "{partner}");
    assert_eq!(
        seen,
        [
            ("api", "ip=127.0.0.1", 3, 3, 2, "deny"),
            ("partners", partner, 2, 2, 1, "deny"),
            ("-", "=a%3A%1B[2J", 9, 10, 0, "allow"),
            ("partners", partner, 2, 9, 0, "allow"),
        ]
    );
    assert_eq!(
        (&answer["scope"], &answer["places"], &answer["held"]),
        (&json!("process"), &json!(1024), &json!(4))
    );

    let table = server.keys(&[]);
    let lines: Vec<_> =
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!(lines[0], ["used", "full", "wait", "last", "denied", "policy", "limit", "key"]);
    assert_eq!(lines[1][..3], ["3/3", "##########", "100%"]);
    assert_eq!(lines[1][5..], ["deny", "2", "api", "3/h", "token-bucket", "ip=127.0.0.1"]);
    assert_eq!(lines[3][..3], ["9/10", "#########.", "90%"]);
    assert_eq!((lines[1][4], lines[3][3]), ("min", "-"), "{table}");
    assert_eq!(lines.len(), 6, "{table}");
    assert!(
        table.ends_with(&format!("at http://{}; 4 of 1024 places are taken\n", server.admin())),
        "{table}"
    );
    assert!(!table.contains('\u{1b}') && !table.contains("hunter2"), "{table}");

    for (arguments, rows) in [
        (&["--top", "1"][..], &seen[..1]),
        (&["--policy", "partners", "--min-used-percent", "100"], &seen[1..2]),
        (&["--policy", ""], &seen[2..3]),
        (&["--limit", "9/day token-bucket"], &seen[3..]),
        (&["--limit", "86400s-token-bucket", "--policy", "partners"], &seen[3..]),
        (&["--limit", "1/h&top=1#"], &[]),
    ] {
        assert_eq!(numbers(&server.json(arguments)), rows, "{arguments:?}");
    }
    let (_, err, code) = sekisho(&["keys", "--admin", server.admin(), "--policy", "no&body"], "");
    assert!(code == 2 && err.contains("policy: there is no policy of that name"), "{code}: {err}");
}

#[test]
fn the_policy_file_says_where_to_ask() {
    let socket = std::env::temp_dir().join(format!("sekisho-keys-{}.sock", std::process::id()));
    let listen = format!("[listen]\nadmin = \"unix:{}\"\n", socket.display());
    let file = File::new("keys-unix", &format!("{listen}{POLICIES}"));
    let server = Running::start(file.path(), &[]);
    let _answer = server.get(0, "/auth/v1/x", "");
    let (out, err, code) = sekisho(&["keys", "-c", file.path(), "--output", "json"], "");
    assert_eq!((err.as_str(), code), ("", 0));
    let answer = serde_json::from_str(&out).unwrap();
    assert_eq!(numbers(&answer), [("api", "ip=127.0.0.1", 1, 3, 0, "allow")]);
    drop(server);
    let (_, err, code) = sekisho(&["keys", "-c", file.path()], "");
    assert!(
        code == 1 && err.contains("nothing answers at unix:") && err.contains("hint: "),
        "{err}"
    );
    let _gone = std::fs::remove_file(socket);

    for (listen, words) in [
        ("", "there is no `admin` under `[listen]`"),
        ("[listen]\nadmin = \"127.0.0.1:0\"\n", "`[listen] admin` lets the system choose the port"),
    ] {
        let file = File::new("keys-nowhere", &format!("{listen}{POLICIES}"));
        let (out, err, code) = sekisho(&["keys", "-c", file.path()], "");
        assert!(
            out.is_empty() && code == 2 && err.contains(words) && err.contains("hint: "),
            "{err}"
        );
    }
    let (_, err, code) = sekisho(&["keys", "-c", "/nowhere/sekisho.toml"], "");
    assert!(code == 2 && err.contains("/nowhere"), "{err}");
}

#[test]
fn a_hundred_thousand_made_up_keys_change_nothing_for_the_exhausted_ones() {
    // A small store, so that what grows is not that.
    let store = "[store]\nmax_entries = 4000\noverflow = \"allow\"\n";
    let file = File::new("keys-flood", &format!("{store}{POLICIES}"));
    let server = Running::start(file.path(), &["--admin", "127.0.0.1:0"]);
    for key in 0..20 {
        let check = json!({"limit": "4/h", "key": format!("real-{key}")});
        let _answer = server.check(&json!([check, check, check, check, check]).to_string());
    }
    let _answer = server.json(&["--top", "1000"]);
    let before = server.resident_bytes();
    for thousand in 0..100 {
        let checks: Vec<_> = (0..1_000)
            .map(|key| json!({"limit": "4/h", "key": format!("made-up-{thousand}-{key}")}))
            .collect();
        assert_eq!(&server.check(&json!(checks).to_string())[9..12], "200");
    }
    let answer = server.json(&["--min-used-percent", "100", "--top", "1000"]);
    let grown = server.resident_bytes().saturating_sub(before);
    let seen = numbers(&answer);
    assert_eq!(seen.len(), 20);
    for (_, key, used, capacity, denied, outcome) in seen {
        assert!(key.starts_with("=real-"), "{key}");
        assert_eq!((used, capacity, denied, outcome), (4, 4, 1, "deny"));
    }
    assert_eq!((&answer["held"], &answer["crowded_out"]), (&json!(1024), &json!(0)));
    // A body of a thousand checks is the most of it; a kilobyte for each key would be twice as much.
    assert!(grown < 48 * 1024 * 1024, "{grown} bytes more");
}

#[test]
fn each_server_of_a_shared_store_shows_what_it_has_seen() {
    let redis = RedisServer::start();
    let text = format!("[store]\nurl = \"{}\"\ntimeout = \"5s\"\n{POLICIES}", redis.url());
    let file = File::new("keys-shared", &text);
    let servers = [(); 2].map(|()| Running::start(file.path(), &["--admin", "127.0.0.1:0"]));
    for _ in 0..2 {
        assert_eq!(&servers[0].get(0, "/auth/v1/x", "")[9..12], "200");
    }
    let seen = |server: &Running| {
        let answer = server.json(&[]);
        numbers(&answer).iter().map(|of| (of.1.to_owned(), of.2, of.4)).collect::<Vec<_>>()
    };
    let key = || "ip=127.0.0.1".to_owned();
    assert_eq!([seen(&servers[0]), seen(&servers[1])], [vec![(key(), 2, 0)], vec![]]);
    for status in ["200", "429", "429"] {
        assert_eq!(&servers[1].get(0, "/auth/v1/x", "")[9..12], status);
    }
    // The numbers are the store's, of the last request that came here.
    assert_eq!([seen(&servers[0]), seen(&servers[1])], [vec![(key(), 2, 0)], vec![(key(), 3, 2)]]);
    for server in &servers {
        assert_eq!(server.json(&[])["scope"], "process");
    }
}

#[test]
fn who_is_no_sekisho_is_said_to_be_none() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let file = File::new("keys-door", POLICIES);
    let server = Running::start(file.path(), &["--admin", "127.0.0.1:0"]);
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(5 * 1024 * 1024));
    let evil = "\u{1b}]0;owned\u{7}\u{9b}2J";
    let problem = json!({"detail": evil}).to_string();
    for (admin, words) in [
        (free, "nothing answers at http://127.0.0.1:"),
        (server.at[0].clone().unwrap(), "has no `/v1/keys`"),
        (says("SSH-2.0-OpenSSH_9.2\r\n"), "is not HTTP, or is cut"),
        (says(""), "is not HTTP, or is cut"),
        (says("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"), "is not HTTP, or is cut"),
        (says(endless), "is not HTTP, or is cut"),
        (says(http(200, "hello")), "is not what a Sekisho says"),
        (says(http(200, r#"{"keys": []}"#)), "is not what a Sekisho says"),
        (says(http(503, evil)), "answers 503: ?]0;owned??2J"),
        (says(http(500, &problem)), "answers 500: ?]0;owned??2J"),
        (says(http(302, "")), "answers 302: "),
    ] {
        let (out, err, code) = sekisho(&["keys", "--admin", &admin], "");
        assert!(out.is_empty() && code == 1 && err.contains(words), "{code}: {err}");
        assert!(err.contains(&admin) && !err.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{err}");
        assert!(words.starts_with("answers") || err.contains("\nhint: "), "{err}");
    }
}

#[test]
fn a_server_that_says_nothing_is_waited_for_five_seconds() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let admin = silent.local_addr().unwrap().to_string();
    let (out, err, code) = sekisho(&["keys", "--admin", &admin], "");
    assert!(out.is_empty() && code == 1 && err.contains("does not answer within 5 s"), "{err}");
}

#[test]
fn no_answer_has_the_terminal_do_anything() {
    let evil = "ip=\u{7f}\u{9b}2J\u{1b}[31mé";
    let key = json!({
        "policy": evil, "id": evil, "limit": evil, "key": evil, "used": 1, "capacity": 1, "remaining": 0,
        "used_percent": 255, "outcome": evil, "denied": 1, "seen": evil, "next_after_ns": u64::MAX, "fresh_after_ns": 1,
    });
    let body = json!({
        "scope": evil, "at": evil, "places": 1, "held": 1, "crowded_out": 1, "keys": [key], "new": [evil]
    });
    let admin = says(http(200, &body.to_string()));
    for output in ["text", "json"] {
        let (out, err, code) = sekisho(&["keys", "--admin", &admin, "--output", output], "");
        assert_eq!((err.as_str(), code), ("", 0));
        assert!(out.chars().all(|of| of == '\n' || of == ' ' || of.is_ascii_graphic()), "{out:?}");
        if output == "json" {
            assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), body);
        }
    }
}

#[test]
fn arguments_that_are_wrong_say_what_is_right() {
    for (arguments, words) in [
        (&["--admin", "https://127.0.0.1:9090"][..], "plain HTTP"),
        (&["--admin", "127.0.0.1"], "an admin address is like"),
        (&["--admin", "http://127.0.0.1:0"], "an admin address is like"),
        (&["--admin", "http://user:word@127.0.0.1:9090"], "an admin address is like"),
        (&["--admin", "http://127.0.0.1:9090/metrics"], "an admin address is like"),
        (&["--admin", "unix:relative"], "an admin address is like"),
        (&["--admin", ""], "an admin address is like"),
        (&["--admin", "a:1", "-c", "x.toml"], "cannot be used with"),
        (&["--top", "0"], "1..=1000"),
        (&["--top", "1001"], "1..=1000"),
        (&["--min-used-percent", "101"], "0..=100"),
    ] {
        let (out, err, code) = sekisho(&[&["keys"], arguments].concat(), "");
        assert!(out.is_empty() && code == 2 && err.contains(words), "{arguments:?}: {code}: {err}");
    }
}
