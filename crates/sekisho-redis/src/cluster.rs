//! A cluster: which of its servers counts what, and where it says that this has changed.

mod patience;
mod slots;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use redis_protocol::redis_keyslot;
use sekisho::{Host, Key, StoreError, Timestamp};
use tokio::time::{Instant, timeout, timeout_at};

use self::{patience::Patience, slots::Slots};
use crate::{
    instant,
    link::{
        Link, Manners, Target, Waiting,
        handshake::{Said, ask, greet},
    },
    question::{Answered, Question},
    refusal::{Failure, Meaning, Refusal},
    stats::ServerStats,
    wire::{Place, Wire},
};

/// How often the slots are asked for at most.
const ASKED: Duration = Duration::from_millis(200);

/// A cluster.
pub(crate) struct Cluster {
    /// Where to begin.
    seeds: Vec<Host>,
    manners: Arc<Manners>,
    known: Mutex<Known>,
    /// Whether somebody is asking for the slots.
    is_asking: AtomicBool,
}

/// What is known of it.
struct Known {
    slots: Slots,
    links: BTreeMap<Host, Arc<Link>>,
    asked: Option<Instant>,
    /// Why no server has said which has which slot.
    unknown: Option<Refusal>,
}

impl Cluster {
    /// Returns the cluster that some of its servers know, without going there.
    pub(crate) fn new(seeds: Vec<Host>, manners: Arc<Manners>) -> Self {
        let known =
            Known { slots: Slots::default(), links: BTreeMap::new(), asked: None, unknown: None };
        Self { seeds, manners, known: Mutex::new(known), is_asking: AtomicBool::new(false) }
    }

    /// Returns the slot in which an identity is counted.
    pub(crate) fn slot(key: &Key) -> u16 {
        redis_keyslot(key.as_str().as_bytes())
    }

    /// Returns the latest clock that one of the servers has told.
    pub(crate) fn seen(&self) -> Timestamp {
        let known = self.known.lock();
        known.links.values().map(|link| link.seen()).max().unwrap_or(Timestamp::EPOCH)
    }

    /// Says what is counted of each server.
    pub(crate) fn stats(&self) -> Vec<ServerStats> {
        self.known.lock().links.values().map(|link| link.stats()).collect()
    }

    /// Puts a question to the server that has its slot; to any, as long as that is not known: it will say who.
    pub(crate) fn ask(&self, slot: u16, question: Question) -> Waiting {
        self.link(slot).ask(question, false)
    }

    /// Returns what is said in the end. A cluster that changes is asked again for as long as a caller waits: a question that
    /// it refused has charged nothing.
    pub(crate) async fn told(
        self: &Arc<Self>,
        slot: u16,
        waiting: Waiting,
    ) -> Result<Answered, StoreError> {
        let mut patience = Patience::new(self.manners.timeout);
        let mut told = waiting.told().await;
        loop {
            let failure = match told {
                Ok(answered) => return Ok(answered),
                Err(failure) => failure,
            };
            let waiting = self.again(slot, failure, &mut patience).await?;
            let late = Err(Failure::Store(StoreError::Timeout(self.manners.timeout)));
            told = timeout_at(patience.over, waiting.told()).await.unwrap_or(late);
        }
    }

    /// Puts a question that was not decided to who should know better.
    async fn again(
        self: &Arc<Self>,
        slot: u16,
        failure: Failure,
        patience: &mut Patience,
    ) -> Result<Waiting, StoreError> {
        match failure {
            Failure::Refused(refusal, Some(question)) => {
                let to = match &refusal.meaning {
                    Meaning::Moved { slot, to } => host(to).map(|to| (Some(*slot), to)),
                    Meaning::Ask { to } => host(to).map(|to| (None, to)),
                    Meaning::Elsewhere | Meaning::Moving => None,
                    _ => return Err(refusal.error()),
                };
                if !matches!(refusal.meaning, Meaning::Ask { .. }) {
                    self.look_around();
                }
                if let Some((moved, to)) = to.filter(|_| patience.sends_on()) {
                    if let Some(moved) = moved {
                        self.known.lock().slots.moved(moved, &to);
                    }
                    return Ok(self.link_to(&to).ask(*question, moved.is_none()));
                }
                if !patience.pause().await {
                    let circle =
                        matches!(refusal.meaning, Meaning::Moved { .. } | Meaning::Ask { .. });
                    return Err(if circle { refusal.circle() } else { refusal.error() });
                }
                Ok(self.ask(slot, *question))
            }
            Failure::NotSent(error, Some(question)) => {
                let before = self.link(slot);
                // Nobody waits for a server that is known to be down, unless somebody is about to tell of another.
                if !self.look_around() || !patience.pause().await {
                    return Err(self.and_why_nobody_knows(error));
                }
                let after = self.link(slot);
                if Arc::ptr_eq(&before, &after) && self.known.lock().slots.host(slot).is_some() {
                    return Err(self.and_why_nobody_knows(error));
                }
                Ok(after.ask(*question, false))
            }
            failure => {
                self.look_around();
                Err(failure.error())
            }
        }
    }

