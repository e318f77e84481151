//! The task that owns the connection to one server.
//!
//! Natural batching: while something is on its way, questions queue up; when it has been answered, all that wait go out in one
//! write, in as few calls as they fit. No timer decides when. Nothing that may have been charged is sent twice.

use std::{
    collections::VecDeque,
    future::pending,
    io,
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use redis_protocol::resp2::types::BytesFrame as Frame;
use sekisho::StoreError;
use tokio::{
    sync::mpsc,
    task::yield_now,
    time::{Instant, Sleep, sleep, sleep_until},
};

use super::{Shared, Target, backoff::Backoff, handshake::connect};
use crate::{
    call::{Batch, Call, Entry, Replied},
    instant,
    refusal::{Failure, Meaning, Refusal},
    script::{DIGEST, SOURCE},
    stats::Trouble,
    wire::{Place, Wire},
};

/// The most questions that go out in one write.
const WRITE_MAX: usize = 1_024;
/// The most writes that are on their way at once.
const WRITES_MAX: usize = 4;
/// How exactly callers' time is kept.
const TICK: Duration = Duration::from_millis(1);

/// Serves a link until nobody can ask any more.
pub(super) async fn run(shared: Arc<Shared>, mut questions: mpsc::Receiver<Entry>) {
    let mut backoff = Backoff::default();
    let mut waiting = VecDeque::new();
    let mut down_since = None;
    loop {
        let connected = {
            let dialling = connect(&shared);
            while_waiting(&shared, &mut questions, &mut waiting, dialling).await
        };
        let (pause, why) = match connected {
            Ok((wire, place, at)) => {
                shared.saw(at);
                shared.set_up(down_since.take());
                let began = instant::now();
                let mut driver = Driver::new(&shared, wire, &mut questions, &mut waiting);
                let Some(why) = driver.drive(&place).await else { return };
                (backoff.after(began.elapsed()), why)
            }
            Err((trouble, why)) => {
                shared.counts.trouble(trouble, 1);
                (Some(backoff.next()), why)
            }
        };
        if questions.is_closed() && questions.is_empty() && waiting.is_empty() {
            return;
        }
        if let Some(pause) = pause {
            down_since.get_or_insert_with(instant::now);
            shared.set_down(&why);
            let failure = Failure::NotSent(why, None);
            waiting.drain(..).for_each(|entry: Entry| entry.fail(&failure));
            let mut over = pin!(sleep(pause));
            loop {
                tokio::select! {
                    () = &mut over => break,
                    // Who looked before the breaker opened.
                    late = questions.recv() => match late {
                        Some(entry) => entry.fail(&failure),
                        None => return,
                    },
                }
            }
        }
    }
}

/// Runs something, while those who ask queue up and those whose time is over are told so.
async fn while_waiting<T>(
    shared: &Shared,
    questions: &mut mpsc::Receiver<Entry>,
    waiting: &mut VecDeque<Entry>,
    doing: impl Future<Output = T>,
) -> T {
    let mut doing = pin!(doing);
    let mut open = true;
    loop {
        let first = waiting.front().map_or_else(far_away, |entry| entry.deadline);
        tokio::select! {
            biased;
            done = &mut doing => return done,
            // The rest waits in the queue, whose end is what callers are refused at.
            entry = questions.recv(), if open && waiting.len() < WRITE_MAX => match entry {
                Some(entry) => waiting.push_back(entry),
                None => open = false,
            },
            () = sleep_until(first) => expire(shared, waiting),
        }
    }
}

/// Tells those who have waited long enough.
fn expire(shared: &Shared, waiting: &mut VecDeque<Entry>) {
    let now = instant::now();
    let error = StoreError::Timeout(shared.manners.timeout);
    // All wait as long, so they stand in the order of their deadlines.
    while let Some(entry) = waiting.pop_front_if(|entry| entry.deadline <= now) {
        shared.counts.trouble(Trouble::Timeout, 1);
        entry.fail(&Failure::NotSent(error.clone(), None));
    }
}

fn far_away() -> Instant {
    instant::now() + Duration::from_hours(24)
}

/// A call that is on its way.
struct Flight {
    call: Call,
    sent_at: Instant,
    /// Replies that come before its own: to `ASKING`.
    skipped: usize,
    /// What one of them says is wrong.
    refused: Option<Refusal>,
    /// Whether the script was sent in full.
    in_full: bool,
    /// Whether it was the last of its write.
    ends_write: bool,
}

/// An open connection at work.
struct Driver<'d> {
    shared: &'d Shared,
    wire: Wire,
    questions: &'d mut mpsc::Receiver<Entry>,
    /// Questions that go out with the next write.
    waiting: &'d mut VecDeque<Entry>,
    flying: VecDeque<Flight>,
    writes: usize,
    /// Why nothing more is sent on this connection.
    leaving: Option<StoreError>,
    taken: Vec<Entry>,
}

