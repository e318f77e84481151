//! Limits and calls made up from a seed: the same seed, the same tests, on every machine.

use crate::model::{Algorithm, Mode, ModelLimit};

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;
const LONGEST_PERIOD: u64 = 3_650 * DAY;
const LONGEST_WAIT: u64 = 36_500 * DAY;
/// The last stamp there is.
const LAST: u64 = 10_000_000_000_000_000_000;

/// `SplitMix64`: small, good enough, and its own sequence for every seed.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// A generator of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Any number at all.
    pub fn any(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    ///
    /// # Panics
    ///
    /// When `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "nothing is below zero");
        let wide = u128::from(self.any()) * u128::from(n);
        u64::try_from(wide >> 64).unwrap_or(0) // below n, which fits
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below((high - low).saturating_add(1))
    }

    /// True `num` times in `den`.
    pub fn chance(&mut self, num: u64, den: u64) -> bool {
        self.below(den) < num
    }

    /// One of `items`, of which there is at least one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let place = self.below(items.len() as u64);
        &items[usize::try_from(place).unwrap_or(0)]
    }
}

/// A limit within the bounds that limits have, of any algorithm and of very different sizes.
pub fn random_limit(rng: &mut Rng) -> ModelLimit {
    let algorithm = *rng.pick(&[
        Algorithm::FixedWindow,
        Algorithm::AnchoredWindow,
        Algorithm::SlidingLog,
        Algorithm::SlidingWindow,
        Algorithm::TokenBucket,
        Algorithm::LeakyQueue,
    ]);
    let (amount, period_ns) = random_rate(rng);
    let burst = match algorithm {
        Algorithm::TokenBucket => random_burst(rng, amount, period_ns).max(1),
        Algorithm::LeakyQueue => random_burst(rng, amount, period_ns),
        _ => 0,
    };
    let resolution_ns = match algorithm {
        Algorithm::SlidingLog => random_resolution(rng, period_ns),
        _ => 1,
    };
    ModelLimit { algorithm, amount, period_ns, burst, resolution_ns }
}

fn random_resolution(rng: &mut Rng, period_ns: u64) -> u64 {
    match rng.below(8) {
        0..3 => 1,
        3 => period_ns,
        4 => (period_ns / 2).max(1),
        5 => (period_ns / 10).max(1),
        6 => rng.between(1, period_ns.min(5)),
        _ => rng.between(1, period_ns),
    }
}

fn random_rate(rng: &mut Rng) -> (u64, u64) {
    match rng.below(12) {
        0..4 => {
            (rng.between(1, 10), *rng.pick(&[10, 100, 1_000, SECOND, 10 * SECOND, 60 * SECOND]))
        }
        4..6 => *rng.pick(&[
            (7, 60 * SECOND),
            (3, 10 * SECOND),
            (7, 10),
            (11, 13),
            (999_999, SECOND),
            (1_000, 86_400 * SECOND),
        ]),
        6 => *rng.pick(&[(3_000_000_000, SECOND), (SECOND + 7, SECOND), (u64::MAX / 3, SECOND)]),
        7 => (u64::MAX - rng.below(3), rng.between(1, LONGEST_PERIOD)),
        8 => (rng.between(1, 20), rng.between(1, 5)),
        9 => (rng.between(1, 50), LONGEST_PERIOD - rng.below(3)),
        10 => (rng.between(1, 1_000), rng.between(1, LONGEST_PERIOD)),
        _ => {
            let (bits, period_bits) = (rng.below(64), rng.below(58));
            (rng.between(1, (1 << bits) | 1), rng.between(1, 1 << period_bits))
        }
    }
}

fn random_burst(rng: &mut Rng, amount: u64, period_ns: u64) -> u64 {
    let most = u128::from(LONGEST_WAIT) * u128::from(amount) / u128::from(period_ns);
    let most = u64::try_from(most).unwrap_or(u64::MAX).min(u64::MAX - 1);
    let burst = match rng.below(8) {
        0 => rng.below(2),
        1..4 => amount,
        4..7 => rng.below(20),
        _ => most - rng.below(2).min(most),
    };
    burst.min(most)
}

