//! The arrivals that reach a limit's bound, and what the simulator passes of them.
//!
//! A bound is a claim; a pattern that reaches it is its proof. Where none can (see [`Limit::bound`]), what is found is less, and
//! is shown as it is.

use sekisho::{
    Algorithm, Calendar, Limit, Metered, Outcome, Period, Span, StoreError, Timestamp, Zones,
};

use crate::{
    simulate::Simulation,
    trace::{Arrival, NO_KEY},
};

/// The most requests of a pattern.
pub const PATTERN_MAX: u64 = 100_000;

/// Arrivals that try for the most, and what they got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worst {
    /// The arrivals, in order. Some may come before the stretch, to prepare it.
    pub arrivals: Vec<Arrival>,
    /// The most units that the simulator passes in a stretch of that length.
    pub found: u128,
}

/// Why there is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Untried {
    /// Everything passes.
    #[error("`unlimited` has no worst case")]
    Unlimited,
    /// It would be too long.
    #[error("the arrivals would be more than {PATTERN_MAX}: take a shorter stretch")]
    TooLong,
    /// There is no instant in the stretch.
    #[error("the stretch has no instant")]
    Empty,
    /// The store could not decide.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns arrivals that get the most out of a stretch of time: `[t, t + within]` when closed, else `[t, t + within)`.
///
/// ```
/// use sekisho::{Limit, Span};
/// use sekisho_replay::worst::worst;
///
/// let (limit, minute): (Limit, Span) = ("60/min burst 10".parse()?, Span::from_secs(60));
/// assert_eq!(worst(&limit, minute, true)?.found, 70);
/// assert_eq!(Some(worst(&limit, minute, true)?.found), limit.bound(minute).closed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Untried`].
pub fn worst(limit: &Limit, within: Span, closed: bool) -> Result<Worst, Untried> {
    let span = within.as_nanos();
    let last = if closed { Some(span) } else { span.checked_sub(1) };
    let last = last.ok_or(Untried::Empty)?;
    let metered = match limit {
        Limit::Unlimited => return Err(Untried::Unlimited),
        Limit::Block => return tried(limit, &[], &[0], last),
        Limit::Metered(metered) => metered,
    };
    let period = metered.period().shortest().as_nanos();
    match metered.algorithm() {
        Algorithm::FixedWindow => tried(limit, &[], &window_starts(metered, last)?, last),
        Algorithm::SlidingLog => {
            // What came at 0 leaves after a period. What comes then is entered at the next instant of the resolution.
            let mut times = vec![0];
            let apart = period.next_multiple_of(metered.resolution().as_nanos());
            times.extend(every(period, apart, last)?);
            tried(limit, &[], &times, last)
        }
        Algorithm::AnchoredWindow => {
            let inside = tried(limit, &[], &every(0, period, last)?, last)?;
            // A unit that comes before the stretch opens the window whose last instant begins it.
            let mut times = vec![period - 1];
            times.extend(every(period, period, (period - 1).saturating_add(last))?);
            let before = tried(limit, &[0], &times, last)?;
            Ok(if before.found > inside.found && period > 1 { before } else { inside })
        }
        Algorithm::SlidingWindow => {
            // The last instant of each window, where the one before it weighs least.
            let end = (period - 1).saturating_add(last);
            let mut times = every(period - 1, period, end)?;
            times.push(end);
            tried(limit, &[], &times, last)
        }
        Algorithm::TokenBucket | Algorithm::LeakyQueue => {
            tried(limit, &[], &refills(metered, period, last)?, last)
        }
    }
}

