//! An arrival pattern as text, like `even 2/s for 2min` or `bursts 50 every 1min for 10min from 30s`, and the arrivals that it
//! means.

mod text;

use sekisho::{Rate, Span, Timestamp};

pub use self::text::{PatternError, span};
use crate::random::Random;

/// The most arrivals of one run, those that come back included.
pub const ARRIVALS_MAX: u64 = 10_000_000;
/// The most that one request of an experiment costs: the units of a whole run then fit into its counts.
pub const COST_MAX: u64 = 1_000_000_000;

/// When requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    shape: Shape,
    /// How long they come.
    lasting: Span,
    /// When the first may come.
    from: Span,
    /// What each of them costs.
    cost: u64,
}

/// How they follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// At equal distances.
    Even(Rate),
    /// At random, each without regard to the others.
    Poisson(Rate),
    /// So many at once, again and again.
    Bursts(u64, Span),
    /// Evenly for a while, then not at all for a while.
    OnOff(Rate, Span, Span),
    /// Evenly, from one rate to another.
    Ramp(Rate, Rate),
}

/// One request of a run: when, who (a number), and how many units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it comes.
    pub at: Timestamp,
    /// Who it comes from: a place in the list of names.
    pub key: u32,
    /// How many units it asks for.
    pub cost: u64,
}

impl Pattern {
    /// Returns what each request costs.
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Calls `arrive` with the instant of each arrival, in order, until it says that it has enough.
    pub fn each(&self, random: &mut Random, mut arrive: impl FnMut(Timestamp) -> bool) {
        let from = Timestamp::EPOCH.plus(self.from);
        let lasting = self.lasting.as_nanos();
        let mut at = |ns: u64| ns < lasting && arrive(from.plus(Span::from_nanos(ns)));
        match &self.shape {
            Shape::Even(rate) => {
                let mut number = 0;
                while at(nth(rate, number)) {
                    number += 1;
                }
            }
            Shape::Poisson(rate) => poisson(rate, random, at),
            Shape::Bursts(size, every) => {
                let mut start = 0_u64;
                while start < lasting && (0..*size).all(|_| at(start)) {
                    start = start.saturating_add(every.as_nanos());
                }
            }
            Shape::OnOff(rate, on, off) => {
                let mut start = 0_u64;
                let mut phase = |start: u64| {
                    let offsets = (0..).map(|number| nth(rate, number));
                    let mut offsets = offsets.take_while(|offset| *offset < on.as_nanos());
                    offsets.all(|offset| at(start.saturating_add(offset)))
                };
                while start < lasting && phase(start) {
                    start = start.saturating_add(on.as_nanos() + off.as_nanos());
                }
            }
            Shape::Ramp(first, last) => ramp(first, last, lasting, at),
        }
    }
}

/// Returns the instant of the n-th arrival at an even rate, rounded down.
fn nth(rate: &Rate, number: u64) -> u64 {
    let period = u128::from(rate.period().shortest().as_nanos());
    let ns = u128::from(number) * period / u128::from(rate.amount().get());
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// Waits are exponential. They are summed in units of 2⁻³² ns, so that rounding does not change the rate.
fn poisson(rate: &Rate, random: &mut Random, mut at: impl FnMut(u64) -> bool) {
    let period = u128::from(rate.period().shortest().as_nanos());
    let amount = u128::from(rate.amount().get());
    let mut sum = 0_u128;
    loop {
        sum = sum.saturating_add(u128::from(random.exponential()) * period / amount);
        if !at(u64::try_from(sum >> 32).unwrap_or(u64::MAX)) {
            return;
        }
    }
}

/// The n-th arrival comes when the area under the rate is n: `first·t + (last − first)·t² / (2·lasting) = n`.
///
/// Floats, since they only place arrivals; sums, products, quotients and roots of them are the same on every machine.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "instants that are made up need no more than 53 bits"
)]
fn ramp(first: &Rate, last: &Rate, lasting: u64, mut at: impl FnMut(u64) -> bool) {
    let per_ns =
        |rate: &Rate| rate.amount().get() as f64 / rate.period().shortest().as_nanos() as f64;
    let (first, last) = (per_ns(first), per_ns(last));
    let slope = (last - first) / lasting as f64;
    let mut number = 0_u64;
    loop {
        let n = number as f64;
        let square = first * first + 2.0 * slope * n;
        // A rate that falls never reaches this number.
        if square < 0.0 {
            return;
        }
        let ns = 2.0 * n / (first + square.sqrt());
        if !at(ns.round() as u64) {
            return;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(text: &str) -> Vec<u64> {
        let mut times = Vec::new();
        text.parse::<Pattern>().unwrap().each(&mut Random::new(3), |at| {
            times.push(at.as_nanos() / 1_000_000);
            true
        });
        times
    }

    #[test]
    fn each_pattern_means_what_it_says() {
        assert_eq!(times("even 2/s for 2s"), [0, 500, 1_000, 1_500]);
        assert_eq!(times("even 3/s for 1s from 10s"), [10_000, 10_333, 10_666]);
        assert_eq!(times("bursts 2 every 10s for 11s from 1s"), [1_000, 1_000, 11_000, 11_000]);
        assert_eq!(
            times("on-off 2/s on 1s off 2s for 5s"),
            [0, 500, 3_000, 3_500],
            "the pause is a pause"
        );
        // One a second rising to three: after t seconds of two there are t + t²/2.
        assert_eq!(times("ramp 1/s to 3/s for 2s"), [0, 732, 1_236, 1_645]);
        assert_eq!(times("ramp 2/s to 2/s for 2s"), [0, 500, 1_000, 1_500]);
        assert_eq!(times("ramp 3/s to 1/s for 2s"), [0, 354, 763, 1_267]);
    }

    #[test]
    fn random_arrivals_keep_their_rate_and_their_seed() {
        let drawn = times("poisson 100/s for 100s");
        assert!((9_700..10_300).contains(&drawn.len()), "{}", drawn.len());
        assert_eq!(drawn, times("poisson 100/s for 100s"));
        assert!(drawn.is_sorted());
        assert_eq!(&drawn[..4], &times("poisson 100/s for 1s")[..4]);
    }

    #[test]
    fn whoever_has_enough_gets_no_more() {
        for text in [
            "even 1000000000/s for 1week",
            "poisson 1000000000/s for 1week",
            "bursts 18446744073709551615 every 1ns for 1week",
            "on-off 1000000000/s on 1week off 1ns for 2week",
            "ramp 1000000000/s to 1/week for 1week",
        ] {
            let mut left = 1_000;
            text.parse::<Pattern>().unwrap().each(&mut Random::new(1), |_| {
                left -= 1;
                left > 0
            });
            assert_eq!(left, 0, "{text}");
        }
    }
}
