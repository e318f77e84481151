//! `CL.THROTTLE` and `THROTTLE`: what they ask, and how what a limit says is put.

use sekisho::{Limit, Mode, Outcome, Period, Rate, Span, Timestamp, Verdict, core::Algorithm};

use super::{
    parse::{Words, integer},
    reply::Replies,
};

/// Whose command it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// `CL.THROTTLE`, as the redis-cell module has it.
    RedisCell,
    /// `THROTTLE`, as throttlecrab's server has it.
    Throttlecrab,
}

/// What a command asks.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) family: Family,
    pub(super) limit: Limit,
    pub(super) cost: u64,
    pub(super) mode: Mode,
}

/// What is to be done about a command.
#[derive(Debug)]
pub(super) enum Throttle {
    /// A limit is asked.
    Ask(Asked),
    /// Five numbers that follow from the command alone.
    Plain([i64; 5]),
    /// It makes no sense: an error's text.
    Wrong(String),
}

/// The numbers of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) max_burst: i64,
    pub(super) count: i64,
    pub(super) period: i64,
    pub(super) quantity: i64,
}

impl Family {
    /// Reads the words behind the name: `key max_burst count period [quantity]`.
    pub(super) fn numbers(self, words: &Words, buffer: &[u8]) -> Result<Numbers, String> {
        if !(5..=6).contains(&words.len()) {
            return Err(match self {
                Self::RedisCell => "Cell error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]".to_owned(),
                Self::Throttlecrab => "ERR wrong number of arguments for 'throttle' command".to_owned(),
            });
        }
        let number = |index: usize, name: &str| {
            let text = words.get(buffer, index);
            integer(text).ok_or_else(|| match self {
                Self::RedisCell => {
                    format!("Cell error: Couldn't parse as integer: {}", short(text))
                }
                Self::Throttlecrab => format!("ERR invalid {name}"),
            })
        };
        Ok(Numbers {
            max_burst: number(2, "max_burst")?,
            count: number(3, "count_per_period")?,
            period: number(4, "period")?,
            quantity: if words.len() == 6 { number(5, "quantity")? } else { 1 },
        })
    }

    /// Returns what is to be done.
    pub(super) fn ask(self, numbers: Numbers) -> Throttle {
        let Numbers { max_burst, count, period, quantity } = numbers;
        let capacity = match self {
            Self::RedisCell => max_burst.saturating_add(1),
            Self::Throttlecrab => max_burst,
        };
        if count <= 0 || period <= 0 {
            return Throttle::Wrong(match self {
                Self::RedisCell => "Cell error: Store error: Zero rates are not supported".into(),
                Self::Throttlecrab => "ERR count_per_period and period are at least 1".into(),
            });
        }
        match (self, u64::try_from(capacity)) {
            (_, Ok(1..)) => {}
            // Nothing ever fits a bucket of nothing.
            (Self::RedisCell, _) => return Throttle::Plain([1, capacity, 0, -1, 0]),
            (Self::Throttlecrab, _) => {
                return Throttle::Wrong("ERR max_burst is at least 1".into());
            }
        }
        if self == Self::Throttlecrab && quantity < 0 {
            return Throttle::Wrong("ERR quantity is at least 0".into());
        }
        let (mode, cost) = match quantity {
            0 => (Mode::Look, 0),
            1.. => (Mode::Check, quantity.unsigned_abs()),
            // A bucket gives back whenever the units were taken.
            _ => (Mode::Refund { at: Timestamp::EPOCH }, quantity.unsigned_abs()),
        };
        match limit(capacity.unsigned_abs(), count.unsigned_abs(), period.unsigned_abs()) {
            Ok(limit) => Throttle::Ask(Asked { family: self, limit, cost, mode }),
            Err(error) => Throttle::Wrong(match self {
                Self::RedisCell => format!("Cell error: {error}"),
                Self::Throttlecrab => format!("ERR {error}"),
            }),
        }
    }
}

fn limit(capacity: u64, count: u64, period: u64) -> Result<Limit, String> {
    let span = period.checked_mul(1_000_000_000).map(Span::from_nanos);
    let span = span.ok_or_else(|| "a period is at most ten years".to_owned())?;
    let made = Period::fixed(span)
        .and_then(|period| Rate::new(count, period))
        .and_then(|rate| Limit::metered(rate, Algorithm::TokenBucket, Some(capacity)));
    made.map_err(|error| error.to_string())
}

/// Writes what a limit says.
pub(super) fn put(to: &mut Replies, asked: &Asked, verdict: &Verdict) {
    let number = |of: u64| i64::try_from(of).unwrap_or(i64::MAX);
    let beyond = beyond(asked, verdict);
    let refused = beyond.is_some() || verdict.outcome != Outcome::Allow;
    let capacity = verdict.capacity.map_or(-1, number);
    let remaining = verdict.remaining.map_or(-1, number);
    let retry = verdict.retry_after.filter(|_| refused).or(beyond).map(seconds);
    let reset = seconds(verdict.reset_after);
    let numbers = match asked.family {
        Family::RedisCell => [i64::from(refused), capacity, remaining, retry.unwrap_or(-1), reset],
        Family::Throttlecrab => {
            let never = if refused { -1 } else { 0 };
            [i64::from(!refused), capacity, remaining, reset, retry.unwrap_or(never)]
        }
    };
    put_five(to, numbers);
}

/// Returns how long more is used than the bucket holds, under which even a look is refused: another limit on the key held more.
fn beyond(asked: &Asked, verdict: &Verdict) -> Option<Span> {
    if asked.mode != Mode::Look {
        return None;
    }
    let limit = asked.limit.as_metered()?;
    let used = verdict.reset_after.as_nanos();
    let full = u128::from(limit.burst()) * u128::from(limit.period().shortest().as_nanos());
    let full = full.div_ceil(u128::from(limit.amount().get()));
    let wait = used.checked_sub(u64::try_from(full).ok()?).filter(|wait| *wait > 0)?;
    Some(Span::from_nanos(wait))
}

pub(super) fn put_five(to: &mut Replies, numbers: [i64; 5]) {
    to.array(numbers.len());
    for number in numbers {
        to.integer(number);
    }
}

/// Returns whole seconds, rounded up: who waits that long has waited long enough.
fn seconds(span: Span) -> i64 {
    i64::try_from(span.as_nanos().div_ceil(1_000_000_000)).unwrap_or(i64::MAX)
}

/// Returns the beginning of what a client sent, for a message.
pub(super) fn short(text: &[u8]) -> String {
    let start = text.get(..128).unwrap_or(text);
    String::from_utf8_lossy(start).into_owned()
}
