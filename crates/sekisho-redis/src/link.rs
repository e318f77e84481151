//! The way to one server: a queue, and the task that owns the connection.

mod backoff;
mod driver;
pub(crate) mod handshake;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use sekisho::{Span, StoreError, Timestamp};
use tokio::{
    sync::{
        mpsc::{self, error::TrySendError},
        oneshot,
    },
    time::Instant,
};
use tokio_rustls::rustls::ClientConfig;

use crate::{
    call::Entry,
    instant,
    question::{Answered, Question},
    refusal::{Failure, Meaning, Refusal},
    sentinel::Sentinels,
    stats::{Counts, ServerStats, Trouble},
    wire::Place,
};

/// The most questions that wait for one server. What comes on top of them is a failure at once.
pub(crate) const WAITING_MAX: usize = 16_384;

/// How often it is said that a server refuses.
const SAID_AGAIN: Duration = Duration::from_mins(1);

/// How to find the server.
#[derive(Debug)]
pub(crate) enum Target {
    /// It is always there.
    Place(Place),
    /// It is where sentinels say that it is.
    Sentinels(Sentinels),
}

/// How servers are spoken to; the same for all of a store.
pub(crate) struct Manners {
    /// How long a dial, a handshake and a reply may take each, and how long a caller waits in all.
    pub(crate) timeout: Span,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: u32,
    /// Whether one call may hold requests of one identity only: a cluster's slots.
    pub(crate) is_cluster: bool,
    pub(crate) on_change: OnChange,
}

/// Who is told of changes.
pub(crate) type OnChange = Arc<RwLock<Option<Box<dyn Fn(&Change) + Send + Sync>>>>;

/// A change of what can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A server cannot be used any more, or could not from the start.
    Down {
        /// The server.
        server: String,
        /// Why.
        why: StoreError,
    },
    /// It can be reached, and refuses what it is asked: rights that are missing, a full memory, or what stands in a key. Said
    /// once a minute at most.
    Refuses {
        /// The server.
        server: String,
        /// What it says.
        why: StoreError,
        /// How many decisions it has refused since that was said last.
        times: u64,
    },
    /// It can be used again.
    Up {
        /// The server.
        server: String,
        /// How long it could not.
        after: Span,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Down { server, why } => write!(f, "the store at {server} is down: {why}"),
            Self::Refuses { server, why, times } => {
                write!(f, "the store at {server} refuses ({times} since this was said last): {why}")
            }
            Self::Up { server, after } => write!(f, "the store at {server} is back after {after}"),
        }
    }
}

/// The way to one server.
pub(crate) struct Link {
    shared: Arc<Shared>,
    /// The way to the task. It is made when first needed, and anew where its runtime has ended.
    queue: Mutex<Option<mpsc::Sender<Entry>>>,
}

/// What the task and those who ask both see.
pub(crate) struct Shared {
    pub(crate) target: Target,
    pub(crate) manners: Arc<Manners>,
    pub(crate) counts: Counts,
    /// Whether nobody should wait: the breaker is open.
    is_down: AtomicBool,
    /// Why it is down.
    why: RwLock<Option<StoreError>>,
    /// The server's clock when it last told, in nanoseconds.
    pub(crate) seen: AtomicU64,
    /// When it was last said that the server refuses, and how many decisions it has refused since.
    refused: Mutex<(Option<Instant>, u64)>,
}

impl Link {
    /// Returns a way to a server, without going there.
    pub(crate) fn new(target: Target, manners: Arc<Manners>) -> Self {
        let shared = Shared {
            target,
            manners,
            counts: Counts::default(),
            is_down: AtomicBool::new(false),
            why: RwLock::new(None),
            // Near enough to know the calendar windows that the server will need.
            seen: AtomicU64::new(instant::wall_clock().as_nanos()),
            refused: Mutex::new((None, 0)),
        };
        Self { shared: Arc::new(shared), queue: Mutex::new(None) }
    }

