//! `simulate` beyond the trace interface: named experiments in every form, experiments of one's own, and what is wrong with them;
//! and the patterns of `bound`.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::sekisho;

/// A directory of a test's own, which goes with it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sekisho-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn alone_it_lists_the_named_experiments() {
    let (out, err, code) = sekisho(&["simulate"], "");
    for name in ["boundary", "steady", "estimate", "equivalence", "burst", "split", "herd"] {
        assert!(out.contains(&format!("\n  {name} ")), "{name}: {out}");
    }
    assert_eq!((err.as_str(), code), ("", 0));
}

#[test]
fn boundary_in_every_form_of_text() {
    let (out, _, code) = sekisho(&["simulate", "boundary"], "");
    assert!(
        out.starts_with("boundary: The end of a window\n\nCan a client get twice its limit"),
        "{out}"
    );
    let row = out.lines().find(|line| line.contains("fixed-window")).unwrap();
    let cells: Vec<_> = row.split_ascii_whitespace().collect();
    assert_eq!(cells[2..], ["120", "0", "120", "-", "120", "passed,", "the", "same"]);
    assert!(!out.contains('█') && code == 0, "no charts unless asked for: {out}");
    let (charts, _, _) = sekisho(&["simulate", "boundary", "--charts"], "");
    assert!(
        charts.starts_with(&out) && charts.contains("Requests that pass, second by second"),
        "{charts}"
    );
    assert!(!charts.contains('\u{1b}'), "no colour where there is no terminal");

    let (json, _, _) = sekisho(&["simulate", "boundary", "--output", "json"], "");
    assert_eq!(
        json,
        concat!(
            r#"{"experiment":"boundary","rows":["#,
            r#"{"limit":"60/min fixed-window","passed":120,"denied":0,"most_in_window":120,"longest_wait_ns":0,"published":120},"#,
            r#"{"limit":"60/min sliding-log","passed":60,"denied":60,"most_in_window":60,"longest_wait_ns":0,"published":60},"#,
            r#"{"limit":"60/min sliding-window","passed":60,"denied":60,"most_in_window":60,"longest_wait_ns":0,"published":60},"#,
            r#"{"limit":"60/min token-bucket","passed":61,"denied":59,"most_in_window":61,"longest_wait_ns":0,"published":61},"#,
            r#"{"limit":"60/min burst 10 token-bucket","passed":11,"denied":109,"most_in_window":11,"longest_wait_ns":0,"published":11}"#,
            "]}\n"
        )
    );
    let (lines, _, _) = sekisho(&["simulate", "boundary", "--output", "jsonl"], "");
    assert_eq!(lines.lines().count(), 5);
    assert!(
        lines
            .starts_with(r#"{"experiment":"boundary","limit":"60/min fixed-window","passed":120,"#),
        "{lines}"
    );
    let (csv, _, _) = sekisho(&["simulate", "boundary", "--output", "csv"], "");
    let lines: Vec<_> = csv.lines().take(2).collect();
    assert_eq!(
        lines,
        [
            "experiment,limit,passed,denied,most_in_window,longest_wait_ns,published",
            "boundary,60/min fixed-window,120,0,120,0,120"
        ]
    );
}

#[test]
fn all_of_them_are_an_array_and_meet_the_published_figures() {
    let (json, _, code) = sekisho(&["simulate", "--all", "--output", "json"], "");
    let all: Value = serde_json::from_str(&json).unwrap();
    let names: Vec<_> =
        all.as_array().unwrap().iter().map(|it| it["experiment"].as_str().unwrap()).collect();
    assert_eq!(names, ["boundary", "steady", "estimate", "equivalence", "burst", "split", "herd"]);
    let most: Vec<_> = all[1]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["most_in_window"].as_u64().unwrap())
        .collect();
    assert_eq!((most.as_slice(), code), (&[100, 60, 86, 69, 119, 70][..], 0));
    assert_eq!(all[5]["rows"][1]["denied"], 18);
    let (table, _, _) = sekisho(&["simulate", "--all"], "");
    assert!(table.contains(", the same") && !table.contains("DIFFERS"), "{table}");
}

