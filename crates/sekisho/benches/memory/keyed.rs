//! What is not in the caches: a million keys, and ten.

use std::{hash::Hasher as _, num::NonZeroU32, time::Duration};

use governor::{Quota, RateLimiter};
use sekisho::KeyedLimiter;
use siphasher::sip128::{Hasher128 as _, SipHasher13};

use crate::{
    measure::{Key, block, in_turn, keep, scattered},
    report::{Report, Target},
};

const CALLS: u32 = 1 << 20;

pub(crate) fn run(report: &mut Report, most: u32) {
    for keys in [1_000_000, 10_000_000].into_iter().filter(|keys| *keys <= most) {
        many(report, keys);
    }
}

/// The least that finding a key by a digest can cost: format it, hash it, and touch one line that the digest names.
struct Probe {
    lines: Vec<[u64; 8]>,
    seed: [u8; 16],
}

impl Probe {
    fn touch(&mut self, key: &str) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.seed);
        hasher.write(key.as_bytes());
        let digest = hasher.finish128().as_u128();
        let line = (((digest >> 64) * self.lines.len() as u128) >> 64) as usize;
        self.lines[line][0] = self.lines[line][0].wrapping_add(1);
        self.lines[line][0]
    }
}

fn many(report: &mut Report, keys: u32) {
    // A unit comes back in an hour and a half: no key is fresh again meanwhile, which would make it one fewer.
    let ours = KeyedLimiter::new("16/day burst 1000".parse().unwrap());
    let quota = Quota::with_period(Duration::from_secs(5_400)).unwrap();
    let theirs = RateLimiter::keyed(quota.allow_burst(NonZeroU32::new(1_000).unwrap()));
    let mut key = Key::new();
    for number in 0..keys {
        keep(ours.outcome(key.of(number)));
        keep(theirs.check_key(key.of(number)).is_ok());
    }
    let lines = ours.store().occupancy().bytes / 64;
    let mut probe = Probe { lines: vec![[1; 8]; lines], seed: [7; 16] };
    let (mut a, mut b, mut c, mut d) = (Key::new(), Key::new(), Key::new(), Key::new());
    let mut batch: Vec<String> = (0..64).map(|_| "key-000000000".to_owned()).collect();
    let mut checked = Vec::new();
    let [outcome, verdict, together, other, touched] = in_turn(
        CALLS,
        [
            &mut block(|call| keep(ours.outcome(a.of(scattered(call, keys))))),
            &mut block(|call| {
                keep(ours.check(b.of(scattered(call, keys))).is_ok_and(|one| one.is_allowed()));
            }),
            &mut |call| {
                for (at, text) in batch.iter_mut().enumerate() {
                    text.clear();
                    text.push_str(d.of(scattered(call.wrapping_add(at as u32), keys)));
                }
                ours.check_each(&batch, &mut checked);
                keep(&checked);
            },
            &mut block(|call| keep(theirs.check_key(c.of(scattered(call, keys))).is_ok())),
            &mut {
                let (mut key, mut last) = (Key::new(), 0);
                // Which key is next depends on the line before: a decision waits for its line too.
                block(move |call| {
                    last = probe.touch(key.of(scattered(call ^ (last >> 40) as u32, keys)));
                })
            },
        ],
    );
    let millions = keys / 1_000_000;
    let target = Target::AtMost(if millions > 1 { 0.3 } else { 0.35 });
    let what = format!("{millions} M keys: outcome / governor keyed");
    report.row(what, (outcome, other), "ns", target);
    let what = format!("{millions} M keys: all numbers / governor keyed");
    report.row(what, (verdict, other), "ns", target);
    let what = format!("{millions} M keys: outcome / format, hash, touch a line");
    report.row(what, (outcome, touched), "ns", Target::AtMost(1.3));
    let what = format!("{millions} M keys: all numbers / format, hash, touch a line");
    report.row(what, (verdict, touched), "ns", Target::AtMost(1.3));
    let what = format!("{millions} M keys: one of 64 together / one alone");
    report.row(what, (together, verdict), "ns", Target::AtMost(0.4));
}
