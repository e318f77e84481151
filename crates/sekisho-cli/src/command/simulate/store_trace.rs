//! The trace interface on a shared store: the same lines as in memory, on the trace's own times.

use std::{
    collections::BTreeSet,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use sekisho::StoreError;
use sekisho_redis::RedisStore;
use sekisho_replay::{
    simulate::{SimulateError, Simulation},
    trace::{Numbered, Reader},
};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    place::{Place, Stop, runtime, stopped},
    trace::{destination, open, wrong},
};
use crate::{
    args::{Limits, StoreUrl},
    report::Report,
};

/// How many requests are asked together at most.
const BATCH_MAX: usize = 128;
/// How many batches are read ahead.
const AHEAD: usize = 16;
/// How many keys are removed at once.
const REMOVED_AT_ONCE: usize = 64;

/// Answers each request under all limits together.
pub(super) fn answer(
    limits: &[Limits],
    path: &Path,
    out: Option<&Path>,
    url: &StoreUrl,
) -> Result<(), Report> {
    let place = Place::new(url)?;
    let limits = limits.iter().flat_map(|limits| limits.0.iter().copied()).collect();
    let simulation = Arc::new(Simulation::with_store(limits, place.store()?));
    runtime()?.block_on(async {
        let mut stop = Stop::new()?;
        simulation.look().await.map_err(|error| place.unusable(&error))?;
        let mut to = destination(out)?;
        let mut run = Run { place, simulation, seen: BTreeSet::new() };
        let ended = run.answer_all(path, &mut to, &mut stop).await;
        // Whatever ended it: what was answered is shown, and nothing stays in the store.
        let shown = unless_seen_enough(to.flush());
        let removed = run.remove().await;
        run.place.closed(ended.and(shown), removed)
    })
}

/// A run, and the keys that it has to remove.
struct Run {
    place: Place,
    simulation: Arc<Simulation<RedisStore>>,
    seen: BTreeSet<String>,
}

impl Run {
    async fn answer_all(
        &mut self,
        path: &Path,
        to: &mut impl Write,
        stop: &mut Stop,
    ) -> Result<(), Report> {
        let mut batches = batches(path.to_owned());
        loop {
            // A batch that is on its way is waited for: nobody could remove what it charges later.
            let batch = tokio::select! {
                biased;
                () = stop.asked() => return Err(stopped()),
                batch = batches.recv() => batch,
            };
            let Some(batch) = batch.transpose()? else { return Ok(()) };
            for one in &batch {
                if !self.seen.contains(&one.arrival.key) {
                    self.seen.insert(one.arrival.key.clone());
                }
            }
            match self.simulation.answer(&batch, to).await {
                Ok(()) => {}
                Err(SimulateError::Write(error)) => {
                    unless_seen_enough(Err(error))?;
                    return Ok(());
                }
                Err(error @ SimulateError::Store { error: StoreError::Unsupported(_), .. }) => {
                    return Err(Report::input(format!("{}: {error}", path.display())));
                }
                Err(error) => return Err(self.place.failed(&error)),
            }
        }
    }

    /// Removes all that the run has counted.
    async fn remove(&mut self) -> Result<(), StoreError> {
        let keys: Vec<String> = std::mem::take(&mut self.seen).into_iter().collect();
        let mut tasks = JoinSet::new();
        for keys in keys.chunks(keys.len().div_ceil(REMOVED_AT_ONCE).max(1)) {
            let (keys, simulation) = (keys.to_vec(), Arc::clone(&self.simulation));
            tasks.spawn(async move {
                for key in &keys {
                    simulation.forget(key).await?;
                }
                Ok(())
            });
        }
        tasks.join_all().await.into_iter().collect()
    }
}

/// Reads a trace on a thread of its own: the standard input may have nothing to say for a long time, and who waits for it there
/// would not see that the program is to end.
fn batches(path: PathBuf) -> mpsc::Receiver<Result<Vec<Numbered>, Report>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    // Ends with the trace, or when nobody wants more of it.
    drop(thread::spawn(move || {
        let reader = match open(&path) {
            Ok(reader) => reader,
            Err(report) => {
                let _gone = sender.blocking_send(Err(report));
                return;
            }
        };
        for batch in Reader::new(reader).in_microseconds().together(BATCH_MAX) {
            if sender.blocking_send(batch.map_err(|error| wrong(&path, &error))).is_err() {
                return;
            }
        }
    }));
    receiver
}

/// Whoever read the answers and has gone has seen enough: that is a success.
fn unless_seen_enough(written: io::Result<()>) -> Result<(), Report> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Report::failed(SimulateError::Write(error)))
        }
        _ => Ok(()),
    }
}