#[test]
fn pictures_and_pages_are_files() {
    let directory = Directory::new("pictures");
    let (out, err, code) = sekisho(&["simulate", "boundary", "--output", "svg"], "");
    assert_eq!((out.as_str(), code), ("", 2));
    assert!(err.contains("needs a directory") && err.contains("--out DIR"), "{err}");
    let pictures = directory.0.join("deep/pictures");
    let (out, _, code) = sekisho(
        &["simulate", "steady", "--output", "svg", "--out", pictures.to_str().unwrap()],
        "",
    );
    assert_eq!((out.lines().count(), code), (3, 0));
    for path in out.lines() {
        assert!(fs::read_to_string(path).unwrap().contains("</svg>"), "{path}");
    }
    assert!(out.contains("steady-tokens.svg"), "{out}");
    let page = directory.0.join("page.html");
    let (out, _, _) =
        sekisho(&["simulate", "--all", "--output", "html", "--out", page.to_str().unwrap()], "");
    assert_eq!(out, "");
    let page = fs::read_to_string(page).unwrap();
    for words in [
        "Think of a doorkeeper",
        "There is a bowl",
        "Sliding log",
        "18 denied, the same",
        "</html>",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("http://") || !page.contains("<script"), "it needs nothing else");
    let (one, _, _) = sekisho(&["simulate", "split", "--output", "html"], "");
    assert!(one.starts_with("<!doctype html>") && !one.contains("doorkeeper"), "{one}");
    let nowhere = directory.0.join("page.html/below");
    let (_, err, code) =
        sekisho(&["simulate", "split", "--output", "html", "--out", nowhere.to_str().unwrap()], "");
    assert!(err.contains("page.html/below") && code == 1, "{code} {err}");
}

#[test]
fn what_cannot_be_run_says_what_can() {
    for (arguments, words) in [
        (&["simulate", "bondary"][..], "they are boundary, steady"),
        (&["simulate", "60/min"], "a limit is given with `--limit`"),
        (&["simulate", "--output", "json"], "`sekisho simulate --all` runs them all"),
        (&["simulate", "--limit", "60/min"], "--arrivals"),
        (&["simulate", "--arrivals", "even 1/s for 1s"], "--limit"),
        (&["simulate", "--keys", "3"], "--limit"),
        (&["simulate", "boundary", "--all"], "cannot be used with"),
        (&["simulate", "--scenario", "x", "--limit", "1/s", "--trace", "y"], "cannot be used with"),
        (&["simulate", "--scenario", "/nowhere/at.toml"], "/nowhere/at.toml"),
        (&["simulate", "boundary", "--arrivals", "junk"], "cannot be used with"),
        (&["simulate", "--all", "--trace", "x"], "cannot be used with"),
        (&["simulate", "--scenario", "x", "--keys", "9"], "cannot be used with"),
        (&["simulate", "burst", "--output", "svg", "--out", "target/none"], "has no pictures"),
        (&["simulate", "--limit", "1/s", "--trace", "/dev/zero"], "line 1: the line has more than"),
    ] {
        let (out, err, code) = sekisho(arguments, "");
        assert!(err.contains(words) && code == 2 && out.is_empty(), "{arguments:?}: {code} {err}");
    }
}

#[test]
fn an_experiment_of_ones_own_from_flags() {
    let arguments = [
        "simulate",
        "--limit",
        "60/min",
        "--limit",
        "10/s + 60/min sliding-log",
        "--arrivals",
        "bursts 50 every 30s for 3min",
        "--output",
        "jsonl",
    ];
    let (out, err, code) = sekisho(&arguments, "");
    assert_eq!(
        out,
        concat!(
            r#"{"experiment":"scenario","limit":"60/min token-bucket","passed":210,"#,
            r#""denied":90,"most_in_window":90,"longest_wait_ns":0,"published":null}"#,
            "\n",
            r#"{"experiment":"scenario","limit":"10/s token-bucket + 60/min sliding-log","passed":60,"#,
            r#""denied":240,"most_in_window":20,"longest_wait_ns":0,"published":null}"#,
            "\n"
        )
    );
    assert_eq!((err.as_str(), code), ("", 0));
    let arguments = [
        "simulate",
        "--limit",
        "60/min",
        "--arrivals",
        "even 1/s for 1s",
        "--keys",
        "-5",
        "--zipf",
        "9",
        "--jitter",
        "3s",
        "--servers",
        "0",
        "--ahead",
        "0,-x",
    ];
    let (_, err, code) = sekisho(&arguments, "");
    for words in [
        "has 5 errors",
        "`--keys`: a whole number from 1 to 1000000, not -5",
        "`--zipf`: a number from 0 to 4",
        "`--jitter`: has no use",
        "`--servers`: a whole number from 1 to 64, not 0",
        "`--ahead`: ",
    ] {
        assert!(err.contains(words) && code == 2, "{words}: {err}");
    }
}

