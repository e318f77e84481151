//! What a decision takes in instructions, on a clock that stands still: `cargo xtask bench instructions` runs this under callgrind.
//!
//! `instructions CASE N` makes N decisions; the difference of two runs is what one takes, whatever the start does.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "it prints the names of its cases, and may end early"
)]

use std::{env, hint::black_box, sync::Arc};

use sekisho::{
    CanonicalPath, Clock, KeyedLimiter, Limiter, Memory, MemoryOptions, Mode, NoHeaders, PolicySet,
    Request, Seed, Timestamp, UnkeyedLimiter, Wait,
};

/// A clock that stands still. Valgrind cannot run the machine's.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_secs(1_800_000_000)
    }

    fn wait_until(&self, _: Timestamp) -> Wait {
        Box::pin(std::future::pending())
    }
}

fn store() -> Memory {
    let options = MemoryOptions {
        seed: Seed::from_bytes([7; 16]),
        max_bytes: 1 << 28,
        ..MemoryOptions::default()
    };
    Memory::with_clock(options, Arc::new(Still))
}

fn keyed(limit: &str, keys: usize, decide: fn(&KeyedLimiter, &str)) -> impl FnMut(usize) {
    let limiter = KeyedLimiter::with_store(limit.parse().unwrap(), store());
    let keys: Vec<String> = (0..keys).map(|number| format!("key-{number:09}")).collect();
    for key in &keys {
        decide(&limiter, key);
    }
    move |call| decide(&limiter, &keys[call % keys.len()])
}

fn outcome(limiter: &KeyedLimiter, key: &str) {
    let _kept = black_box(limiter.outcome(black_box(key)));
}

fn check(limiter: &KeyedLimiter, key: &str) {
    let _kept = black_box(limiter.check(black_box(key)));
}

fn unkeyed(limit: &str, decide: fn(&UnkeyedLimiter)) -> impl FnMut(usize) {
    let limiter = UnkeyedLimiter::with_clock(limit.parse().unwrap(), Arc::new(Still));
    move |_| decide(black_box(&limiter))
}

fn policy(limits: &str) -> impl FnMut(usize) {
    let file = format!("[[policy]]\nname = \"p\"\nkey = [\"ip\"]\nlimits = [{limits}]\n");
    let policies = PolicySet::parse(&file).unwrap();
    let limiter = Limiter::with_store_and_clock(policies, store(), Arc::new(Still));
    let path = CanonicalPath::parse("/v1/users/7").unwrap();
    move |_| {
        let request = Request {
            method: "GET",
            host: None,
            path: &path,
            query: None,
            client: Some([192, 0, 2, 7].into()),
            principal: None,
            headers: &NoHeaders,
        };
        let _kept = black_box(limiter.decide_now(&request, Mode::Check));
    }
}

type Case = (&'static str, fn() -> Box<dyn FnMut(usize)>);

const PLENTY: &str = "1000000/h burst 1000000000";

const CASES: &[Case] = &[
    ("key-outcome", || Box::new(keyed(PLENTY, 1, outcome))),
    ("key-check", || Box::new(keyed(PLENTY, 1, check))),
    ("key-denied", || Box::new(keyed("1/day", 1, outcome))),
    ("key-remainder", || Box::new(keyed("7000003/h burst 1000000000", 1, check))),
    ("keys-outcome", || Box::new(keyed(PLENTY, 100_000, outcome))),
    ("key-fixed-window", || Box::new(keyed("1000000000/day fixed-window", 1, check))),
    ("key-sliding-window", || Box::new(keyed("200000/day sliding-window", 1, check))),
    ("no-key-outcome", || {
        Box::new(unkeyed(PLENTY, |limiter| {
            let _kept = black_box(limiter.outcome());
        }))
    }),
    ("no-key-check", || {
        Box::new(unkeyed(PLENTY, |limiter| {
            let _kept = black_box(limiter.check());
        }))
    }),
    ("policy-one-limit", || Box::new(policy("\"1000000/h burst 1000000000\""))),
    ("policy-three-limits", || {
        Box::new(policy(
            "\"1000000/h burst 1000000000\", \"1000000/day burst 10000000\", \"1000000/week burst 10000000\"",
        ))
    }),
];

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|word| word != "--bench").collect();
    let [case, count] = arguments.as_slice() else {
        for (name, _) in CASES {
            println!("{name}");
        }
        return;
    };
    let (_, make) = CASES.iter().find(|(name, _)| name == case).unwrap();
    let mut decide = make();
    (0..count.parse().unwrap()).for_each(&mut decide);
}
