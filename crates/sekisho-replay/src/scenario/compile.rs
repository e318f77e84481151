//! From what is written to what is run: everything that can be wrong is found here, with its field and its place.

use std::fmt;

use sekisho::{Limit, Metered, Period, Span, Zones};
use toml::Spanned;

use super::{
    Fields, JOINT_MAX, KEYS_MAX, PATTERNS_MAX, ROWS_MAX, SERVERS_MAX, SHARE_MAX, Scenario,
    ServerFields, TRIES_MAX,
};
use crate::{
    pattern::{Pattern, span},
    world::{Clients, Counting, Retry, Servers, World},
};

/// One thing that is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field, like `servers.count`; empty when the message names it.
    pub field: &'static str,
    /// Where it stands in the file, in bytes.
    pub at: Option<usize>,
    /// What is wrong, and what to write instead.
    pub message: String,
}

/// All that is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            "" => f.write_str(&self.message),
            field => write!(f, "`{field}`: {}", self.message),
        }
    }
}

impl Problem {
    /// Returns the number of the line that it stands in, from 1.
    pub fn line(&self, text: &str) -> Option<usize> {
        Some(1 + text.get(..self.at?)?.matches('\n').count())
    }
}

impl Problems {
    fn add(&mut self, field: &'static str, at: usize, message: impl Into<String>) {
        self.0.push(Problem { field, at: Some(at), message: message.into() });
    }

    /// Reads a field, or notes what is wrong with it.
    fn read<T, U>(
        &mut self,
        field: &'static str,
        from: Option<&Spanned<T>>,
        read: impl FnOnce(&T) -> Result<U, String>,
    ) -> Option<U> {
        let from = from?;
        read(from.get_ref()).map_err(|message| self.add(field, from.span().start, message)).ok()
    }
}

impl Fields {
    /// Returns the scenario, or all that is wrong with it.
    ///
    /// ```
    /// use sekisho_replay::scenario::Fields;
    ///
    /// let text = "limits = [\"60/min\"]\narrivals = [\"even 2/s for 2min\"]\nkeys = -1\n";
    /// let problems = Fields::parse(text)?.compile().unwrap_err();
    /// assert_eq!(problems.0[0].line(text), Some(3));
    /// assert_eq!(problems.to_string(), "`keys`: a whole number from 1 to 1000000, not -1");
    /// # Ok::<(), sekisho_replay::scenario::Problems>(())
    /// ```
    ///
    /// # Errors
    /// [`Problems`].
    pub fn compile(&self) -> Result<Scenario, Problems> {
        let mut wrong = Problems(Vec::new());
        let rows = rows(&self.limits, &mut wrong);
        let patterns = patterns(&self.arrivals, &mut wrong);
        let nothing =
            |field, message: &str| Problem { field, at: None, message: message.to_owned() };
        if self.limits.is_empty() {
            wrong.0.push(nothing("limits", "there is none: write at least one, like `60/min`"));
        }
        if self.arrivals.is_empty() && self.trace.is_none() {
            wrong.0.push(nothing(
                "arrivals",
                "there is none: write a pattern, like `even 2/s for 2min`, or a trace",
            ));
        }
        let name = wrong.read("name", self.name.as_ref(), |name| word(name));
        let window = wrong.read("window", self.window.as_ref(), |text| time(text));
        let seed = wrong.read("seed", self.seed.as_ref(), |seed| between(*seed, 0, i64::MAX));
        let keys =
            wrong.read("keys", self.keys.as_ref(), |keys| between(*keys, 1, KEYS_MAX.into()));
        let zipf_thousandths = wrong.read("zipf", self.zipf.as_ref(), |zipf| thousandths(*zipf));
        let servers = servers(&self.servers, &mut wrong);
        let clients = self.clients(&mut wrong);
        if !wrong.0.is_empty() {
            return Err(wrong);
        }
        let longest = rows
            .iter()
            .flatten()
            .filter_map(Limit::as_metered)
            .map(|limit| limit.period().longest());
        let longest = longest.max().unwrap_or(Span::from_secs(1));
        let name = name.unwrap_or_else(|| "scenario".to_owned());
        Ok(Scenario {
            title: self.title.clone().unwrap_or_else(|| "An experiment of your own".to_owned()),
            name,
            rows,
            patterns,
            trace: self.trace.as_ref().map(|trace| trace.get_ref().clone()),
            window: window.unwrap_or(longest),
            keys: keys.unwrap_or(1),
            zipf_thousandths,
            world: World { servers, clients, seed: seed.unwrap_or(1), ..World::default() },
        })
    }

    fn clients(&self, wrong: &mut Problems) -> Clients {
        let fields = &self.clients;
        let retry =
            wrong.read("clients.retry", fields.retry.as_ref(), |text| match text.as_str() {
                "never" => Ok(Retry::Never),
                "obey" => Ok(Retry::Obey),
                text => span(text)
                    .map(Retry::Every)
                    .map_err(|error| format!("`never`, `obey` or a time: {error}")),
            });
        let jitter = wrong.read("clients.jitter", fields.jitter.as_ref(), |text| time(text));
        let tries = wrong.read("clients.tries", fields.tries.as_ref(), |tries| {
            between(*tries, 1, TRIES_MAX.into())
        });
        let retry = retry.unwrap_or_default();
        if retry == Retry::Never {
            let unused = [
                ("clients.jitter", fields.jitter.as_ref().map(Spanned::span)),
                ("clients.tries", fields.tries.as_ref().map(Spanned::span)),
            ];
            for (field, place) in unused {
                if let Some(place) = place {
                    wrong.add(field, place.start, "has no use while clients do not come back: set `retry` to `obey` or to a time");
                }
            }
        }
        Clients { retry, jitter: jitter.unwrap_or(Span::ZERO), tries: tries.unwrap_or(10) }
    }
}

