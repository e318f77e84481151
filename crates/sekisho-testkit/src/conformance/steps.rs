//! The lines of a trace: when, what is asked, what is to be said of it.
//!
//! ```text
//! # time                      | call              | what is expected
//! 0                           | cost 2            | allow remaining 1 reset 20s
//! 0 x3                        | key bob           | deny retry 20s
//! 0.1 every 0.1 times 99      |                   | admit 31 most-remaining 1
//! 0 every 0.1 for 86400       |                   | admit 10086
//! 5                           | cost 2 refund at 0 | allow remaining 3
//! ```
//!
//! A line's calls share its expectation; `admit` counts those that were allowed. A cost may be one for each limit, `cost 1,5`, and
//! so may what is `left` of each.

use sekisho::{Mode, Outcome, Span, Timestamp};

use super::decimal::{instant, seconds, span};

/// One line of a trace: a call, or several alike.
#[derive(Clone, Debug)]
pub struct Step {
    /// The line as it is written.
    pub text: String,
    /// When the first call comes.
    pub first: Timestamp,
    /// How long after it the next comes, and so on.
    pub every: Span,
    /// How many come.
    pub count: u64,
    /// Who calls.
    pub key: String,
    /// What each limit is charged; one for all, or one each.
    pub costs: Vec<u64>,
    /// How it is charged.
    pub mode: Mode,
    /// What is to be said.
    pub expected: Expected,
}

/// What is to be said of a line's calls.
#[derive(Clone, Debug)]
pub enum Expected {
    /// The same of each.
    Each(Outcome, Numbers),
    /// Something of all of them together.
    Together {
        /// How many are allowed.
        admitted: u64,
        /// Each call's outcome as a letter: A, D or N.
        pattern: Option<String>,
        /// The most that any of them leaves.
        most_remaining: Option<u64>,
    },
}

/// The numbers of an answer, as far as a line names them.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// What the binding limit has left; `None` inside for `unlimited`.
    pub remaining: Option<Option<u64>>,
    /// How long a denied request has to wait.
    pub retry: Option<Span>,
    /// How long until the key is as good as new.
    pub reset: Option<Span>,
    /// How long an admitted request waits for its slot.
    pub delay: Option<Span>,
    /// Which limit binds, from 1.
    pub binding: Option<usize>,
    /// What each limit has left.
    pub left: Option<Vec<u64>>,
}

type Words<'a> = std::iter::Peekable<std::str::SplitAsciiWhitespace<'a>>;

impl Step {
    /// Reads a line; `None` for an empty one or a remark.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(line: &str) -> Result<Option<Self>, String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let parts: Vec<&str> = line.split('|').collect();
        let [times, call, expected] = parts.as_slice() else {
            return Err(format!("`{line}` is not `time | call | what is expected`"));
        };
        let read = || {
            let (first, every, count) = read_times(times)?;
            let (key, costs, mode) = read_call(call)?;
            let expected = read_expected(expected)?;
            Ok(Self { text: line.to_owned(), first, every, count, key, costs, mode, expected })
        };
        read().map(Some).map_err(|why: String| format!("`{line}`: {why}"))
    }

    /// Returns when each call comes.
    pub fn times(&self) -> impl Iterator<Item = Timestamp> + use<> {
        let (first, every) = (self.first, self.every.as_nanos());
        (0..self.count).map(move |n| first.plus(Span::from_nanos(every.saturating_mul(n))))
    }

    /// Returns what the limit of that index is charged.
    pub fn cost(&self, index: usize) -> u64 {
        self.costs.get(index).or(self.costs.first()).copied().unwrap_or(1)
    }
}

fn read_times(text: &str) -> Result<(Timestamp, Span, u64), String> {
    let mut words = text.split_ascii_whitespace().peekable();
    let first = instant(next(&mut words, "a time")?)?;
    let Some(word) = words.next() else { return Ok((first, Span::ZERO, 1)) };
    if let Some(count) = word.strip_prefix('x') {
        return Ok((first, Span::ZERO, number(count)?));
    }
    if word != "every" {
        return Err(format!("`{word}` after a time is neither `x` with a number nor `every`"));
    }
    let every = seconds(next(&mut words, "a time after `every`")?)?;
    let count = match (words.next(), words.next()) {
        (Some("times"), Some(count)) => number(count)?,
        (Some("for"), Some(total)) if every > 0 => seconds(total)?.div_ceil(every),
        _ => return Err("`every` is followed by `times <n>` or `for <seconds>`".to_owned()),
    };
    Ok((first, Span::from_nanos(every), count))
}

