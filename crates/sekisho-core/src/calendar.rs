//! Calendar windows. Their boundaries come from outside, because they are facts about a time zone, not arithmetic.

use core::{fmt, str};

use crate::{LimitError, Span, Timestamp, limits};

/// Which calendar window a limit counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CalendarUnit {
    /// From midnight to midnight; as long as that day is.
    Day,
    /// From the first of a month to the first of the next.
    Month,
}

impl CalendarUnit {
    /// Returns the word used in a limit's text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "calendar-day",
            Self::Month => "calendar-month",
        }
    }

    /// Returns a length that no such window exceeds: clocks go back by an hour.
    pub const fn longest(self) -> Span {
        match self {
            Self::Day => Span::from_secs(25 * 3_600),
            Self::Month => Span::from_secs((31 * 24 + 1) * 3_600),
        }
    }

    /// Returns a length that every such window reaches: one zone's clocks go forward by two hours.
    pub const fn shortest(self) -> Span {
        match self {
            Self::Day => Span::from_secs(22 * 3_600),
            Self::Month => Span::from_secs((28 * 24 - 2) * 3_600),
        }
    }
}

/// The name of a time zone as the IANA database spells it, kept inline so that a limit stays a plain value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Zone {
    // Invariant: ASCII letters, digits, `/`, `_`, `-` and `+`, at least one; zero bytes after them.
    name: [u8; limits::ZONE_BYTES_MAX],
}

impl Zone {
    /// Coordinated universal time, the default.
    pub const UTC: Self = {
        let mut name = [0; limits::ZONE_BYTES_MAX];
        let [u, t, c, ..] = &mut name;
        (*u, *t, *c) = (b'U', b'T', b'C');
        Self { name }
    };

    /// Returns the zone of that name. Whether the name exists is for the [`Calendar`] to say.
    ///
    /// # Errors
    /// [`LimitError::Zone`] when it is empty, too long, or has a character that no zone's name has.
    pub fn new(name: &str) -> Result<Self, LimitError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/_-+".contains(&byte);
        if name.is_empty() || !name.bytes().all(allowed) {
            return Err(LimitError::Zone);
        }
        let mut inline = [0; limits::ZONE_BYTES_MAX];
        inline.get_mut(..name.len()).ok_or(LimitError::Zone)?.copy_from_slice(name.as_bytes());
        Ok(Self { name: inline })
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        let bytes = self.name.split(|byte| *byte == 0).next().unwrap_or_default();
        str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.as_str())
    }
}

/// A half-open stretch of time, `[start, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Its first instant.
    pub start: Timestamp,
    /// The first instant after it.
    pub end: Timestamp,
}

/// Knows where calendar windows begin and end.
pub trait Calendar {
    /// Returns the window of `unit` in `zone` that holds `at`.
    fn window(&self, unit: CalendarUnit, zone: &Zone, at: Timestamp) -> Window;
}

/// The calendar of a world with one zone: every zone is UTC.
#[derive(Clone, Copy, Debug, Default)]
pub struct Utc;

impl Calendar for Utc {
    fn window(&self, unit: CalendarUnit, _zone: &Zone, at: Timestamp) -> Window {
        let day = at.as_nanos() / limits::DAY_NS;
        let (first, after) = match unit {
            CalendarUnit::Day => (day, day.saturating_add(1)),
            CalendarUnit::Month => month_of(day),
        };
        let instant = |day: u64| Timestamp::beyond(day.saturating_mul(limits::DAY_NS));
        Window { start: instant(first), end: instant(after) }
    }
}

/// Returns the first day of the month that holds `day`, and of the next, in days since the epoch.
fn month_of(day: u64) -> (u64, u64) {
    const LENGTHS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut start = 0_u64;
    // The end of time is 317 years away, so counting is quick enough for a window that is kept a month.
    for year in 1970_u64.. {
        let in_year = if leap(year) { 366 } else { 365 };
        if start.saturating_add(in_year) <= day {
            start = start.saturating_add(in_year);
            continue;
        }
        for (month, length) in LENGTHS.into_iter().enumerate() {
            let end =
                start.saturating_add(length).saturating_add(u64::from(month == 1 && leap(year)));
            if day < end {
                return (start, end);
            }
            start = end;
        }
    }
    (start, start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_in_utc_are_true_months() {
        let at =
            |seconds| Utc.window(CalendarUnit::Month, &Zone::UTC, Timestamp::from_secs(seconds));
        // 2024-02-29T12:00:00Z lies in the February that has 29 days.
        let window = at(1_709_208_000);
        assert_eq!(window.start, Timestamp::from_secs(1_706_745_600));
        assert_eq!(window.end, Timestamp::from_secs(1_709_251_200));
        assert_eq!(at(0).end, Timestamp::from_secs(31 * 86_400));
        assert_eq!(at(1_709_251_200).start, window.end);
    }

    #[test]
    fn a_zone_keeps_its_name() {
        assert_eq!(Zone::new("Asia/Tokyo").map(|zone| zone.as_str().len()), Ok(10));
        assert_eq!(Zone::UTC.as_str(), "UTC");
        for bad in ["", "Asia Tokyo", "Asia/東京", "x".repeat(41).as_str()] {
            assert_eq!(Zone::new(bad), Err(LimitError::Zone), "{bad}");
        }
    }

    extern crate std;
    use std::prelude::v1::*;
}
