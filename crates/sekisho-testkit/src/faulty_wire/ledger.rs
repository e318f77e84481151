//! What all connections of a wire share: the fault, who is open, who is to be cut, and the counts.

use std::{collections::BTreeSet, sync::Arc};

use tokio::sync::watch;

use crate::faulty_wire::Fault;

/// What has gone through a wire since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that clients made, with those that were refused.
    pub connections: u64,
    /// Connections that were refused.
    pub refused: u64,
    /// Connections that are open.
    pub open: u64,
    /// Bytes that clients sent.
    pub request_bytes: u64,
    /// Bytes that clients were given.
    pub reply_bytes: u64,
    /// Bytes of replies that were lost.
    pub lost_bytes: u64,
}

/// One table for all, which wakes those who wait for a change. Counting wakes nobody.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger(Arc<watch::Sender<Book>>);

#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) fault: Fault,
    /// The number of the newest connection; they are numbered from 1.
    newest: u64,
    /// Connections up to this one are cut.
    cut: u64,
    open: BTreeSet<u64>,
    /// Those of them that have lost replies.
    lame: BTreeSet<u64>,
    /// How many more bytes of replies pass before all is cut.
    budget: Option<usize>,
    counts: Counts,
}

impl Book {
    /// Whether a connection is to be cut.
    pub(super) fn cuts(&self, connection: u64) -> bool {
        let mute = self.fault == Fault::HalfOpen;
        connection <= self.cut || (!mute && self.lame.contains(&connection))
    }
}

impl Ledger {
    pub(super) fn watch(&self) -> watch::Receiver<Book> {
        self.0.subscribe()
    }

    pub(super) fn set(&self, fault: Fault) {
        self.0.send_modify(|book| book.fault = fault);
    }

    /// Lets in a new connection, and returns its number; none when new ones are refused.
    pub(super) fn open(&self) -> Option<u64> {
        self.quietly(|book| {
            book.counts.connections += 1;
            if book.fault == Fault::Refuse {
                book.counts.refused += 1;
                return None;
            }
            book.newest += 1;
            book.open.insert(book.newest);
            Some(book.newest)
        })
    }

    pub(super) fn close(&self, connection: u64) {
        self.quietly(|book| {
            book.open.remove(&connection);
            book.lame.remove(&connection);
        });
    }

    /// Has every connection cut that is open, and returns the newest of them.
    pub(super) fn cut(&self) -> u64 {
        self.0.send_modify(|book| book.cut = book.newest);
        self.0.borrow().cut
    }

    pub(super) fn cut_after(&self, bytes: usize) {
        self.quietly(|book| book.budget = Some(bytes));
    }

    /// Whether a connection is open that is not newer than `last`.
    pub(super) fn has_open(&self, last: u64) -> bool {
        self.0.borrow().open.range(..=last).next().is_some()
    }

    /// Whether a connection is open that is to be cut for what it lost.
    pub(super) fn has_lame(&self) -> bool {
        let book = self.0.borrow();
        book.fault != Fault::HalfOpen && !book.lame.is_empty()
    }

    pub(super) fn requested(&self, bytes: usize) {
        self.quietly(|book| book.counts.request_bytes += bytes as u64);
    }

    /// Loses a reply, if that is still the fault.
    pub(super) fn lose(&self, connection: u64, bytes: usize) -> bool {
        self.quietly(|book| {
            let loses = book.fault == Fault::HalfOpen;
            if loses {
                book.lame.insert(connection);
                book.counts.lost_bytes += bytes as u64;
            }
            loses
        })
    }

    /// Tells how many bytes of a reply may pass, and whether all is to be cut behind them.
    pub(super) fn reply(&self, bytes: usize) -> (usize, bool) {
        self.quietly(|book| {
            let passes = book.budget.map_or(bytes, |left| left.min(bytes));
            book.counts.reply_bytes += passes as u64;
            book.budget = book.budget.map(|left| left - passes);
            let cuts = book.budget == Some(0);
            if cuts {
                book.budget = None;
            }
            (passes, cuts)
        })
    }

    pub(super) fn counts(&self) -> Counts {
        let book = self.0.borrow();
        Counts { open: book.open.len() as u64, ..book.counts }
    }

    fn quietly<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let mut result = None;
        self.0.send_if_modified(|book| {
            result = Some(change(book));
            false
        });
        result.expect("the change has been made")
    }
}