#[test]
fn a_trace_can_be_measured_instead_of_answered() {
    let trace = "0\n1\n2,a\n";
    let arguments =
        ["simulate", "--limit", "1/min", "--limit", "2/min", "--trace", "-", "--output", "json"];
    let (out, _, _) = sekisho(&arguments, trace);
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        out["rows"].as_array().unwrap().len(),
        1,
        "a trace alone is decided by all limits together"
    );
    assert_eq!((&out["rows"][0]["passed"], &out["rows"][0]["denied"]), (&2.into(), &1.into()));
    let (out, _, _) = sekisho(&[&arguments[..], &["--window", "1s"]].concat(), trace);
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(out["rows"].as_array().unwrap().len(), 2, "an experiment compares");
    let (_, err, code) = sekisho(&arguments, "0\n1,a,x\n");
    assert!(
        err.contains("-: line 2: the cost is") && err.contains("hint: a trace line") && code == 2,
        "{err}"
    );
}

const SALE: &str = r#"
name     = "sale"
limits   = ["100/min fixed-window", "100/min burst 20"]
arrivals = ["poisson 1/s for 5min", "ramp 1/s to 20/s for 1min from 1min"]
trace    = "more.csv"
keys     = 50
zipf     = 1.1
seed     = 7
[servers]
shares   = [70, 30]
counting = "split"
ahead    = ["0", "-200ms"]
[clients]
retry    = "obey"
jitter   = "10s"
tries    = 5
"#;

#[test]
fn a_scenario_file_gives_the_same_bytes_each_time() {
    let directory = Directory::new("scenario");
    let path = directory.file("sale.toml", SALE.as_bytes());
    directory.file("more.csv", b"# three more\n10,k1\n20,someone,2\n30\n");
    let run = |form: &str| sekisho(&["simulate", "--scenario", &path, "--output", form], "");
    let (out, err, code) = run("json");
    assert_eq!((err.as_str(), code), ("", 0));
    // The figures are those of any machine: chance is drawn in whole numbers.
    assert!(
        out.starts_with(
            r#"{"experiment":"sale","rows":[{"limit":"100/min fixed-window","passed":963,"#
        ),
        "{out}"
    );
    for form in ["json", "table", "csv", "html"] {
        assert_eq!(run(form), run(form));
    }
    let other = directory.file("other.toml", SALE.replace("seed     = 7", "seed = 8").as_bytes());
    assert_ne!(sekisho(&["simulate", "--scenario", &other, "--output", "json"], "").0, out);
    let (out, _, _) = run("table");
    assert!(out.contains("with clocks that are ahead by 0ns, -200ms"), "{out}");
    assert!(out.contains("most arrivals in a second"), "{out}");
}

/// A scenario that something is added to.
const BASE: &str = "limits = [\"1/s\"]\narrivals = [\"even 1/s for 1s\"]\n";

/// Checks that a scenario is refused with these words, and with exit code two.
fn refused(directory: &Directory, text: &str, words: &str) {
    let path = directory.file("s.toml", text.as_bytes());
    let (out, err, code) = sekisho(&["simulate", "--scenario", &path], "");
    assert!(err.contains(words) && code == 2 && out.is_empty(), "{text}\n{words}\n{code}: {err}");
}

