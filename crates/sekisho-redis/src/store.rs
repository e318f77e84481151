//! The store: asks in, questions to servers out, answers back.

mod open;
mod split;
mod tls;

use std::{collections::HashSet, fmt, sync::Arc};

use sekisho::{
    Answer, Ask, Key, Limit, Mode, Now, Scope, Span, Store, StoreAddress, StoreAddressError,
    StoreError, Topology,
};

pub use self::open::OpenError;
use tokio::time::Instant;

use self::split::Split;
use crate::{
    denials::Denials,
    instant,
    key::Layout,
    link::{Change, Manners, OnChange, Waiting},
    question::{Answered, Question, Told},
    servers::Servers,
    stats::Stats,
    words::{Manner, words},
};

/// How a shared store is used.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisOptions {
    /// What every key begins with. Default: `sk`.
    pub prefix: String,
    /// How long a dial, a handshake and a reply may take each, and how long a caller waits in all. Default: 50 ms.
    pub timeout: Span,
    /// The password, instead of the address's.
    pub password: Option<String>,
    /// The certificates that servers behind TLS are checked with, as PEM; the machine's own when absent.
    pub roots: Option<Vec<u8>>,
}

impl Default for RedisOptions {
    fn default() -> Self {
        let timeout = Span::from_nanos(50_000_000);
        Self { prefix: "sk".to_owned(), timeout, password: None, roots: None }
    }
}

impl fmt::Debug for RedisOptions {
    // Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { prefix, timeout, password: _, roots: _ } = self;
        f.debug_struct("RedisOptions")
            .field("prefix", prefix)
            .field("timeout", timeout)
            .finish_non_exhaustive()
    }
}

/// The store that several machines share.
///
/// Dials when it is first asked, and again after a failure: a server that is down is an error of a call, not of the start.
/// Nothing that a server may have charged is sent twice. Wants a tokio runtime.
pub struct RedisStore {
    servers: Servers,
    layout: Layout,
    denials: Denials,
    on_change: OnChange,
}

impl RedisStore {
    /// Returns a store at one address, as [`StoreAddress`] reads it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the text is no such address, or TLS cannot be set up.
    pub fn new(url: &str, options: RedisOptions) -> Result<Self, StoreError> {
        let wrong = |error: StoreAddressError| StoreError::Unavailable(error.to_string().into());
        Self::at(&[url.parse().map_err(wrong)?], options)
    }

    /// Returns a store at one address, or spread over the servers at several.
    ///
    /// Over several, each identity is counted on one of them, which its name decides. When the list changes, those whose
    /// server changes begin anew: each of them may go once more as far as its limits allow at once.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when there is no address, one of several is not a single server, or TLS cannot be set up.
    pub fn at(addresses: &[StoreAddress], options: RedisOptions) -> Result<Self, StoreError> {
        let RedisOptions { prefix, timeout, password, roots } = options;
        let on_change = OnChange::default();
        let manners = |address: &StoreAddress| {
            let tls = if address.tls { Some(tls::config(roots.as_deref())?) } else { None };
            Ok(Manners {
                timeout,
                tls,
                user: address.user.clone(),
                password: password.clone().or_else(|| address.password.clone()),
                database: address.database,
                is_cluster: address.topology == Topology::Cluster,
                on_change: Arc::clone(&on_change),
            })
        };
        Ok(Self {
            servers: Servers::new(addresses, manners)?,
            layout: Layout::new(&prefix),
            denials: Denials::new(),
            on_change,
        })
    }

    /// Returns whether this store can count a limit, so that a policy is refused when it is read and not at its first request.
    /// Single calls may still be refused: for a time that is no whole microsecond, or a count beyond 2⁵³.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`], which names what is wrong with it.
    pub fn supports(limit: &Limit) -> Result<(), StoreError> {
        let manner = Manner { mode: Mode::Look, longest: None };
        let words = limit.as_metered().map(|limit| words(limit, 0, manner, None, &[]));
        words.map_or(Ok(()), |words| words.map(drop))
    }

