//! `simulate race`: processes of this program on a real server, and what is said when there is none.

use std::io::{Read, Write};

use sekisho_testkit::redis_server::RedisServer;
use serde_json::Value;

use crate::{
    sekisho,
    storing::{ask, await_keys, ended, interrupt, is_empty, start},
};

#[test]
fn eight_processes_let_exactly_a_hundred_pass() {
    let server = RedisServer::start();
    let url = server.url();
    let arguments = ["simulate", "race", "--trials", "3", "--store", &url, "--output", "json"];
    let (out, err, code) = sekisho(&arguments, "");
    assert_eq!((err.as_str(), code), ("", 0), "{out}");
    assert!(is_empty(&server));
    let race: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(race["experiment"], "race");
    let rows = race["rows"].as_array().unwrap();
    let methods: Vec<_> = rows.iter().map(|row| row["method"].as_str().unwrap()).collect();
    let ours = [
        "fixed-window",
        "anchored-window",
        "sliding-log",
        "sliding-window",
        "token-bucket",
        "leaky-queue",
    ];
    assert_eq!(methods, [&ours[..], &ours, &["check-then-incr"; 2]].concat());
    for row in rows {
        let figure = |name: &str| row[name].as_u64().unwrap_or_else(|| panic!("{name}: {row}"));
        assert_eq!(figure("trials"), 3);
        assert!(figure("ping_median_ns") > 0 && figure("decisions_per_second") > 0, "{row}");
        if row["method"] == "check-then-incr" {
            // How many is chance, though it is never more than one for each other process.
            assert!(
                (100..=107).contains(&figure("passed_max")) && row["pause_ns"].is_u64(),
                "{row}"
            );
        } else {
            assert_eq!((figure("passed_min"), figure("passed_max")), (100, 100), "{row}");
            assert_eq!(figure("trials_over"), 0);
            // One by one, what passes is a call of its own; at once, each process needs one at least.
            let least = if figure("at_once") == 1 { 300 } else { 24 };
            assert!((least..=1_200).contains(&figure("server_calls")), "{row}");
        }
    }
}

#[test]
fn a_race_has_the_forms_of_any_experiment_and_is_part_of_all() {
    let server = RedisServer::start();
    let url = server.url();
    let race = |form: &str| {
        let arguments = ["simulate", "race", "--trials", "1", "--store", &url, "--output", form];
        let (out, err, code) = sekisho(&arguments, "");
        assert_eq!((err.as_str(), code), ("", 0), "{form}: {out}");
        out
    };
    let table = race("table");
    assert!(
        table.contains("PING median") && table.contains("check-then-incr, 1ms between"),
        "{table}"
    );
    let lines = race("jsonl");
    assert!(
        lines.starts_with(r#"{"experiment":"race","limit":"100/h fixed-window","method":"fixed-window","trials":1,"passed_min":100,"#),
        "{lines}"
    );
    assert!(race("csv").starts_with("experiment,limit,method,trials,passed_min,passed_max,"));
    assert!(race("html").contains("in real time, on a real server"));
    let arguments = ["simulate", "--all", "--trials", "1", "--store", &url, "--output", "json"];
    let (out, _, code) = sekisho(&arguments, "");
    let all: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (all[7]["experiment"].as_str(), all.as_array().unwrap().len(), code),
        (Some("race"), 8, 0)
    );
    assert!(is_empty(&server));
}

#[test]
fn a_process_of_a_race_that_nobody_wants_ends() {
    let (out, err, code) = sekisho(&["simulate", "--racer"], "");
    assert_eq!((out.as_str(), err.as_str(), code), ("", "", 0));
    let mut child = start(&["simulate", "--racer"]);
    child.stdin.take().unwrap().write_all(b"junk\n").unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), said.contains("panicked")),
        (Some(2), false),
        "{said}"
    );
}

/// Checks that nothing is done, what is said, and the exit code.
fn refused(arguments: &[&str], (words, wanted): (&str, i32)) {
    let (out, err, code) = sekisho(arguments, "0\n");
    assert!(err.contains(words) && !err.contains("panicked"), "{arguments:?}: {err}");
    assert!(out.is_empty() && code == wanted, "{arguments:?}: {code} {err}");
}

