//! Sliding logs beside a plain list of pairs, and what they hold in memory.

mod resolution;

use sekisho_core::{Call, Entry, Limit, Mode, SlidingLog, State, Timestamp, Utc, limits};
use sekisho_testkit::generate::Rng;

use crate::Key;

const SECOND: u64 = 1_000_000_000;
const LAST: u64 = limits::TIMESTAMP_NS_MAX;

/// A log as anybody would write it down: when, and how many. Nothing of the code under test is in it.
#[derive(Clone, Default)]
struct Plain {
    entries: Vec<(u128, u64)>,
}

/// The numbers of a limit.
#[derive(Clone, Copy)]
struct Numbers {
    amount: u64,
    period: u64,
    resolution: u64,
}

impl Numbers {
    fn random(rng: &mut Rng) -> Self {
        let amount = *rng.pick(&[1, 2, 3, 10, 100, 5_000, u64::MAX]);
        let period = match rng.below(4) {
            0 => rng.between(1, 20),
            1 => limits::PERIOD_NS_MAX - rng.below(2),
            _ => {
                let bits = rng.between(1, 58);
                rng.between(1, 1 << bits)
            }
        };
        let period = period.min(limits::PERIOD_NS_MAX);
        let resolution = match rng.below(4) {
            0 => rng.between(1, period),
            1 => rng.between(1, period.min(7)),
            2 => period,
            _ => 1,
        };
        Self { amount, period, resolution }
    }

    fn limit(self) -> Limit {
        let Self { amount, period, resolution } = self;
        format!("{amount}/{period}ns sliding-log resolution {resolution}ns").parse().unwrap()
    }

    fn entered(self, t: u64) -> u128 {
        let resolution = u128::from(self.resolution);
        u128::from(t).div_ceil(resolution) * resolution
    }

    fn left(self, entry: (u128, u64)) -> u128 {
        entry.0 + u128::from(self.period)
    }
}

impl Plain {
    fn judged(&self, of: Numbers, t: u64) -> u128 {
        // The last instant that is entered before the newest entry is one resolution before it.
        let newest = self.entries.last().map_or(0, |entry| entry.0);
        let before = newest.checked_sub(u128::from(of.resolution));
        before.map_or(0, |before| before + 1).max(t.into())
    }

    fn live(&self, of: Numbers, t: u64) -> Vec<(u128, u64)> {
        let now = self.judged(of, t);
        self.entries.iter().copied().filter(|entry| now < of.left(*entry)).collect()
    }

    fn used(&self, of: Numbers, t: u64) -> u128 {
        self.live(of, t).iter().map(|entry| u128::from(entry.1)).sum()
    }

    fn call(&mut self, of: Numbers, t: u64, cost: u64, mode: Mode) {
        let fits = self.used(of, t) + u128::from(cost) <= of.amount.into();
        match mode {
            _ if cost == 0 => {}
            Mode::Check if !fits => {}
            Mode::Check | Mode::Force => {
                let newest = self.entries.last().map_or(0, |entry| entry.0);
                let at = of.entered(t).max(newest);
                self.entries = self.live(of, t);
                match self.entries.iter_mut().find(|entry| entry.0 == at) {
                    Some(entry) => entry.1 = entry.1.saturating_add(cost),
                    None => self.entries.push((at, cost)),
                }
            }
            Mode::Refund { at } => {
                let (live, at) = (self.live(of, t), of.entered(at.as_nanos()));
                if live.iter().any(|entry| entry.0 == at) {
                    self.entries = live;
                    for entry in self.entries.iter_mut().filter(|entry| entry.0 == at) {
                        entry.1 = entry.1.saturating_sub(cost);
                    }
                    self.entries.retain(|entry| entry.1 > 0);
                }
            }
            Mode::Look => {}
        }
    }

    fn repair(&mut self, of: Numbers, now: u64) {
        let (mut kept, now) = (Vec::<(u128, u64)>::new(), of.entered(now));
        for (at, units) in self.entries.drain(..) {
            match kept.last_mut().filter(|last| last.0 == at.min(now)) {
                Some(last) => last.1 = last.1.saturating_add(units),
                None => kept.push((at.min(now), units)),
            }
        }
        self.entries = kept;
    }
}

fn log_of(state: &State) -> SlidingLog {
    match state {
        State::Fresh => SlidingLog::default(),
        State::SlidingLog(log) => log.clone(),
        other => panic!("{other:?} is no log"),
    }
}

