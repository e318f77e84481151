//! A trace: one arrival a line, `seconds[,key[,cost]]`.

mod read;

use sekisho::{Timestamp, core::limits};

pub use self::read::{Batches, Numbered, Reader, TraceError};

/// The most bytes of one line, its end included. A longer one is wrong.
pub const LINE_BYTES_MAX: u64 = 1 << 16;

/// One request of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it came.
    pub at: Timestamp,
    /// Who it came from; `-` when the trace does not say.
    pub key: String,
    /// How many units it asks for.
    pub cost: u64,
}

/// The key of a request whose line names none.
pub const NO_KEY: &str = "-";

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// It is not UTF-8.
    #[error("the line is not UTF-8")]
    Utf8,
    /// It is too long, or never ends.
    #[error("the line has more than {LINE_BYTES_MAX} bytes")]
    Long,
    /// More than three fields.
    #[error("a line is `seconds[,key[,cost]]`: there are more than three fields")]
    Fields,
    /// The seconds are no decimal with up to nine places.
    #[error("the seconds are a decimal with up to nine places, like `100.5`, at least 0")]
    Seconds,
    /// The seconds lie after the end of time.
    #[error("the seconds are at most 10000000000, which is the year 2286")]
    TooLate,
    /// The time is no whole number of microseconds, and the store counts in those.
    #[error("times on this store are whole microseconds: at most six places of a second")]
    Microseconds,
    /// The cost is no whole number.
    #[error("the cost is a whole number from 0 to 18446744073709551615")]
    Cost,
}

/// Reads one line, without its newline. An empty line and one that begins with `#` are skipped: `None`.
///
/// ```
/// use sekisho_replay::trace::{LineError, parse_line};
///
/// let arrival = parse_line(b"100.5,alice,3")?.expect("a request");
/// assert_eq!((arrival.at.as_nanos(), arrival.key.as_str(), arrival.cost), (100_500_000_000, "alice", 3));
/// assert_eq!(parse_line(b"# a comment")?, None);
/// assert_eq!(parse_line(b"-1"), Err(LineError::Seconds));
/// # Ok::<(), LineError>(())
/// ```
///
/// # Errors
/// [`LineError`] for anything else.
pub fn parse_line(line: &[u8]) -> Result<Option<Arrival>, LineError> {
    // Whoever reads a line reads no more of it than this, so a longer one is seen here without its end.
    if line.len() as u64 >= LINE_BYTES_MAX {
        return Err(LineError::Long);
    }
    let line = std::str::from_utf8(line).map_err(|_| LineError::Utf8)?;
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let mut fields = line.split(',');
    let at = parse_seconds(fields.next().unwrap_or_default())?;
    let key = fields.next().filter(|key| !key.is_empty()).unwrap_or(NO_KEY);
    let cost = match fields.next() {
        None => 1,
        Some(cost) => whole(cost).ok_or(LineError::Cost)?,
    };
    if fields.next().is_some() {
        return Err(LineError::Fields);
    }
    Ok(Some(Arrival { at, key: key.to_owned(), cost }))
}

/// Reads a decimal number of seconds with up to nine places.
///
/// # Errors
/// [`LineError::Seconds`] or [`LineError::TooLate`].
pub fn parse_seconds(text: &str) -> Result<Timestamp, LineError> {
    let (whole_part, places) = match text.split_once('.') {
        Some((_, "")) => return Err(LineError::Seconds),
        Some((whole, places)) => (whole, places),
        None => (text, ""),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole_part.is_empty() || !digits(whole_part) || !digits(places) || places.len() > 9 {
        return Err(LineError::Seconds);
    }
    let seconds = whole(whole_part).ok_or(LineError::TooLate)?;
    let nanos = whole(&format!("{places:0<9}")).ok_or(LineError::Seconds)?;
    let total = seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(nanos));
    let total = total.filter(|ns| *ns <= limits::TIMESTAMP_NS_MAX).ok_or(LineError::TooLate)?;
    Ok(Timestamp::from_nanos(total))
}

/// Writes an instant as seconds without trailing zeros.
///
/// ```
/// use sekisho_replay::trace::{parse_seconds, seconds};
///
/// assert_eq!(seconds(parse_seconds("100.500")?), "100.5");
/// assert_eq!(seconds(parse_seconds("7")?), "7");
/// # Ok::<(), sekisho_replay::trace::LineError>(())
/// ```
pub fn seconds(at: Timestamp) -> String {
    let (whole, places) = (at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000);
    if places == 0 {
        return whole.to_string();
    }
    let places = format!("{places:09}");
    format!("{whole}.{}", places.trim_end_matches('0'))
}

/// Reads digits alone.
fn whole(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_bad_line_is_named() {
        for (line, error) in [
            ("x", LineError::Seconds),
            ("-1", LineError::Seconds),
            ("+1", LineError::Seconds),
            ("1e3", LineError::Seconds),
            ("1.", LineError::Seconds),
            (".5", LineError::Seconds),
            (" 1", LineError::Seconds),
            ("1.0000000001", LineError::Seconds),
            ("10000000000.000000001", LineError::TooLate),
            ("99999999999999999999999", LineError::TooLate),
            ("1,k,", LineError::Cost),
            ("1,k,-1", LineError::Cost),
            ("1,k,1.5", LineError::Cost),
            ("1,k,18446744073709551616", LineError::Cost),
            ("1,k,1,", LineError::Fields),
            (",k", LineError::Seconds),
        ] {
            assert_eq!(parse_line(line.as_bytes()), Err(error), "{line}");
        }
        assert_eq!(parse_line(b"\xff"), Err(LineError::Utf8));
    }

    #[test]
    fn absent_fields_have_their_defaults() {
        let arrival = |line: &str| parse_line(line.as_bytes()).unwrap().unwrap();
        assert_eq!(arrival("5"), arrival("5,"));
        assert_eq!(arrival("5,-,1"), arrival("5.000,,1\r"));
        assert_eq!(arrival("5,a b,0").cost, 0);
        assert_eq!(parse_line(b""), Ok(None));
    }
}
