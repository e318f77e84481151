//! The RESP door: `CL.THROTTLE` and `THROTTLE`, for those who have a client of Redis.
//!
//! What one read brings is decided together and answered in one write. The limit is the caller's own, and the state belongs to
//! the key alone: the same key under other numbers meets the same usage, as it does in redis-cell.

mod command;
pub mod parse;
mod reply;
mod throttle;

use std::{
    io, mem,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use bytes::{Buf as _, BytesMut};
use sekisho::{
    Ask, Charge, Clock, Key, Limiter, Now, Outcome, Ruling, Scope, Store as _, StoreError,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use self::{
    command::{Next, Session},
    parse::{Parsed, Words, parse},
    reply::Replies,
    throttle::{Asked, Family, Throttle, put, put_five},
};
use crate::{
    door::{
        listener::{Serve, Stage, Stay},
        patience::{Patient, Progress},
        socket::Stream,
    },
    limits::{Limits, RESP_BATCH_MAX, RESP_READ_BYTES, RESP_REPLY_BYTES_MAX},
    metrics::{Door, Metrics},
    store::ServerStore,
};

/// What the states of all keys are counted under.
const SCOPE: &str = "throttle";

/// The door, and what it decides with.
#[derive(Debug)]
pub(crate) struct Resp {
    limiter: Arc<Limiter<ServerStore>>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    limits: Limits,
    scope: Scope,
    connections: AtomicU64,
}

impl Resp {
    pub(crate) fn new(
        limiter: Arc<Limiter<ServerStore>>,
        clock: Arc<dyn Clock>,
        metrics: Arc<Metrics>,
        limits: Limits,
    ) -> Self {
        let scope = Scope::new("", SCOPE);
        Self { limiter, clock, metrics, limits, scope, connections: AtomicU64::new(1) }
    }
}

impl Serve for Resp {
    async fn connection(self: Arc<Self>, stream: Stream, stay: Stay) {
        let talk = Talk::new(&self);
        // How a connection ends is its peer's business.
        tokio::select! {
            _ended = talk.run(stream, &stay) => {}
            () = stay.reached(Stage::Cut) => {}
        }
    }
}

/// A command about a limit that waits to be decided with those beside it.
#[derive(Debug)]
struct Pending {
    asked: Asked,
    key: Key,
}

/// One connection.
struct Talk<'a> {
    door: &'a Resp,
    session: Session,
    replies: Replies,
    pending: Vec<Pending>,
}

impl<'a> Talk<'a> {
    fn new(door: &'a Resp) -> Self {
        let number = door.connections.fetch_add(1, Relaxed);
        let session = Session { number, name: Vec::new() };
        Self { door, session, replies: Replies::default(), pending: Vec::new() }
    }

    async fn run(mut self, stream: Stream, stay: &Stay) -> io::Result<()> {
        let progress = Arc::new(Progress::default());
        let mut stream = Patient::new(stream, Arc::clone(&progress), self.door.limits);
        let mut input = BytesMut::with_capacity(RESP_READ_BYTES);
        let mut draining = pin!(stay.reached(Stage::Draining));
        loop {
            input.reserve(RESP_READ_BYTES / 2);
            let read = tokio::select! {
                biased;
                read = stream.read_buf(&mut input) => read?,
                () = &mut draining => return stream.shutdown().await,
            };
            if read == 0 {
                return Ok(());
            }
            let mut taken = 0;
            loop {
                let (words, length) = match parse(&input, taken) {
                    Parsed::Command(words, length) => (words, length),
                    Parsed::Incomplete => break,
                    Parsed::Garbage(what) => {
                        progress.begin();
                        self.decide().await;
                        self.replies.error(&format!("ERR Protocol error: {what}"));
                        return self.say_and_end(&mut stream).await;
                    }
                };
                if taken == 0 {
                    progress.begin();
                }
                taken += length;
                if self.command(&words, &input).await == Next::End {
                    return self.say_and_end(&mut stream).await;
                }
                if self.replies.bytes.len() > RESP_REPLY_BYTES_MAX {
                    // Nothing more is read, let alone decided, for one who does not listen.
                    self.say(&mut stream).await?;
                }
            }
            if taken > 0 {
                input.advance(taken);
                self.decide().await;
                self.say(&mut stream).await?;
                progress.end();
            }
        }
    }

    async fn say(&mut self, stream: &mut Patient<Stream>) -> io::Result<()> {
        stream.write_all(&self.replies.bytes).await?;
        self.replies.bytes.clear();
        // One long reply does not keep its memory for good.
        self.replies.bytes.shrink_to(RESP_REPLY_BYTES_MAX);
        stream.flush().await
    }

    async fn say_and_end(&mut self, stream: &mut Patient<Stream>) -> io::Result<()> {
        self.say(stream).await?;
        stream.shutdown().await
    }

    /// Answers one command, or lets it wait for those beside it.
    async fn command(&mut self, words: &Words, buffer: &[u8]) -> Next {
        if words.is_empty() {
            return Next::GoOn;
        }
        let name = words.get(buffer, 0);
        let family = if name.eq_ignore_ascii_case(b"cl.throttle") {
            Family::RedisCell
        } else if name.eq_ignore_ascii_case(b"throttle") {
            Family::Throttlecrab
        } else {
            self.decide().await;
            return self.other(words, buffer).await;
        };
        let asked = match family.numbers(words, buffer).map(|numbers| family.ask(numbers)) {
            Ok(Throttle::Ask(asked)) => asked,
            Ok(Throttle::Plain(numbers)) => {
                self.decide().await;
                put_five(&mut self.replies, numbers);
                return Next::GoOn;
            }
            Ok(Throttle::Wrong(text)) | Err(text) => {
                self.decide().await;
                self.replies.error(&text);
                return Next::GoOn;
            }
        };
        let key = self.door.limiter.policies().plain_key(words.get(buffer, 1));
        self.pending.push(Pending { asked, key });
        if self.pending.len() == RESP_BATCH_MAX {
            self.decide().await;
        }
        Next::GoOn
    }

    async fn other(&mut self, words: &Words, buffer: &[u8]) -> Next {
        let name = command::lower(words.get(buffer, 0));
        if name == "del" && words.len() > 1 {
            self.forget(words, buffer).await;
            return Next::GoOn;
        }
        command::answer(&name, (words, buffer), &mut self.session, &mut self.replies)
    }

    /// Drops what is known of keys, as `DEL` does where redis-cell keeps them.
    async fn forget(&mut self, words: &Words, buffer: &[u8]) {
        let mut gone = 0;
        for index in 1..words.len() {
            let key = self.door.limiter.policies().plain_key(words.get(buffer, index));
            match self.door.limiter.store().forget(&self.door.scope, &key).await {
                Ok(was_there) => gone += i64::from(was_there),
                Err(error) => return self.replies.error(&refusal(&error)),
            }
        }
        self.replies.integer(gone);
    }

    /// Decides what waits, and writes the replies in the order of the commands.
    async fn decide(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let Resp { limiter, clock, metrics, scope, .. } = self.door;
        let pending = mem::take(&mut self.pending);
        let charges: Vec<_> = pending.iter().map(|of| charge(of, scope)).collect();
        let asks: Vec<_> = charges
            .chunks(1)
            .zip(&pending)
            .map(|(charge, of)| Ask::new(charge, of.asked.mode))
            .collect();
        let begin = clock.now();
        let answers = match limiter.store() {
            ServerStore::Memory(memory) => memory.decide_now(&asks, Now::StoreClock),
            ServerStore::Redis(store) => Box::pin(store.decide(&asks, Now::StoreClock)).await,
        };
        let took = clock.now().since(begin);
        let mut answers = answers.into_iter();
        for (of, charge) in pending.iter().zip(&charges) {
            let none = || Err(StoreError::Unavailable("the store gave no answer".into()));
            let ruling = match answers.next().unwrap_or_else(none) {
                Ok(answer) => match answer.verdicts.first() {
                    Some(verdict) => {
                        if let Some(fullest) = limiter.fullest() {
                            fullest.note(charge, verdict, answer.at, of.asked.mode);
                        }
                        put(&mut self.replies, &of.asked, verdict);
                        match verdict.outcome {
                            Outcome::Allow => Ruling::Allow,
                            Outcome::Deny => Ruling::Deny,
                            Outcome::Never => Ruling::Never,
                        }
                    }
                    None => self.refused(StoreError::Unavailable("a limit got no verdict".into())),
                },
                Err(error) => self.refused(error),
            };
            metrics.ruled(Door::Resp, &ruling, took);
        }
        drop(asks);
        self.pending = pending;
        self.pending.clear();
    }

    fn refused(&mut self, error: StoreError) -> Ruling {
        self.replies.error(&refusal(&error));
        Ruling::StoreDown(error)
    }
}

fn charge<'a>(of: &'a Pending, scope: &'a Scope) -> Charge<'a> {
    Charge { limit: &of.asked.limit, scope, key: &of.key, cost: of.asked.cost }
}

/// Returns what a client is told when a store does not decide.
fn refusal(error: &StoreError) -> String {
    let text = error.to_string();
    if text.contains("WRONGTYPE") {
        return "WRONGTYPE Operation against a key holding the wrong kind of value".to_owned();
    }
    format!("ERR {text}")
}
