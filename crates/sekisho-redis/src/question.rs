//! One request in the script's terms, and the answer that comes of what the script says of it.

use std::collections::BTreeSet;

use sekisho::{Answer, Ask, CHARGES_MAX, Charge, Now, StoreError, Zones};
use sekisho_core::{
    self as core, Calendar, Joint, Limit, Mode, Outcome, Period, Span, State, Timestamp, Verdict,
    Window,
};

use crate::{
    key::Layout,
    state,
    words::{Manner, Words, bounds, microseconds, unsupported, words},
};

/// What the script does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Act {
    Check,
    Force,
    Refund {
        us: u64,
    },
    /// Charges nothing: what can never fit.
    Pass,
    Look,
    /// Removes the state.
    Forget,
}

/// A request that waits for its turn. It owns what it needs, since who asked may go away before it is answered.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) act: Act,
    /// The time that it is decided at; the server's own when absent.
    pub(crate) now: Option<Timestamp>,
    /// Where the states of its metered charges live.
    pub(crate) keys: Vec<String>,
    pub(crate) words: Vec<Words>,
    charges: Vec<(Limit, u64)>,
    mode: Mode,
    longest: Option<Span>,
}

/// A question with its answer.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) question: Question,
    pub(crate) told: Told,
}

/// What is known of a request that was decided.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) answer: Answer,
    /// What the limits said before anything was charged.
    pub(crate) judged: Vec<Verdict>,
    /// The states that deny it.
    pub(crate) denying: Option<Vec<State>>,
    /// What was forgotten: how many states there were.
    pub(crate) forgotten: usize,
}

impl Question {
    /// Returns the question of some charges of an ask, or why the script cannot decide it. `about` is a time near the store's
    /// now, if any is known: the calendar windows that the script is told are those of then.
    pub(crate) fn new(
        ask: &Ask<'_>,
        now: Now,
        about: Timestamp,
        layout: &Layout,
    ) -> Result<Self, StoreError> {
        if ask.charges.len() > CHARGES_MAX {
            return Err(unsupported(format!("request of more than {CHARGES_MAX} charges")));
        }
        let (now, us) = match now {
            Now::At(at) => (Some(at), Some(microseconds(at)?)),
            Now::StoreClock => (None, None),
        };
        let act = act(ask)?;
        // What can never pass is told its costs too: a log is asked how long each of them would wait.
        let mode = if act == Act::Pass { Mode::Look } else { ask.mode };
        let manner = Manner { mode, longest: ask.longest };
        let count = ask.charges.len();
        let mut question = Self {
            act,
            now,
            keys: Vec::with_capacity(count),
            words: Vec::with_capacity(count),
            charges: ask.charges.iter().map(|charge| (*charge.limit, charge.cost)).collect(),
            mode: ask.mode,
            longest: ask.longest,
        };
        for charge in ask.charges {
            let Some(limit) = charge.limit.as_metered() else { continue };
            let cost = if act == Act::Look { 0 } else { charge.cost };
            let windows = match limit.period() {
                Period::Calendar(..) => known_windows(limit.period(), now.unwrap_or(about)),
                Period::Fixed(_) => Vec::new(),
            };
            question.words.push(words(limit, cost, manner, us, &windows)?);
            question.keys.push(layout.key(charge.scope, charge.key));
        }
        if has_twins(&question.keys) {
            return Err(StoreError::Twice);
        }
        Ok(question)
    }

    /// Returns the question that makes a key's state fresh.
    pub(crate) fn forget(key: String) -> Self {
        Self {
            act: Act::Forget,
            now: None,
            keys: vec![key],
            words: vec![Words::none()],
            charges: Vec::new(),
            mode: Mode::Look,
            longest: None,
        }
    }