    /// Adds to an error why no other server is known, if a server has said why.
    fn and_why_nobody_knows(&self, error: StoreError) -> StoreError {
        match (&self.known.lock().unknown, error) {
            (Some(said), StoreError::Unavailable(why)) => {
                let why = format!("{why}; and to `CLUSTER SLOTS`: {}", said.error());
                StoreError::Unavailable(why.into())
            }
            (_, error) => error,
        }
    }

    fn link(&self, slot: u16) -> Arc<Link> {
        let mut known = self.known.lock();
        // There is at least one seed.
        let host = known.slots.host(slot).unwrap_or(&self.seeds[0]).clone();
        self.link_in(&mut known, &host)
    }

    fn link_to(&self, host: &Host) -> Arc<Link> {
        self.link_in(&mut self.known.lock(), host)
    }

    fn link_in(&self, known: &mut Known, host: &Host) -> Arc<Link> {
        if let Some(link) = known.links.get(host) {
            return Arc::clone(link);
        }
        let target = Target::Place(Place::Host(host.clone()));
        let link = Arc::new(Link::new(target, Arc::clone(&self.manners)));
        known.links.insert(host.clone(), Arc::clone(&link));
        link
    }

    /// Asks, beside all else, which server has which slot, unless somebody has just done so. Returns whether the answer is
    /// still to come.
    fn look_around(self: &Arc<Self>) -> bool {
        {
            let mut known = self.known.lock();
            if known.asked.is_some_and(|asked| asked.elapsed() < ASKED) {
                return self.is_asking.load(Ordering::Acquire);
            }
            known.asked = Some(instant::now());
        }
        if self.is_asking.swap(true, Ordering::AcqRel) {
            return true;
        }
        let cluster = Arc::clone(self);
        drop(tokio::spawn(async move {
            cluster.ask_around().await;
            cluster.is_asking.store(false, Ordering::Release);
        }));
        true
    }

    /// Asks one server after the other, those that answer first, until one says which has which slot.
    async fn ask_around(&self) {
        let mut hosts = Vec::with_capacity(self.seeds.len());
        let mut silent = Vec::new();
        for (host, link) in &self.known.lock().links {
            if link.stats().up { &mut hosts } else { &mut silent }.push(host.clone());
        }
        for host in self.seeds.iter().cloned().chain(silent) {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        for host in hosts {
            let asked = timeout(self.manners.timeout.into(), self.slots_of(&host)).await;
            let mut known = self.known.lock();
            if let Ok(Err(refusal @ Some(_))) = asked {
                known.unknown = refusal;
            } else if let Ok(Ok(slots)) = asked {
                known.unknown = None;
                // Nobody is sent there any more. What is on its way still comes.
                known.links.retain(|host, _| slots.has(host) || self.seeds.contains(host));
                known.slots = slots;
                return;
            }
        }
    }

    /// Returns what one server says, or how it refuses to say anything.
    async fn slots_of(&self, host: &Host) -> Result<Slots, Option<Refusal>> {
        let place = Place::Host(host.clone());
        let mut wire = Wire::dial(&place, self.manners.tls.as_ref()).await.map_err(|_| None)?;
        greet(&mut wire, &self.manners).await.map_err(|_| None)?;
        let told = ask(&mut wire, &[b"CLUSTER", b"SLOTS"]).await.map_err(|said| match said {
            Said::Refusal(refusal) => Some(refusal),
            Said::Io(_) => None,
        })?;
        Slots::read(&told, host).ok_or(None)
    }
}

/// Reads `127.0.0.1:6381`, in which an IPv6 address may have no brackets.
fn host(text: &str) -> Option<Host> {
    let (name, port) = text.rsplit_once(':')?;
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let port = port.parse().ok().filter(|port| *port != 0)?;
    (!name.is_empty()).then(|| Host { name: name.to_owned(), port })
}

impl fmt::Debug for Cluster {
    // Without the manners, in which there is a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("seeds", &self.seeds).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_what_stands_before_the_last_colon() {
        let some = |name: &str, port| Some(Host { name: name.to_owned(), port });
        assert_eq!(host("127.0.0.1:6381"), some("127.0.0.1", 6381));
        assert_eq!(host("::1:6381"), some("::1", 6381));
        assert_eq!(host("[::1]:6381"), some("::1", 6381));
        for none in ["", ":6381", "a", "a:", "a:0", "a:70000"] {
            assert_eq!(host(none), None, "{none}");
        }
    }
}
