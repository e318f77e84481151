//! One call of the script: several requests in, what the server says of each out.

use std::{
    collections::{HashMap, HashSet, hash_map::RandomState},
    hash::BuildHasher,
};

use redis_protocol::resp2::types::BytesFrame as Frame;
use sekisho::{StoreError, Timestamp};
use tokio::{sync::oneshot, time::Instant};

use crate::{
    command,
    question::{Act, Answered, Question},
    refusal::{Failure, Meaning, Refusal},
    state::{US, timestamp},
    words::{double, unsupported},
};

/// The most keys of one call. A server runs one script at a time, and everybody else waits that long.
pub(crate) const KEYS_MAX: usize = 128;
/// The most requests that one question of a call may stand for: what two bytes hold.
const ALIKE_MAX: usize = u16::MAX as usize;
/// How often a question is sent: the script asks for the calendar windows of its clock, and of each state that lies after it.
const SENT_MAX: u8 = 8;

/// A question, and who waits for its answer.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) question: Question,
    /// Nothing once it has been told.
    pub(crate) answer: Option<oneshot::Sender<Result<Answered, Failure>>>,
    /// When nobody waits for the answer any more.
    pub(crate) deadline: Instant,
    /// How often it has been sent.
    pub(crate) sent: u8,
    /// Whether `ASKING` goes before it: its slot is on the way here.
    pub(crate) asking: bool,
}

impl Entry {
    /// Tells who waits that its time is over. The question itself may be on its way.
    fn expire(&mut self, error: &StoreError) {
        if let Some(answer) = self.answer.take() {
            // Who asked may have gone.
            let _gone = answer.send(Err(Failure::Store(error.clone())));
        }
    }

    /// Tells who waits that it was not decided, and gives the question back.
    pub(crate) fn fail(mut self, failure: &Failure) {
        if let Some(answer) = self.answer.take() {
            let _gone = answer.send(Err(failure.with(self.question)));
        }
    }

    /// Returns whether somebody still waits.
    pub(crate) fn is_wanted(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| !answer.is_closed())
    }
}

/// Requests that are decided alike, one after the other.
#[derive(Debug)]
struct Group {
    entries: Vec<Entry>,
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    groups: Vec<Group>,
    keys: usize,
    now: Option<Timestamp>,
    asking: bool,
}

/// What became of a call.
#[derive(Debug, Default)]
pub(crate) struct Replied {
    /// The server's time.
    pub(crate) at: Option<Timestamp>,
    /// The questions that are to be sent again.
    pub(crate) again: Vec<Entry>,
    /// Why another server decides, if this one is a replica by now: it runs scripts, and refuses what they write.
    pub(crate) elsewhere: Option<StoreError>,
}

/// Makes calls of the questions that wait.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) calls: Vec<Call>,
    hasher: RandomState,
    /// The groups of all calls, by what they ask.
    groups: HashMap<u64, (usize, usize)>,
    /// The keys of the last call.
    taken: HashSet<u64>,
    /// Whether a call may hold requests of several identities: a cluster's may not.
    is_single: bool,
}

impl Batch {
    /// Returns a batch whose calls hold one question each when `is_single`, and as many as there is room for otherwise.
    pub(crate) fn new(is_single: bool) -> Self {
        Self { is_single, ..Self::default() }
    }

    /// Returns the one call of one question.
    pub(crate) fn of_one(entry: Entry) -> Call {
        let Question { now, keys, .. } = &entry.question;
        let (now, keys, asking) = (*now, keys.len(), entry.asking);
        Call { groups: vec![Group { entries: vec![entry] }], keys, now, asking }
    }

