//! Where a server counts: in its own memory, or in a store that it shares with others.

use std::sync::Arc;

use sekisho::{
    Answer, Ask, Clock, Key, Limiter, Memory, MemoryOptions, Now, Occupancy, Scope,
    SharedStoreSettings, Store, StoreError, StoreSettings, SystemClock,
};
use sekisho_redis::{Change, OpenError, RedisStore};

/// Where a server counts.
///
/// ```
/// use sekisho::{Limiter, PolicySet};
/// use sekisho_server::ServerStore;
///
/// let policies = PolicySet::parse("[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"60/min\"]\n")?;
/// let store = ServerStore::open(&policies.settings().store)?;
/// assert!(matches!(store, ServerStore::Memory(_)));
/// let limiter = Limiter::with_store(policies, store);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub enum ServerStore {
    /// In this process's memory.
    Memory(Memory),
    /// In a Redis or Valkey, together with other servers.
    Redis(RedisStore),
}

impl ServerStore {
    /// Returns the store that a policy file names, and asks it for nothing yet. A shared store wants a tokio runtime. Memory is
    /// empty: [`ServeOptions::open`](crate::ServeOptions::open) reads its snapshot.
    ///
    /// # Errors
    /// [`OpenError`] when a file that it needs is not there or holds nothing of use.
    pub fn open(settings: &StoreSettings) -> Result<Self, OpenError> {
        Self::open_with_clock(settings, Arc::new(SystemClock::new()))
    }

    /// The same, where memory decides by a clock of the caller's.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_clock(
        settings: &StoreSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        match &settings.shared {
            None => Ok(Self::Memory(Memory::with_clock(MemoryOptions::from(settings), clock))),
            Some(shared) => Ok(Self::Redis(shared_store(shared)?)),
        }
    }

    /// Returns the memory, when that is where counts are.
    pub const fn as_memory(&self) -> Option<&Memory> {
        match self {
            Self::Memory(memory) => Some(memory),
            Self::Redis(_) => None,
        }
    }

    /// Returns the shared store, when that is where counts are.
    pub const fn as_redis(&self) -> Option<&RedisStore> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(store) => Some(store),
        }
    }
}

/// Returns the shared store, which says when it is lost and found again: once for each change, never for a request.
fn shared_store(settings: &SharedStoreSettings) -> Result<RedisStore, OpenError> {
    let store = RedisStore::open(settings)?;
    store.on_change(|change| {
        if let Change::Up { .. } = change {
            tracing::info!("{change}");
        } else {
            tracing::warn!("{change}");
        }
    });
    Ok(store)
}

/// What a server needs to know of its limiter besides decisions.
pub(crate) trait Counting {
    /// Returns what this process counts in: the store itself, or what stands in for it.
    fn memory(&self) -> Option<&Memory>;

    /// Returns the clock of this process. Those of a shared store are its servers'.
    fn process_clock(&self) -> Arc<dyn Clock>;

    /// Returns what this process's memory holds.
    fn occupancy(&self) -> Occupancy {
        self.memory().map(Memory::occupancy).unwrap_or_default()
    }
}

impl Counting for Limiter<ServerStore> {
    fn memory(&self) -> Option<&Memory> {
        self.store().as_memory().or_else(|| self.fallback())
    }

    fn process_clock(&self) -> Arc<dyn Clock> {
        match self.memory() {
            Some(memory) => Arc::clone(memory.clock()),
            None => Arc::new(SystemClock::new()),
        }
    }
}

impl Store for ServerStore {
    async fn decide(&self, asks: &[Ask<'_>], now: Now) -> Vec<Result<Answer, StoreError>> {
        match self {
            Self::Memory(memory) => memory.decide_now(asks, now),
            // Boxed, so that a request that memory decides does not carry the room for this.
            Self::Redis(store) => Box::pin(store.decide(asks, now)).await,
        }
    }

    async fn forget(&self, scope: &Scope, key: &Key) -> Result<bool, StoreError> {
        match self {
            Self::Memory(memory) => memory.forget(scope, key).await,
            Self::Redis(store) => store.forget(scope, key).await,
        }
    }
}
