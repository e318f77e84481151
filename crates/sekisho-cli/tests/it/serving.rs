//! `serve` from its first line to SIGTERM, spoken to over a real socket.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    thread,
};

/// A server of the test's own, on a port that the system chose.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: String,
    admin: Option<String>,
    pub(crate) said: String,
}

impl Served {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::started(arguments, false, Stdio::inherit())
    }

    /// The same, and finds out where its metrics are.
    pub(crate) fn start_with_admin(arguments: &[&str]) -> Self {
        Self::started(&[arguments, &["--admin", "127.0.0.1:0"]].concat(), true, Stdio::inherit())
    }

    /// The same, with its log in a file.
    pub(crate) fn start_logged(arguments: &[&str], log: std::fs::File) -> Self {
        Self::started(&[arguments, &["--admin", "127.0.0.1:0"]].concat(), true, log.into())
    }

    fn started(arguments: &[&str], has_admin: bool, log: Stdio) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sekisho"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        let mut read_to = |begin: &str| loop {
            let mut line = String::new();
            assert!(out.read_line(&mut line).unwrap() > 0, "the server said only\n{said}");
            said.push_str(&line);
            if let Some(rest) = line.strip_prefix(begin) {
                break rest.split(';').next().unwrap_or_default().trim_end().to_owned();
            }
        };
        let address = read_to("listening on http://");
        let admin = has_admin
            .then(|| read_to("health, readiness, metrics and the fullest keys on http://"));
        Self { child, address, admin, said }
    }

    /// Asks once on a connection of its own and returns the whole answer.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    pub(crate) fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
    }

    /// Returns the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, and returns the exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Returns the metrics page.
    pub(crate) fn metrics(&self) -> String {
        let admin = self.admin.as_deref().expect("an admin listener");
        let mut stream = TcpStream::connect(admin).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Sends SIGTERM and returns the exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _over = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Served {
    pub(crate) fn status(answer: &str) -> &str {
        answer.split(' ').nth(1).unwrap_or("none")
    }
}

#[test]
fn without_a_file_the_sixty_first_in_a_minute_is_refused() {
    let server = Served::start(&[]);
    for wanted in ["60/min sliding-log", "scope: process"] {
        assert!(server.said.contains(wanted), "{wanted} is missing in\n{}", server.said);
    }
    for _ in 0..60 {
        assert_eq!(Served::status(&server.get("/auth")), "200");
    }
    let refused = server.get("/auth/anything?x=1");
    for wanted in [
        "HTTP/1.1 429 Too Many Requests\r\n",
        "\r\nratelimit-policy: \"default\";q=60;w=60\r\n",
        "\r\nratelimit: \"default\";r=0;t=",
        "\r\nretry-after: ",
        "\r\ncontent-type: application/problem+json\r\n",
        "\r\ncache-control: no-store\r\n",
        "http-problem-types#quota-exceeded\"",
        "\"violated-policies\":[\"default\"]",
    ] {
        assert!(refused.contains(wanted), "{wanted} is missing in\n{refused}");
    }
    assert_eq!(Served::status(&server.get("/healthz")), "200");
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn two_hundred_at_once_admit_exactly_what_the_limit_says() {
    let server = Served::start(&[]);
    let passed = thread::scope(|scope| {
        let ask = || (0..25).filter(|_| Served::status(&server.get("/auth")) == "200").count();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    assert_eq!(passed, 60);
}

#[test]
fn an_address_in_use_is_said_and_is_a_failure() {
    let server = Served::start(&[]);
    let (_, err, code) = crate::sekisho(&["serve", "--listen", &server.address], "");
    assert!(code == 1 && err.contains(&server.address) && err.contains("hint: "), "{code}: {err}");
}

#[test]
fn a_bad_file_never_starts_a_server() {
    let (out, err, code) = crate::sekisho(&["serve", "-c", "/nowhere/sekisho.toml"], "");
    assert!(code == 2 && out.is_empty() && err.contains("/nowhere"), "{err}");
}

/// A file that is gone when the test is.
pub(crate) struct File(std::path::PathBuf);

impl File {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sekisho-{name}-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.0);
    }
}

/// The store's address: the socket that had it is gone, so nothing listens there.
fn nowhere() -> std::net::SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn shared(store: &str) -> String {
    format!(
        "[store]\n{store}\n[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"2/h\"]\non_store_error = \"local\"\n"
    )
}

#[test]
fn a_server_starts_while_its_store_is_down_and_says_where_counts_are() {
    let at = nowhere();
    let file = File::new("down", &shared(&format!("url = \"redis://:hunter2@{at}\"")));
    let server = Served::start(&["-c", file.path()]);
    let said = &server.said;
    assert!(said.contains(&format!("scope: shared; counts are in redis://:***@{at}")), "{said}");
    assert!(said.contains("while the store is down, each server holds these limits"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    let statuses: Vec<_> =
        (0..3).map(|_| Served::status(&server.get("/auth")).to_owned()).collect();
    assert_eq!(statuses, ["200", "200", "429"]);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_file_of_the_store_that_is_not_there_is_named_with_its_field() {
    let url = "url = \"redis://127.0.0.1:1\"";
    let file = File::new("secret", &shared(&format!("{url}\npassword_file = \"/nowhere/redis\"")));
    for command in [&["serve"][..], &["proxy", "--to", "http://127.0.0.1:1"]] {
        let (out, err, code) = crate::sekisho(&[command, &["-c", file.path()]].concat(), "");
        assert_eq!((out.as_str(), code), ("", 2), "{err}");
        for words in ["`password_file` of `[store]`", "/nowhere/redis", "No such file", "hint: "] {
            assert!(err.contains(words), "{words} is missing in {err}");
        }
    }
    let file = File::new("unset", &shared("url = \"redis://:${SEKISHO_NO_SUCH_NAME}@a\""));
    let (_, err, code) = crate::sekisho(&["serve", "-c", file.path()], "");
    assert!(code == 2 && err.contains(":2:") && err.contains("`SEKISHO_NO_SUCH_NAME`"), "{err}");
}