#[test]
fn malformed_scenarios_are_named_with_line_and_field() {
    let directory = Directory::new("malformed");
    let base = BASE;
    for (text, words) in [
        ("", ".toml: `limits`: there is none"),
        ("", ".toml: `arrivals`: there is none"),
        ("limits = [\"1/s\"]\narrivls = []\n", ".toml:2: unknown field `arrivls`, expected one of"),
        (
            "limits = [\"1/s\",\n\"0/s\"]\narrivals = [\"even 1/s for 1s\"]",
            ".toml:2: `limits`: `0/s`: an amount of 0",
        ),
        (
            "limits = [\"1/calendar-day zone Asia/Edo\"]\narrivals = [\"even 1/s for 1s\"]",
            "no time zone `Asia/Edo`",
        ),
        (
            "limits = [\"1/s\"]\n\narrivals = [\"evn 1/s for 1s\"]",
            ".toml:3: `arrivals`: `evn 1/s for 1s`: `evn` is no pattern",
        ),
        ("limits = [\"1/s\"", ".toml:1: "),
        ("limits = 5", ".toml:1: invalid type"),
        (&format!("{base}keys = -1"), ".toml:3: `keys`: a whole number from 1 to 1000000, not -1"),
        (&format!("{base}keys = 0"), "not 0"),
        (&format!("{base}keys = 1000001"), "not 1000001"),
        (&format!("{base}keys = 99999999999999999999"), ".toml:3: "),
        (&format!("{base}keys = 1.5"), ".toml:3: invalid type"),
        (&format!("{base}zipf = nan"), "`zipf`: a number from 0 to 4"),
        (&format!("{base}zipf = -1"), "`zipf`: a number from 0 to 4"),
        (&format!("{base}seed = -1"), "`seed`: a whole number"),
        (&format!("{base}window = \"0s\""), "`window`: a time is"),
        (&format!("{base}name = \"../x\""), "`name`: 1 to 40 small letters"),
    ] {
        refused(&directory, text, words);
    }
}

#[test]
fn malformed_servers_and_clients_are_named_with_line_and_field() {
    let directory = Directory::new("malformed-tables");
    let base = BASE;
    for (text, words) in [
        (
            &format!("{base}[servers]\ncount = 65"),
            ".toml:4: `servers.count`: a whole number from 1 to 64",
        ),
        (
            &format!("{base}[servers]\ncount = 3\nshares = [1, 2]"),
            "`servers.shares`: 2 values for a count of 3",
        ),
        (&format!("{base}[servers]\nshares = [0, 0]"), "at least one server needs a share"),
        (
            &format!("{base}[servers]\ncounting = \"both\""),
            "`shared`, `split` or `alone`, not `both`",
        ),
        (
            &format!("{base}[servers]\ncounting = \"split\"\ncount = 2"),
            "cannot be split over 2 servers",
        ),
        (&format!("{base}[servers]\nspeed = 2"), ".toml:4: unknown field `speed`"),
        (
            &format!("{base}[clients]\nretry = \"soon\""),
            "`clients.retry`: `never`, `obey` or a time",
        ),
        (&format!("{base}[clients]\njitter = \"1s\""), "`clients.jitter`: has no use while"),
        (
            &format!("{base}[clients]\nretry = \"obey\"\ntries = 0"),
            "`clients.tries`: a whole number from 1",
        ),
    ] {
        refused(&directory, text, words);
    }
}

#[test]
fn scenarios_that_cannot_be_read_say_why() {
    let directory = Directory::new("unreadable");
    refused(
        &directory,
        "limits = [\"1/s\"]\narrivals = [\"even 1000000000/s for 1week\"]",
        "more than 10000000 arrivals",
    );
    refused(&directory, "limits = [\"1/s\"]\ntrace = \"nowhere.csv\"", "nowhere.csv");
    for (bytes, words) in [
        (b"limits = []\n\xff".to_vec(), ".toml:2: this is not UTF-8"),
        (vec![b'#'; (1 << 20) + 1], "a scenario has at most 1048576 bytes"),
    ] {
        let path = directory.file("s.toml", &bytes);
        let (_, err, code) = sekisho(&["simulate", "--scenario", &path], "");
        assert!(err.contains(words) && code == 2, "{words}: {err}");
    }
    let (_, err, code) =
        sekisho(&["simulate", "--scenario", "-"], "limits = [\"1/s\"]\ntrace = \"-\"");
    assert!(err.contains("the standard input is the scenario itself") && code == 2, "{err}");
}

