//! One script call an ask: what goes in, and the answer that comes of what comes out.

use std::collections::BTreeSet;

use redis::{Cmd, Value, cmd};
use sekisho::{Answer, Ask, CHARGES_MAX, Charge, Now, StoreError, Zones};
use sekisho_core::{
    self as core, Calendar, Joint, Limit, Mode, Outcome, Period, Span, State, Timestamp, Verdict,
    Window,
};

use crate::{
    key::Layout,
    state::{self, US, timestamp},
    words::{Manner, Words, bounds, microseconds, unsupported, words},
};

/// The script that decides.
pub(crate) const SOURCE: &str = concat!(
    include_str!("../scripts/prelude.lua"),
    include_str!("../scripts/windows.lua"),
    include_str!("../scripts/log.lua"),
    include_str!("../scripts/levels.lua"),
    include_str!("../scripts/decide.lua"),
);
/// The shortest expiry under a given time, in milliseconds. Real time may run slower than a trace's, though not by as much.
const TRACE_EXPIRY_MS: u64 = 600_000;

/// An ask in the script's terms.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    ask: &'a Ask<'a>,
    now: Option<Timestamp>,
    /// What the script does: a check that can never pass charges nothing.
    act: &'static str,
    refund_us: Option<u64>,
    keys: Vec<String>,
    words: Vec<Words>,
}

/// What became of a call.
#[derive(Debug)]
pub(crate) enum Reply {
    /// It was decided.
    Answer(Answer),
    /// Nothing was charged, and it has to be sent again: the script was told another calendar window than it needed.
    Again,
}

impl<'a> Call<'a> {
    /// Returns the call for an ask, or why the script cannot decide it. `about` is a time near the store's now, if any is
    /// known: the calendar windows that the script is told are those of then.
    pub(crate) fn new(
        ask: &'a Ask<'a>,
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
        let refund_us = match ask.mode {
            Mode::Refund { at } => Some(microseconds(at)?),
            Mode::Check | Mode::Look | Mode::Force => None,
        };
        let mut call =
            Self { ask, now, act: act(ask), refund_us, keys: Vec::new(), words: Vec::new() };
        // What can never pass is told its costs too: a log is asked how long each of them would wait.
        let mode = if call.act == "pass" { Mode::Look } else { ask.mode };
        let manner = Manner { mode, longest: ask.longest };
        for charge in ask.charges {
            let Some(limit) = charge.limit.as_metered() else { continue };
            let cost = if call.act == "look" { 0 } else { charge.cost };
            let windows = match limit.period() {
                Period::Calendar(..) => known_windows(limit.period(), now.unwrap_or(about)),
                Period::Fixed(_) => Vec::new(),
            };
            call.words.push(words(limit, cost, manner, us, &windows)?);
            call.keys.push(layout.key(charge.scope, charge.key));
        }
        if call.keys.iter().collect::<BTreeSet<_>>().len() < call.keys.len() {
            return Err(StoreError::Twice);
        }
        Ok(call)
    }

    /// Returns the answer where no state and no clock is needed for it.
    pub(crate) fn answer_alone(&self) -> Option<Answer> {
        let at = self.now.filter(|_| self.keys.is_empty())?;
        let (_, verdicts) = self.verdicts(at, Vec::new());
        Some(Answer { at, verdicts })
    }

    /// Returns the command: `EVALSHA` and the digest, or `EVAL` and the script.
    pub(crate) fn command(&self, verb: &str, script: &str) -> Cmd {
        // The clock of a trace is never set back.
        let repairs = self.now.is_none();
        let shortest = if self.now.is_some() { TRACE_EXPIRY_MS } else { 1 };
        let mut command = cmd(verb);
        command.arg(script).arg(self.keys.len()).arg(&self.keys);
        match self.now {
            Some(at) => command.arg(at.as_nanos() / US),
            None => command.arg(""),
        };
        command.arg(if repairs { "1" } else { "0" }).arg(shortest).arg(self.act);
        match self.refund_us {
            Some(us) => command.arg(us),
            None => command.arg(""),
        };
        for words in &self.words {
            command.arg(words.algorithm).arg(words.matters);
            command.arg(words.numbers.len()).arg(&words.numbers[..]);
        }
        command
    }

