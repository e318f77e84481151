//! Taking times in turn, and the keys that are asked for.

use std::{
    hint::black_box,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// How often everything is measured; the first time warms up.
pub(crate) const ROUNDS: usize = 7;

/// Returns the median nanoseconds of a call of each, measured in turn. A call is given its number.
pub(crate) fn in_turn<const N: usize>(calls: u32, mut each: [&mut dyn FnMut(u32); N]) -> [f64; N] {
    let mut times: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    let mut from = 0_u32;
    for round in 0..=ROUNDS {
        for (run, times) in each.iter_mut().zip(&mut times) {
            let start = Instant::now();
            run_calls(from, calls, run);
            if round > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(calls));
            }
        }
        from = from.wrapping_add(calls);
    }
    times.map(median)
}

#[inline(never)]
fn run_calls(from: u32, calls: u32, run: &mut dyn FnMut(u32)) {
    // A block of calls in one: the call through a pointer is not measured.
    for block in 0..calls / 64 {
        run(from.wrapping_add(block * 64));
    }
}

/// Makes one call a number out of a block of 64.
pub(crate) fn block(mut one: impl FnMut(u32)) -> impl FnMut(u32) {
    move |from| (0..64).for_each(|offset| one(from.wrapping_add(offset)))
}

pub(crate) fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Returns how many calls a second some threads make together, each calling `call` with its number.
pub(crate) fn rate(threads: usize, call: &(dyn Fn(usize) + Sync)) -> f64 {
    let (stop, done, start) =
        (AtomicBool::new(false), AtomicU64::new(0), Barrier::new(threads + 1));
    thread::scope(|scope| {
        for thread in 0..threads {
            let (stop, done, start) = (&stop, &done, &start);
            scope.spawn(move || {
                let _leader = start.wait();
                let mut calls = 0;
                while !stop.load(Relaxed) {
                    // Blocks, so that the flag is not what is measured.
                    (0..256).for_each(|_| call(thread));
                    calls += 256;
                }
                done.fetch_add(calls, Relaxed);
            });
        }
        let _leader = start.wait();
        let from = Instant::now();
        thread::sleep(Duration::from_millis(300));
        stop.store(true, Relaxed);
        from.elapsed()
    });
    done.load(Relaxed) as f64 / 0.3
}

/// Returns how many nanoseconds something takes, with the two readings of the clock in it.
#[inline]
pub(crate) fn timed(run: impl FnOnce()) -> u32 {
    let start = Instant::now();
    run();
    u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX)
}

/// A key of 13 bytes, formatted as a caller would, into a buffer that is used again.
pub(crate) struct Key {
    text: String,
    thousands: Vec<String>,
}

impl Key {
    pub(crate) fn new() -> Self {
        Self { text: String::new(), thousands: (0..1_000).map(|n| format!("{n:03}")).collect() }
    }

    /// Formats the key of that number, below a thousand million.
    #[inline]
    pub(crate) fn of(&mut self, number: u32) -> &String {
        self.text.clear();
        self.text.push_str("key-");
        for part in [number / 1_000_000, number / 1_000 % 1_000, number % 1_000] {
            self.text.push_str(&self.thousands[part as usize]);
        }
        &self.text
    }
}

/// A number below `keys`, in no order that a cache would like.
#[inline]
pub(crate) fn scattered(call: u32, keys: u32) -> u32 {
    let mut mixed = u64::from(call).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    ((u128::from(mixed) * u128::from(keys)) >> 64) as u32
}

/// Keeps a result from being optimised away.
#[inline]
pub(crate) fn keep<T>(value: T) {
    let _kept = black_box(value);
}