    /// Returns whether the two are decided alike, so that the script can be told of both at once.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        // Each refund is void or not by itself.
        !matches!(self.act, Act::Refund { .. } | Act::Forget)
            && self.act == other.act
            && self.now == other.now
            && self.keys == other.keys
            && self.words == other.words
    }

    /// Makes it charge nothing: another part of the same request can never pass.
    pub(crate) fn charge_nothing(&mut self) {
        self.act = Act::Pass;
    }

    /// Returns whether a denial of it may be repeated: of a check, on the server's own clock.
    pub(crate) fn may_be_repeated(&self) -> bool {
        self.act == Act::Check && self.now.is_none()
    }

    /// Returns the metered limits and costs, as many as there are keys.
    pub(crate) fn metered(&self) -> impl Iterator<Item = (&Limit, u64)> {
        let metered = self.charges.iter().filter(|(limit, _)| limit.as_metered().is_some());
        metered.map(|(limit, cost)| (limit, *cost))
    }

    /// Returns the answer where no state and no clock is needed for it.
    pub(crate) fn answer_alone(&self) -> Option<Answer> {
        let at = self.now.filter(|_| self.keys.is_empty())?;
        Some(self.tell(at, &mut [], None).answer)
    }

    /// Tells the script of the calendar windows of one more time: all of them, as the next limit will want it too.
    pub(crate) fn add_windows(&mut self, at: Timestamp) {
        let metered = self.charges.iter().filter_map(|(limit, _)| limit.as_metered());
        for (limit, words) in metered.zip(&mut self.words) {
            if let Some(window) = window(limit.period(), at) {
                words.add(&bounds(&window));
            }
        }
    }

    /// Returns the states that the script found, as they are at a time; nothing where they are none.
    pub(crate) fn states<'t>(
        &self,
        at: Timestamp,
        texts: impl Iterator<Item = &'t [u8]>,
    ) -> Option<Vec<State>> {
        if self.act == Act::Forget {
            return Some(Vec::new());
        }
        // The clock of a trace is never set back.
        let repaired_at = self.now.is_none().then_some(at);
        let states: Option<Vec<State>> = self
            .metered()
            .zip(texts)
            .map(|((limit, _), text)| state::read(limit, text, repaired_at))
            .collect();
        states.filter(|states| states.len() == self.keys.len())
    }

    /// Judges, and charges the states as the script has done with its own.
    pub(crate) fn tell(
        &self,
        at: Timestamp,
        states: &mut [State],
        admitted: Option<usize>,
    ) -> Told {
        if self.act == Act::Forget {
            let forgotten = admitted.unwrap_or(0);
            return Told {
                forgotten,
                answer: answer(at, Vec::new()),
                judged: Vec::new(),
                denying: None,
            };
        }
        let ask = Ask { charges: &[], mode: self.mode, longest: self.longest };
        let judged = self.each(at, states, |limit, state, call, _| {
            ask.in_time(limit.judge(state, call, &Zones))
        });
        if Joint::of(&judged).outcome != Outcome::Allow {
            let denying = (self.act == Act::Check).then(|| states.to_vec());
            // Nobody waits for a request that is refused.
            let judged: Vec<Verdict> = judged
                .into_iter()
                .map(|verdict| Verdict { delay: Span::ZERO, ..verdict })
                .collect();
            return Told { answer: answer(at, judged.clone()), judged, denying, forgotten: 0 };
        }
        let settled = self.each(at, states, |limit, state, call, index| {
            limit.settle(state, call, judged[index], &Zones)
        });
        Told { answer: answer(at, settled), judged, denying: None, forgotten: 0 }
    }

    /// Asks each limit, with its state where it has one.
    fn each(
        &self,
        now: Timestamp,
        states: &mut [State],
        mut ask: impl FnMut(&Limit, &mut State, core::Call, usize) -> Verdict,
    ) -> Vec<Verdict> {
        let mut slots = states.iter_mut();
        let verdict = |(index, (limit, cost)): (usize, &(Limit, u64))| {
            let call = core::Call { now, cost: *cost, mode: self.mode };
            let mut none = State::Fresh;
            let state = match limit {
                Limit::Metered(_) => slots.next().unwrap_or(&mut none),
                Limit::Block | Limit::Unlimited => &mut none,
            };
            ask(limit, state, call, index)
        };
        self.charges.iter().enumerate().map(verdict).collect()
    }
}

impl Told {
    /// Returns whether all limits allow it.
    pub(crate) fn is_allowed(&self) -> bool {
        Joint::of(&self.judged).outcome == Outcome::Allow
    }
}

fn answer(at: Timestamp, verdicts: Vec<Verdict>) -> Answer {
    Answer { at, verdicts, apart: Vec::new() }
}

/// Returns whether a key comes twice.
fn has_twins(keys: &[String]) -> bool {
    match keys {
        [] | [_] => false,
        [one, other] => one == other,
        _ => keys.iter().collect::<BTreeSet<_>>().len() < keys.len(),
    }
}

/// Returns what the script is to do.
fn act(ask: &Ask<'_>) -> Result<Act, StoreError> {
    let fits = |charge: &Charge<'_>| {
        charge.limit.capacity().is_none_or(|most| 0 < most && charge.cost <= most)
    };
    Ok(match ask.mode {
        Mode::Look => Act::Look,
        Mode::Force => Act::Force,
        Mode::Refund { at } => Act::Refund { us: microseconds(at)? },
        Mode::Check if ask.charges.iter().all(fits) => Act::Check,
        Mode::Check => Act::Pass,
    })
}

/// Returns the calendar window of a time, and the next one for when the store's clock is there already.
fn known_windows(period: &Period, at: Timestamp) -> Vec<Window> {
    let open = window(period, at);
    let next = open.and_then(|open| window(period, open.end));
    open.into_iter().chain(next).collect()
}

fn window(period: &Period, at: Timestamp) -> Option<Window> {
    match period {
        Period::Calendar(unit, zone) => Some(Zones.window(*unit, zone, at)),
        Period::Fixed(_) => None,
    }
}