#[test]
fn a_store_that_cannot_be_used_says_what_to_do() {
    for (arguments, words, wanted) in [
        (&["simulate", "race"][..], "add `--store redis://127.0.0.1:6379`", 2),
        (&["simulate", "race", "--output", "json"], "needs a Redis or Valkey server", 2),
        (&["simulate", "race", "--trials", "3"], "--store", 2),
        (&["simulate", "race", "--trials", "0", "--store", "redis://h"], "0 is not in 1..=1000", 2),
        (
            &["simulate", "race", "--store", "redis://127.0.0.1:1"],
            "127.0.0.1:1: Connection refused",
            1,
        ),
        (
            &[
                "simulate",
                "race",
                "--store",
                "redis://127.0.0.1:1",
                "--output",
                "svg",
                "--out",
                "x",
            ],
            "no pictures",
            2,
        ),
        (
            &["simulate", "--limit", "1/s", "--trace", "-", "--store", "redis://127.0.0.1:1"],
            "hint: is a Redis",
            1,
        ),
        (
            &["simulate", "race", "--store", "redis-cluster://127.0.0.1:1"],
            "this needs one server, without TLS",
            2,
        ),
        (
            &["simulate", "race", "--store", "rediss://127.0.0.1:1"],
            "this needs one server, without TLS",
            2,
        ),
    ] {
        refused(arguments, (words, wanted));
    }
}

#[test]
fn a_store_where_none_is_used_is_refused() {
    for (arguments, words) in [
        (&["simulate", "boundary", "--store", "redis://h"][..], "this is run in memory"),
        (&["simulate", "--store", "redis://h"], "this is run in memory"),
        (
            &[
                "simulate",
                "--limit",
                "1/s",
                "--trace",
                "-",
                "--output",
                "csv",
                "--store",
                "redis://h",
            ],
            "in memory",
        ),
        (
            &[
                "simulate",
                "--limit",
                "1/s",
                "--arrivals",
                "even 1/s for 1s",
                "--store",
                "redis://h",
            ],
            "cannot be used",
        ),
        (&["simulate", "--scenario", "x", "--store", "redis://h"], "cannot be used"),
        (&["simulate", "--racer", "--all"], "cannot be used"),
    ] {
        refused(arguments, (words, 2));
    }
}

#[test]
fn a_password_is_used_and_never_shown() {
    let server = RedisServer::start();
    let port = server.port();
    assert_eq!(ask(&server, "CONFIG SET requirepass s3cret"), "+OK");
    let trace =
        |url: &str| sekisho(&["simulate", "--limit", "1/s", "--trace", "-", "--store", url], "0\n");
    let race = |url: &str| sekisho(&["simulate", "race", "--trials", "1", "--store", url], "");
    let good = format!("redis://:s3cret@127.0.0.1:{port}");
    assert_eq!((trace(&good).2, race(&good).2), (0, 0));
    for (url, wanted) in [
        (format!("redis://:s3cr3t@127.0.0.1:{port}"), 1),
        ("redis://:s3cr3t@127.0.0.1:1".to_owned(), 1),
        ("http://:s3cr3t@127.0.0.1".to_owned(), 2),
        ("redis://:s3cr3t@127.0.0.1:99999".to_owned(), 2),
        ("s3cr3t".to_owned(), 2),
    ] {
        for (out, err, code) in [trace(&url), race(&url)] {
            assert!(!err.contains("s3cr3t") && !err.contains("panicked"), "{url}: {err}");
            assert!(out.is_empty() && code == wanted, "{url}: {code} {err}");
        }
    }
    for arguments in [
        &["simulate", "boundary", "--store", &good][..],
        &["simulate", "--all", "x", "--store", &good],
    ] {
        let (_, err, code) = sekisho(arguments, "");
        assert!(!err.contains("s3cret") && code == 2, "{err}");
    }
}

#[test]
fn a_race_that_is_interrupted_takes_its_keys_with_it() {
    let server = RedisServer::start();
    let url = server.url();
    let child = start(&["simulate", "race", "--trials", "1000", "--store", &url]);
    await_keys(&server);
    interrupt(&child);
    let (out, err, code) = ended(child);
    assert!(err.contains("stopped before the end") && out.is_empty() && code == Some(1), "{err}");
    assert!(is_empty(&server));
}

#[test]
fn it_is_listed_with_what_it_needs() {
    let (out, _, _) = sekisho(&["simulate"], "");
    assert!(out.contains("\n  race ") && out.contains("--store redis://"), "{out}");
    assert!(sekisho(&["simulate", "x"], "").1.contains("herd and race"));
    let (help, _, _) = sekisho(&["simulate", "--help"], "");
    assert!(help.contains("--trials <N>") && !help.contains("racer"), "{help}");
}
