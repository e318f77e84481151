//! Commands as they stand in a buffer: arrays of bulk strings (RESP2 and RESP3 have the same), or lines of words.

use std::ops::Range;

use smallvec::SmallVec;

use crate::limits::{RESP_ARGS_MAX, RESP_BULK_BYTES_MAX, RESP_LINE_BYTES_MAX};

/// The words of a command, most often no more than a `CL.THROTTLE` has.
type Ranges = SmallVec<[Range<usize>; 8]>;

/// A command: its words, the name first.
#[derive(Debug, Default)]
pub struct Words {
    /// The words of a line, unquoted; empty for an array, whose words are where they were read.
    line: Vec<u8>,
    ranges: Ranges,
    /// Where the array begins in the buffer.
    begin: usize,
}

impl Words {
    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns whether there is none: a line may be empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns one of them, out of the buffer that they were read from; empty when there is none of that number.
    pub fn get<'a>(&'a self, buffer: &'a [u8], index: usize) -> &'a [u8] {
        let Some(range) = self.ranges.get(index) else { return b"" };
        if self.line.is_empty() {
            buffer.get(self.begin + range.start..self.begin + range.end).unwrap_or_default()
        } else {
            self.line.get(range.clone()).unwrap_or_default()
        }
    }
}

/// What a buffer begins with.
#[derive(Debug)]
pub enum Parsed {
    /// A command, and how many bytes it takes.
    Command(Words, usize),
    /// The beginning of one.
    Incomplete,
    /// Nothing that can be read: the connection ends with these words.
    Garbage(String),
}

/// Reads the command that begins at `begin` of a buffer.
pub fn parse(buffer: &[u8], begin: usize) -> Parsed {
    let bytes = buffer.get(begin..).unwrap_or_default();
    let parsed = match bytes.first() {
        None => return Parsed::Incomplete,
        Some(b'*') => array(bytes),
        Some(_) => line(bytes),
    };
    match parsed {
        Ok(Some((mut words, length))) => {
            words.begin = begin;
            Parsed::Command(words, length)
        }
        Ok(None) => Parsed::Incomplete,
        Err(message) => Parsed::Garbage(message),
    }
}

type Found = Result<Option<(Words, usize)>, String>;

fn array(bytes: &[u8]) -> Found {
    let bad_count = || "invalid multibulk length".to_owned();
    let Some((count, mut at)) = number(bytes, 1).map_err(|()| bad_count())? else {
        return Ok(None);
    };
    // An array of nothing is no command, as is one that is not there.
    let count = usize::try_from(count).unwrap_or(0);
    if count > RESP_ARGS_MAX {
        return Err(bad_count());
    }
    let mut ranges = Ranges::with_capacity(count);
    for _ in 0..count {
        match bytes.get(at) {
            None => return Ok(None),
            Some(b'$') => {}
            Some(other) => {
                return Err(format!("expected '$', got '{}'", other.escape_ascii()));
            }
        }
        let bad_length = || "invalid bulk length".to_owned();
        let Some((length, start)) = number(bytes, at + 1).map_err(|()| bad_length())? else {
            return Ok(None);
        };
        let length = usize::try_from(length).ok().filter(|length| *length <= RESP_BULK_BYTES_MAX);
        let end = start + length.ok_or_else(bad_length)?;
        match bytes.get(end..end + 2) {
            None => return Ok(None),
            Some(b"\r\n") => {}
            Some(_) => return Err(bad_length()),
        }
        ranges.push(start..end);
        at = end + 2;
    }
    Ok(Some((Words { line: Vec::new(), ranges, begin: 0 }, at)))
}

/// The most bytes of a number and its sign.
const NUMBER_BYTES_MAX: usize = 20;

/// Reads a number that ends its line. Returns it and where the next line begins; nothing when more has to come.
fn number(bytes: &[u8], begin: usize) -> Result<Option<(i64, usize)>, ()> {
    let rest = bytes.get(begin..).unwrap_or_default();
    let Some(end) = rest.iter().take(NUMBER_BYTES_MAX + 1).position(|byte| *byte == b'\r') else {
        return if rest.len() > NUMBER_BYTES_MAX { Err(()) } else { Ok(None) };
    };
    match rest.get(end + 1) {
        None => return Ok(None),
        Some(b'\n') => {}
        Some(_) => return Err(()),
    }
    let value = rest.get(..end).and_then(integer).ok_or(())?;
    Ok(Some((value, begin + end + 2)))
}

