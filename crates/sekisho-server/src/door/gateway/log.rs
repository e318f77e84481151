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

fn write_all(mut writer: Box<dyn Write + Send>, lines: &Receiver<Vec<u8>>, lost: &AtomicU64) {
    let count = |written: io::Result<()>| {
        if written.is_err() {
            let _before = lost.fetch_add(1, Relaxed);
        }
    };
    loop {
        let line = match lines.try_recv() {
            Ok(line) => line,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                // Nobody is waiting: what has been written may be read now.
                count(writer.flush());
                match lines.recv() {
                    Ok(line) => line,
                    Err(_) => break,
                }
            }
        };
        count(writer.write_all(&line));
    }
    count(writer.flush());
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
