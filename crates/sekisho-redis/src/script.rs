//! One script call an ask: what goes in, and the answer that comes of what comes out.

use std::collections::BTreeSet;

use redis::{Cmd, Value, cmd};
use sekisho::{Answer, Ask, CHARGES_MAX, Now, StoreError};
use sekisho_core::{Joint, Limit, Mode, Outcome, Slot, State, Timestamp, Utc, Verdict, decide};

use crate::{
    key::Layout,
    state::{self, timestamp},
    words::{Words, microseconds, unsupported, words},
};

/// The script that decides.
pub(crate) const SOURCE: &str = include_str!("../scripts/decide.lua");
/// The shortest expiry under a given time, in milliseconds. Real time may run slower than a trace's, though not by as much.
const TRACE_EXPIRY_MS: u64 = 600_000;

/// An ask in the script's terms.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    ask: &'a Ask<'a>,
    now: Option<Timestamp>,
    /// Whether it is to be charged. What can never pass is not, nor is a look: the script is told costs of 0.
    charges: bool,
    keys: Vec<String>,
    words: Vec<Words>,
}

impl<'a> Call<'a> {
    /// Returns the call for an ask, or why the script cannot decide it.
    pub(crate) fn new(ask: &'a Ask<'a>, now: Now, layout: &Layout) -> Result<Self, StoreError> {
        if ask.charges.len() > CHARGES_MAX {
            return Err(unsupported(format!("request of more than {CHARGES_MAX} charges")));
        }
        let checks = match ask.mode {
            Mode::Check => true,
            Mode::Look => false,
            Mode::Force => return Err(unsupported("force yet")),
            Mode::Refund { .. } => return Err(unsupported("refund yet")),
        };
        let (now, us) = match now {
            Now::At(at) => (Some(at), Some(microseconds(at)?)),
            Now::StoreClock => (None, None),
        };
        let fits =
            |limit: &Limit, cost| limit.capacity().is_none_or(|most| 0 < most && cost <= most);
        let charges = checks && ask.charges.iter().all(|charge| fits(charge.limit, charge.cost));
        let mut call = Self { ask, now, charges, keys: Vec::new(), words: Vec::new() };
        for charge in ask.charges {
            let Some(limit) = charge.limit.as_metered() else { continue };
            let cost = if charges { charge.cost } else { 0 };
            call.words.push(words(limit, cost, us)?);
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
        // The clock of a trace is never set back. A look stores nothing.
        let repairs = self.now.is_none() && self.ask.mode != Mode::Look;
        let shortest = if self.now.is_some() { TRACE_EXPIRY_MS } else { 1 };
        let mut command = cmd(verb);
        command.arg(script).arg(self.keys.len()).arg(&self.keys);
        match self.now {
            Some(at) => command.arg(at.as_nanos() / state::US),
            None => command.arg(""),
        };
        command.arg(if repairs { "1" } else { "0" }).arg(shortest);
        for words in &self.words {
            command.arg(words.algorithm).arg(&words.numbers[..]);
        }
        command
    }

    /// Makes the answer of what the script replied.
    pub(crate) fn answer(&self, reply: &Value) -> Result<Answer, StoreError> {
        let strange =
            || StoreError::Unavailable(format!("a strange reply of the script: {reply:?}").into());
        let Value::Array(items) = reply else { return Err(strange()) };
        let [Value::Int(us), Value::Int(admitted), states @ ..] = items.as_slice() else {
            return Err(strange());
        };
        let at = u64::try_from(*us).ok().and_then(timestamp).ok_or_else(strange)?;
        let metered = self.ask.charges.iter().filter_map(|charge| charge.limit.as_metered());
        let states: Option<Vec<State>> = metered
            .zip(states)
            .map(|(limit, text)| match text {
                Value::BulkString(text) => state::read(limit, text),
                _ => None,
            })
            .collect();
        let states = states.filter(|states| states.len() == self.keys.len()).ok_or_else(strange)?;
        let (joint, verdicts) = self.verdicts(at, states);
        // The script and the core have each judged the same states. Nothing that differs is passed on as true.
        if self.charges && (*admitted == 1) != (joint.outcome == Outcome::Allow) {
            return Err(StoreError::Unavailable("the script and the core disagree".into()));
        }
        Ok(Answer { at, verdicts })
    }

    /// Judges, and charges the copies of the states, as the script has done with the states themselves.
    fn verdicts(&self, at: Timestamp, states: Vec<State>) -> (Joint, Vec<Verdict>) {
        let mut states = states.into_iter();
        let mut all: Vec<State> = self
            .ask
            .charges
            .iter()
            .map(|charge| match charge.limit {
                Limit::Metered(_) => states.next().unwrap_or_default(),
                Limit::Block | Limit::Unlimited => State::Fresh,
            })
            .collect();
        let mut slots: Vec<Slot<'_>> = (self.ask.charges.iter())
            .zip(&mut all)
            .map(|(charge, state)| Slot { limit: charge.limit, state, cost: charge.cost })
            .collect();
        if self.now.is_none() {
            for slot in &mut slots {
                slot.limit.repair(slot.state, at, &Utc);
            }
        }
        let mut verdicts = vec![Verdict::UNLIMITED; slots.len()];
        let joint = decide(&mut slots, &mut verdicts, at, self.ask.mode, &Utc);
        (joint, verdicts)
    }
}
