//! A socket that waits for its peer, but not for ever.
//!
//! A peer that sends a byte a second, or nothing at all, would otherwise hold its place as long as it likes. The deadline
//! depends on what is waited for, which the socket alone does not know: the service says when it begins and ends a request.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::deadline::Deadline;
use crate::limits::Limits;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A head is on its way. A connection begins like this, since a peer that connects has something to say.
    Head,
    /// A request is being answered; who answers bounds the time.
    Busy,
    /// Nothing is on its way.
    Idle,
}

/// What the socket and the service of one connection both know of it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// From the low end: the phase, whether requests come side by side, how many run, and how many phases there were, since
    /// two idle times are not one.
    stamp: AtomicU64,
}

/// Set once requests come side by side, as in HTTP/2. Then bytes that come in need not be a head's: pings are none.
const SIDE_BY_SIDE: u64 = 1 << 2;
/// One request that runs; more than a connection can have fit below [`ONE_PHASE`].
const ONE_RUNNING: u64 = 1 << 3;
const ONE_PHASE: u64 = 1 << 32;

impl Progress {
    /// Says that a head has been read.
    pub(crate) fn begin(&self) {
        self.change(|stamp| Self::entered(stamp + ONE_RUNNING, Phase::Busy));
    }

    /// The same, where others may run beside it.
    pub(crate) fn begin_side_by_side(&self) {
        self.change(|stamp| Self::entered((stamp | SIDE_BY_SIDE) + ONE_RUNNING, Phase::Busy));
    }

    /// Says that an answer has been made.
    pub(crate) fn end(&self) {
        self.change(|stamp| {
            let stamp = stamp - ONE_RUNNING;
            let others = stamp % ONE_PHASE >= ONE_RUNNING;
            if others { stamp } else { Self::entered(stamp, Phase::Idle) }
        });
    }

    fn enter(&self, phase: Phase) {
        self.change(|stamp| Self::entered(stamp, phase));
    }

    const fn entered(stamp: u64, phase: Phase) -> u64 {
        (stamp.wrapping_add(ONE_PHASE) & !3) | phase as u64
    }

    fn change(&self, change: impl Fn(u64) -> u64) {
        // Answers of HTTP/2 end in tasks of their own.
        let _before = self.stamp.fetch_update(Relaxed, Relaxed, |stamp| Some(change(stamp)));
    }

    fn stamp(&self) -> u64 {
        self.stamp.load(Relaxed)
    }

    const fn phase_of(stamp: u64) -> Phase {
        match stamp & 3 {
            0 => Phase::Head,
            1 => Phase::Busy,
            _ => Phase::Idle,
        }
    }
}

/// A socket with deadlines.
#[derive(Debug)]
pub(crate) struct Patient<S> {
    socket: S,
    progress: Arc<Progress>,
    limits: Limits,
    reading: Deadline,
    /// The stamp of the phase that `reading` counts down for.
    armed: u64,
    /// Counts down while the peer leaves an answer unread.
    writing: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(crate) fn new(socket: S, progress: Arc<Progress>, limits: Limits) -> Self {
        // Wound up at once, so that it counts from the connection's beginning.
        let reading = Deadline::after(limits.header_timeout);
        let armed = progress.stamp();
        Self { socket, progress, limits, reading, armed, writing: None }
    }

    /// Is ready with an error once the peer has been waited for too long.
    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stamp = self.progress.stamp();
        let patience = match Progress::phase_of(stamp) {
            Phase::Head => self.limits.header_timeout,
            Phase::Idle => self.limits.idle_timeout,
            Phase::Busy => return Poll::Pending,
        };
        if self.armed != stamp {
            self.reading.restart(patience);
            self.armed = stamp;
        }
        ready!(self.reading.poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Passes on what became of a write, or an error once the peer has taken nothing for too long.
    fn poll_written<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.writing = None;
            return written;
        }
        let patience: Duration = self.limits.write_timeout;
        let writing = self.writing.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(writing.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.socket).poll_read(context, buffer);
        if read.is_pending() {
            return self.poll_patience(context);
        }
        // Only the first byte counts: a peer that sends one byte after another gains nothing by it.
        let stamp = self.progress.stamp();
        if Progress::phase_of(stamp) == Phase::Idle && stamp & SIDE_BY_SIDE == 0 {
            self.progress.enter(Phase::Head);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.poll_written(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.poll_written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(context);
        if flushed.is_ready() && self.armed != self.progress.stamp() {
            // An answer is out. hyper reads again only when the socket wakes it, so the idle time begins here; that it is over
            // is seen by the read that its end brings about.
            let _begun = self.poll_patience(context);
        }
        self.poll_written(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.socket).poll_shutdown(context);
        self.poll_written(context, shut)
    }
}