fn read_call(text: &str) -> Result<(String, Vec<u64>, Mode), String> {
    let (mut key, mut costs, mut mode) = ("-".to_owned(), vec![1], Mode::Check);
    let mut words = text.split_ascii_whitespace().peekable();
    while let Some(word) = words.next() {
        match word {
            "key" => next(&mut words, "a key")?.clone_into(&mut key),
            "cost" => costs = numbers(next(&mut words, "a cost")?)?,
            "check" => mode = Mode::Check,
            "look" => mode = Mode::Look,
            "force" => mode = Mode::Force,
            "refund" if words.next_if_eq(&"at").is_some() => {
                mode = Mode::Refund { at: instant(next(&mut words, "a time after `at`")?)? };
            }
            _ => return Err(format!("`{word}` is no part of a call")),
        }
    }
    Ok((key, costs, mode))
}

fn read_expected(text: &str) -> Result<Expected, String> {
    let mut words = text.split_ascii_whitespace().peekable();
    let word = next(&mut words, "an outcome")?;
    let outcome = match word {
        "allow" => Outcome::Allow,
        "deny" => Outcome::Deny,
        "never" => Outcome::Never,
        "admit" => return read_together(&mut words),
        _ => return Err(format!("`{word}` is not allow, deny, never or admit")),
    };
    let mut numbers_of = Numbers::default();
    while let Some(word) = words.next() {
        let value = next(&mut words, word)?;
        match word {
            "remaining" if value == "none" => numbers_of.remaining = Some(None),
            "remaining" => numbers_of.remaining = Some(Some(number(value)?)),
            "retry" => numbers_of.retry = Some(span(value)?),
            "reset" => numbers_of.reset = Some(span(value)?),
            "delay" => numbers_of.delay = Some(span(value)?),
            "binding" => numbers_of.binding = usize::try_from(number(value)?).ok(),
            "left" => numbers_of.left = Some(numbers(value)?),
            _ => return Err(format!("`{word}` is no number of an answer")),
        }
    }
    Ok(Expected::Each(outcome, numbers_of))
}

fn read_together(words: &mut Words<'_>) -> Result<Expected, String> {
    let admitted = number(next(words, "a number after `admit`")?)?;
    let (mut pattern, mut most_remaining) = (None, None);
    while let Some(word) = words.next() {
        let value = next(words, word)?;
        match word {
            "pattern" => pattern = Some(value.to_owned()),
            "most-remaining" => most_remaining = Some(number(value)?),
            _ => return Err(format!("`{word}` does not go with `admit`")),
        }
    }
    Ok(Expected::Together { admitted, pattern, most_remaining })
}

fn next<'a>(words: &mut Words<'a>, what: &str) -> Result<&'a str, String> {
    words.next().ok_or_else(|| format!("{what} is missing, or what belongs to it"))
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no whole number"))
}

fn numbers(text: &str) -> Result<Vec<u64>, String> {
    text.split(',').map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(line: &str) -> Step {
        Step::parse(line).unwrap().unwrap()
    }

    #[test]
    fn lines_are_read() {
        let of = step("0.5 x3 | key bob cost 2,5 force | allow remaining 1 left 1,7 binding 2");
        assert_eq!((of.count, of.key.as_str(), of.mode), (3, "bob", Mode::Force));
        assert_eq!((of.cost(0), of.cost(1)), (2, 5));
        let Expected::Each(Outcome::Allow, numbers) = of.expected else { panic!("not each") };
        assert_eq!((numbers.remaining, numbers.binding), (Some(Some(1)), Some(2)));
        assert_eq!(numbers.left, Some(vec![1, 7]));
    }

    #[test]
    fn repeated_calls_have_their_times() {
        let of = step("10 every 0.25 for 1 | | admit 2 pattern AADD most-remaining 1");
        let times: Vec<u64> = of.times().map(|at| at.as_nanos() / 1_000_000).collect();
        assert_eq!(times, [10_000, 10_250, 10_500, 10_750]);
        assert_eq!(step("0 every 30 times 120 | | admit 60").times().count(), 120);
    }

    #[test]
    fn wrong_lines_say_what_is_wrong() {
        for (line, said) in [
            ("0 | cost 1", "is not `time"),
            ("0 y3 | | allow", "`y3`"),
            ("0 every 0 for 3 | | admit 1", "`every`"),
            ("0 | cost 1.5 | allow", "`1.5`"),
            ("0 | refund | allow", "`refund`"),
            ("0 | | allow retry", "retry"),
            ("0 | | deny retry 5", "`5`"),
            ("0 | | admit 3 remaining 1", "does not go"),
        ] {
            let why = Step::parse(line).unwrap_err();
            assert!(why.contains(said), "{line}: {why}");
        }
        assert!(Step::parse("  # a remark").unwrap().is_none());
    }
}