fn rows(limits: &[Spanned<String>], wrong: &mut Problems) -> Vec<Vec<Limit>> {
    if let Some(beyond) = limits.get(ROWS_MAX) {
        wrong.add("limits", beyond.span().start, format!("at most {ROWS_MAX} are compared"));
    }
    let rows = limits.iter().take(ROWS_MAX);
    rows.filter_map(|text| wrong.read("limits", Some(text), |text| joint(text))).collect()
}

/// Reads limits that are decided together: `10/s + 100/min`.
fn joint(text: &str) -> Result<Vec<Limit>, String> {
    let parts: Vec<_> = text.split(" + ").collect();
    if parts.len() > JOINT_MAX {
        return Err(format!(
            "at most {JOINT_MAX} limits are decided together, not {}",
            parts.len()
        ));
    }
    parts.into_iter().map(limit).collect()
}

fn limit(text: &str) -> Result<Limit, String> {
    let limit: Limit = text.parse().map_err(|error| format!("`{text}`: {error}"))?;
    match limit.as_metered().map(Metered::period) {
        Some(Period::Calendar(_, zone)) if !Zones::knows(zone) => {
            Err(format!("`{text}`: there is no time zone `{}`", zone.as_str()))
        }
        _ => Ok(limit),
    }
}

fn patterns(texts: &[Spanned<String>], wrong: &mut Problems) -> Vec<(String, Pattern)> {
    if let Some(beyond) = texts.get(PATTERNS_MAX) {
        wrong.add("arrivals", beyond.span().start, format!("at most {PATTERNS_MAX} patterns"));
    }
    let read = |text: &String| {
        let pattern = text.parse().map_err(|error| format!("`{text}`: {error}"))?;
        Ok((text.clone(), pattern))
    };
    let texts = texts.iter().take(PATTERNS_MAX);
    texts.filter_map(|text| wrong.read("arrivals", Some(text), read)).collect()
}

fn servers(fields: &ServerFields, wrong: &mut Problems) -> Servers {
    let most = i64::try_from(SERVERS_MAX).unwrap_or(i64::MAX);
    let count: Option<usize> =
        wrong.read("servers.count", fields.count.as_ref(), |count| between(*count, 1, most));
    let shares = wrong.read("servers.shares", fields.shares.as_ref(), |shares| {
        same_number(shares.len(), count)?;
        let shares = shares.iter().map(|share| between(*share, 0, SHARE_MAX));
        let shares = shares.collect::<Result<Vec<u64>, _>>()?;
        if shares.iter().all(|share| *share == 0) {
            return Err("at least one server needs a share".to_owned());
        }
        Ok(shares)
    });
    let count = count.or(shares.as_ref().map(Vec::len)).unwrap_or(1);
    let ahead_ns = wrong.read("servers.ahead", fields.ahead.as_ref(), |ahead| {
        same_number(ahead.len(), Some(count))?;
        ahead.iter().map(|text| signed(text)).collect()
    });
    let counting =
        wrong.read("servers.counting", fields.counting.as_ref(), |word| match word.as_str() {
            "shared" => Ok(Counting::Shared),
            "split" => Ok(Counting::Split),
            "alone" => Ok(Counting::Alone),
            _ => Err(format!("`shared`, `split` or `alone`, not `{word}`")),
        });
    Servers {
        counting: counting.unwrap_or_default(),
        shares: shares.unwrap_or_else(|| vec![1; count]),
        ahead_ns: ahead_ns.unwrap_or_else(|| vec![0; count]),
    }
}

fn same_number(values: usize, servers: Option<usize>) -> Result<(), String> {
    if values == 0 || values > SERVERS_MAX {
        return Err(format!("one value a server, from 1 to {SERVERS_MAX} of them"));
    }
    match servers {
        Some(servers) if servers != values => {
            Err(format!("{values} values for a count of {servers}: write one a server"))
        }
        _ => Ok(()),
    }
}

fn between<T: TryFrom<i64>>(number: i64, low: i64, high: i64) -> Result<T, String> {
    let number = Some(number).filter(|number| (low..=high).contains(number)).ok_or(number);
    number
        .and_then(|number| T::try_from(number).map_err(|_| number))
        .map_err(|number| format!("a whole number from {low} to {high}, not {number}"))
}

/// Reads a decimal from 0 to 4, in thousandths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number from 0 to 4000, rounded"
)]
fn thousandths(number: f64) -> Result<u32, String> {
    if (0.0..=4.0).contains(&number) {
        return Ok((number * 1_000.0).round() as u32);
    }
    Err(format!("a number from 0 to 4, like 1.1, not {number}"))
}

fn time(text: &str) -> Result<Span, String> {
    span(text).map_err(|error| error.to_string())
}

/// Reads a time that may be none or behind.
fn signed(text: &str) -> Result<i64, String> {
    if matches!(text, "0" | "0s") {
        return Ok(0);
    }
    let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let ns = i64::try_from(time(rest)?.as_nanos()).unwrap_or(i64::MAX);
    Ok(sign * ns)
}

/// Reads a name: it becomes part of file names.
fn word(name: &str) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > 40 || !name.bytes().all(good) {
        return Err(format!("1 to 40 small letters, digits and `-`, not `{name}`"));
    }
    Ok(name.to_owned())
}
