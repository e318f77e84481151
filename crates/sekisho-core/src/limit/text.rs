//! A limit as text, both ways, and the id that its text gives it.

use core::{fmt, num::NonZero, str::FromStr};

use crate::{Algorithm, CalendarUnit, Limit, LimitError, Metered, Period, Rate, Span, Zone};

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let mut words = text.split_ascii_whitespace();
        let first = words.next().ok_or(LimitError::Shape)?;
        if let Some(alone) = match first {
            "block" => Some(Self::Block),
            "unlimited" => Some(Self::Unlimited),
            _ => None,
        } {
            return words.next().map_or(Ok(alone), |_| Err(LimitError::Word));
        }
        let (amount, period) = first.split_once('/').ok_or(LimitError::Shape)?;
        let amount = number(amount).ok_or(LimitError::Amount)?;
        let mut period = parse_period(period)?;
        let (mut burst, mut zone, mut algorithm, mut resolution) = (None, None, None, None);
        while let Some(word) = words.next() {
            match word {
                "resolution" if resolution.is_none() => {
                    resolution = Some(parse_resolution(words.next().unwrap_or_default())?);
                }
                _ if algorithm.is_some() || resolution.is_some() => {
                    return Err(LimitError::Word);
                }
                "burst" if burst.is_none() => {
                    burst = Some(words.next().and_then(number).ok_or(LimitError::Burst)?);
                }
                "zone" if zone.is_none() => {
                    zone = Some(Zone::new(words.next().ok_or(LimitError::Zone)?)?);
                }
                _ => algorithm = Some(Algorithm::from_word(word).ok_or(LimitError::Word)?),
            }
        }
        let by_default = match (&mut period, zone) {
            (Period::Calendar(_, kept), Some(zone)) => {
                *kept = zone;
                Algorithm::FixedWindow
            }
            (Period::Calendar(..), None) => Algorithm::FixedWindow,
            (Period::Fixed(_), Some(_)) => return Err(LimitError::ZoneWithoutCalendar),
            (Period::Fixed(_), None) => Algorithm::TokenBucket,
        };
        let limit =
            Self::metered(Rate::new(amount, period)?, algorithm.unwrap_or(by_default), burst)?;
        resolution.map_or(Ok(limit), |resolution| limit.with_resolution(resolution))
    }
}

fn parse_resolution(text: &str) -> Result<Span, LimitError> {
    text.parse().map_err(|error| {
        if error == LimitError::ZeroPeriod {
            LimitError::ZeroResolution
        } else if error == LimitError::LongPeriod {
            LimitError::LongResolution
        } else {
            LimitError::Resolution
        }
    })
}

/// Reads digits alone: no sign, no blank, nothing else.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn parse_period(text: &str) -> Result<Period, LimitError> {
    for unit in [CalendarUnit::Day, CalendarUnit::Month] {
        if text == unit.as_str() {
            return Ok(Period::Calendar(unit, Zone::UTC));
        }
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = text.split_at_checked(digits).ok_or(LimitError::Period)?;
    let unit = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" | "sec" | "second" => SECOND,
        "m" | "min" | "minute" => 60 * SECOND,
        "h" | "hour" => 3_600 * SECOND,
        "d" | "day" => 86_400 * SECOND,
        "w" | "week" => 7 * 86_400 * SECOND,
        _ => return Err(LimitError::Period),
    };
    let count = match count {
        "" => 1,
        _ => number(count).ok_or(LimitError::LongPeriod)?,
    };
    Period::fixed(Span::from_nanos(count.checked_mul(unit).ok_or(LimitError::LongPeriod)?))
}

/// A length of time as a period is written, its number included: `500ms`, `2s`, `1h`. No calendar has a length.
///
/// ```
/// # use sekisho_core::Span;
/// assert_eq!("2s".parse(), Ok(Span::from_secs(2)));
/// assert!(["", "s", "2", "2 s", "-1s", "month", "0s"].iter().all(|text| text.parse::<Span>().is_err()));
/// ```
impl FromStr for Span {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        match parse_period(text)? {
            Period::Fixed(ns) if text.starts_with(|first: char| first.is_ascii_digit()) => {
                Ok(Self::from_nanos(ns.get()))
            }
            Period::Fixed(_) | Period::Calendar(..) => Err(LimitError::Period),
        }
    }
}

const SECOND: u64 = 1_000_000_000;

/// The units of canonical text, largest first.
const UNITS: [(u64, &str); 8] = [
    (7 * 86_400 * SECOND, "week"),
    (86_400 * SECOND, "day"),
    (3_600 * SECOND, "h"),
    (60 * SECOND, "min"),
    (SECOND, "s"),
    (1_000_000, "ms"),
    (1_000, "us"),
    (1, "ns"),
];

/// Returns how many of the largest unit that divides the period it has, and that unit.
fn in_largest_unit(period: NonZero<u64>, units: &[(u64, &'static str)]) -> (u64, &'static str) {
    for (unit, name) in units {
        if let Some(0) = period.get().checked_rem(*unit) {
            return (period.get().checked_div(*unit).unwrap_or_default(), name);
        }
    }
    (period.get(), "ns")
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block => f.write_str("block"),
            Self::Unlimited => f.write_str("unlimited"),
            Self::Metered(metered) => metered.fmt(f),
        }
    }
}

impl fmt::Display for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.amount())?;
        let zone = match self.period() {
            Period::Fixed(period) => {
                let (count, unit) = in_largest_unit(*period, &UNITS);
                if count != 1 {
                    write!(f, "{count}")?;
                }
                f.write_str(unit)?;
                None
            }
            Period::Calendar(unit, zone) => {
                f.write_str(unit.as_str())?;
                (*zone != Zone::UTC).then_some(zone)
            }
        };
        let default = match self.algorithm() {
            Algorithm::TokenBucket => self.amount().get(),
            Algorithm::FixedWindow
            | Algorithm::AnchoredWindow
            | Algorithm::SlidingLog
            | Algorithm::SlidingWindow
            | Algorithm::LeakyQueue => 0,
        };
        if self.burst() != default {
            write!(f, " burst {}", self.burst())?;
        }
        if let Some(zone) = zone {
            write!(f, " zone {}", zone.as_str())?;
        }
        write!(f, " {}", self.algorithm())?;
        match NonZero::new(self.resolution().as_nanos()) {
            Some(resolution) if resolution.get() > 1 => {
                let (count, unit) = in_largest_unit(resolution, &UNITS);
                write!(f, " resolution {count}{unit}")
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The id that a limit has when none is given: `<period>-<algorithm>`, as in `60s-token-bucket`. The amount is not part of it,
/// so a changed number keeps its state; nor is the resolution of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitId<'a>(&'a Metered);

impl Metered {
    /// Returns the id that this limit has when none is given.
    ///
    /// ```
    /// # use sekisho_core::Limit;
    /// let limit: Limit = "60/min".parse()?;
    /// assert_eq!(limit.as_metered().map(|metered| metered.id().to_string()).as_deref(), Some("60s-token-bucket"));
    /// # Ok::<(), sekisho_core::LimitError>(())
    /// ```
    pub const fn id(&self) -> LimitId<'_> {
        LimitId(self)
    }
}

impl fmt::Display for LimitId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.period() {
            Period::Fixed(period) => {
                let (count, unit) = in_largest_unit(*period, UNITS.get(4..).unwrap_or_default());
                write!(f, "{count}{unit}")?;
            }
            Period::Calendar(unit, _) => f.write_str(unit.as_str())?,
        }
        write!(f, "-{}", self.0.algorithm())
    }
}