    /// Makes the answer of what the script replied.
    pub(crate) fn reply(&mut self, reply: &Value) -> Result<Reply, StoreError> {
        let strange =
            || StoreError::Unavailable(format!("a strange reply of the script: {reply:?}").into());
        let Value::Array(items) = reply else { return Err(strange()) };
        let [Value::Int(us), Value::Int(what), rest @ ..] = items.as_slice() else {
            return Err(strange());
        };
        let instant = |us: i64| u64::try_from(us).ok().and_then(timestamp);
        let at = instant(*us).ok_or_else(strange)?;
        match (what, rest) {
            (0 | 1, states) => {
                self.answer(at, *what == 1, states)?.ok_or_else(strange).map(Reply::Answer)
            }
            (-1, []) => Err(unsupported("count beyond 2^53")),
            (-2, [Value::Int(us)]) => {
                self.add_windows(instant(*us).ok_or_else(strange)?);
                Ok(Reply::Again)
            }
            _ => Err(strange()),
        }
    }

    /// Tells the script of the calendar windows of one more time: all of them, as the next limit will want it too.
    fn add_windows(&mut self, at: Timestamp) {
        let metered = self.ask.charges.iter().filter_map(|charge| charge.limit.as_metered());
        for (limit, words) in metered.zip(&mut self.words) {
            let window = window(limit.period(), at);
            words.numbers.extend(window.iter().flat_map(bounds));
        }
    }

    /// Makes the answer of the states that the script found; nothing where they are none.
    fn answer(
        &self,
        at: Timestamp,
        admitted: bool,
        states: &[Value],
    ) -> Result<Option<Answer>, StoreError> {
        let metered = self.ask.charges.iter().filter_map(|charge| charge.limit.as_metered());
        let states: Option<Vec<State>> = metered
            .zip(states)
            .map(|(limit, text)| match text {
                Value::BulkString(text) => state::read(limit, text),
                _ => None,
            })
            .collect();
        let Some(states) = states.filter(|states| states.len() == self.keys.len()) else {
            return Ok(None);
        };
        let (joint, verdicts) = self.verdicts(at, states);
        // The script and the core have each judged the same states. Nothing that differs is passed on as true.
        if self.act == "check" && admitted != (joint.outcome == Outcome::Allow) {
            return Err(StoreError::Unavailable("the script and the core disagree".into()));
        }
        Ok(Some(Answer { at, verdicts }))
    }

    /// Judges, and charges the copies of the states, as the script has done with the states themselves.
    fn verdicts(&self, at: Timestamp, states: Vec<State>) -> (Joint, Vec<Verdict>) {
        let mut states = states.into_iter();
        let mut state_of = |charge: &Charge<'_>| match charge.limit {
            Limit::Metered(_) => states.next().unwrap_or_default(),
            Limit::Block | Limit::Unlimited => State::Fresh,
        };
        let mut all: Vec<State> = self.ask.charges.iter().map(&mut state_of).collect();
        let call =
            |charge: &Charge<'_>| core::Call { now: at, cost: charge.cost, mode: self.ask.mode };
        let mut verdicts = Vec::with_capacity(all.len());
        for (charge, state) in self.ask.charges.iter().zip(&mut all) {
            if self.now.is_none() {
                charge.limit.repair(state, at, &Zones);
            }
            verdicts.push(self.ask.in_time(charge.limit.judge(state, call(charge), &Zones)));
        }
        let joint = Joint::of(&verdicts);
        if joint.outcome != Outcome::Allow {
            // Nobody waits for a request that is refused.
            for verdict in &mut verdicts {
                verdict.delay = Span::ZERO;
            }
            return (joint, verdicts);
        }
        for ((charge, state), verdict) in self.ask.charges.iter().zip(&mut all).zip(&mut verdicts) {
            *verdict = charge.limit.settle(state, call(charge), *verdict, &Zones);
        }
        (joint, verdicts)
    }
}

/// Returns what the script is to do.
fn act(ask: &Ask<'_>) -> &'static str {
    let fits = |charge: &Charge<'_>| {
        charge.limit.capacity().is_none_or(|most| 0 < most && charge.cost <= most)
    };
    match ask.mode {
        Mode::Look => "look",
        Mode::Force => "force",
        Mode::Refund { .. } => "refund",
        Mode::Check if ask.charges.iter().all(fits) => "check",
        Mode::Check => "pass",
    }
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
