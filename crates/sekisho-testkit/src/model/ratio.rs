//! Unbounded fractions, just enough of them.

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Sub};

use num_bigint::{BigInt, Sign};

/// A fraction. It is not reduced: equal terms are struck out where they meet, which keeps a limit's
/// denominators at L and P.
#[derive(Clone, Debug)]
pub(super) struct Ratio {
    num: BigInt,
    den: BigInt, // above zero
}

impl Ratio {
    /// `num / den`, with `den` above zero.
    pub(super) fn new(num: impl Into<BigInt>, den: impl Into<BigInt>) -> Self {
        let (num, den) = (num.into(), den.into());
        assert!(den.sign() == Sign::Plus, "a denominator is above zero");
        Self { num, den }
    }

    /// A whole number.
    pub(super) fn whole(value: impl Into<BigInt>) -> Self {
        Self::new(value, 1)
    }

    /// The largest whole number that is not more, held within `u64`.
    pub(super) fn floor(&self) -> u64 {
        if self.num.sign() == Sign::Minus {
            return 0;
        }
        u64::try_from(&self.num / &self.den).unwrap_or(u64::MAX)
    }

    /// The smallest whole number that is not less, held within `u64`.
    pub(super) fn ceil(&self) -> u64 {
        if self.num.sign() == Sign::Minus {
            return 0;
        }
        u64::try_from((&self.num + &self.den - 1) / &self.den).unwrap_or(u64::MAX)
    }
}

impl Add for Ratio {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        if self.den == other.den {
            return Self { num: self.num + other.num, den: self.den };
        }
        Self { num: self.num * &other.den + other.num * &self.den, den: self.den * other.den }
    }
}

impl Sub for Ratio {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + Self { num: -other.num, den: other.den }
    }
}

impl Mul for Ratio {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        if self.den == other.num {
            return Self { num: self.num, den: other.den };
        }
        if self.num == other.den {
            return Self { num: other.num, den: self.den };
        }
        Self { num: self.num * other.num, den: self.den * other.den }
    }
}

impl Div for Ratio {
    type Output = Self;
    /// Only rates and intervals divide, and they are above zero.
    #[expect(clippy::suspicious_arithmetic_impl, reason = "dividing is multiplying by the inverse")]
    fn div(self, other: Self) -> Self {
        self * Self::new(other.den, other.num)
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.den == other.den {
            return self.num.cmp(&other.num);
        }
        (&self.num * &other.den).cmp(&(&other.num * &self.den))
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ratio {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_behave() {
        let third = || Ratio::new(1, 3);
        assert_eq!(third() + Ratio::new(1, 6), Ratio::new(1, 2));
        assert_eq!(third() - Ratio::new(1, 2), Ratio::new(-1, 6));
        assert_eq!(third() * Ratio::new(3, 7), Ratio::new(1, 7));
        assert_eq!(Ratio::new(7, 5) * Ratio::new(3, 7), Ratio::new(3, 5));
        assert_eq!(third() / Ratio::new(2, 5), Ratio::new(5, 6));
        assert!(third() > Ratio::new(33, 100) && third() < Ratio::new(34, 100));
    }

    #[test]
    fn rounding_goes_to_the_named_side_and_stays_in_range() {
        assert_eq!((Ratio::new(7, 3).floor(), Ratio::new(7, 3).ceil()), (2, 3));
        assert_eq!((Ratio::new(6, 3).floor(), Ratio::new(6, 3).ceil()), (2, 2));
        assert_eq!((Ratio::new(-1, 3).floor(), Ratio::new(-1, 3).ceil()), (0, 0));
        assert_eq!(Ratio::whole(u128::MAX).ceil(), u64::MAX);
    }
}
