//! What it costs to note the fullest keys: `cargo bench -p sekisho --bench fullest`.
//!
//! The same decisions with and without, in turn, round by round, so that what the machine does meanwhile meets both. The table
//! has the median of the rounds, what noting adds to a decision, and the ratio. `--json` prints one object a row.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and may end early"
)]
#![expect(clippy::disallowed_methods, reason = "a benchmark takes the time")]

use std::{env, hint::black_box, net::Ipv4Addr, time::Instant};

use sekisho::{CanonicalPath, Limiter, Mode, NoHeaders, PolicySet, Request};

const ROUNDS: u32 = 9;

/// How the clients of a row come, by the number of the call.
type Client = fn(u32) -> u32;

/// With `60/min` a key stays where it is for a second or more; with `1000/s` it is fresh again after a millisecond, so that names
/// come and go all the time: the worst case.
const ROWS: [(&str, &str, Client); 6] = [
    ("one key", "60/min", |_| 1),
    ("a thousand keys in turn", "60/min", |call| call % 1_000),
    ("a hundred thousand keys, scattered", "60/min", scattered),
    ("a new key each time", "60/min", |call| call),
    ("a hundred thousand keys, scattered", "1000/s", scattered),
    ("a new key each time", "1000/s", |call| call),
];

const fn scattered(call: u32) -> u32 {
    call.wrapping_mul(2_654_435_761) % 100_000
}

fn limiter(limit: &str) -> Limiter {
    let policy = format!("[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"{limit}\"]\n");
    Limiter::new(PolicySet::parse(&policy).unwrap())
}

/// Returns the nanoseconds of a decision.
fn time(limiter: &Limiter, clients: impl Iterator<Item = u32>) -> f64 {
    let path = CanonicalPath::parse("/v1/x").unwrap();
    let (start, mut calls) = (Instant::now(), 0_u32);
    for client in clients {
        let request = Request {
            method: "GET",
            host: None,
            path: &path,
            query: None,
            client: Some(Ipv4Addr::from_bits(client).into()),
            principal: None,
            headers: &NoHeaders,
        };
        let _decision = black_box(limiter.decide_now(black_box(&request), Mode::Check));
        calls += 1;
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let json = env::args().any(|argument| argument == "--json");
    let calls = 200_000;
    if !json {
        println!(
            "| keys | limit | without, ns | noted, ns | added, ns | ratio |\n|---|---|--:|--:|--:|--:|"
        );
    }
    for (name, limit, client) in ROWS {
        let (plain, noting) = (limiter(limit), limiter(limit));
        let _fullest = noting.keep_fullest();
        let (mut without, mut with) = (Vec::new(), Vec::new());
        let mut added = Vec::new();
        for round in 0..=ROUNDS {
            let clients = || (0..calls).map(|call| client(call + calls * round));
            let times = (time(&plain, clients()), time(&noting, clients()));
            // The first round warms up.
            if round > 0 {
                without.push(times.0);
                with.push(times.1);
                added.push(times.1 - times.0);
            }
        }
        let (without, with, added) = (median(&mut without), median(&mut with), median(&mut added));
        let ratio = with / without;
        if json {
            println!(
                "{{\"row\":\"{name}\",\"limit\":\"{limit}\",\"without_ns\":{without:.1},\"noted_ns\":{with:.1},\"added_ns\":{added:.1},\"ratio\":{ratio:.3}}}"
            );
        } else {
            println!("| {name} | {limit} | {without:.0} | {with:.0} | {added:.0} | {ratio:.2} |");
        }
    }
}