#[test]
fn a_reader_of_experiments_that_has_seen_enough_is_a_success() {
    for form in ["table", "json", "html"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sekisho"))
            .args(["simulate", "--all", "--output", form])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{form}: {output:?}");
    }
}

/// The pattern that `bound` prints is a trace, and what the trace interface passes of it is the bound.
#[test]
fn the_pattern_of_a_bound_reaches_it() {
    for (limit, units) in [
        ("60/min fixed-window", 120),
        ("60/min anchored-window", 120),
        ("60/min sliding-log", 120),
        ("60/min sliding-window", 119),
        ("60/min burst 10", 70),
        ("60/min burst 10 leaky-queue", 71),
    ] {
        let (pattern, _, code) = sekisho(&["bound", limit, "--pattern"], "");
        assert!(
            pattern.contains(&format!("# confirmed: the simulator passes {units} of it\n"))
                && code == 0,
            "{pattern}"
        );
        let (answers, _, _) = sekisho(&["simulate", "--limit", limit, "--trace", "-"], &pattern);
        let passed = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["outcome"], "allow", "{limit}: {line}");
            line["cost"].as_u64().unwrap()
        };
        // An anchored window may be opened by a unit that comes before the stretch.
        let passed: u64 = answers.lines().map(passed).sum();
        assert!(passed == units || passed == units + 1, "{limit}: {passed}");
    }
}

#[test]
fn a_bound_that_is_not_reached_says_so() {
    let (out, _, code) = sekisho(&["bound", "7/min burst 1"], "");
    assert!(out.contains("not reached: the simulator passes 7: ") && code == 0, "{out}");
    assert!(out.contains("without its end confirmed: the simulator passes 7 of it"), "{out}");
    let (out, _, _) = sekisho(&["bound", "1/s sliding-log", "--within", "52week"], "");
    assert!(out.contains("not tried: the arrivals would be more than 100000"), "{out}");
    let (json, _, _) = sekisho(&["bound", "7/min burst 1", "--output", "json"], "");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["closed"], &json["found_closed"], &json["found_half_open"]),
        (&8.into(), &7.into(), &7.into())
    );
    for arguments in [
        &["bound", "1/s", "--pattern", "--within", "1s", "--within", "2s"][..],
        &["bound", "unlimited", "--pattern"],
        &["bound", "1/s", "--pattern", "--output", "json"],
    ] {
        let (out, err, code) = sekisho(arguments, "");
        assert!(out.is_empty() && code == 2, "{arguments:?}: {err}");
    }
}

#[test]
fn a_clock_that_is_behind_needs_a_past_to_stand_in() {
    let skewed = |pattern: &str| {
        let arguments = [
            "simulate",
            "--limit",
            "1/s burst 1",
            "--arrivals",
            pattern,
            "--servers",
            "2",
            "--counting",
            "alone",
            "--ahead",
            "0,-30s",
            "--output",
            "csv",
        ];
        sekisho(&arguments, "")
    };
    let (out, err, code) = skewed("even 2/s for 60s");
    assert!(code == 2 && out.is_empty() && err.contains("behind by 30s"), "{code} {err}");
    // A clock that is always as far off changes nothing for a server that counts alone.
    let (out, err, code) = skewed("even 2/s for 60s from 30s");
    assert!(code == 0 && out.contains(",120,0,"), "{code} {err}{out}");
}

#[test]
fn a_cost_that_no_count_has_room_for_is_refused() {
    let (_, err, code) = sekisho(
        &[
            "simulate",
            "--limit",
            "1/s",
            "--arrivals",
            "bursts 3 every 1s for 5s cost 18446744073709551615",
        ],
        "",
    );
    assert!(code == 2 && err.contains("at most 1000000000"), "{code} {err}");
    let trace = ["simulate", "--limit", "1/s", "--trace", "-", "--output", "table"];
    let (_, err, code) = sekisho(&trace, "0,a,18446744073709551615\n");
    assert!(code == 2 && err.contains("line 1: a request costs at most"), "{code} {err}");
}
