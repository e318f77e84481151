//! What a key takes: the growth of this program's resident memory, each in a process of its own.

use std::{env, fs, num::NonZeroU32, process::Command};

use governor::{Quota, RateLimiter};
use sekisho::KeyedLimiter;

use crate::{
    measure::{Key, keep, median},
    report::{Report, Target},
};

/// Returns the bytes of this program that are in memory.
pub(crate) fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1_024.0
}

pub(crate) fn run(report: &mut Report, most: u32) {
    let keys = most.min(10_000_000);
    let (ours, theirs) = (ask("365/3650day burst 1000", keys, 1), ask("governor", keys, 1));
    let millions = keys / 1_000_000;
    let what = format!("bytes a key, {millions} M token buckets / 48");
    report.row(what, (ours, 48.0), "bytes", Target::AtMost(1.0));
    let what = format!("bytes a key, {millions} M token buckets / governor");
    report.row(what, (ours, theirs), "bytes", Target::None);
    let keys = keys / 10;
    for (limit, charges) in [
        ("1000/100day fixed-window", 1),
        ("1000/100day anchored-window", 1),
        ("1000/100day sliding-window", 1),
        ("365/3650day burst 1000 leaky-queue", 1),
        ("1000/100day sliding-log", 1),
        ("1000/100day sliding-log", 10),
        ("1000/100day sliding-log", 100),
    ] {
        let keys = if charges > 10 { keys / 10 } else { keys };
        let bytes = ask(limit, keys, charges);
        let what = format!("bytes a key, {limit}, {charges} charged / a bucket");
        report.row(what, (bytes, ours), "bytes", Target::None);
    }
}

/// Runs this program again, for the figure of one kind of key.
fn ask(limit: &str, keys: u32, charges: u32) -> f64 {
    let once = || {
        let mut command = Command::new(env::current_exe().unwrap());
        let output = command
            .args(["--rss", limit, &keys.to_string(), &charges.to_string()])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    };
    median((0..3).map(|_| once()).collect())
}

/// Prints what a key takes, if that is what the program was started for.
pub(crate) fn answer() -> bool {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [flag, limit, keys, charges] = arguments.as_slice() else { return false };
    if flag != "--rss" {
        return false;
    }
    let (keys, charges): (u32, u32) = (keys.parse().unwrap(), charges.parse().unwrap());
    let mut key = Key::new();
    let before = resident();
    let after = if limit == "governor" {
        let limiter = RateLimiter::keyed(Quota::per_hour(NonZeroU32::new(1_000).unwrap()));
        (0..keys).for_each(|number| keep(limiter.check_key(key.of(number)).is_ok()));
        resident()
    } else {
        let limiter = KeyedLimiter::new(limit.parse().unwrap());
        for _ in 0..charges {
            (0..keys).for_each(|number| keep(limiter.outcome(key.of(number))));
        }
        resident()
    };
    println!("{}", (after - before) / f64::from(keys));
    true
}