impl<'d> Driver<'d> {
    fn new(
        shared: &'d Shared,
        wire: Wire,
        questions: &'d mut mpsc::Receiver<Entry>,
        waiting: &'d mut VecDeque<Entry>,
    ) -> Self {
        let (flying, taken) = (VecDeque::new(), Vec::new());
        Self { shared, wire, questions, waiting, flying, writes: 0, leaving: None, taken }
    }

    /// Works until the connection fails, and returns why; or nothing when nobody can ask any more.
    async fn drive(&mut self, place: &Place) -> Option<StoreError> {
        let shared = self.shared;
        let mut moved = pin!(shared.moved(place));
        let mut closing = false;
        let mut timer = pin!(sleep_until(far_away()));
        let mut is_armed = false;
        loop {
            while self.may_send() && !self.waiting.is_empty() {
                self.send();
            }
            if closing && self.flying.is_empty() && self.waiting.is_empty() {
                return None;
            }
            if self.flying.is_empty()
                && let Some(why) = self.leaving.take()
            {
                return Some(why);
            }
            if !is_armed {
                is_armed = self.arm(timer.as_mut());
            }
            // While nothing may be sent, some are taken all the same, so that their time is kept.
            let may_send = self.may_send();
            let may_take = !closing && (may_send || self.waiting.is_empty());
            tokio::select! {
                biased;
                reply = self.wire.reply() => match reply {
                    Ok(frame) => {
                        self.take(frame);
                        if let Err(error) = self.take_the_rest() {
                            return Some(self.broken(&error));
                        }
                    }
                    Err(error) => return Some(self.broken(&error)),
                },
                count = self.questions.recv_many(&mut self.taken, WRITE_MAX), if may_take => {
                    // Nobody can ask any more; what is on its way is still told.
                    closing = count == 0;
                    self.waiting.extend(self.taken.drain(..));
                    if may_send {
                        self.take_more().await;
                    } else {
                        expire(shared, self.waiting);
                        // Their time may be over before that of those on their way.
                        is_armed = false;
                    }
                }
                () = timer.as_mut(), if is_armed => {
                    is_armed = false;
                    if let Some(why) = self.overdue() {
                        return Some(why);
                    }
                }
                () = moved.as_mut(), if self.leaving.is_none() => {
                    self.leaving = Some(StoreError::Unavailable("it is somewhere else now".into()));
                }
            }
        }
    }

    /// Takes what is asked in the same moment. Whoever can run does so first: otherwise the first of many who were told
    /// together would go out alone, and the others wait for its answer. Nobody waits for anybody who is not there.
    async fn take_more(&mut self) {
        yield_now().await;
        while self.waiting.len() < WRITE_MAX
            && let Ok(entry) = self.questions.try_recv()
        {
            self.waiting.push_back(entry);
        }
    }

    fn may_send(&self) -> bool {
        self.writes < WRITES_MAX && self.leaving.is_none()
    }

    /// Sends what waits, in one write.
    fn send(&mut self) {
        let now = instant::now();
        if self.waiting.len() == 1
            && let Some(entry) =
                self.waiting.pop_front_if(|entry| entry.is_wanted() && now < entry.deadline)
        {
            self.write(Batch::of_one(entry), now, false, true);
            self.writes += 1;
            return;
        }
        let mut batch = Batch::new(self.shared.manners.is_cluster);
        let count = self.waiting.len().min(WRITE_MAX);
        for entry in self.waiting.drain(..count) {
            // Nobody is charged for what nobody waits for.
            if entry.deadline <= now {
                self.shared.counts.trouble(Trouble::Timeout, 1);
                let error = StoreError::Timeout(self.shared.manners.timeout);
                entry.fail(&Failure::NotSent(error, None));
            } else if entry.is_wanted() {
                batch.add(entry);
            }
        }
        let calls = batch.calls.len();
        for (at, call) in batch.calls.into_iter().enumerate() {
            self.write(call, now, false, at + 1 == calls);
        }
        self.writes += usize::from(calls > 0);
    }