    /// Adds a question. Those that wait at once have no order among them, so it may be decided with one that came before.
    pub(crate) fn add(&mut self, entry: Entry) {
        let question = &entry.question;
        let alike = self.hasher.hash_one((question.act, &question.keys, &question.words));
        if let Some((call, group)) = self.groups.get(&alike) {
            let call = &mut self.calls[*call];
            let group = &mut call.groups[*group];
            let first = &group.entries[0];
            if group.entries.len() < ALIKE_MAX
                && first.asking == entry.asking
                && first.question.is_like(question)
            {
                group.entries.push(entry);
                return;
            }
        }
        let hashes = question.keys.iter().map(|key| self.hasher.hash_one(key));
        let fits = self.calls.last().is_some_and(|call| {
            !self.is_single
                && call.keys + question.keys.len() <= KEYS_MAX
                && call.now == question.now
                && call.asking == entry.asking
                && hashes.clone().all(|hash| !self.taken.contains(&hash))
        });
        if !fits {
            self.taken.clear();
            let (now, asking) = (question.now, entry.asking);
            self.calls.push(Call { groups: Vec::new(), keys: 0, now, asking });
        }
        self.taken.extend(hashes);
        let at = self.calls.len() - 1;
        let call = &mut self.calls[at];
        call.keys += question.keys.len();
        self.groups.insert(alike, (at, call.groups.len()));
        call.groups.push(Group { entries: vec![entry] });
    }
}

impl Call {
    /// Returns how many requests it decides.
    pub(crate) fn len(&self) -> usize {
        self.groups.iter().map(|group| group.entries.len()).sum()
    }

    /// Returns how many still wait for it.
    pub(crate) fn waiting(&self) -> usize {
        let entries = self.groups.iter().flat_map(|group| &group.entries);
        entries.filter(|entry| entry.answer.is_some()).count()
    }

    /// Returns whether `ASKING` goes before it.
    pub(crate) const fn is_asking(&self) -> bool {
        self.asking
    }

    /// Returns when the first that waits for it gives up.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let entries = self.groups.iter().flat_map(|group| &group.entries);
        entries.filter(|entry| entry.answer.is_some()).map(|entry| entry.deadline).min()
    }

    /// Tells those whose time is over, and returns how many they are. The call itself goes on.
    pub(crate) fn expire(&mut self, now: Instant, error: &StoreError) -> usize {
        let entries = self.groups.iter_mut().flat_map(|group| &mut group.entries);
        let over = entries.filter(|entry| entry.answer.is_some() && entry.deadline <= now);
        over.map(|entry| entry.expire(error)).count()
    }

    /// Writes the command: `EVALSHA` and the digest, or `EVAL` and the script.
    pub(crate) fn write(&self, out: &mut Vec<u8>, verb: &str, script: &str) {
        let mut plan = Vec::with_capacity(8 * self.groups.len());
        let mut words: Vec<&[u8]> = Vec::new();
        let asked = || self.groups.iter().filter(|group| !group.first().keys.is_empty());
        for group in asked() {
            let question = group.first();
            plan.push(letter(question.act));
            // No more are put into a group, and no request has more keys.
            plan.extend(u16::try_from(group.entries.len()).unwrap_or(u16::MAX).to_be_bytes());
            plan.push(u8::try_from(question.keys.len()).unwrap_or(u8::MAX));
            if let Act::Refund { us } = question.act {
                plan.extend(double(us));
            }
            for of in &question.words {
                let place = place_of(&mut words, of.as_bytes());
                plan.extend(u16::try_from(place).unwrap_or(u16::MAX).to_be_bytes());
            }
        }
        let now = self.now.map(|at| (at.as_nanos() / US).to_string()).unwrap_or_default();
        command::begin(out, 5 + self.keys + words.len());
        command::argument(out, verb.as_bytes());
        command::argument(out, script.as_bytes());
        command::argument(out, self.keys.to_string().as_bytes());
        for key in asked().flat_map(|group| &group.first().keys) {
            command::argument(out, key.as_bytes());
        }
        command::argument(out, now.as_bytes());
        command::argument(out, &plan);
        for words in words {
            command::argument(out, words);
        }
    }

    /// Tells everybody what the server replied. `refused` hears of what it refused, and for how many.
    pub(crate) fn reply(self, reply: Frame, refused: impl Fn(&Refusal, usize)) -> Replied {
        let parsed = match reply {
            Frame::Array(items) => match items.first() {
                Some(Frame::Integer(us)) => instant(*us).map(|at| (at, items)),
                _ => None,
            },
            _ => None,
        };
        let Some((at, items)) = parsed else {
            self.fail(&Failure::Store(strange()));
            return Replied::default();
        };
        let mut items = &items[1..];
        let mut replied = Replied { at: Some(at), ..Replied::default() };
        for group in self.groups {
            let count = group.entries[0].question.keys.len();
            if count == 0 {
                group.tell(at, None, &[]);
            } else if let Some((told, rest)) = items.split_at_checked(count + 1) {
                items = rest;
                group.reply(at, told, &mut replied, &refused);
            } else {
                group.fail(&Failure::Store(strange()));
            }
        }
        replied
    }

    /// Tells everybody that it was not decided.
    pub(crate) fn fail(self, failure: &Failure) {
        for group in self.groups {
            group.fail(failure);
        }
    }
}