/// A call that follows one stamped `previous_t`: mostly close to an instant at which something
/// changes.
pub fn random_call(rng: &mut Rng, limit: &ModelLimit, previous_t: u64) -> (u64, u64, Mode) {
    let t = random_time(rng, limit, previous_t);
    let n = random_cost(rng, limit);
    match rng.below(100) {
        0..76 => (t, n, Mode::Check),
        76..83 => (t, n, Mode::Look),
        83..90 => (t, n, Mode::Force),
        _ => (t, n, Mode::Refund { at: random_at(rng, limit, previous_t, t) }),
    }
}

fn random_time(rng: &mut Rng, limit: &ModelLimit, previous_t: u64) -> u64 {
    let (before, period) = (u128::from(previous_t), u128::from(limit.period_ns));
    let units = |n: u128| n * period / u128::from(limit.amount);
    let small = u128::from(rng.below(4));
    let target = match rng.below(100) {
        0..25 => return previous_t,
        25..45 => before + units(small + 1),
        45..55 => before + units(u128::from(random_cost(rng, limit)).min(limit.capacity())),
        55..65 => (before / period + 1 + small / 2) * period,
        70..72 if limit.resolution_ns > 1 => {
            let resolution = u128::from(limit.resolution_ns);
            (before / resolution + small / 2) * resolution
        }
        65..72 => before + period,
        72..78 => before + units(limit.capacity()),
        78..88 => before + u128::from(rng.below(limit.period_ns)),
        88..90 => before + u128::from(rng.below(20 * 365 * DAY)),
        90..96 => before.saturating_sub(u128::from(rng.below(limit.period_ns))),
        96..98 => before.saturating_sub(3 * period),
        // The two ends of time are far from most traces: seldom.
        _ if rng.chance(1, 40) => *rng.pick(&[0, u128::from(LAST)]),
        _ => before,
    };
    let nudged = (target + u128::from(rng.below(3))).saturating_sub(1);
    u64::try_from(nudged).unwrap_or(LAST).min(LAST)
}

fn random_cost(rng: &mut Rng, limit: &ModelLimit) -> u64 {
    let capacity = u64::try_from(limit.capacity()).unwrap_or(u64::MAX);
    match rng.below(100) {
        0..50 => 1,
        50..60 => 2,
        60..65 => 0,
        65..72 => capacity,
        72..75 => capacity.saturating_add(1),
        75..85 => rng.between(0, capacity),
        85..92 => capacity / 2,
        92..95 => capacity / 3 + 1,
        95..99 => rng.below(5),
        _ => u64::MAX,
    }
}

fn random_at(rng: &mut Rng, limit: &ModelLimit, previous_t: u64, t: u64) -> u64 {
    match rng.below(10) {
        0..6 => previous_t,
        6 => t,
        7 => (previous_t / limit.period_ns) * limit.period_ns,
        8 => previous_t.saturating_sub(rng.below(limit.period_ns)),
        _ => previous_t.saturating_add(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_sequence() {
        let draw =
            |seed| (0..5).map(|_| 0).scan(Rng::new(seed), |rng, _| Some(rng.any())).collect();
        let (one, again, other): (Vec<u64>, Vec<u64>, Vec<u64>) = (draw(1), draw(1), draw(2));
        assert_eq!(one, again);
        assert_ne!(one, other);
        assert_eq!(Rng::new(1_234_567).any(), 6_457_827_717_110_365_317); // the published first output
    }

    #[test]
    fn limits_and_calls_stay_within_the_bounds() {
        let mut rng = Rng::new(7);
        for _ in 0..20_000 {
            let limit = random_limit(&mut rng);
            assert!(limit.amount >= 1 && limit.period_ns >= 1, "{limit:?}");
            assert!(limit.period_ns <= LONGEST_PERIOD, "{limit:?}");
            assert!((1..=limit.period_ns).contains(&limit.resolution_ns), "{limit:?}");
            assert!(limit.capacity() >= 1 && limit.capacity() <= u128::from(u64::MAX), "{limit:?}");
            let wait =
                u128::from(limit.burst) * u128::from(limit.period_ns) / u128::from(limit.amount);
            assert!(wait <= u128::from(LONGEST_WAIT), "{limit:?}");
            let mut t = 1_700_000_000 * SECOND;
            for _ in 0..20 {
                t = random_call(&mut rng, &limit, t).0;
                assert!(t <= LAST);
            }
        }
    }
}