    /// Tells somebody of each change of what can be reached, from now on, instead of whom it told before. It is called by a
    /// task that others wait for, so it should be quick.
    pub fn on_change(&self, listener: impl Fn(&Change) + Send + Sync + 'static) {
        *self.on_change.write() = Some(Box::new(listener));
    }

    /// Returns what is counted since the store was made.
    pub fn stats(&self) -> Stats {
        Stats { servers: self.servers.stats(), cached_denials: self.denials.repeated() }
    }

    /// Puts an ask to the servers, without waiting for them.
    fn start(&self, ask: &Ask<'_>, now: Now) -> Started {
        let mut places = ask
            .charges
            .iter()
            .filter(|charge| charge.limit.as_metered().is_some())
            .map(|charge| self.servers.place(charge.key));
        let place = places.next().unwrap_or(0);
        if places.any(|other| other != place) {
            return match Split::start(self, ask, now) {
                Ok(split) => Started::Split(split),
                Err(error) => Started::Known(Err(error)),
            };
        }
        let question = match Question::new(ask, now, self.servers.about(place), &self.layout) {
            Ok(question) => question,
            Err(error) => return Started::Known(Err(error)),
        };
        match question.answer_alone().or_else(|| self.denials.repeat(&question)) {
            Some(answer) => Started::Known(Ok(answer)),
            None => Started::Asked(self.put(place, question)),
        }
    }

    /// Puts a question to who counts there.
    fn put(&self, place: usize, question: Question) -> Asked {
        let sent = instant::now();
        Asked { place, sent, waiting: self.servers.ask(place, question) }
    }

    /// Waits for what the servers say.
    async fn finish(&self, started: Started) -> Result<Answer, StoreError> {
        match started {
            Started::Known(answer) => answer,
            Started::Asked(asked) => self.told(asked).await.map(|told| told.answer),
            Started::Split(split) => split.finish(self).await,
        }
    }

    async fn told(&self, asked: Asked) -> Result<Told, StoreError> {
        let Asked { place, sent, waiting } = asked;
        let Answered { question, mut told } = self.servers.told(place, waiting).await?;
        self.denials.learn(&question, &mut told, sent);
        Ok(told)
    }
}

/// An ask that has been put to the servers.
enum Started {
    /// There is nothing to wait for.
    Known(Result<Answer, StoreError>),
    Asked(Asked),
    /// Its keys are counted in several places.
    Split(Split),
}

/// A question on its way.
struct Asked {
    place: usize,
    sent: Instant,
    waiting: Waiting,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { servers, layout, denials: _, on_change: _ } = self;
        f.debug_struct("RedisStore")
            .field("servers", servers)
            .field("layout", layout)
            .finish_non_exhaustive()
    }
}

impl Store for RedisStore {
    async fn decide(&self, asks: &[Ask<'_>], now: Now) -> Vec<Result<Answer, StoreError>> {
        if let [ask] = asks {
            return vec![self.finish(self.start(ask, now)).await];
        }
        let mut answers = Vec::with_capacity(asks.len());
        for asks in apart(asks) {
            let started: Vec<Started> = asks.iter().map(|ask| self.start(ask, now)).collect();
            for started in started {
                answers.push(self.finish(started).await);
            }
        }
        answers
    }

    async fn forget(&self, scope: &Scope, key: &Key) -> Result<bool, StoreError> {
        let question = Question::forget(self.layout.key(scope, key));
        self.denials.drop_all(&question.keys);
        let told = self.told(self.put(self.servers.place(key), question)).await?;
        Ok(told.forgotten > 0)
    }
}

/// Divides asks so that those which charge the same are not on their way together: they are decided in their order.
fn apart<'s, 'a>(asks: &'s [Ask<'a>]) -> Vec<&'s [Ask<'a>]> {
    let mut out = Vec::new();
    let mut charged = HashSet::new();
    let mut first = 0;
    for (at, ask) in asks.iter().enumerate() {
        let names = ask
            .charges
            .iter()
            .map(|charge| (charge.scope.policy(), charge.scope.limit(), charge.key.as_str()));
        if names.clone().any(|name| charged.contains(&name)) {
            out.push(&asks[first..at]);
            first = at;
            charged.clear();
        }
        charged.extend(names);
    }
    out.push(&asks[first..]);
    out
}
