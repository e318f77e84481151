//! The connections to the upstream that are kept, and who may use which.
//!
//! One of HTTP/1.1 carries one request at a time; the last that came back goes out first, so that a quiet time lets the others
//! grow old and be closed. One of HTTP/2 carries many.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
};
use parking_lot::Mutex;
use tokio::time::sleep;

use super::super::deadline::Deadline;
use super::{
    connect::{ConnectError, Connector, Opened, Wanted},
    outgoing::Outgoing,
};

/// The most connections that are kept idle. More are closed when they come back.
const IDLE_MAX: usize = 256;
/// The most streams that one connection of HTTP/2 carries before another is opened.
const STREAMS_MAX: usize = 100;

/// Connections to one upstream.
pub(super) struct Pool {
    connector: Connector,
    idle_timeout: Duration,
    idle: Mutex<Idle>,
    shared: Mutex<Vec<Many>>,
    /// Held while a shared connection is opened, so that a crowd opens one and not one each.
    opening: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Idle {
    senders: Vec<Resting>,
    /// Whether somebody closes those that rest too long.
    tended: bool,
}

struct Resting {
    one: One,
    /// Whether it has been resting since the last look.
    seen: bool,
}

struct Many {
    sender: http2::SendRequest<Outgoing>,
    /// One more reference for each stream.
    place: Arc<()>,
}

/// A connection of HTTP/1.1, and its timer, which is not made anew for each request.
#[derive(Debug)]
struct One {
    sender: http1::SendRequest<Outgoing>,
    answering: Deadline,
}

/// A connection that one request may use.
pub(super) struct Leased {
    sender: Sender,
    /// Whether it has been used before: the upstream may have closed it meanwhile.
    pub(super) reused: bool,
}

enum Sender {
    One(One),
    Many(http2::SendRequest<Outgoing>, Arc<()>, Deadline),
}

/// What is done over one kind of connection or the other.
enum Either<A, B> {
    One(A),
    Many(B),
}

/// What an answer holds until its body has ended: its stream of a shared connection, or the whole connection.
#[derive(Debug)]
pub(super) struct Place {
    _connection: Option<Returning>,
    _stream: Option<Arc<()>>,
}

/// A connection that goes back to its pool.
#[derive(Debug)]
pub(super) struct Returning {
    one: Option<One>,
    pool: Weak<Pool>,
}

/// An answer, and what it holds.
pub(super) type Answered = (Response<Incoming>, Place);

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("connector", &self.connector).finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(connector: Connector, idle_timeout: Duration) -> Arc<Self> {
        Arc::new(Self {
            connector,
            idle_timeout,
            idle: Mutex::default(),
            shared: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
        })
    }

    /// Returns a connection: one that is kept, if any, else a new one.
    pub(super) async fn lease(&self, wanted: Wanted) -> Result<Leased, ConnectError> {
        match self.kept(wanted) {
            Some(leased) => Ok(leased),
            // Boxed: it is large and rare, and every request would carry room for it.
            None => Box::pin(self.lease_new(wanted)).await,
        }
    }

    async fn lease_new(&self, wanted: Wanted) -> Result<Leased, ConnectError> {
        if wanted != Wanted::Http2 {
            return self.open(wanted).await;
        }
        let _alone = self.opening.lock().await;
        match self.kept(wanted) {
            Some(leased) => Ok(leased),
            None => self.open(wanted).await,
        }
    }

    /// Returns a new connection.
    pub(super) async fn open(&self, wanted: Wanted) -> Result<Leased, ConnectError> {
        let sender = match self.connector.open(wanted).await? {
            Opened::One(sender) => {
                Sender::One(One { sender, answering: Deadline::after(self.idle_timeout) })
            }
            Opened::Many(sender) => {
                let place = Arc::new(());
                let stream = Arc::clone(&place);
                self.shared.lock().push(Many { sender: sender.clone(), place });
                Sender::Many(sender, stream, Deadline::after(self.idle_timeout))
            }
        };
        Ok(Leased { sender, reused: false })
    }