/// Takes one unit at each of the first times, then all there is at each of the others, and counts what a fresh simulator passes
/// of that.
fn tried(limit: &Limit, first: &[u64], times: &[u64], last: u64) -> Result<Worst, Untried> {
    let simulation = Simulation::new(vec![*limit]);
    let arrival =
        |ns: u64, cost| Arrival { at: Timestamp::from_nanos(ns), key: NO_KEY.to_owned(), cost };
    let mut arrivals = Vec::new();
    for ns in first {
        arrivals.push(arrival(*ns, 1));
        simulation.decide(&arrival(*ns, 1))?;
    }
    for ns in times {
        let look = simulation.decide(&arrival(*ns, 0))?;
        // What `block` leaves is nothing; one that asks shows it.
        let left = look.verdicts.first().and_then(|verdict| verdict.remaining).unwrap_or_default();
        let none = matches!(limit, Limit::Block);
        if left > 0 || none {
            arrivals.push(arrival(*ns, left.max(1)));
            simulation.decide(&arrival(*ns, left.max(1)))?;
        }
    }
    let found = most(limit, &arrivals, last)?;
    Ok(Worst { arrivals, found })
}

/// Returns the most units that a fresh simulator passes of the arrivals in any `[t, t + last]`.
fn most(limit: &Limit, arrivals: &[Arrival], last: u64) -> Result<u128, Untried> {
    let simulation = Simulation::new(vec![*limit]);
    let (mut passed, mut from) = (Vec::new(), 0);
    let (mut sum, mut most) = (0_u128, 0_u128);
    for arrival in arrivals {
        let allowed = simulation.decide(arrival)?.joint().outcome == Outcome::Allow;
        let units = if allowed { u128::from(arrival.cost) } else { 0 };
        passed.push((arrival.at, units));
        sum += units;
        while arrival.at.since(passed[from].0) > Span::from_nanos(last) {
            sum -= passed[from].1;
            from += 1;
        }
        most = most.max(sum);
    }
    Ok(most)
}

/// Returns `first`, `first + step`, … up to `end`.
fn every(first: u64, step: u64, end: u64) -> Result<Vec<u64>, Untried> {
    let steps = end.saturating_sub(first) / step.max(1);
    if steps >= PATTERN_MAX {
        return Err(Untried::TooLong);
    }
    let times = (0..=steps).filter_map(|number| first.checked_add(number.checked_mul(step)?));
    Ok(times.filter(|ns| *ns <= end).collect())
}

/// Returns the last instant of a window, and the first of each after it within the stretch.
fn window_starts(metered: &Metered, last: u64) -> Result<Vec<u64>, Untried> {
    let (unit, zone) = match metered.period() {
        Period::Fixed(ns) => {
            let before = ns.get() - 1;
            let mut times = vec![before];
            if last > 0 {
                times.extend(every(ns.get(), ns.get(), before.saturating_add(last))?);
            }
            return Ok(times);
        }
        Period::Calendar(unit, zone) => (unit, zone),
    };
    // Calendar windows differ in length: of some years' windows, the one that is followed by the most.
    let mut at = Timestamp::from_secs(FIRST_CALENDAR_SECOND);
    let mut starts = Vec::new();
    let mut end = None;
    while starts.len() < CALENDAR_WINDOWS || end.is_some_and(|end| at <= end) {
        if starts.len() as u64 > PATTERN_MAX {
            return Err(Untried::TooLong);
        }
        starts.push(at.as_nanos());
        at = Zones.window(*unit, zone, at).end;
        if starts.len() == CALENDAR_WINDOWS {
            end = Some(at.plus(Span::from_nanos(last)));
        }
    }
    let followers = |first: usize| {
        let end = (starts[first] - 1).saturating_add(last);
        starts.partition_point(|start| *start <= end).max(first)
    };
    let best =
        (1..CALENDAR_WINDOWS).max_by_key(|first| (followers(*first) - first, usize::MAX - first));
    let best = best.unwrap_or(1);
    let mut times = vec![starts[best] - 1];
    times.extend(&starts[best..followers(best)]);
    Ok(times)
}

/// 2025-01-02: no zone's day or month that holds it began before the year did.
const FIRST_CALENDAR_SECOND: u64 = 1_735_776_000;
/// How many calendar windows the stretch may begin with: two years of days, sixty of months.
const CALENDAR_WINDOWS: usize = 730;

