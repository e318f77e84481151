//! The access log: one line of JSON a decision, in the order in which they were made.
//!
//! A line is put into a queue in the same breath as the decision is made, and a thread of its own writes. A writer that is too
//! slow loses lines, which are counted; it never holds up a decision.

mod line;

use std::{
    fmt,
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel},
    },
    thread,
    time::Duration,
};

use parking_lot::Mutex;

pub(super) use self::line::{bad_request_line, decision_line, refund_line};

/// The most lines that wait to be written. A writer that falls behind further loses some.
pub const LINES_MAX: usize = 8_192;

/// How long the end of a log waits for its writer to take what is left.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the decisions are written. Clones write to the same place, in one order.
#[derive(Clone)]
pub struct AccessLog {
    shared: Arc<Shared>,
}

struct Shared {
    /// Held over a decision and its place in the queue, so that no other comes between.
    order: Mutex<()>,
    /// Absent once the log is over.
    queue: Option<SyncSender<Vec<u8>>>,
    lost: Arc<AtomicU64>,
    /// Hangs up once all is written.
    written: Mutex<Receiver<()>>,
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog").field("lost", &self.lost()).finish_non_exhaustive()
    }
}

impl AccessLog {
    /// Returns a log that writes to `writer`, from a thread of its own.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn to(writer: Box<dyn Write + Send>) -> io::Result<Self> {
        let (queue, lines) = sync_channel(LINES_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        let (writing, written): (Sender<()>, _) = channel();
        let _thread = thread::Builder::new().name("access-log".to_owned()).spawn(move || {
            write_all(writer, &lines, &counted);
            drop(writing);
        })?;
        let (queue, written) = (Some(queue), Mutex::new(written));
        Ok(Self { shared: Arc::new(Shared { order: Mutex::new(()), queue, lost, written }) })
    }

    /// Returns how many lines were lost: the queue was full, or the writer failed.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Relaxed)
    }

    /// Does something whose lines stand in the order in which it is done.
    pub(super) fn in_order(&self, act: impl FnOnce()) {
        let _held = self.shared.order.lock();
        act();
    }

    /// Puts a line behind all others. In between what is done [in order](Self::in_order) it has no place of its own.
    pub(super) fn put(&self, line: Vec<u8>) {
        if self.shared.queue.as_ref().is_none_or(|queue| queue.try_send(line).is_err()) {
            let _before = self.shared.lost.fetch_add(1, Relaxed);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Without a queue the thread ends once it has written what is left.
        drop(self.queue.take());
        let _hung_up = self.written.get_mut().recv_timeout(CLOSE_TIMEOUT);
    }
}

fn write_all(writer: Box<dyn Write + Send>, lines: &Receiver<Vec<u8>>, lost: &AtomicU64) {
    let mut writing = Writing { writer, lost, unflushed: 0, told: 0, losing: false };
    loop {
        let line = match lines.try_recv() {
            Ok(line) => line,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                // Nobody is waiting: what has been written may be read now.
                writing.flush();
                match lines.recv() {
                    Ok(line) => line,
                    Err(_) => break,
                }
            }
        };
        writing.write(&line);
    }
    writing.flush();
}

/// What is being written, and what became of it.
struct Writing<'a> {
    writer: Box<dyn Write + Send>,
    lost: &'a AtomicU64,
    /// Lines that the writer has taken, and may still lose.
    unflushed: u64,
    /// How many were lost when that was told last.
    told: u64,
    losing: bool,
}

impl Writing<'_> {
    fn write(&mut self, line: &[u8]) {
        match self.writer.write_all(line) {
            Ok(()) => self.unflushed += 1,
            Err(error) => self.lose(1, &error),
        }
    }

    fn flush(&mut self) {
        let unflushed = std::mem::take(&mut self.unflushed);
        match self.writer.flush() {
            Ok(()) if unflushed > 0 => self.tell(),
            Ok(()) => {}
            Err(error) => self.lose(unflushed, &error),
        }
    }

    fn lose(&mut self, lines: u64, error: &io::Error) {
        let lost = self.lost.fetch_add(lines, Relaxed) + lines;
        if !std::mem::replace(&mut self.losing, true) {
            tracing::warn!(%error, lost, "the access log cannot be written, and loses lines");
        }
        self.told = lost;
    }

    /// Says, once for each change, whether lines were lost on the way here, or no more are.
    fn tell(&mut self) {
        let lost = self.lost.load(Relaxed);
        let losing = lost > self.told;
        if losing && !self.losing {
            tracing::warn!(lost, "the access log's writer is too slow, and lines are lost");
        } else if self.losing && !losing {
            tracing::info!(lost, "the access log is written again");
        }
        (self.losing, self.told) = (losing, lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes nothing before it is told to.
    struct Stuck(Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _told = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Takes everything and writes nothing.
    struct Full;

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn what_a_buffer_swallows_is_lost_when_it_cannot_be_written() {
        let log = AccessLog::to(Box::new(Full)).unwrap();
        for _ in 0..10 {
            log.put(b"{}\n".to_vec());
        }
        let lost = Arc::clone(&log.shared.lost);
        drop(log);
        assert_eq!(lost.load(Relaxed), 10);
    }

    #[test]
    fn a_writer_that_is_stuck_loses_lines_and_holds_up_nobody() {
        let (go_on, told) = channel();
        let log = AccessLog::to(Box::new(Stuck(told))).unwrap();
        for _ in 0..LINES_MAX + 100 {
            log.in_order(|| log.put(b"{}\n".to_vec()));
        }
        // One line may be in the writer's hands.
        assert!((99..=100).contains(&log.lost()), "{}", log.lost());
        drop(go_on);
    }
}
