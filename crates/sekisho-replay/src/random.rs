//! Chance from a seed, in whole numbers: the same seed draws the same on every machine, which `ln` and `powf` of a machine's
//! own library do not promise.

/// `SplitMix64`: small, good enough, and a sequence of its own for every seed.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Returns a generator that draws what this seed always draws.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Draws any number.
    pub const fn any(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Draws a number below `n`; 0 when nothing is below it.
    pub fn below(&mut self, n: u64) -> u64 {
        let wide = u128::from(self.any()) * u128::from(n);
        u64::try_from(wide >> 64).unwrap_or_default() // below n, which fits
    }

    /// Draws from the exponential distribution with mean 1, in units of 2⁻³².
    ///
    /// Von Neumann's method: numbers are drawn while each is below its predecessor. A run of odd length keeps its first number
    /// as the part behind the point; a run of even length adds 1 before the point and is drawn again. Comparisons alone, so
    /// there is no logarithm that machines could disagree on.
    pub fn exponential(&mut self) -> u64 {
        let mut whole = 0_u64;
        loop {
            let first = self.any();
            let (mut last, mut odd) = (first, true);
            loop {
                let next = self.any();
                if next >= last {
                    break;
                }
                (last, odd) = (next, !odd);
            }
            if odd {
                return (whole << 32) | (first >> 32);
            }
            whole += 1;
        }
    }
}

/// Draws keys of which some are asked for far more often than others: the k-th with a weight of `1 / k^skew` (Zipf).
#[derive(Clone, Debug)]
pub struct Zipf {
    // Invariant: one rising sum of weights a key, and not empty.
    sums: Vec<u64>,
}

impl Zipf {
    /// Returns the draw among `keys` keys, at least one; the skew is in thousandths, and 0 draws all alike.
    pub fn new(keys: u32, skew_thousandths: u32) -> Self {
        let mut sum = 0;
        let weights = (1..=u64::from(keys.max(1))).map(|key| {
            sum += weight(key, skew_thousandths);
            sum
        });
        Self { sums: weights.collect() }
    }

    /// Draws a key, from 0.
    pub fn draw(&self, random: &mut Random) -> u32 {
        let total = self.sums.last().copied().unwrap_or(1);
        let drawn = random.below(total);
        u32::try_from(self.sums.partition_point(|sum| *sum <= drawn)).unwrap_or_default()
    }
}

/// Returns `2^40 / key^skew`, at least 1.
fn weight(key: u64, skew_thousandths: u32) -> u64 {
    // The exponent of two, in units of 2⁻³².
    let exponent = u128::from(log2(key)) * u128::from(skew_thousandths) / 1_000;
    let (whole, part) = (exponent >> 32, exponent & 0xFFFF_FFFF);
    let whole = u32::try_from(whole).unwrap_or(u32::MAX);
    let mut weight = 1_u128 << 62;
    // 2^-(1/2), 2^-(1/4), …: each the root of the one before it, in units of 2⁻⁶².
    let mut factor = 1_u128 << 61;
    for bit in (0..32).rev() {
        factor = (factor << 62).isqrt();
        if (part >> bit) & 1 == 1 {
            weight = (weight * factor) >> 62;
        }
    }
    let weight = (weight >> 22).checked_shr(whole).unwrap_or_default();
    u64::try_from(weight).unwrap_or(1).max(1)
}

/// Returns the logarithm to base two of a number from 1, in units of 2⁻³², bit by bit: squaring doubles it.
fn log2(number: u64) -> u64 {
    let whole = u64::from(number.max(1).ilog2());
    let mut mantissa = u128::from(number.max(1)) << (63 - whole);
    let mut result = whole;
    for _ in 0..32 {
        mantissa = (mantissa * mantissa) >> 63;
        result <<= 1;
        if mantissa >> 64 == 1 {
            mantissa >>= 1;
            result |= 1;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_published_sequence() {
        assert_eq!(Random::new(1_234_567).any(), 6_457_827_717_110_365_317);
        let mut random = Random::new(7);
        assert!((0..10_000).all(|n| random.below(n) < n.max(1)));
    }

    #[test]
    fn exponential_waits_have_mean_one_and_the_right_tail() {
        let mut random = Random::new(1);
        let drawn: Vec<_> = (0..100_000).map(|_| random.exponential()).collect();
        let mean = drawn.iter().sum::<u64>() / 100_000;
        let one = 1_u64 << 32;
        assert!(mean > one / 100 * 99 && mean < one / 100 * 101, "{mean}");
        // e⁻¹ of them are above 1, and e⁻³ above 3.
        let above = |n: u64| drawn.iter().filter(|wait| **wait > n * one).count();
        assert!((36_300..37_300).contains(&above(1)), "{}", above(1));
        assert!((4_750..5_250).contains(&above(3)), "{}", above(3));
    }

    #[test]
    fn logarithms_and_weights_are_exact_where_they_are_whole() {
        assert_eq!((log2(1), log2(2), log2(1 << 20)), (0, 1 << 32, 20 << 32));
        assert_eq!(log2(3), 6_807_362_105); // 1.58496250...·2³², cut off
        assert_eq!(
            (weight(1, 1_000), weight(2, 1_000), weight(4, 500)),
            (1 << 40, 1 << 39, 1 << 39)
        );
        let third = weight(3, 1_000);
        assert!(third.abs_diff((1 << 40) / 3) < 1_000, "{third}");
        assert_eq!(weight(1_000_000, 0), 1 << 40);
    }

    #[test]
    fn zipf_prefers_the_first_keys() {
        let (zipf, mut random, mut counts) = (Zipf::new(3, 1_000), Random::new(5), [0_u32; 3]);
        for _ in 0..11_000 {
            counts[zipf.draw(&mut random) as usize] += 1;
        }
        // 6 : 3 : 2
        for (count, wanted) in counts.iter().zip([6_000, 3_000, 2_000]) {
            assert!(count.abs_diff(wanted) < 200, "{counts:?}");
        }
    }
}
