//! Runs a trace through limits and writes one JSON object a request.

use std::{
    fmt,
    io::{self, BufRead, Write},
};

use sekisho::{
    Answer, Ask, Charge, Key, Limit, Memory, MemoryOptions, Mode, Now, Outcome, Scope, Seed, Span,
    Store, StoreError,
};
use serde::Serialize;

use crate::trace::{self, Arrival, LineError};

/// Some limits, and the state of every key that a trace has named.
#[derive(Debug)]
pub struct Simulation<S = Memory> {
    limits: Vec<(Limit, Scope)>,
    seed: Seed,
    store: S,
}

/// Why a run stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// A line is not `seconds[,key[,cost]]`.
    #[error("line {line}: {error}")]
    Line {
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        error: LineError,
    },
    /// The store could not decide.
    #[error("line {line}: {error}")]
    Store {
        /// The line's number, from 1.
        line: u64,
        /// Why.
        error: StoreError,
    },
    /// The trace cannot be read.
    #[error("the trace cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The answers cannot be written.
    #[error("the answers cannot be written: {0}")]
    Write(#[source] io::Error),
}

/// One answer line. The order of the fields is part of the interface.
#[derive(Debug, Serialize)]
struct Line<'a> {
    t: String,
    key: &'a str,
    cost: u64,
    outcome: &'static str,
    remaining: Option<u64>,
    retry_after_ns: Option<u64>,
    reset_after_ns: u64,
    delay_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
}

impl Simulation<Memory> {
    /// Returns a simulation in memory. Traces go back in time, so no state is ever dropped.
    pub fn new(limits: Vec<Limit>) -> Self {
        let options = MemoryOptions { max_bytes: usize::MAX, keep_all: true, ..Default::default() };
        Self::with_store(limits, Memory::new(options))
    }

    /// Decides one arrival.
    ///
    /// # Errors
    /// What the store says.
    pub fn decide(&self, arrival: &Arrival) -> Result<Answer, StoreError> {
        let key = self.key(arrival);
        let charges = self.charges(&key, arrival.cost);
        let asks = [Ask::new(&charges, Mode::Check)];
        let answer = self.store.decide_now(&asks, Now::At(arrival.at)).pop();
        answer.unwrap_or_else(|| Err(StoreError::Unavailable("no answer".into())))
    }

    /// Runs a trace, one answer line a request, in order.
    ///
    /// # Errors
    /// [`SimulateError`]; the answers to the lines before the bad one have been written.
    pub fn run(&self, trace: impl BufRead, out: &mut impl Write) -> Result<(), SimulateError> {
        let mut trace = trace;
        let (mut line, mut number) = (Vec::new(), 0);
        loop {
            line.clear();
            // A line that never ends is as wrong as one that is too long.
            let mut bounded = io::Read::take(&mut trace, trace::LINE_BYTES_MAX);
            if bounded.read_until(b'\n', &mut line).map_err(SimulateError::Read)? == 0 {
                return out.flush().map_err(SimulateError::Write);
            }
            number += 1;
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let parsed = trace::parse_line(text);
            let parsed = parsed.map_err(|error| SimulateError::Line { line: number, error });
            let arrival = match parsed {
                Ok(Some(arrival)) => arrival,
                Ok(None) => continue,
                Err(error) => {
                    out.flush().map_err(SimulateError::Write)?;
                    return Err(error);
                }
            };
            let answer = self
                .decide(&arrival)
                .map_err(|error| SimulateError::Store { line: number, error })?;
            serde_json::to_writer(&mut *out, &self.line(&arrival, &answer))
                .map_err(io::Error::from)
                .and_then(|()| out.write_all(b"\n"))
                .map_err(SimulateError::Write)?;
        }
    }
}

impl<S: Store> Simulation<S> {
    /// Returns a simulation in a store of the caller's.
    pub fn with_store(limits: Vec<Limit>, store: S) -> Self {
        // Each limit has a state of its own, even where two are the same.
        let scoped = limits.into_iter().enumerate();
        let limits = scoped
            .map(|(index, limit)| (limit, Scope::new("simulate", &index.to_string())))
            .collect();
        Self { limits, seed: Seed::random(), store }
    }

    fn key(&self, arrival: &Arrival) -> Key {
        Key::plain(arrival.key.as_bytes(), &self.seed)
    }

    fn charges<'a>(&'a self, key: &'a Key, cost: u64) -> Vec<Charge<'a>> {
        self.limits.iter().map(|(limit, scope)| Charge { limit, scope, key, cost }).collect()
    }

    fn line<'a>(&self, arrival: &'a Arrival, answer: &Answer) -> Line<'a> {
        let joint = answer.joint();
        let binding = answer.verdicts[joint.binding];
        let several = self.limits.len() > 1;
        Line {
            t: trace::seconds(arrival.at),
            key: &arrival.key,
            cost: arrival.cost,
            outcome: joint.outcome.as_str(),
            remaining: binding.remaining,
            retry_after_ns: binding
                .retry_after
                .filter(|_| joint.outcome == Outcome::Deny)
                .map(Span::as_nanos),
            reset_after_ns: binding.reset_after.as_nanos(),
            delay_ns: joint.delay.as_nanos(),
            limit: several.then(|| self.limits[joint.binding].0.to_string()),
        }
    }
}

impl fmt::Display for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits: Vec<_> = self.limits.iter().map(|(limit, _)| limit.to_string()).collect();
        f.write_str(&limits.join(", "))
    }
}