impl Group {
    /// Returns the question that stands for all.
    fn first(&self) -> &Question {
        // A group begins with one, and loses none.
        &self.entries[0].question
    }

    fn reply(
        mut self,
        at: Timestamp,
        told: &[Frame],
        replied: &mut Replied,
        refused: &impl Fn(&Refusal, usize),
    ) {
        match told {
            [Frame::Integer(admitted), states @ ..] if *admitted >= 0 => {
                self.tell(at, usize::try_from(*admitted).ok(), states);
            }
            [Frame::Integer(-1), ..] => {
                self.fail(&Failure::Store(unsupported("count beyond 2^53")));
            }
            [Frame::Integer(-2), Frame::Integer(us), ..] => {
                let wanted = instant(*us).filter(|_| self.entries[0].sent < SENT_MAX);
                let Some(wanted) = wanted else { return self.fail(&Failure::Store(strange())) };
                for entry in &mut self.entries {
                    entry.question.add_windows(wanted);
                    entry.sent += 1;
                }
                replied.again.append(&mut self.entries);
            }
            [Frame::Integer(-3), Frame::BulkString(message), ..] => {
                let refusal = Refusal::of(&String::from_utf8_lossy(message));
                refused(&refusal, self.entries.len());
                if refusal.meaning == Meaning::Elsewhere {
                    replied.elsewhere = Some(refusal.error());
                }
                self.fail(&refusal.failure());
            }
            _ => self.fail(&Failure::Store(strange())),
        }
    }

    /// Tells each what became of it: they were decided one after the other.
    fn tell(self, at: Timestamp, admitted: Option<usize>, texts: &[Frame]) {
        let first = &self.entries[0].question;
        let texts = texts.iter().map(|text| match text {
            Frame::BulkString(text) => text.as_ref(),
            _ => b"?",
        });
        let Some(mut states) = first.states(at, texts) else {
            return self.fail(&Failure::Store(strange()));
        };
        let checks = first.act == Act::Check;
        for (turn, mut entry) in self.entries.into_iter().enumerate() {
            let told = entry.question.tell(at, &mut states, admitted);
            // The script and the core have each judged the same states. Nothing that differs is passed on as true.
            let agree =
                !checks || admitted.is_none_or(|admitted| (turn < admitted) == told.is_allowed());
            let Some(answer) = entry.answer.take() else { continue };
            let question = entry.question;
            let told = if agree { Ok(Answered { question, told }) } else { Err(disagreeing()) };
            // Who asked may have gone.
            let _gone = answer.send(told.map_err(Failure::Store));
        }
    }

    fn fail(self, failure: &Failure) {
        for entry in self.entries {
            entry.fail(failure);
        }
    }
}

/// Returns the place of some words in a list, to which they are added if need be.
fn place_of<'w>(list: &mut Vec<&'w [u8]>, words: &'w [u8]) -> usize {
    // Most calls have a few kinds of words. The last ones are the likeliest.
    if let Some(place) = list.iter().rposition(|known| *known == words) {
        return place;
    }
    list.push(words);
    list.len() - 1
}

const fn letter(act: Act) -> u8 {
    match act {
        Act::Check => b'c',
        Act::Force => b'f',
        Act::Refund { .. } => b'r',
        Act::Pass => b'p',
        Act::Look => b'l',
        Act::Forget => b'x',
    }
}

fn instant(us: i64) -> Option<Timestamp> {
    u64::try_from(us).ok().and_then(timestamp)
}

fn strange() -> StoreError {
    StoreError::Unavailable("a strange reply of the script".into())
}

fn disagreeing() -> StoreError {
    StoreError::Unavailable("the script and the core disagree".into())
}
