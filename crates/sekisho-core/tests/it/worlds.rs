//! Small worlds: every short trace on a few instants, decided by the core and by the model. Nothing is left to chance.
//!
//! A world is a trace of some requests at instants one nanosecond apart, of which one may be stamped late; each request costs
//! 0, 1, 2 or one more than the capacity. Traces that begin alike share their beginning, so each world costs one decision, and
//! every field of every answer is compared. The limits are so small that the instants cover several of their periods, and
//! half of them have an interval that is no whole number of nanoseconds.
//!
//! Each test prints how many worlds it went through (`cargo test worlds -- --show-output`) and fails if it were others.
//! `SEKISHO_LONG` takes the whole: six requests on six instants. Without it there are four requests on five.

use std::env;

use sekisho_core::{Call, Limit, Mode, State, Timestamp, Utc};
use sekisho_testkit::{
    beside::{Pair, answer, core_limit, model_limit},
    model::{self, Model, ModelLimit},
};

/// How large the worlds are.
#[derive(Clone, Copy)]
struct Size {
    instants: u64,
    requests: usize,
    /// How many there must be of one limit.
    worlds: u64,
}

fn pick(short: Size, long: Size) -> Size {
    if env::var_os("SEKISHO_LONG").is_some() { long } else { short }
}

/// One limit, and the traces on it that are still to be made.
struct Worlds {
    limit: Limit,
    costs: [u64; 4],
    /// The first instant: some begin in the middle of a window, some at the epoch.
    first: u64,
    size: Size,
    /// The requests so far, for who looks for a fault.
    trace: Vec<(u64, u64)>,
    made: u64,
}

impl Worlds {
    fn new(of: &ModelLimit, first: u64, size: Size) -> Self {
        let beyond = u64::try_from(of.capacity()).unwrap() + 1;
        let costs = [0, 1, 2, beyond];
        Self { limit: core_limit(of), costs, first, size, trace: Vec::new(), made: 0 }
    }

    /// Makes every trace that goes on from here. `newest` is the latest instant so far, and `late` whether one was earlier.
    fn go_on(&mut self, state: &State, model: &Model, newest: u64, late: bool) {
        if self.trace.len() == self.size.requests {
            return;
        }
        let from = if late { newest } else { 0 };
        for step in from..self.size.instants {
            for cost in self.costs {
                let (mut state, mut model) = (state.clone(), model.clone());
                let at = self.first + step;
                self.trace.push((at, cost));
                let call = Call { now: Timestamp::from_nanos(at), cost, mode: Mode::Check };
                let seen = answer(&self.limit.decide(&mut state, call, &Utc));
                let expected = model.call(at, cost, model::Mode::Check);
                assert_eq!(seen, expected, "{}: (instant, cost) {:?}", self.limit, self.trace);
                self.made += 1;
                self.go_on(&state, &model, newest.max(step), late || step < newest);
                self.trace.pop();
            }
        }
    }
}

/// Goes through all worlds of some limits, each from the epoch and from the middle of a window.
#[expect(clippy::print_stdout, reason = "how many there were is what a reader asks")]
fn all(limits: &[&str]) {
    let size = pick(
        Size { instants: 5, requests: 4, worlds: 78_180 },
        Size { instants: 6, requests: 6, worlds: 16_493_720 },
    );
    for text in limits {
        let of = model_limit(text);
        let firsts = [0, 1_000 * of.period_ns + 1];
        for first in firsts {
            let mut worlds = Worlds::new(&of, first, size);
            worlds.go_on(&State::Fresh, &Model::new(of), 0, false);
            println!("{text} from {first}: {} worlds", worlds.made);
            assert_eq!(worlds.made, size.worlds, "{text}");
        }
    }
}

#[test]
fn fixed_window() {
    all(&["2/2ns fixed-window", "3/3ns fixed-window"]);
}

#[test]
fn anchored_window() {
    all(&["2/2ns anchored-window", "3/3ns anchored-window"]);
}

#[test]
fn sliding_log() {
    all(&["2/2ns sliding-log", "3/3ns sliding-log"]);
}

#[test]
fn sliding_log_with_a_resolution() {
    all(&["2/3ns sliding-log resolution 2ns", "3/3ns sliding-log resolution 3ns"]);
}

#[test]
fn sliding_window() {
    all(&["3/2ns sliding-window", "2/3ns sliding-window"]);
}

#[test]
fn token_bucket() {
    all(&["2/3ns burst 2", "1/2ns burst 3"]);
}

#[test]
fn leaky_queue() {
    all(&["2/3ns burst 2 leaky-queue", "1/2ns burst 1 leaky-queue"]);
}

/// Every trace of two limits at once, with a cost of 0, 1 or too much for each: every pair of algorithms, in both orders.
#[test]
fn two_limits_at_once() {
    let limits = [
        "2/2ns fixed-window",
        "2/3ns anchored-window",
        "2/2ns sliding-log",
        "2/3ns sliding-window",
        "2/3ns burst 2",
        "1/2ns burst 1 leaky-queue",
    ];
    let size = pick(
        Size { instants: 3, requests: 3, worlds: 16_794 },
        Size { instants: 4, requests: 4, worlds: 857_907 },
    );
    let mut made = 0;
    for one in limits {
        for other in limits {
            let pair = Pair::new(vec![model_limit(one), model_limit(other)]);
            let of_pair = go_on_together(&pair, size, 0, false, &mut Vec::new());
            assert_eq!(of_pair, size.worlds, "{one} and {other}");
            made += of_pair;
        }
    }
    println!("{} pairs: {made} worlds", limits.len() * limits.len());
}

/// Makes every trace that goes on from here, and returns how many.
fn go_on_together(
    pair: &Pair,
    size: Size,
    newest: u64,
    late: bool,
    trace: &mut Vec<(u64, [u64; 2])>,
) -> u64 {
    if trace.len() == size.requests {
        return 0;
    }
    let mut made = 0;
    let from = if late { newest } else { 0 };
    for (step, first, second) in (from..size.instants).flat_map(|step| {
        (0..9).map(move |costs| (step, [0, 1, 3][costs / 3], [0, 1, 3][costs % 3]))
    }) {
        let mut pair = pair.clone();
        trace.push((step, [first, second]));
        let (seen, expected) = pair.call(step, &[first, second], model::Mode::Check);
        assert_eq!(seen, expected, "{:?}: (instant, costs) {trace:?}", pair.limits);
        made += 1 + go_on_together(&pair, size, newest.max(step), late || step < newest, trace);
        trace.pop();
    }
    made
}
