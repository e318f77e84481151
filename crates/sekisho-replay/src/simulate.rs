//! Runs a trace through limits and writes one JSON object a request.

use std::{
    fmt,
    io::{self, BufRead, Write},
    iter,
};

use sekisho::{
    Answer, Ask, Charge, Key, Limit, Memory, MemoryOptions, Mode, Now, Outcome, Scope, Seed, Span,
    Store, StoreError,
};
use serde::Serialize;

use crate::trace::{self, Arrival, Numbered, Reader, TraceError};

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
    /// The trace is wrong or cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The store could not decide.
    #[error("line {line}: {error}")]
    Store {
        /// The line's number, from 1.
        line: u64,
        /// Why.
        error: StoreError,
    },
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
        let key = self.key(&arrival.key);
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
        for read in Reader::new(trace) {
            let one = read.inspect_err(|_| {
                // The trace is what is wrong, and that is what is said.
                let _unwritten = out.flush();
            })?;
            let answer = self
                .decide(&one.arrival)
                .map_err(|error| SimulateError::Store { line: one.line, error })?;
            self.write(&one.arrival, &answer, out).map_err(SimulateError::Write)?;
        }
        out.flush().map_err(SimulateError::Write)
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

    /// Answers requests of one time, which come from as many keys, one line a request.
    ///
    /// # Errors
    /// [`SimulateError`]; the answers to the lines before the bad one have been written, though not flushed. The store may have
    /// charged those after it.
    pub async fn answer(
        &self,
        batch: &[Numbered],
        out: &mut impl Write,
    ) -> Result<(), SimulateError> {
        let Some(Numbered { arrival: Arrival { at, .. }, .. }) = batch.first() else {
            return Ok(());
        };
        let keys: Vec<Key> = batch.iter().map(|one| self.key(&one.arrival.key)).collect();
        let charges: Vec<Vec<Charge<'_>>> =
            keys.iter().zip(batch).map(|(key, one)| self.charges(key, one.arrival.cost)).collect();
        let asks: Vec<Ask<'_>> =
            charges.iter().map(|charges| Ask::new(charges, Mode::Check)).collect();
        let answers = self.store.decide(&asks, Now::At(*at)).await;
        let missing = || Err(StoreError::Unavailable("no answer".into()));
        let answers = answers.into_iter().chain(iter::repeat_with(missing));
        for (one, answer) in batch.iter().zip(answers) {
            let answer = answer.map_err(|error| SimulateError::Store { line: one.line, error })?;
            self.write(&one.arrival, &answer, out).map_err(SimulateError::Write)?;
        }
        Ok(())
    }

    /// Asks the store to look at nothing, so that one that is not there, or cannot count these limits, is found before all else.
    ///
    /// # Errors
    /// What the store says.
    pub async fn look(&self) -> Result<(), StoreError> {
        let key = self.key(trace::NO_KEY);
        let charges = self.charges(&key, 0);
        let mut answers =
            self.store.decide(&[Ask::new(&charges, Mode::Look)], Now::StoreClock).await;
        answers.pop().map_or(Ok(()), |answer| answer.map(drop))
    }

    /// Removes all that is known of a trace's key.
    ///
    /// # Errors
    /// What the store says.
    pub async fn forget(&self, key: &str) -> Result<(), StoreError> {
        let key = self.key(key);
        for (limit, scope) in &self.limits {
            // What has no state has nothing to remove.
            if limit.as_metered().is_some() {
                self.store.forget(scope, &key).await?;
            }
        }
        Ok(())
    }

    fn key(&self, key: &str) -> Key {
        Key::plain(key.as_bytes(), &self.seed)
    }

    fn charges<'a>(&'a self, key: &'a Key, cost: u64) -> Vec<Charge<'a>> {
        self.limits.iter().map(|(limit, scope)| Charge { limit, scope, key, cost }).collect()
    }

    fn write(&self, arrival: &Arrival, answer: &Answer, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, &self.line(arrival, answer))?;
        out.write_all(b"\n")
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
