//! The memory store's state over a restart: read before the first decision, written every so often, and after the last one.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use sekisho::{
    Clock, Limiter, Memory, MemoryOptions, PolicySet, Restored, Saved, Snapshot, SnapshotError,
    SnapshotSettings,
};
use sekisho_redis::OpenError;
use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

use crate::{
    limits::{SNAPSHOT_PAUSE, SNAPSHOT_TIMEOUT},
    store::{Counting as _, ServerStore},
};

/// Why a server cannot have what its policy file says of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The shared store cannot be had.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The snapshot cannot be had, or what it holds cannot be used: without it everybody would have a fresh quota.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// A limiter with the store that its policies name, and the file that keeps its state.
pub(crate) type Opened = (Limiter<ServerStore>, Option<Arc<Snapshot>>);

/// Opens the store that the policies name, with what its snapshot holds.
pub(crate) fn open(policies: PolicySet, clock: Arc<dyn Clock>) -> Result<Opened, StartError> {
    let settings = &policies.settings().store;
    let Some(named) = settings.snapshot.as_ref().filter(|_| settings.shared.is_none()) else {
        let store = ServerStore::open_with_clock(settings, Arc::clone(&clock))?;
        return Ok((Limiter::with_store_and_clock(policies, store, clock), None));
    };
    let (snapshot, memory) = wait_for(named, &MemoryOptions::from(settings), &clock)?;
    say(&snapshot);
    let policies = policies.with_seed(snapshot.keys().clone());
    let store = ServerStore::Memory(memory);
    let limiter = Limiter::with_store_and_clock(policies, store, clock);
    Ok((limiter, Some(Arc::new(snapshot))))
}

/// Opens a snapshot, and waits for a server that has it: one that has been told to stop still finishes what runs, and writes.
fn wait_for(
    named: &SnapshotSettings,
    options: &MemoryOptions,
    clock: &Arc<dyn Clock>,
) -> Result<(Snapshot, Memory), SnapshotError> {
    let open = || Snapshot::open(named.path.clone(), options.clone(), Arc::clone(clock));
    let mut opened = open();
    let mut waited = Duration::ZERO;
    while let Err(SnapshotError::InUse { path, holder }) = &opened {
        if waited >= SNAPSHOT_TIMEOUT {
            break;
        }
        if waited.is_zero() {
            let process = holder.map(tracing::field::display);
            tracing::info!(
                path = %path.display(), process,
                "another server has the snapshot; waiting up to {SNAPSHOT_TIMEOUT:?} for it to stop",
            );
        }
        pause();
        waited += SNAPSHOT_PAUSE;
        opened = open();
    }
    opened
}

#[expect(clippy::disallowed_methods, reason = "a lock that is free again tells nobody")]
fn pause() {
    std::thread::sleep(SNAPSHOT_PAUSE);
}

/// Says what came back, and what of it an operator should know.
fn say(snapshot: &Snapshot) {
    let path = snapshot.path().display();
    let Some(Restored { entries, left_out, bytes, ahead, open_to_others, .. }) =
        snapshot.restored().copied()
    else {
        tracing::info!(%path, "there is no snapshot yet: a first start, counts begin anew");
        return;
    };
    tracing::info!(%path, entries, bytes, "counts go on where the snapshot was written");
    if left_out > 0 {
        tracing::warn!(
            %path, left_out,
            "the store is smaller than the one that wrote the snapshot: so many entries found no room, and their keys are new \
             ones to a full store, as `overflow` says; raise `max_entries` or `max_bytes`",
        );
    }
    if !ahead.is_zero() {
        tracing::warn!(
            %path, %ahead,
            "the clock was set back since the snapshot was written: what was used after now counts as used now",
        );
    }
    if open_to_others {
        tracing::warn!(
            %path,
            "others than its owner could open the snapshot, which holds the secrets of digests; the next write closes it",
        );
    }
}

/// Writes a server's snapshot.
#[derive(Debug)]
pub(crate) struct Keeper {
    snapshot: Arc<Snapshot>,
    limiter: Arc<Limiter<ServerStore>>,
    clock: Arc<dyn Clock>,
    every: Duration,
    failing: AtomicBool,
    pub(crate) stats: Stats,
}

/// What became of the writes.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    /// When the last one succeeded, in seconds since the epoch.
    pub(crate) written_at: AtomicU64,
    pub(crate) entries: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// How long it took, in nanoseconds.
    pub(crate) took: AtomicU64,
    pub(crate) failures: AtomicU64,
}

const NS_PER_S: u64 = 1_000_000_000;

impl Keeper {
    pub(crate) fn new(
        snapshot: Arc<Snapshot>,
        limiter: &Arc<Limiter<ServerStore>>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let settings = limiter.policies().settings().store.snapshot.as_ref();
        let every = settings.map_or(SnapshotSettings::EVERY, |settings| settings.every);
        let stats = Stats::default();
        if let Some(restored) = snapshot.restored() {
            stats.written_at.store(restored.written_at.as_nanos() / NS_PER_S, Relaxed);
            stats.entries.store(restored.entries, Relaxed);
            stats.bytes.store(restored.bytes, Relaxed);
        }
        Self {
            snapshot,
            limiter: Arc::clone(limiter),
            clock: Arc::clone(clock),
            every: every.into(),
            failing: AtomicBool::new(false),
            stats,
        }
    }

    /// Writes again and again. A write that fails is said once until one succeeds, and nobody is refused anything for it.
    pub(crate) async fn keep(self: &Arc<Self>) -> ! {
        let mut ticks = interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first one is now, when there is nothing new.
        let _now = ticks.tick().await;
        loop {
            let _then = ticks.tick().await;
            let saved = self.save().await;
            let failing = saved.is_err();
            let changed = self.failing.swap(failing, Relaxed) != failing;
            let path = self.snapshot.path().display();
            match saved {
                Err(error) if changed => tracing::warn!(
                    %error, cause = cause(&error),
                    "a crash now would forget what was used since the last write; trying again every {:?}", self.every,
                ),
                Ok(_) if changed => tracing::info!(%path, "the snapshot is written again"),
                _ => {}
            }
        }
    }

    /// Writes once, on a thread that may wait for the disk.
    pub(crate) async fn save(self: &Arc<Self>) -> Result<Saved, SnapshotError> {
        let keeper = Arc::clone(self);
        let written = spawn_blocking(move || keeper.write()).await;
        let failed = || SnapshotError::System {
            doing: "written",
            path: self.snapshot.path().to_owned(),
            source: io::Error::other("the thread that writes has ended"),
        };
        let saved = written.unwrap_or_else(|_| Err(failed()));
        if saved.is_err() {
            let _before = self.stats.failures.fetch_add(1, Relaxed);
        }
        saved
    }

    fn write(&self) -> Result<Saved, SnapshotError> {
        let Some(memory) = self.limiter.memory() else { return Ok(Saved::default()) };
        let begun = self.clock.now();
        let saved = self.snapshot.save(memory)?;
        let Stats { written_at, entries, bytes, took, .. } = &self.stats;
        took.store(self.clock.now().since(begun).as_nanos(), Relaxed);
        entries.store(saved.entries, Relaxed);
        bytes.store(saved.bytes, Relaxed);
        written_at.store(self.clock.wall().as_nanos() / NS_PER_S, Relaxed);
        Ok(saved)
    }
}

/// Returns what lies behind an error.
fn cause(error: &dyn std::error::Error) -> String {
    error.source().map(ToString::to_string).unwrap_or_default()
}
