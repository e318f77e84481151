//! A pattern's text: a word that says how requests follow each other, and words with a value behind them, as a limit is written.

use std::{fmt, str::FromStr};

use sekisho::{Limit, Metered, Period, Rate, Span};

use super::{COST_MAX, Pattern, Shape};

/// What is wrong with a pattern's text, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(String);

impl PatternError {
    fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

/// The forms that there are, for whoever writes another.
const FORMS: &str = "`even RATE`, `poisson RATE`, `bursts N every TIME`, `on-off RATE on TIME off TIME` or `ramp RATE to RATE`, \
                     and then `for TIME`, as in `even 2/s for 2min`";

impl FromStr for Pattern {
    type Err = PatternError;

    /// ```
    /// use sekisho_replay::pattern::Pattern;
    ///
    /// let pattern: Pattern = "bursts 50 every 1min for 10min from 30s".parse()?;
    /// assert_eq!(pattern.cost(), 1);
    /// let error = "even 2/s".parse::<Pattern>().unwrap_err();
    /// assert_eq!(error.to_string(), "`for` is missing: say how long they come, as in `for 2min`");
    /// # Ok::<(), sekisho_replay::pattern::PatternError>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, PatternError> {
        let mut words = Words { words: text.split_ascii_whitespace() };
        let shape = shape(&mut words)?;
        let (mut lasting, mut from, mut cost) = (None, None, None);
        while let Some(word) = words.words.next() {
            match word {
                "for" if lasting.is_none() => lasting = Some(words.time("for")?),
                "from" if from.is_none() => from = Some(words.time("from")?),
                "cost" if cost.is_none() => cost = Some(words.cost()?),
                "for" | "from" | "cost" => {
                    return Err(PatternError(format!("`{word}` stands there twice")));
                }
                _ => {
                    return Err(PatternError(format!(
                        "`{word}` has no meaning here: after the pattern come `for TIME`, `from TIME` and `cost N`"
                    )));
                }
            }
        }
        let Some(lasting) = lasting else {
            return Err(PatternError::new(
                "`for` is missing: say how long they come, as in `for 2min`",
            ));
        };
        Ok(Self { shape, lasting, from: from.unwrap_or(Span::ZERO), cost: cost.unwrap_or(1) })
    }
}

fn shape(words: &mut Words<'_>) -> Result<Shape, PatternError> {
    let Some(word) = words.words.next() else {
        return Err(PatternError(format!("the pattern is empty: write {FORMS}")));
    };
    Ok(match word {
        "even" => Shape::Even(words.rate("even")?),
        "poisson" => Shape::Poisson(words.rate("poisson")?),
        "bursts" => {
            let size = words.number("bursts")?;
            words.keyword("every")?;
            Shape::Bursts(size, words.time("every")?)
        }
        "on-off" => {
            let rate = words.rate("on-off")?;
            words.keyword("on")?;
            let on = words.time("on")?;
            words.keyword("off")?;
            Shape::OnOff(rate, on, words.time("off")?)
        }
        "ramp" => {
            let first = words.rate("ramp")?;
            words.keyword("to")?;
            Shape::Ramp(first, words.rate("to")?)
        }
        _ => return Err(PatternError(format!("`{word}` is no pattern: write {FORMS}"))),
    })
}

struct Words<'a> {
    words: std::str::SplitAsciiWhitespace<'a>,
}

impl Words<'_> {
    fn cost(&mut self) -> Result<u64, PatternError> {
        let cost = self.number("cost")?;
        if cost > COST_MAX {
            return Err(PatternError(format!("a request costs at most {COST_MAX}, not {cost}")));
        }
        Ok(cost)
    }

    fn keyword(&mut self, wanted: &str) -> Result<(), PatternError> {
        match self.words.next() {
            Some(word) if word == wanted => Ok(()),
            Some(word) => {
                Err(PatternError(format!("`{wanted}` comes before `{word}`: write {FORMS}")))
            }
            None => Err(PatternError(format!("`{wanted}` is missing: write {FORMS}"))),
        }
    }

    fn rate(&mut self, after: &str) -> Result<Rate, PatternError> {
        let word = self.words.next().unwrap_or_default();
        rate(word).ok_or_else(|| {
            PatternError(format!(
                "after `{after}` comes a rate like `2/s` or `100/min`, not `{word}`"
            ))
        })
    }

    fn time(&mut self, after: &str) -> Result<Span, PatternError> {
        let word = self.words.next().unwrap_or_default();
        span(word).map_err(|error| PatternError(format!("after `{after}`: {error}")))
    }

    fn number(&mut self, after: &str) -> Result<u64, PatternError> {
        let word = self.words.next().unwrap_or_default();
        let digits = word.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| word.parse().ok()).flatten();
        number.filter(|number| *number > 0).ok_or_else(|| {
            PatternError(format!("after `{after}` comes a whole number from 1, not `{word}`"))
        })
    }
}

/// Reads a rate as a limit's is written.
fn rate(text: &str) -> Option<Rate> {
    let limit: Limit = format!("{text} fixed-window").parse().ok()?;
    let rate = *limit.as_metered()?.rate();
    matches!(rate.period(), Period::Fixed(_)).then_some(rate)
}

/// Reads a length of time as the period of a limit is written: `90s`, `250ms`, `1h`.
///
/// # Errors
/// [`PatternError`], which says how one is written.
pub fn span(text: &str) -> Result<Span, PatternError> {
    let limit = format!("1/{text} fixed-window").parse::<Limit>();
    match limit.as_ref().ok().and_then(Limit::as_metered).map(Metered::period) {
        Some(Period::Fixed(ns)) if !text.contains(char::is_whitespace) => {
            Ok(Span::from_nanos(ns.get()))
        }
        _ => Err(PatternError(format!(
            "a time is a whole number and a unit (ns, us, ms, s, min, h, day, week), from 1ns to 3650day, as in `90s`: not `{text}`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_with_what_to_write() {
        for (text, words) in [
            ("", "the pattern is empty"),
            ("evn 2/s for 1s", "`evn` is no pattern: write `even RATE`"),
            ("even for 1s", "after `even` comes a rate like `2/s` or `100/min`, not `for`"),
            ("even -2/s for 1s", "not `-2/s`"),
            ("even 0/s for 1s", "not `0/s`"),
            ("even 1/calendar-day for 1s", "not `1/calendar-day`"),
            ("even 99999999999999999999/s for 1s", "not `99999999999999999999/s`"),
            ("even 2/s for", "after `for`: a time is"),
            ("even 2/s for 1.5s", "not `1.5s`"),
            ("even 2/s for 0s", "not `0s`"),
            ("even 2/s for 4000day", "not `4000day`"),
            ("even 2/s for 1s for 2s", "`for` stands there twice"),
            ("even 2/s for 1s until 2s", "`until` has no meaning here"),
            ("even 2/s for 1s cost 0", "after `cost` comes a whole number from 1, not `0`"),
            ("even 2/s for 1s cost -1", "not `-1`"),
            ("even 2/s for 1s cost 1000000001", "at most 1000000000"),
            ("bursts 0 every 1s for 1s", "after `bursts` comes a whole number from 1"),
            ("bursts 5 for 1s", "`every` comes before `for`"),
            ("on-off 2/s on 1s", "`off` is missing"),
            ("ramp 2/s 3/s for 1s", "`to` comes before `3/s`"),
        ] {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        for text in ["", "1", "-1s", "1s fixed-window", "1 s", "1.5s"] {
            assert!(span(text).is_err(), "{text}");
        }
    }
}