/// Returns when to take what has come back: often enough that the bucket is never full, so that nothing is lost.
fn refills(metered: &Metered, period: u64, last: u64) -> Result<Vec<u64>, Untried> {
    let (amount, wide) = (u128::from(metered.amount().get()), u128::from(period));
    let narrow = |ns: u128| u64::try_from(ns).unwrap_or(u64::MAX);
    let whole_interval = narrow(wide.div_ceil(amount)).max(1);
    let units = amount * u128::from(last) / wide;
    let mut times = match metered.capacity() {
        // Full as soon as its one unit is back: whatever part of a nanosecond passes then is lost.
        1 => every(0, whole_interval, last)?,
        // One by one, as they come back.
        _ if units < u128::from(PATTERN_MAX) => {
            (0..=units).map(|unit| narrow((unit * wide).div_ceil(amount))).collect()
        }
        capacity => every(0, narrow(u128::from(capacity - 1) * wide / amount).max(1), last)?,
    };
    times.push(last);
    times.dedup();
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limit: &str, within: Span) {
        let limit: Limit = limit.parse().unwrap();
        let bound = limit.bound(within);
        for (closed, bound) in [(false, bound.half_open), (true, bound.closed)] {
            match worst(&limit, within, closed) {
                Ok(worst) => assert_eq!(Some(worst.found), bound, "{limit} {within} {closed}"),
                Err(Untried::Empty) => assert!(within.is_zero() && !closed, "{limit}"),
                Err(error) => panic!("{limit}: {error}"),
            }
        }
    }

    #[test]
    fn every_algorithm_reaches_its_bound() {
        let minute = [
            0,
            1,
            2,
            1_000_000_000,
            59_999_999_999,
            60_000_000_000,
            60_000_000_001,
            150_000_000_000,
            3_600_000_000_000,
        ];
        for limit in [
            "60/min fixed-window",
            "60/min anchored-window",
            "60/min sliding-log",
            "60/min sliding-log resolution 7s",
            "60/min sliding-window",
            "60/min",
            "60/min burst 10",
            "60/min burst 1",
            "7/min burst 3",
            "1/min anchored-window",
            "60/min burst 10 leaky-queue",
            "60/min leaky-queue",
            "1000000/s burst 1000000",
            "18446744073709551615/s fixed-window",
            "5/calendar-day fixed-window",
            "block",
        ] {
            for ns in minute {
                check(limit, Span::from_nanos(ns));
            }
        }
        for limit in [
            "2/3ns fixed-window",
            "2/3ns sliding-window",
            "3/4ns sliding-window",
            "2/3ns anchored-window",
            "2/1ns anchored-window",
            "2/3ns sliding-log",
            "2/3ns sliding-log resolution 2ns",
            "2/3ns sliding-log resolution 3ns",
            "2/3ns burst 2",
            "1/2ns burst 1 leaky-queue",
        ] {
            for ns in 0..50 {
                check(limit, Span::from_nanos(ns));
            }
        }
        check("5/calendar-month", Span::from_secs(28 * 86_400));
        check("5/calendar-day", Span::from_secs(500 * 86_400));
    }

    #[test]
    fn what_cannot_be_reached_is_shown_as_it_is() {
        let (limit, minute) = ("7/min burst 1".parse::<Limit>().unwrap(), Span::from_secs(60));
        assert_eq!(
            (worst(&limit, minute, true).unwrap().found, limit.bound(minute).closed),
            (7, Some(8))
        );
        let limit: Limit = "5/calendar-month".parse().unwrap();
        let months = Span::from_secs(3 * 28 * 86_400);
        assert_eq!(
            (worst(&limit, months, true).unwrap().found, limit.bound(months).closed),
            (20, Some(20))
        );
        let months = Span::from_secs(13 * 28 * 86_400);
        assert!(worst(&limit, months, true).unwrap().found < limit.bound(months).closed.unwrap());
        assert_eq!(worst(&Limit::Unlimited, minute, true), Err(Untried::Unlimited));
        let year = Span::from_secs(365 * 86_400);
        assert_eq!(worst(&"1/s sliding-log".parse().unwrap(), year, true), Err(Untried::TooLong));
    }
}