    fn write(&mut self, call: Call, sent_at: Instant, in_full: bool, ends_write: bool) {
        let skipped = usize::from(call.is_asking());
        if call.is_asking() {
            crate::command::command(&mut self.wire.out, &[b"ASKING"]);
        }
        let (verb, script) = if in_full { ("EVAL", SOURCE) } else { ("EVALSHA", DIGEST.as_str()) };
        call.write(&mut self.wire.out, verb, script);
        self.flying.push_back(Flight {
            call,
            sent_at,
            skipped,
            refused: None,
            in_full,
            ends_write,
        });
    }

    /// Takes all replies that have come.
    fn take_the_rest(&mut self) -> io::Result<()> {
        while let Some(frame) = self.wire.read_already()? {
            self.take(frame);
        }
        Ok(())
    }

    /// Takes one reply.
    fn take(&mut self, frame: Frame) {
        let Some(front) = self.flying.front_mut() else {
            self.leaving = Some(StoreError::Unavailable("it said what nobody asked for".into()));
            return;
        };
        if front.skipped > 0 {
            front.skipped -= 1;
            if let Frame::Error(said) = &frame {
                front.refused = Some(Refusal::of(said));
            }
            return;
        }
        let Some(flight) = self.flying.pop_front() else { return };
        let Flight { call, sent_at, in_full, ends_write, refused, .. } = flight;
        self.writes -= usize::from(ends_write);
        if let Frame::Error(said) = frame {
            // Who may not say `ASKING` is told so, and not where else to ask.
            let refusal = refused.unwrap_or_else(|| Refusal::of(&said));
            if refusal.meaning == Meaning::UnknownScript && !in_full {
                // It has run nothing. After a restart or a flush the script is not known there any more.
                self.writes += 1;
                self.write(call, sent_at, true, true);
                return;
            }
            self.shared.refuses(&refusal, call.len());
            if refusal.meaning == Meaning::Elsewhere {
                self.leaving = Some(refusal.error());
            }
            call.fail(&refusal.failure());
            return;
        }
        self.shared.counts.round_trip(sent_at.elapsed(), call.len());
        let Replied { at, again, elsewhere } =
            call.reply(frame, |refusal, times| self.shared.refuses(refusal, times));
        if let Some(at) = at {
            self.shared.saw(at);
        }
        if elsewhere.is_some() {
            self.leaving = elsewhere;
        }
        for entry in again {
            self.waiting.push_front(entry);
        }
    }

    /// Sets the timer to when the first has waited long enough, and returns whether anybody waits.
    fn arm(&self, timer: Pin<&mut Sleep>) -> bool {
        let callers = self.flying.iter().filter_map(|flight| flight.call.deadline());
        let server = self.flying.front().map(|flight| self.end_of(flight));
        let waiting = self.waiting.front().map(|entry| entry.deadline);
        let Some(first) = callers.chain(server).chain(waiting).min() else { return false };
        timer.reset(first.max(instant::now() + TICK));
        true
    }

    /// Returns when a call has taken too long.
    fn end_of(&self, flight: &Flight) -> Instant {
        flight.sent_at + self.shared.timeout()
    }

    /// Tells those who have waited long enough. When the server has been silent for as long, the connection is given up: what
    /// it says later would be taken for another's answer.
    fn overdue(&mut self) -> Option<StoreError> {
        expire(self.shared, self.waiting);
        let now = instant::now();
        let error = StoreError::Timeout(self.shared.manners.timeout);
        let expired = self.flying.iter_mut().map(|flight| flight.call.expire(now, &error)).sum();
        self.shared.counts.trouble(Trouble::Timeout, expired);
        let is_silent = self.flying.front().is_some_and(|flight| self.end_of(flight) <= now);
        is_silent.then(|| {
            self.give_up(Trouble::Timeout, &error);
            error
        })
    }

    fn broken(&mut self, error: &io::Error) -> StoreError {
        let why = StoreError::Unavailable(format!("the connection broke: {error}").into());
        self.give_up(Trouble::Io, &why);
        why
    }

    /// Tells all that are on their way. Nobody knows whether they were charged.
    fn give_up(&mut self, trouble: Trouble, why: &StoreError) {
        for flight in self.flying.drain(..) {
            self.shared.counts.trouble(trouble, flight.call.waiting());
            flight.call.fail(&Failure::Store(why.clone()));
        }
    }
}

impl Shared {
    /// Returns when the server is somewhere else.
    async fn moved(&self, from: &Place) {
        match &self.target {
            Target::Sentinels(sentinels) => sentinels.moved(from, &self.manners).await,
            Target::Place(_) => pending().await,
        }
    }

    /// Remembers the server's clock.
    pub(crate) fn saw(&self, at: sekisho::Timestamp) {
        self.seen.store(at.as_nanos(), Ordering::Relaxed);
    }
}
