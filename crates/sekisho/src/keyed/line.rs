//! Who waits for a key, in the order in which they came.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    task::Waker,
};

use parking_lot::Mutex;

use super::WAITERS_MAX;

/// The lines of all keys; a key has one while somebody waits.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    // Ordered, so that no client's choice of keys makes it slow.
    by_key: BTreeMap<Box<[u8]>, VecDeque<Place>>,
    tickets: u64,
}

#[derive(Debug)]
struct Place {
    ticket: u64,
    waker: Option<Waker>,
}

/// A place in a line, given up when dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    lines: Arc<Lines>,
    key: Box<[u8]>,
    number: u64,
}

impl Lines {
    /// Takes the last place in a key's line, unless that is full.
    pub(crate) fn join(lines: &Arc<Self>, key: &[u8]) -> Option<Ticket> {
        let mut inner = lines.inner.lock();
        inner.tickets += 1;
        let ticket = inner.tickets;
        let line = inner.by_key.entry(key.into()).or_default();
        if line.len() >= WAITERS_MAX {
            return None;
        }
        line.push_back(Place { ticket, waker: None });
        Some(Ticket { lines: Arc::clone(lines), key: key.into(), number: ticket })
    }
}

impl Ticket {
    /// Returns whether this place is the first, and has `waker` woken when it becomes so.
    pub(crate) fn is_first(&mut self, waker: &Waker) -> bool {
        let mut inner = self.lines.inner.lock();
        let Some(line) = inner.by_key.get_mut(&self.key) else { return true };
        let first = line.front().is_some_and(|place| place.ticket == self.number);
        if let Some(own) =
            line.iter_mut().find(|place| place.ticket == self.number).filter(|_| !first)
        {
            own.waker = Some(waker.clone());
        }
        first
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let next = {
            let mut inner = self.lines.inner.lock();
            let Some(line) = inner.by_key.get_mut(&self.key) else { return };
            let was_first = line.front().is_some_and(|place| place.ticket == self.number);
            line.retain(|place| place.ticket != self.number);
            let next = line.front_mut().filter(|_| was_first).and_then(|place| place.waker.take());
            if line.is_empty() {
                let _empty = inner.by_key.remove(&self.key);
            }
            next
        };
        if let Some(waker) = next {
            waker.wake();
        }
    }
}
