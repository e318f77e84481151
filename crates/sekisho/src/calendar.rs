//! Calendar windows in the zones of the IANA database, which is built in: no zone files are needed on the machine.

use jiff::{civil::Date, tz::TimeZone};
use sekisho_core::{Calendar, CalendarUnit, Timestamp, Utc, Window, Zone};

/// The calendar of every zone in the IANA database.
#[derive(Clone, Copy, Debug, Default)]
pub struct Zones;

impl Zones {
    /// Returns whether the database has a zone of that name.
    pub fn knows(zone: &Zone) -> bool {
        TimeZone::get(zone.as_str()).is_ok()
    }
}

impl Calendar for Zones {
    fn window(&self, unit: CalendarUnit, zone: &Zone, at: Timestamp) -> Window {
        // An unknown zone is refused when a policy is read; here it can only be UTC.
        if *zone == Zone::UTC {
            return Utc.window(unit, zone, at);
        }
        local(unit, zone, at).unwrap_or_else(|| Utc.window(unit, zone, at))
    }
}

fn local(unit: CalendarUnit, zone: &Zone, at: Timestamp) -> Option<Window> {
    let zone = TimeZone::get(zone.as_str()).ok()?;
    let instant = jiff::Timestamp::from_nanosecond(i128::from(at.as_nanos())).ok()?;
    let here = zone.to_datetime(instant).date();
    let (first, after) = match unit {
        CalendarUnit::Day => (here, here.tomorrow().ok()?),
        CalendarUnit::Month => (here.first_of_month(), here.last_of_month().tomorrow().ok()?),
    };
    // Where a clock change skips midnight the day begins after it; where it repeats midnight, with the first.
    let nanos = |date: Date| {
        let instant = date.to_zoned_datetime(zone.clone()).ok()?.timestamp();
        u64::try_from(instant.as_nanosecond()).ok().map(Timestamp::from_nanos)
    };
    // A window that began before the epoch begins with it.
    Some(Window { start: nanos(first).unwrap_or(Timestamp::EPOCH), end: nanos(after)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(unit: CalendarUnit, zone: &str, at: &str) -> (String, String) {
        let at: jiff::Timestamp = at.parse().unwrap();
        let at = Timestamp::from_nanos(u64::try_from(at.as_nanosecond()).unwrap());
        let window = Zones.window(unit, &Zone::new(zone).unwrap(), at);
        let text = |of: Timestamp| {
            jiff::Timestamp::from_nanosecond(i128::from(of.as_nanos())).unwrap().to_string()
        };
        (text(window.start), text(window.end))
    }

    #[test]
    fn a_day_in_tokyo_starts_at_fifteen_hundred() {
        let (start, end) = window(CalendarUnit::Day, "Asia/Tokyo", "2026-08-21T14:59:59.999Z");
        assert_eq!(
            (start.as_str(), end.as_str()),
            ("2026-08-20T15:00:00Z", "2026-08-21T15:00:00Z")
        );
    }

    #[test]
    fn a_day_with_a_clock_change_is_as_long_as_it_is() {
        let (start, end) = window(CalendarUnit::Day, "Europe/Berlin", "2026-03-29T12:00:00Z");
        assert_eq!(
            (start.as_str(), end.as_str()),
            ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z")
        );
    }

    #[test]
    fn months_are_whole_in_any_zone() {
        let (start, end) = window(CalendarUnit::Month, "Asia/Tokyo", "2026-02-28T15:00:00Z");
        assert_eq!(
            (start.as_str(), end.as_str()),
            ("2026-02-28T15:00:00Z", "2026-03-31T15:00:00Z")
        );
        let utc = window(CalendarUnit::Month, "UTC", "2026-08-22T01:00:00Z");
        assert_eq!(utc.0, "2026-08-01T00:00:00Z");
    }

    #[test]
    fn unknown_zones_are_known_to_be_unknown() {
        assert!(Zones::knows(&Zone::new("Asia/Tokyo").unwrap()));
        assert!(!Zones::knows(&Zone::new("Asia/Edo").unwrap()));
    }
}