fn entries(state: &State) -> Vec<(u128, u64)> {
    let log = log_of(state);
    log.entries().map(|entry| (entry.at.as_nanos().into(), entry.units)).collect()
}

/// A call near the one before it; a calm one costs one unit and leaves room for many more.
fn random_call(rng: &mut Rng, of: Numbers, before: u64, calm: bool) -> (u64, u64, Mode) {
    let (period, resolution) = (of.period, of.resolution);
    if calm && rng.chance(29, 30) {
        let step = rng.below(period.div_ceil(of.amount.min(400)) + 2);
        let back = Mode::Refund { at: Timestamp::from_nanos(before) };
        let mode = if rng.chance(1, 30) { back } else { Mode::Check };
        return ((before + step).min(LAST), 1, mode);
    }
    let now = match rng.below(24) {
        0..5 => before,
        5..12 => before + rng.below(period.div_ceil(of.amount.min(200)) + 2),
        12..15 => before + rng.below(period + 2),
        15..18 => (before / resolution + rng.below(2)) * resolution + rng.below(2),
        18 => before.saturating_add(rng.below(3 * period)),
        19..22 => before.saturating_sub(rng.below(resolution.saturating_mul(2).min(period) + 1)),
        22 => before.saturating_sub(rng.below(period)),
        _ if rng.chance(1, 30) => *rng.pick(&[0, LAST, LAST - 1]),
        _ => before,
    };
    let cost = match rng.below(12) {
        0 => 0,
        1 => rng.between(0, of.amount),
        2 => of.amount,
        3 if rng.chance(1, 5) => u64::MAX,
        4 => {
            let bits = rng.below(64);
            rng.below(1 << bits)
        }
        _ => 1,
    };
    let mode = match rng.below(20) {
        0 => Mode::Look,
        1 => Mode::Force,
        2..6 => Mode::Refund {
            at: Timestamp::from_nanos(match rng.below(4) {
                0 => before,
                1 => now,
                _ => before.saturating_sub(rng.below(period)),
            }),
        },
        _ => Mode::Check,
    };
    (now.min(LAST), cost, mode)
}

/// Random calls, repairs and changed numbers: the entries are those of the list after each, the admitted are those that fit, and
/// a charge takes no more bytes than it was said to.
#[test]
fn a_log_is_a_list_of_pairs() {
    let mut most = 0;
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let (mut of, mut plain, mut state) =
            (Numbers::random(&mut rng), Plain::default(), State::Fresh);
        let calm = rng.chance(1, 2);
        let mut now = *rng.pick(&[0, 1_700_000_000 * SECOND, LAST - 1_000]);
        for step in 0..400 {
            if rng.chance(1, 250) {
                of = Numbers::random(&mut rng);
            }
            let limit = of.limit();
            let (at, cost, mode) = random_call(&mut rng, of, now, calm);
            now = at;
            if rng.chance(1, 40) {
                limit.repair(&mut state, Timestamp::from_nanos(now), &Utc);
                plain.repair(of, now);
                assert_eq!(entries(&state), plain.entries, "seed {seed}, step {step}: a repair");
            }
            let fits = plain.used(of, now) + u128::from(cost) <= of.amount.into();
            let log = log_of(&state);
            let promised = log.heap_bytes() + log.next_growth();
            let call = Call { now: Timestamp::from_nanos(now), cost, mode };
            let verdict = limit.decide(&mut state, call, &Utc);
            plain.call(of, now, cost, mode);
            let held = log_of(&state);
            assert_eq!(entries(&state), plain.entries, "seed {seed}, step {step}: {call:?}");
            assert!(held.heap_bytes() <= promised, "seed {seed}, step {step}: {call:?}");
            if mode == Mode::Check && cost > 0 && cost <= of.amount {
                assert_eq!(verdict.is_allowed(), fits, "seed {seed}, step {step}: {call:?}");
            }
            let left = u128::from(of.amount).saturating_sub(plain.used(of, now));
            assert_eq!(verdict.remaining.map(u128::from), Some(left), "seed {seed}, step {step}");
            let again = SlidingLog::from_entries(held.entries()).unwrap();
            assert_eq!(again, held);
            assert_eq!(format!("{again:?}"), format!("{:?}", held.entries().collect::<Vec<_>>()));
            most = most.max(plain.entries.len());
        }
    }
    assert!(most > 150, "only {most} entries");
}

