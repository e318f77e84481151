//! `simulate --limit … --trace … --store`: a trace on a real server, which keeps nothing of it.

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    thread,
};

use sekisho_testkit::redis_server::RedisServer;

use crate::sekisho;

/// Asks the server one thing whose answer is a single line.
pub(crate) fn ask(server: &RedisServer, command: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.write_all(format!("{command}\r\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

pub(crate) fn is_empty(server: &RedisServer) -> bool {
    ask(server, "DBSIZE") == ":0"
}

/// Waits until the server holds something.
pub(crate) fn await_keys(server: &RedisServer) {
    while is_empty(server) {
        thread::yield_now();
    }
}

/// Starts the program and leaves its input open.
pub(crate) fn start(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_sekisho"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub(crate) fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}

pub(crate) fn ended(child: Child) -> (String, String, Option<i32>) {
    let output = child.wait_with_output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (out, err, output.status.code())
}

/// A trace with everything in it: several requests at once, of the same key and of others, late stamps, looks, costs that
/// never fit, long keys, and pauses of a microsecond and of days.
fn mixed() -> String {
    let mut trace = String::from("# mixed\n\n");
    let long = "long".repeat(90);
    let (mut now, mut chance) = (1_799_999_990_000_000_u64, 7_u64);
    for _ in 0..400 {
        let mut below = |most: u64| {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (chance >> 33) % most
        };
        now += [0, 0, 0, 1, 700, 250_000, 9_000_000, 40_000_000_000]
            [usize::try_from(below(8)).unwrap()];
        let at = if below(12) == 0 { now - below(90_000_000) } else { now };
        let key = ["", "a", "b{c}", "日本", &long][usize::try_from(below(5)).unwrap()];
        let cost = [1, 1, 1, 2, 3, 0, 40][usize::try_from(below(7)).unwrap()];
        let (whole, places) = (at / 1_000_000, at % 1_000_000);
        writeln!(trace, "{whole}.{places:06},{key},{cost}").unwrap();
    }
    trace
}

#[test]
fn a_trace_on_a_server_is_the_trace_in_memory_line_by_line() {
    let server = RedisServer::start();
    let url = server.url();
    let trace = mixed();
    for limits in [
        &["7/min fixed-window"][..],
        &["7/min anchored-window"],
        &["7/min sliding-log"],
        &["7/min sliding-window"],
        &["7/min burst 9 token-bucket"],
        &["7/min burst 4 leaky-queue"],
        &["11/calendar-day zone Asia/Tokyo"],
        &["unlimited"],
        &["block"],
        &["7/min", "20/h sliding-log", "9/min sliding-window", "12/h anchored-window"],
        &["7/min burst 9 leaky-queue + 8/min", "9/min fixed-window + 5/calendar-month"],
        &["7/min", "7/min", "unlimited"],
    ] {
        let limits = limits.iter().flat_map(|limit| ["--limit", limit]);
        let memory: Vec<&str> = ["simulate", "--trace", "-"].into_iter().chain(limits).collect();
        let shared = [&memory[..], &["--store", &url, "--output", "jsonl"]].concat();
        let (wanted, _, _) = sekisho(&memory, &trace);
        let (found, err, code) = sekisho(&shared, &trace);
        assert_eq!((err.as_str(), code), ("", 0), "{memory:?}");
        assert_eq!(wanted.lines().count(), 400);
        for (number, (wanted, found)) in wanted.lines().zip(found.lines()).enumerate() {
            assert_eq!(found, wanted, "{memory:?}, answer {number}");
        }
        assert_eq!(found.len(), wanted.len(), "{memory:?}");
        assert!(is_empty(&server), "{memory:?} left keys");
    }
}

#[test]
fn what_is_wrong_with_a_trace_is_named_and_leaves_nothing() {
    let server = RedisServer::start();
    let url = server.url();
    for (limit, trace, words, answers) in [
        (
            "1/s",
            "1\n# two\n2.0000005\n3\n",
            "-: line 3: times on this store are whole microseconds",
            1,
        ),
        ("1/s", "1,a\n1,b\n1,c\nx\n", "-: line 4: the seconds are a decimal", 3),
        ("1/s", "1\n9007199255\n", "-: line 2: this store has no time so far ahead", 1),
        ("1/500ns", "1\n", "this store has no period between two microseconds", 0),
        ("1/500ns", "", "this store has no period between two microseconds", 0),
    ] {
        let arguments = ["simulate", "--limit", limit, "--trace", "-", "--store", &url];
        let (out, err, code) = sekisho(&arguments, trace);
        assert!(err.contains(words) && !err.contains("panicked"), "{limit} {trace}: {err}");
        assert_eq!((out.lines().count(), code), (answers, 2), "{limit} {trace}");
        assert!(is_empty(&server), "{limit} {trace}");
    }
    let nowhere = ["simulate", "--limit", "1/s", "--trace", "/nowhere/t.csv", "--store", &url];
    let (_, err, code) = sekisho(&nowhere, "");
    assert!(err.contains("/nowhere/t.csv: ") && code == 2, "{code}: {err}");
    let file = std::env::temp_dir().join(format!("sekisho-storing-{}", std::process::id()));
    let out = file.display().to_string();
    let arguments = ["simulate", "--limit", "1/s", "--trace", "-", "--store", &url, "--out", &out];
    let (shown, _, code) = sekisho(&arguments, "0\n0\n");
    assert_eq!((shown.as_str(), code), ("", 0));
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 2);
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn a_run_that_is_interrupted_takes_its_keys_with_it() {
    let server = RedisServer::start();
    let url = server.url();
    let mut child = start(&["simulate", "--limit", "9/s", "--trace", "-", "--store", &url]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"5,a\n5,b\n6,a\n").unwrap();
    await_keys(&server);
    let left = "EVAL \"return redis.call('pttl',redis.call('keys','simulate-*')[1])\" 0";
    let left: u64 = ask(&server, left).trim_start_matches(':').parse().unwrap();
    assert!((590_000..3_600_000).contains(&left), "a second's limit is kept for {left} ms");
    interrupt(&child);
    let (_, err, code) = ended(child);
    assert!(err.contains("stopped before the end") && code == Some(1), "{code:?}: {err}");
    assert!(is_empty(&server));
    drop(input);
}

#[test]
fn a_reader_that_has_seen_enough_leaves_nothing_either() {
    let server = RedisServer::start();
    let url = server.url();
    let mut child = start(&["simulate", "--limit", "9/s", "--trace", "-", "--store", &url]);
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    let feeder = thread::spawn(move || {
        // Ends early, with nobody who reads it.
        let _unread = input.write_all("5,a\n".repeat(3_000).as_bytes());
    });
    let (_, err, code) = ended(child);
    feeder.join().unwrap();
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(is_empty(&server));
}

#[test]
fn a_server_that_goes_away_is_an_error_with_its_line() {
    let mut server = RedisServer::start();
    let url = server.url();
    let mut child = start(&["simulate", "--limit", "9/s", "--trace", "-", "--store", &url]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"5,a\n6,a\n").unwrap();
    await_keys(&server);
    server.stop();
    input.write_all(b"7,a\n8,a\n").unwrap();
    drop(input);
    let (out, err, code) = ended(child);
    let port = server.port();
    assert!(
        err.contains(&format!("127.0.0.1:{port}: line ")) && code == Some(1),
        "{code:?}: {err}"
    );
    assert!(err.contains("are left, until they expire") && !err.contains("panicked"), "{err}");
    assert!(out.lines().count() < 4, "{out}");
}
