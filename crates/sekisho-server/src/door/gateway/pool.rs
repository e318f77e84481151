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
    sender: http1::SendRequest<Outgoing>,
    /// Whether it has been resting since the last look.
    seen: bool,
}

struct Many {
    sender: http2::SendRequest<Outgoing>,
    /// One more reference for each stream.
    place: Arc<()>,
}

/// A connection that one request may use.
pub(super) struct Leased {
    sender: Sender,
    /// Whether it has been used before: the upstream may have closed it meanwhile.
    pub(super) reused: bool,
}

enum Sender {
    One(http1::SendRequest<Outgoing>),
    Many(http2::SendRequest<Outgoing>, Arc<()>),
}

/// An answer, and the stream's place when it came over a shared connection.
pub(super) type Answered = (Response<Incoming>, Option<Arc<()>>);

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
        if let Some(leased) = self.kept(wanted) {
            return Ok(leased);
        }
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
            Opened::One(sender) => Sender::One(sender),
            Opened::Many(sender) => {
                let place = Arc::new(());
                let stream = Arc::clone(&place);
                self.shared.lock().push(Many { sender: sender.clone(), place });
                Sender::Many(sender, stream)
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
            if resting.sender.is_ready() {
                return Some(Sender::One(resting.sender));
            }
        }
        None
    }

    fn shared(&self) -> Option<Sender> {
        let mut shared = self.shared.lock();
        shared.retain(|many| !many.sender.is_closed());
        // The reference that is held here is none of a stream's.
        let free = shared.iter().find(|many| Arc::strong_count(&many.place) <= STREAMS_MAX)?;
        Some(Sender::Many(free.sender.clone(), Arc::clone(&free.place)))
    }

    /// Keeps a connection, and sees to it that it does not rest for ever.
    fn keep(self: &Arc<Self>, sender: http1::SendRequest<Outgoing>) {
        let mut idle = self.idle.lock();
        if idle.senders.len() >= IDLE_MAX {
            return;
        }
        idle.senders.push(Resting { sender, seen: false });
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
        idle.senders.retain(|resting| !resting.seen && !resting.sender.is_closed());
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

    /// Sends a request. The error brings it back when the upstream has seen nothing of it.
    pub(super) async fn send(
        self,
        request: Request<Outgoing>,
        pool: &Arc<Pool>,
    ) -> Result<Answered, TrySendError<Request<Outgoing>>> {
        match self.sender {
            Sender::One(mut sender) => {
                let response = sender.try_send_request(request).await?;
                let pool = Arc::downgrade(pool);
                let _returning = tokio::spawn(async move {
                    // Ready again once the answer has been read and the request sent, both to the end.
                    if sender.ready().await.is_err() {
                        return;
                    }
                    if let Some(pool) = pool.upgrade() {
                        pool.keep(sender);
                    }
                });
                Ok((response, None))
            }
            Sender::Many(mut sender, place) => {
                let response = sender.try_send_request(request).await?;
                Ok((response, Some(place)))
            }
        }
    }
}
