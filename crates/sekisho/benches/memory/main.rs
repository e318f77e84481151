//! The memory store beside its peers and the machine's own limits, in one run: `cargo xtask bench memory`.
//!
//! Every figure is a ratio of two that were measured in turn, round by round, so that what the machine does meanwhile meets both.
//! The table shows the median of the rounds. `--json` prints one object a row, `BENCH_KEYS` is the most keys of a table.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "it measures time, prints what it measured, and may end early"
)]

mod hot;
mod keyed;
mod measure;
mod memory;
mod report;
mod stalls;

use std::env;

use crate::report::Report;

type Part<'a> = (&'static str, &'a dyn Fn(&mut Report));

fn main() {
    if memory::answer() {
        return;
    }
    let json = env::args().any(|argument| argument == "--json");
    let most: u32 = env::var("BENCH_KEYS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000_000);
    let only = env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let mut report = Report::default();
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let parts: [Part<'_>; 5] = [
        ("hot", &hot::run),
        ("policies", &hot::policies),
        ("keyed", &|report| keyed::run(report, most)),
        ("stalls", &stalls::run),
        ("memory", &|report| memory::run(report, most)),
    ];
    for (name, part) in parts.iter().filter(|(name, _)| wanted(name)) {
        eprintln!("measuring: {name}");
        part(&mut report);
    }
    if json { report.print_json() } else { report.print() }
}
