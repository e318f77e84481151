//! The store: asks in, script calls out, as many at once as have queued up.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use redis::{Pipeline, RedisResult, Script, Value, cmd};
use sekisho::{Answer, Ask, Key, Limit, Mode, Now, Scope, Span, Store, StoreError, Timestamp};

use crate::{
    connection::{Connection, is_unknown_script, unavailable},
    key::Layout,
    script::{Call, Reply, SOURCE},
    words::{Manner, words},
};

/// The most script calls that are sent in one go. A server runs one at a time, and everybody else waits that long.
pub const BATCH_MAX: usize = 128;

/// How often a call is sent: the script asks for the calendar windows of its clock, and of each state that lies after it.
const SENT_MAX: usize = 8;

/// How a Redis is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisOptions {
    /// What every key begins with. Default: `sk`.
    pub prefix: String,
    /// How long a caller waits for a connection. Default: 250 ms.
    pub connect_timeout: Span,
    /// How long a caller waits for a reply. Default: 50 ms.
    pub response_timeout: Span,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            prefix: "sk".to_owned(),
            connect_timeout: Span::from_nanos(250_000_000),
            response_timeout: Span::from_nanos(50_000_000),
        }
    }
}

/// The store that several machines share.
///
/// Dials when it is first asked, and again after a failure: a server that is down is an error of a call, not of the start.
/// Wants a tokio runtime.
pub struct RedisStore {
    connection: Connection,
    layout: Layout,
    script: Script,
    /// The server's clock when it last told, in nanoseconds: which calendar windows it will need next.
    seen: AtomicU64,
}

impl RedisStore {
    /// Returns a store on the server at `url` (`redis://host:port/db`, `redis+unix:///path`).
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the text is no such address.
    pub fn new(url: &str, options: RedisOptions) -> Result<Self, StoreError> {
        let RedisOptions { prefix, connect_timeout, response_timeout } = options;
        Ok(Self {
            connection: Connection::new(url, connect_timeout, response_timeout)?,
            layout: Layout::new(&prefix),
            script: Script::new(SOURCE),
            seen: AtomicU64::new(0),
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

    async fn batch(&self, asks: &[Ask<'_>], now: Now) -> Vec<Result<Answer, StoreError>> {
        let about = Timestamp::from_nanos(self.seen.load(Relaxed));
        let mut calls = Vec::with_capacity(asks.len());
        let mut answers = Vec::with_capacity(asks.len());
        for (index, ask) in asks.iter().enumerate() {
            answers.push(match Call::new(ask, now, about, &self.layout) {
                Err(error) => Err(error),
                Ok(call) => call.answer_alone().map_or_else(
                    || {
                        calls.push((index, call));
                        Err(missing())
                    },
                    Ok,
                ),
            });
        }
        for _ in 0..SENT_MAX {
            let replies = self.run(&calls).await;
            let mut again = Vec::new();
            for ((index, mut call), reply) in calls.into_iter().zip(replies) {
                match reply.and_then(|reply| call.reply(&reply)) {
                    Ok(Reply::Answer(answer)) => {
                        self.saw(now, answer.at);
                        answers[index] = Ok(answer);
                    }
                    // Nothing has been charged, so to send it again counts nothing twice.
                    Ok(Reply::Again) => again.push((index, call)),
                    Err(error) => answers[index] = Err(error),
                }
            }
            calls = again;
        }
        answers
    }

    /// Remembers the server's clock.
    fn saw(&self, now: Now, at: Timestamp) {
        if now == Now::StoreClock {
            self.seen.store(at.as_nanos(), Relaxed);
        }
    }

    /// Runs some calls: by the script's digest, and once more in full those for which the server did not know it.
    async fn run(&self, calls: &[(usize, Call<'_>)]) -> Vec<Result<Value, StoreError>> {
        let digest = self.script.get_hash();
        let calls: Vec<&Call<'_>> = calls.iter().map(|(_, call)| call).collect();
        let mut replies = match self.send(&calls, ("EVALSHA", digest)).await {
            Ok(replies) => replies,
            Err(error) => return vec![Err(error); calls.len()],
        };
        // Nothing has run of a call that was not known, so to send it again counts nothing twice.
        let is_unknown = |reply: &RedisResult<Value>| reply.as_ref().is_err_and(is_unknown_script);
        let unknown: Vec<usize> =
            (0..replies.len()).filter(|at| is_unknown(&replies[*at])).collect();
        let again: Vec<&Call<'_>> = unknown.iter().map(|at| calls[*at]).collect();
        let mut failed = None;
        match self.send(&again, ("EVAL", SOURCE)).await {
            Ok(resent) => {
                for (at, reply) in unknown.iter().zip(resent) {
                    replies[*at] = reply;
                }
            }
            Err(error) => failed = Some(error),
        }
        let replies = replies.into_iter().map(|reply| match (&failed, reply) {
            (Some(failed), Err(error)) if is_unknown_script(&error) => Err(failed.clone()),
            (_, reply) => reply.map_err(|error| unavailable(&error)),
        });
        replies.collect()
    }

    /// Sends some calls in one go. None at all are no round trip.
    async fn send(
        &self,
        calls: &[&Call<'_>],
        (verb, script): (&str, &str),
    ) -> Result<Vec<RedisResult<Value>>, StoreError> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = Pipeline::with_capacity(calls.len());
        for call in calls {
            pipeline.add_command(call.command(verb, script));
        }
        let replies = self.connection.send(&mut pipeline).await?;
        if replies.len() == calls.len() { Ok(replies) } else { Err(missing()) }
    }
}

fn missing() -> StoreError {
    StoreError::Unavailable("not every call was replied to".into())
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connection, layout, script: _, seen: _ } = self;
        f.debug_struct("RedisStore")
            .field("connection", connection)
            .field("layout", layout)
            .finish()
    }
}

impl Store for RedisStore {
    async fn decide(&self, asks: &[Ask<'_>], now: Now) -> Vec<Result<Answer, StoreError>> {
        let mut answers = Vec::with_capacity(asks.len());
        for batch in asks.chunks(BATCH_MAX) {
            answers.extend(self.batch(batch, now).await);
        }
        answers
    }

    async fn forget(&self, scope: &Scope, key: &Key) -> Result<bool, StoreError> {
        let mut command = cmd("DEL");
        command.arg(self.layout.key(scope, key));
        let mut pipeline = Pipeline::with_capacity(1);
        pipeline.add_command(command);
        match self.connection.send(&mut pipeline).await?.pop() {
            Some(Ok(Value::Int(removed))) => Ok(removed > 0),
            Some(Err(error)) => Err(unavailable(&error)),
            _ => Err(missing()),
        }
    }
}
