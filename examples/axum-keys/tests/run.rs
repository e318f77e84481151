//! Runs the example and asks it what its README asks.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
};

struct Running {
    child: Child,
    address: String,
}

impl Running {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_axum-keys"))
            .arg("127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("its output");
        let _bytes = BufReader::new(output).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("http://").expect("an address").to_owned();
        Self { child, address }
    }

    /// Sends a request and returns the whole answer.
    fn ask(&self, method: &str, path: &str, header: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let length = body.len();
        write!(stream, "{method} {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{header}content-length: {length}\r\n\r\n{body}")
            .expect("sent");
        let mut answer = String::new();
        let _bytes = stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn status(&self, method: &str, path: &str, header: &str, body: &str) -> String {
        let answer = self.ask(method, path, header, body);
        answer.split(' ').nth(1).expect("a status").to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().expect("it ends");
        let _status = self.child.wait().expect("it has ended");
    }
}

#[test]
fn each_customer_has_a_quota_of_its_own() {
    let running = Running::start();
    for (key, name) in [("key-of-alice", "alice"), ("key-of-bob", "bob")] {
        let header = format!("x-api-key: {key}\r\n");
        for left in [2, 1, 0] {
            let answer = running.ask("GET", "/v1/report", &header, "");
            assert!(answer.ends_with(&format!("a report for {name}\n")), "{answer}");
            assert!(answer.contains(&format!("\"customers\";r={left};t=")), "{answer}");
        }
        let refused = running.ask("GET", "/v1/report", &header, "");
        assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}");
        assert!(refused.contains("3 calls a minute are in your plan"), "{refused}");
    }
}

#[test]
fn only_failed_logins_and_unknown_keys_count() {
    let running = Running::start();
    let login = |password| running.status("POST", "/login", "", password);
    for _ in 0..10 {
        assert_eq!(login("open sesame"), "200");
    }
    for _ in 0..3 {
        assert_eq!(login("open barley"), "401");
    }
    for _ in 0..2 {
        assert_eq!(running.status("GET", "/v1/report", "x-api-key: a-guess\r\n", ""), "401");
    }
    assert_eq!(login("open barley"), "429");
    assert_eq!(login("open sesame"), "429", "nobody finds out which one it was");
    assert_eq!(running.status("GET", "/v1/report", "x-api-key: a-guess\r\n", ""), "429");
}
