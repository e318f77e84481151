//! A keyed decision beside `governor`, in one run: `cargo bench -p sekisho --bench keyed`.
//!
//! Both are asked the same things in turn, round by round, so that what the machine does meanwhile meets both; the table shows
//! the median of the rounds and the ratio of ours to theirs. `--json` prints one object a row.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and may end early"
)]
#![expect(clippy::disallowed_methods, reason = "a benchmark takes the time")]

use std::{env, fmt::Write as _, hint::black_box, num::NonZeroU32, time::Instant};

use governor::{Quota, RateLimiter};
use sekisho::{
    CanonicalPath, KeyedLimiter, Limiter, Memory, MemoryOptions, Mode, NoHeaders, PolicySet,
    Request,
};

const ROUNDS: usize = 7;

/// One thing that both do.
struct Row {
    name: &'static str,
    ours: f64,
    theirs: f64,
}

/// Runs both in turn and returns the median nanoseconds of a call of each.
fn compare(calls: u32, mut ours: impl FnMut(u32), mut theirs: impl FnMut(u32)) -> (f64, f64) {
    let (mut own, mut other) = (Vec::new(), Vec::new());
    let time = |run: &mut dyn FnMut(u32)| {
        let start = Instant::now();
        (0..calls).for_each(&mut *run);
        start.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
    };
    for _ in 0..=ROUNDS {
        own.push(time(&mut ours));
        other.push(time(&mut theirs));
    }
    // The first round warms up.
    let median = |times: &mut Vec<f64>| {
        let _warm = times.remove(0);
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    (median(&mut own), median(&mut other))
}

/// Formats a key as a caller would.
fn key(buffer: &mut String, number: u32) -> &str {
    buffer.clear();
    write!(buffer, "key-{number:09}").unwrap();
    buffer
}

/// A walk over all numbers below a power of two, in no order that a cache would like.
fn scattered(call: u32, keys: u32) -> u32 {
    call.wrapping_mul(2_654_435_761) & (keys - 1)
}

fn keyed(name: &'static str, keys: u32, calls: u32, limit: &str) -> Row {
    let ours =
        KeyedLimiter::with_store(limit.parse().unwrap(), Memory::new(MemoryOptions::default()));
    let per_hour = NonZeroU32::new(limit.split('/').next().unwrap().parse().unwrap()).unwrap();
    let theirs = RateLimiter::keyed(Quota::per_hour(per_hour));
    let (mut a, mut b) = (String::new(), String::new());
    let (ours, theirs) = compare(
        calls,
        |call| {
            let checked = ours.check(key(&mut a, scattered(call, keys))).unwrap();
            black_box(checked.is_allowed());
        },
        |call| {
            black_box(theirs.check_key(&key(&mut b, scattered(call, keys)).to_owned()).is_ok());
        },
    );
    Row { name, ours, theirs }
}

/// A request under a policy with one limit and with three, beside each other.
fn policies() -> Row {
    let set = |limits: &str| {
        Limiter::new(
            PolicySet::parse(&format!(
                "[[policy]]\nname = \"p\"\nkey = [\"ip\"]\nlimits = [{limits}]\n"
            ))
            .unwrap(),
        )
    };
    let (one, three) =
        (set("\"4000000000/h\""), set("\"4000000000/h\", \"4000000000/day\", \"4000000000/week\""));
    let path = CanonicalPath::parse("/v1/users/7").unwrap();
    let ask = |limiter: &Limiter, call: u32| {
        let client = Some(scattered(call, 1 << 10).to_be_bytes().into());
        let request = Request {
            method: "GET",
            host: None,
            path: &path,
            query: None,
            client,
            principal: None,
            headers: &NoHeaders,
        };
        black_box(limiter.decide_now(&request, Mode::Check).is_allowed());
    };
    let (ours, theirs) = compare(300_000, |call| ask(&three, call), |call| ask(&one, call));
    Row { name: "policy: three limits beside one, 1024 addresses", ours, theirs }
}

fn main() {
    let json = env::args().any(|argument| argument == "--json");
    let rows = [
        keyed("one hot key, allowed", 1, 2_000_000, "4000000000/h"),
        keyed("one hot key, denied", 1, 2_000_000, "1/h"),
        keyed("1024 keys", 1 << 10, 2_000_000, "4000000000/h"),
        keyed("1,048,576 keys", 1 << 20, 2_000_000, "4000000000/h"),
        policies(),
    ];
    if !json {
        println!(
            "{:<50} {:>10} {:>10} {:>7}",
            "median of 7 rounds, one thread", "ours ns", "other ns", "ratio"
        );
    }
    for Row { name, ours, theirs } in rows {
        let ratio = ours / theirs;
        if json {
            println!(
                r#"{{"name":"{name}","ours_ns":{ours:.1},"other_ns":{theirs:.1},"ratio":{ratio:.3}}}"#
            );
        } else {
            println!("{name:<50} {ours:>10.1} {theirs:>10.1} {ratio:>7.2}");
        }
    }
}
