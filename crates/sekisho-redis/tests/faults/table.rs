//! The table: one row a fault. Each test leaves its row behind, and the table is made of the rows of one run.

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process,
    time::Duration,
};

const HEAD: &str = "\
| fault | how | requests | errors | admitted | at most | because | exact again after | p99 | keys without expiry |
|---|---|--:|--:|--:|--:|---|--:|--:|--:|
";

/// What one fault cost. There is no row without its numbers.
#[derive(Debug)]
pub(crate) struct Row {
    /// How the fault is made.
    pub(crate) how: String,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    /// How many were told that they may go.
    pub(crate) admitted: u64,
    /// How many may have been told so.
    pub(crate) most: u64,
    pub(crate) because: String,
    /// From when the server was whole to the first exact decision.
    pub(crate) back: Duration,
    /// How long a caller waited during the fault.
    pub(crate) p99: Duration,
    /// Keys that would stay for ever.
    pub(crate) bare: u64,
}

/// Waits for a row, fails when it breaks what holds for all, and puts it into the table.
pub(crate) async fn record(
    (place, rows): (usize, usize),
    fault: &str,
    row: impl Future<Output = Row>,
) {
    let row = row.await;
    println!("{row:#?}");
    assert!(row.requests > 0 && row.admitted > 0, "{fault}: a row without numbers");
    assert!(row.admitted <= row.most, "{fault}: {} > {}", row.admitted, row.most);
    assert_eq!(row.bare, 0, "{fault}: keys without expiry");
    let folder = folder();
    write(&folder.join(format!("{place:02}")), &row.line(fault));
    let mut lines: Vec<_> =
        fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    // Not those that are being written.
    lines.retain(|path| path.extension().is_none());
    lines.sort();
    let mut text = HEAD.to_owned();
    text.extend(lines.iter().map(|path| fs::read_to_string(path).unwrap()));
    let _never = writeln!(text, "\n{} of {rows} rows.", lines.len());
    write(&output(), &text);
    println!("{text}");
}

impl Row {
    fn line(&self, fault: &str) -> String {
        let Self { how, requests, errors, admitted, most, because, back, p99, bare } = self;
        let (back, p99) = (time(*back), time(*p99));
        format!(
            "| {fault} | {how} | {requests} | {errors} | {admitted} | {most} | {because} | {back} | {p99} | {bare} |\n"
        )
    }
}

fn time(of: Duration) -> String {
    let us = of.as_micros();
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..10_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        _ => format!("{} ms", us / 1_000),
    }
}

/// Returns the folder of this run's rows; those of other runs go.
fn folder() -> PathBuf {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outages");
    // Under nextest each test is a process of its own, and all have this number; else all are in this process.
    let run = env::var("NEXTEST_RUN_ID").unwrap_or_else(|_| process::id().to_string());
    let own = all.join(run);
    fs::create_dir_all(&own).unwrap();
    for other in fs::read_dir(&all).unwrap().map(|entry| entry.unwrap().path()) {
        if other != own {
            // Another test of this run may be as quick.
            let _ignored = fs::remove_dir_all(other);
        }
    }
    own
}

fn output() -> PathBuf {
    let given = env::var_os("SEKISHO_OUTAGES").map(PathBuf::from);
    given.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("outages.md"))
}

/// Writes a file whole: whoever reads it meanwhile sees the one before.
fn write(path: &Path, text: &str) {
    let part = path.with_extension(format!("{}.part", process::id()));
    fs::write(&part, text).unwrap();
    fs::rename(&part, path).unwrap();
}
