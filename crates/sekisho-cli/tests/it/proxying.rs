//! `proxy` in front of a small site, from its first line to its access log.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
};

use crate::serving::File;

/// A site that answers every request with four letters, in HTTP/1.0, until the test ends.
fn site() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let _serving = thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let _gone = (&stream)
                .write_all(b"HTTP/1.0 200 OK\r\ncontent-length: 4\r\nkeep-alive: 5\r\n\r\nsite");
        }
    });
    format!("http://{address}")
}

struct Gateway {
    child: Child,
    address: String,
}

impl Gateway {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sekisho"))
            .args(["proxy", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let announced = out.lines().map_while(Result::ok).find_map(|line| {
            line.strip_prefix("gateway on http://")?.split(';').next().map(str::to_owned)
        });
        Self { child, address: announced.unwrap() }
    }

    fn get(&self, header: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request =
            format!("GET /v1//x?y=z HTTP/1.1\r\nhost: site\r\n{header}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _over = self.child.kill();
        let _status = self.child.wait();
    }
}

#[test]
fn a_site_is_limited_by_one_command() {
    let log = std::env::temp_dir().join(format!("sekisho-log-{}", std::process::id()));
    let gateway = Gateway::start(&[
        "--to",
        &site(),
        "--limit",
        "3/h sliding-log",
        "--by",
        "header:x-api-key",
        "--log",
        log.to_str().unwrap(),
    ]);
    for left in (0..3).rev() {
        let answer = gateway.get("x-api-key: a\r\n");
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nsite"),
            "{answer}"
        );
        assert!(answer.contains(&format!("ratelimit: \"default\";r={left};t=")), "{answer}");
        assert!(!answer.contains("keep-alive"), "fields of one hop stay there: {answer}");
    }
    assert!(gateway.get("x-api-key: a\r\n").starts_with("HTTP/1.1 429 "));
    assert!(gateway.get("x-api-key: b\r\n").starts_with("HTTP/1.1 200 "));
    assert!(gateway.get("").starts_with("HTTP/1.1 200 "), "without the header the address counts");
    let id = gateway.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let mut gateway = gateway;
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
    let lines: Vec<serde_json::Value> = std::fs::read_to_string(&log)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    std::fs::remove_file(&log).unwrap();
    let outcomes: Vec<_> = lines.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["allow", "allow", "allow", "deny", "allow", "allow"]);
    let key = lines[0]["policies"][0]["key"].as_str().unwrap();
    assert!(key.starts_with("header.x-api-key=#"), "a secret is kept as a digest: {key}");
}

/// Each policy of a request says what happens while the store is down, and the log says which of them had the say.
#[test]
fn the_log_says_what_was_done_instead_of_asking_the_store() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (what, status) in [("allow", "200"), ("local", "200"), ("deny", "503")] {
        let name = format!("sekisho-{what}-{}", std::process::id());
        let log = std::env::temp_dir().join(format!("{name}.log"));
        let text = format!(
            "[store]\nurl = \"redis://{nobody}\"\n[[policy]]\nname = \"api\"\nkey = [\"ip\"]\n\
             limits = [\"9/min\"]\non_store_error = \"{what}\"\n"
        );
        let file = File::new(&name, &text);
        let to = site();
        let arguments = ["-c", file.path(), "--to", to.as_str(), "--log", log.to_str().unwrap()];
        let mut gateway = Gateway::start(&arguments);
        let answer = gateway.get("");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{what}: {answer}");
        assert_eq!(answer.contains("ratelimit:"), what == "local", "{what}: {answer}");
        let id = gateway.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(gateway.child.wait().unwrap().success());
        let lines = std::fs::read_to_string(&log).unwrap();
        std::fs::remove_file(&log).unwrap();
        assert!(lines.contains(&format!("\"on_store_error\":\"{what}\"")), "{lines}");
    }
}

#[test]
fn a_gateway_without_a_server_or_a_limit_says_so() {
    for (arguments, words) in [
        (&["--limit", "1/s"][..], "--to"),
        (&["--to", "http://127.0.0.1:1"], "--limit"),
        (&["--to", "ftp://x", "--limit", "1/s"], "`http` or `https`"),
        (&["--to", "http://127.0.0.1:1", "--limit", "1/s", "--by", "cookie:a"], "header:NAME"),
    ] {
        let (_, err, code) = crate::sekisho(&[&["proxy"], arguments].concat(), "");
        assert!(code == 2 && err.contains(words), "{arguments:?}: {code} {err}");
    }
}
