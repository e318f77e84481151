//! Times as they are written in a case: decimal seconds, to the nanosecond.

use sekisho::{Span, Timestamp};

const SECOND: u64 = 1_000_000_000;

/// Reads decimal seconds, as in `59.999`.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no number of seconds with at most nine places");
    let (whole, places) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(places) || places.len() > 9 {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let nanos: u64 = format!("{places:0<9}").parse().map_err(|_| wrong())?;
    whole.checked_mul(SECOND).and_then(|ns| ns.checked_add(nanos)).ok_or_else(wrong)
}

/// Reads an instant.
pub(super) fn instant(text: &str) -> Result<Timestamp, String> {
    seconds(text).map(Timestamp::from_nanos)
}

/// Reads a length of time: `0.8s`, or `1ns` for whole nanoseconds.
pub(super) fn span(text: &str) -> Result<Span, String> {
    let wrong = || format!("`{text}` is no length of time like `0.8s` or `1ns`");
    if let Some(nanos) = text.strip_suffix("ns") {
        return nanos.parse().map(Span::from_nanos).map_err(|_| wrong());
    }
    let text = text.strip_suffix('s').ok_or_else(wrong)?;
    seconds(text).map(Span::from_nanos)
}

/// Writes an instant as it is read.
pub(super) fn written(at: Timestamp) -> String {
    let (whole, nanos) = (at.as_nanos() / SECOND, at.as_nanos() % SECOND);
    let places = format!("{nanos:09}");
    match places.trim_end_matches('0') {
        "" => whole.to_string(),
        places => format!("{whole}.{places}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_to_the_nanosecond() {
        assert_eq!(seconds("59.999"), Ok(59_999_000_000));
        assert_eq!(seconds("0.000000001"), Ok(1));
        assert_eq!(span("0.8s").map(Span::as_nanos), Ok(800_000_000));
        assert_eq!(span("7ns").map(Span::as_nanos), Ok(7));
        for wrong in ["", ".5", "1.", "-1", "1e3", "0.0000000001", "99999999999999"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        assert!(span("1").is_err() && span("1min").is_err());
    }

    #[test]
    fn instants_are_written_as_they_are_read() {
        for text in ["0", "59.999", "1700000000.000000001"] {
            assert_eq!(instant(text).map(written), Ok(text.to_owned()));
        }
    }
}