#[test]
fn entries_make_a_log_only_in_order() {
    let entry = |ns, units| Entry { at: Timestamp::from_nanos(ns), units };
    assert_eq!(SlidingLog::from_entries([]), Some(SlidingLog::default()));
    assert!(SlidingLog::from_entries([entry(0, 1), entry(1, u64::MAX), entry(LAST, 1)]).is_some());
    let log = |units| SlidingLog::from_entries([entry(0, units), entry(1, 1)]);
    assert!(log(1) == log(1) && log(1) != log(2));
    for wrong in [
        vec![entry(0, 0)],
        vec![entry(5, 1), entry(5, 1)],
        vec![entry(5, 1), entry(4, 1)],
        vec![entry(5, 1), entry(6, 0), entry(7, 1)],
    ] {
        assert_eq!(SlidingLog::from_entries(wrong.clone()), None, "{wrong:?}");
    }
}

/// Whatever the spacing and the costs, a log holds at most 16 bytes a unit and a little.
#[test]
fn a_log_is_never_larger_than_sixteen_bytes_a_unit() {
    for amount in [1, 2, 3, 10, 49, 50, 51, 100, 1_000, 5_000] {
        for period in [1_000, SECOND, 3_600 * SECOND, limits::PERIOD_NS_MAX] {
            for cost in [1, 2, 127, 128, 200] {
                let limit = format!("{amount}/{period}ns sliding-log");
                let most = largest(&limit, (amount, period), cost.min(amount));
                let constant = if amount <= 50 { 100 } else { 1_100 };
                assert!(most <= 16 * amount + constant, "{limit}, costs of {cost}: {most}");
                assert!(most <= 104 * amount / 10 + constant, "{limit}, costs of {cost}: {most}");
            }
        }
    }
}

/// Returns the most bytes that a log takes whose requests are as far apart as they can be while all are there, with pauses after
/// which most have left.
fn largest(limit: &str, (amount, period): (u64, u64), cost: u64) -> u64 {
    let (mut key, mut rng) = (Key::new(limit), Rng::new(amount + period + cost));
    let (mut at, mut most) = (0, 0);
    for step in 0..(6 * amount / cost).clamp(6, 20_000) {
        at += (period / amount * cost).max(1);
        if rng.chance(1, 1_000) {
            at += rng.below(period);
        }
        let _either = key.check(at + step % 2, cost);
        most = most.max(log_of(&key.state).heap_bytes());
    }
    assert!(key.check(at + 3 * period, 1).is_allowed());
    assert_eq!(log_of(&key.state).heap_bytes(), 0, "the memory is given back");
    u64::try_from(most).unwrap()
}

/// The figures of `docs/algorithms.md`: a log that is full, its requests evenly spaced, at a time of today.
#[test]
fn the_bytes_of_typical_logs() {
    let mut table = Vec::new();
    for limit in [
        "1/min sliding-log",
        "5/min sliding-log",
        "60/min sliding-log",
        "100/h sliding-log",
        "1000/h sliding-log",
        "10000/h sliding-log",
        "10000/day sliding-log",
        "1000/h sliding-log resolution 10ms",
        "10000/h sliding-log resolution 1s",
        "10000/h sliding-log resolution 1min",
    ] {
        let mut key = Key::new(limit);
        let metered = *key.limit.as_metered().unwrap();
        let amount = metered.amount().get();
        let apart = metered.period().longest().as_nanos() / amount;
        for n in 0..amount {
            // Not to the nanosecond: nobody's clock is.
            let at = 1_700_000_000 * SECOND + n * apart + n * 7_919 % 100_003;
            assert!(key.check(at, 1).is_allowed(), "{limit}");
        }
        let log = log_of(&key.state);
        table.push((limit, log.entries().count(), log.heap_bytes()));
        println!("{limit}: {} entries, {} bytes", log.entries().count(), log.heap_bytes());
    }
    assert_eq!(
        table,
        [
            ("1/min sliding-log", 1, 0),
            ("5/min sliding-log", 5, 112),
            ("60/min sliding-log", 60, 448),
            ("100/h sliding-log", 100, 1_088),
            ("1000/h sliding-log", 1_000, 6_720),
            ("10000/h sliding-log", 10_000, 62_016),
            ("10000/day sliding-log", 10_000, 62_016),
            ("1000/h sliding-log resolution 10ms", 1_000, 6_720),
            ("10000/h sliding-log resolution 1s", 3_601, 22_592),
            ("10000/h sliding-log resolution 1min", 61, 560),
        ]
    );
}