    fn kept(&self, wanted: Wanted) -> Option<Leased> {
        let sender = match wanted {
            Wanted::Http1 => self.resting()?,
            Wanted::Http2 => self.shared()?,
            Wanted::Either => self.shared().or_else(|| self.resting())?,
        };
        Some(Leased { sender, reused: true })
    }

    fn resting(&self) -> Option<Sender> {
        let senders = &mut self.idle.lock().senders;
        while let Some(resting) = senders.pop() {
            if resting.one.sender.is_ready() {
                return Some(Sender::One(resting.one));
            }
        }
        None
    }

    fn shared(&self) -> Option<Sender> {
        let mut shared = self.shared.lock();
        shared.retain(|many| !many.sender.is_closed());
        // The reference that is held here is none of a stream's.
        let free = shared.iter().find(|many| Arc::strong_count(&many.place) <= STREAMS_MAX)?;
        let answering = Deadline::after(self.idle_timeout);
        Some(Sender::Many(free.sender.clone(), Arc::clone(&free.place), answering))
    }

    /// Keeps a connection, and sees to it that it does not rest for ever.
    fn keep(self: &Arc<Self>, one: One) {
        let mut idle = self.idle.lock();
        if idle.senders.len() >= IDLE_MAX {
            return;
        }
        idle.senders.push(Resting { one, seen: false });
        if !std::mem::replace(&mut idle.tended, true) {
            let _tending = tokio::spawn(tend(Arc::downgrade(self), self.idle_timeout));
        }
    }
}

/// Closes what has rested for a whole turn, until nothing rests.
async fn tend(pool: Weak<Pool>, turn: Duration) {
    loop {
        sleep(turn).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.idle.lock();
        idle.senders.retain(|resting| !resting.seen && !resting.one.sender.is_closed());
        idle.senders.iter_mut().for_each(|resting| resting.seen = true);
        if idle.senders.is_empty() {
            idle.tended = false;
            return;
        }
    }
}

impl Leased {
    pub(super) const fn is_http2(&self) -> bool {
        matches!(self.sender, Sender::Many(..))
    }

    /// Returns the timer of the answer that is waited for.
    pub(super) const fn answering(&mut self) -> &mut Deadline {
        match &mut self.sender {
            Sender::One(one) => &mut one.answering,
            Sender::Many(_, _, answering) => answering,
        }
    }

    /// Sends a request. The error brings it back when the upstream has seen nothing of it.
    pub(super) fn send(
        &mut self,
        request: Request<Outgoing>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<Outgoing>>>> + use<>
    {
        let sending = match &mut self.sender {
            Sender::One(one) => Either::One(one.sender.try_send_request(request)),
            Sender::Many(sender, ..) => Either::Many(sender.try_send_request(request)),
        };
        async move {
            match sending {
                Either::One(sending) => sending.await,
                Either::Many(sending) => sending.await,
            }
        }
    }

    /// Returns what the answer to the request holds.
    pub(super) fn into_place(self, pool: &Arc<Pool>) -> Place {
        match self.sender {
            Sender::One(one) => {
                let returning = Returning { one: Some(one), pool: Arc::downgrade(pool) };
                Place { _connection: Some(returning), _stream: None }
            }
            Sender::Many(_, stream, _) => Place { _connection: None, _stream: Some(stream) },
        }
    }
}

impl Drop for Returning {
    fn drop(&mut self) {
        let Some(mut one) = self.one.take() else { return };
        if one.sender.is_closed() {
            return;
        }
        if one.sender.is_ready() {
            if let Some(pool) = self.pool.upgrade() {
                pool.keep(one);
            }
            return;
        }
        // The request has not been sent to its end, or what is left of the answer is thrown away.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let pool = Weak::clone(&self.pool);
        let _returning = runtime.spawn(async move {
            if one.sender.ready().await.is_err() {
                return;
            }
            if let Some(pool) = pool.upgrade() {
                pool.keep(one);
            }
        });
    }
}