    /// Asks one question. Wants a tokio runtime.
    pub(crate) fn ask(&self, question: Question, asking: bool) -> Waiting {
        let shared = &self.shared;
        let (answer, told) = oneshot::channel();
        if let Some(why) = shared.why_down() {
            let _heard = answer.send(Err(Failure::NotSent(why, Some(Box::new(question)))));
            return Waiting { told };
        }
        let deadline = instant::now() + shared.timeout();
        let entry = Entry { question, answer: Some(answer), deadline, sent: 0, asking };
        if let Some(entry) = self.queue_up(entry) {
            shared.counts.trouble(Trouble::Full, 1);
            let why = format!("{WAITING_MAX} requests wait for it already");
            entry.fail(&Failure::NotSent(StoreError::Unavailable(why.into()), None));
        }
        Waiting { told }
    }

    /// Queues a question up, or returns it where there is no room.
    fn queue_up(&self, mut entry: Entry) -> Option<Entry> {
        let mut queue = self.queue.lock();
        if let Some(questions) = &*queue {
            match questions.try_send(entry) {
                Ok(()) => return None,
                Err(TrySendError::Full(entry)) => return Some(entry),
                Err(TrySendError::Closed(back)) => entry = back,
            }
        }
        let (questions, taken) = mpsc::channel(WAITING_MAX);
        // Ends when this link goes, as nobody can ask any more.
        drop(tokio::spawn(driver::run(Arc::clone(&self.shared), taken)));
        let queued = questions.try_send(entry);
        *queue = Some(questions);
        queued.err().map(TrySendError::into_inner)
    }

    /// Returns the server's clock when it last told.
    pub(crate) fn seen(&self) -> Timestamp {
        Timestamp::from_nanos(self.shared.seen.load(Ordering::Relaxed))
    }

    /// Says what is counted of it.
    pub(crate) fn stats(&self) -> ServerStats {
        self.shared.counts.stats(self.shared.name())
    }
}

impl Shared {
    /// Returns why nobody should wait for the server at the moment.
    fn why_down(&self) -> Option<StoreError> {
        self.is_down.load(Ordering::Relaxed).then(|| self.why.read().clone()).flatten()
    }

    fn timeout(&self) -> Duration {
        self.manners.timeout.into()
    }

    /// Returns the server's name, for people.
    fn name(&self) -> String {
        match &self.target {
            Target::Place(Place::Host(host)) => host.to_string(),
            Target::Place(Place::Socket(path)) => path.display().to_string(),
            Target::Sentinels(sentinels) => sentinels.name(),
        }
    }

    /// Opens the breaker: nobody waits any more.
    fn set_down(&self, why: &StoreError) {
        *self.why.write() = Some(why.clone());
        self.counts.set_up(false);
        if !self.is_down.swap(true, Ordering::Relaxed) {
            self.tell(&Change::Down { server: self.name(), why: why.clone() });
        }
    }

    /// Closes the breaker again.
    fn set_up(&self, since: Option<Instant>) {
        self.counts.set_up(true);
        if self.is_down.swap(false, Ordering::Relaxed) {
            let after = since.map_or(Duration::ZERO, |since| since.elapsed());
            let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
            let after = Span::from_nanos(after - after % 1_000_000);
            self.tell(&Change::Up { server: self.name(), after });
        }
    }

    /// Counts decisions that the server refused, and says so once in a while; not of what is another server's to decide.
    pub(crate) fn refuses(&self, refusal: &Refusal, times: usize) {
        self.counts.trouble(refusal.trouble(), times);
        if !matches!(refusal.meaning, Meaning::NoWrites | Meaning::Rights | Meaning::Other) {
            return;
        }
        let times = {
            let (said, since) = &mut *self.refused.lock();
            *since += times as u64;
            if said.is_some_and(|said| said.elapsed() < SAID_AGAIN) {
                return;
            }
            *said = Some(instant::now());
            std::mem::take(since)
        };
        self.tell(&Change::Refuses { server: self.name(), why: refusal.error(), times });
    }

    fn tell(&self, change: &Change) {
        if let Some(listener) = &*self.manners.on_change.read() {
            listener(change);
        }
    }
}

/// An answer that is on its way.
pub(crate) struct Waiting {
    told: oneshot::Receiver<Result<Answered, Failure>>,
}

impl Waiting {
    /// Returns the answer. The task keeps the time, so this always ends.
    pub(crate) async fn told(self) -> Result<Answered, Failure> {
        let gone = || Failure::Store(StoreError::Unavailable("its task has ended".into()));
        self.told.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl fmt::Debug for Link {
    // Without the manners, in which there is a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.shared.name())
    }
}
