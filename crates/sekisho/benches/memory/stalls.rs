//! The slowest decisions: while a table fills, at a million keys, and under floods.

use std::{num::NonZeroU32, time::Duration};

use governor::{Quota, RateLimiter};
use sekisho::{KeyedLimiter, Memory, MemoryOptions, Outcome, Overflow, Seed};
use siphasher::sip128::SipHasher13;

use crate::{
    measure::{Key, keep, median, scattered, timed},
    memory::resident,
    report::{Report, Target},
};

const MILLION: u32 = 1_000_000;
/// A unit comes back in an hour and a half: no key is fresh again meanwhile.
const SLOW: &str = "16/day burst 1000";

pub(crate) fn run(report: &mut Report) {
    filling(report);
    full(report);
    let flood: u32 = std::env::var("BENCH_FLOOD").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    for (name, limit) in [("stay in use", SLOW), ("are fresh again at once", "1000000/s")] {
        flooded(report, name, limit, flood * MILLION);
    }
    collisions(report);
}

/// Returns the value below which so many of a thousand are, and the greatest.
fn quantile(times: &mut [u32], per_mille: usize) -> f64 {
    times.sort_unstable();
    f64::from(times[times.len() * per_mille / 1_000])
}

fn filling(report: &mut Report) {
    // The worst of five: what the machine does meanwhile is in it too.
    let worst = (0..5).map(|_| {
        let (limiter, mut key) = (KeyedLimiter::new(SLOW.parse().unwrap()), Key::new());
        let times = (0..MILLION).map(|number| {
            let text = key.of(number);
            timed(|| keep(limiter.outcome(text)))
        });
        f64::from(times.max().unwrap()) / 1_000.0
    });
    let worst = median(worst.collect());
    report.row("worst decision, 0 to 1 M keys / 200 us", (worst, 200.0), "us", Target::AtMost(1.0));
}

fn full(report: &mut Report) {
    let ours = KeyedLimiter::new(SLOW.parse().unwrap());
    let quota = Quota::with_period(Duration::from_secs(5_400)).unwrap();
    let theirs = RateLimiter::keyed(quota.allow_burst(NonZeroU32::new(1_000).unwrap()));
    let mut key = Key::new();
    for number in 0..MILLION {
        keep(ours.outcome(key.of(number)));
        keep(theirs.check_key(key.of(number)).is_ok());
    }
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for round in 0..5 {
        let mut a: Vec<u32> = (0..MILLION)
            .map(|call| {
                let text = key.of(scattered(round * MILLION + call, MILLION));
                timed(|| keep(ours.outcome(text)))
            })
            .collect();
        let mut b: Vec<u32> = (0..MILLION)
            .map(|call| {
                let text = key.of(scattered(round * MILLION + call, MILLION));
                timed(|| keep(theirs.check_key(text).is_ok()))
            })
            .collect();
        own.push((quantile(&mut a, 500), quantile(&mut a, 999)));
        other.push((quantile(&mut b, 500), quantile(&mut b, 999)));
    }
    let of =
        |all: &[(f64, f64)], which: fn(&(f64, f64)) -> f64| median(all.iter().map(which).collect());
    let pair = (of(&own, |one| one.1), of(&other, |one| one.1));
    report.row("p99.9 at 1 M keys / governor's", pair, "ns", Target::AtMost(1.0));
    let pair = (of(&own, |one| one.0), of(&other, |one| one.0));
    report.row("p50 at 1 M keys / governor's", pair, "ns", Target::None);
}

/// Pushes so many distinct keys through a store of a million entries.
fn flooded(report: &mut Report, name: &str, limit: &str, keys: u32) {
    const EXHAUSTED: u32 = 1_000;
    const CAP: usize = 1_000_000;
    let options =
        MemoryOptions { max_entries: CAP, overflow: Overflow::Deny, ..MemoryOptions::default() };
    let limiter = KeyedLimiter::with_store(limit.parse().unwrap(), Memory::new(options));
    let mut key = Key::new();
    let spent: Vec<String> = (0..EXHAUSTED).map(|number| format!("spent-{number}")).collect();
    let exhausts = limit == SLOW;
    if exhausts {
        for key in &spent {
            keep(limiter.force(key, 1_000));
        }
    }
    let (mut times, mut most, mut early) = (Vec::new(), 0, 0.0);
    for number in 0..keys {
        let text = key.of(number);
        // Every eighth is timed, so that the clock is not what is measured.
        if number % 8 == 0 {
            times.push(timed(|| keep(limiter.outcome(text))));
        } else {
            keep(limiter.outcome(text));
        }
        if number % (1 << 16) == 0 {
            most = most.max(limiter.store().occupancy().entries);
            let key = &spent[(number >> 16) as usize % spent.len()];
            assert!(!exhausts || limiter.outcome(key).unwrap() == Outcome::Deny, "{key} got quota");
        }
        if number == keys / 10 {
            early = resident();
        }
    }
    assert!(most <= CAP, "{most} entries");
    let millions = keys / MILLION;
    let (p50, p999) = (quantile(&mut times, 500), quantile(&mut times, 999));
    let what = format!("flood of {millions} M keys that {name}: p99.9 / p50");
    report.row(what, (p999, p50), "ns", Target::AtMost(10.0));
    let what = format!("flood of {millions} M keys that {name}: RSS at the end / after a tenth");
    // What the times themselves take is not the store's.
    let own = (times.capacity() * size_of::<u32>()) as f64;
    report.row(what, ((resident() - own) / 1e6, (early - own / 8.0) / 1e6), "MB", Target::None);
    let what = format!("flood of {millions} M keys that {name}: most entries / cap");
    report.row(what, (most as f64, CAP as f64), "", Target::AtMost(1.0));
}

/// Decides keys that would all lie together under a seed that is known, beside random ones.
fn collisions(report: &mut Report) {
    const KEYS: usize = 100_000;
    let seed = [7; 16];
    // The low bits of the digest choose the part of the table.
    let collides = |key: &String| {
        SipHasher13::new_with_key(&seed).hash(key.as_bytes()).as_u128().trailing_zeros() >= 10
    };
    let colliding: Vec<String> =
        (0_u64..).map(|number| format!("c{number}")).filter(collides).take(KEYS).collect();
    let random: Vec<String> = (0..KEYS).map(|number| format!("r{number}00000000")).collect();
    let time = |keys: &[String], seed: Seed| {
        let options = MemoryOptions { seed, ..MemoryOptions::default() };
        let limiter = KeyedLimiter::with_store(SLOW.parse().unwrap(), Memory::new(options));
        let start = std::time::Instant::now();
        for key in keys {
            keep(limiter.outcome(key));
        }
        start.elapsed().as_secs_f64() * 1e9 / KEYS as f64
    };
    let times = |keys: &[String], seed: &dyn Fn() -> Seed| {
        median((0..5).map(|_| time(keys, seed())).collect())
    };
    let real = times(&random, &Seed::random);
    let what = "100,000 keys that collide under a known seed / random ones";
    report.row(what, (times(&colliding, &Seed::random), real), "ns", Target::AtMost(2.0));
    let what = "the same under the known seed, which nobody knows / random ones";
    report.row(what, (times(&colliding, &|| Seed::from_bytes(seed)), real), "ns", Target::None);
}