/// Reads a whole number as Redis does: no blanks, no plus sign, no zero in front.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = match digits {
        [] => false,
        [b'0'] => digits.len() == text.len(),
        [first, rest @ ..] => matches!(first, b'1'..=b'9') && rest.iter().all(u8::is_ascii_digit),
    };
    if plain { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

/// Reads a line of words, as somebody types them: in quotes where they have blanks.
fn line(bytes: &[u8]) -> Found {
    let Some(end) = bytes.iter().take(RESP_LINE_BYTES_MAX).position(|byte| *byte == b'\n') else {
        if bytes.len() >= RESP_LINE_BYTES_MAX {
            return Err("too big inline request".to_owned());
        }
        return Ok(None);
    };
    let text = bytes.get(..end).unwrap_or_default();
    let mut rest = text.strip_suffix(b"\r").unwrap_or(text);
    let mut words = Words::default();
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            break;
        }
        if words.ranges.len() == RESP_ARGS_MAX {
            return Err("too many words in a line".to_owned());
        }
        let start = words.line.len();
        rest =
            word(rest, &mut words.line).ok_or_else(|| "unbalanced quotes in request".to_owned())?;
        words.ranges.push(start..words.line.len());
    }
    // A line of empty quotes has a word and no bytes: one that nobody looks at tells it from an array.
    if !words.ranges.is_empty() {
        words.line.push(0);
    }
    Ok(Some((words, end + 1)))
}

/// Takes one word off, and returns what follows.
fn word<'a>(mut rest: &'a [u8], to: &mut Vec<u8>) -> Option<&'a [u8]> {
    while let [first, tail @ ..] = rest {
        match first {
            b'"' => {
                rest = quoted(tail, to)?;
                break;
            }
            b'\'' => {
                rest = single(tail, to)?;
                break;
            }
            byte if byte.is_ascii_whitespace() => return Some(rest),
            byte => to.push(*byte),
        }
        rest = tail;
    }
    // A closing quote ends its word.
    let ends = rest.first().is_none_or(u8::is_ascii_whitespace);
    ends.then_some(rest)
}

fn quoted<'a>(mut rest: &'a [u8], to: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [b'"', tail @ ..] => return Some(tail),
            [b'\\', b'x', high, low, tail @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0);
                to.push(u8::try_from(digit(high) << 4 | digit(low)).unwrap_or(0));
                tail
            }
            [b'\\', escaped, tail @ ..] => {
                to.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                tail
            }
            [byte, tail @ ..] => {
                to.push(*byte);
                tail
            }
            [] => return None,
        };
    }
}

fn single<'a>(mut rest: &'a [u8], to: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [b'\'', tail @ ..] => return Some(tail),
            [b'\\', b'\'', tail @ ..] => {
                to.push(b'\'');
                tail
            }
            [byte, tail @ ..] => {
                to.push(*byte);
                tail
            }
            [] => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        match parse(text.as_bytes(), 0) {
            Parsed::Command(words, length) => {
                assert_eq!(length, text.len());
                let word = |index| String::from_utf8_lossy(words.get(text.as_bytes(), index));
                (0..words.len()).map(|index| word(index).into_owned()).collect()
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn arrays_and_lines_are_the_same_words() {
        for text in [
            "*3\r\n$4\r\nECHO\r\n$0\r\n\r\n$3\r\na b\r\n",
            "ECHO \"\" \"a b\"\r\n",
            "  ECHO '' 'a b'  \n",
            "ECHO\t\"\"   \"a\\x20b\"\r\n",
        ] {
            assert_eq!(words(text), ["ECHO", "", "a b"], "{text:?}");
        }
        assert_eq!(words("\"\"\r\n"), [""]);
        assert_eq!(words("a\"b c\"\r\n"), ["ab c"]);
        assert_eq!(words("\"\\n\\\"\\q\" 'it\\'s'\n"), ["\n\"q", "it's"]);
        for nothing in ["\r\n", "\n", "  \n", "*0\r\n", "*-1\r\n"] {
            assert_eq!(words(nothing), [""; 0], "{nothing:?}");
        }
    }

    #[test]
    fn every_beginning_waits_for_the_rest() {
        for text in ["*2\r\n$4\r\nECHO\r\n$2\r\n\r\n\r\n", "ECHO 'x y'\r\n"] {
            for end in 0..text.len() {
                let parsed = parse(&text.as_bytes()[..end], 0);
                assert!(matches!(parsed, Parsed::Incomplete), "{:?}: {parsed:?}", &text[..end]);
            }
        }
    }

    #[test]
    fn garbage_is_said_to_be_that() {
        let long = "a".repeat(RESP_LINE_BYTES_MAX);
        for (text, wanted) in [
            ("*x\r\n", "invalid multibulk length"),
            ("*1\rx", "invalid multibulk length"),
            ("*+1\r\n", "invalid multibulk length"),
            ("*01\r\n", "invalid multibulk length"),
            ("*1000000\r\n", "invalid multibulk length"),
            ("*99999999999999999999999", "invalid multibulk length"),
            ("*1\r\n:1\r\n", "expected '$', got ':'"),
            ("*1\r\n\r\n", "expected '$', got '\\r'"),
            ("*1\r\n$-1\r\n", "invalid bulk length"),
            ("*1\r\n$536870912\r\n", "invalid bulk length"),
            ("*1\r\n$1\r\nab\r\n", "invalid bulk length"),
            ("\"a\r\n", "unbalanced quotes in request"),
            ("'a'b\r\n", "unbalanced quotes in request"),
            (long.as_str(), "too big inline request"),
        ] {
            match parse(text.as_bytes(), 0) {
                Parsed::Garbage(said) => assert_eq!(said, wanted, "{text:?}"),
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }
}
