//! A request whose keys are counted in several places. No call can decide it whole.
//!
//! Its parts are charged in parallel, each all or none where it is; when one of them denies, the others are given back. So no
//! limit is ever exceeded, and a request that is denied leaves nothing behind. In between, for as long as the slowest answer
//! and one more round trip take, somebody else can see units that are about to come back, and be denied for them; another
//! process may repeat that denial for a second.

use std::collections::BTreeMap;

use sekisho::{Answer, Ask, Charge, Mode, Now, StoreError};
use sekisho_core::{Joint, Outcome, Span, Timestamp, Verdict};

use super::{Asked, RedisStore};
use crate::question::{Question, Told};

/// An ask in parts.
pub(super) struct Split {
    /// Whether its parts are charged before it is known what the others say. What is not charged is not given back.
    charges: bool,
    now: Now,
    parts: Vec<Part>,
    /// The charges of the ask, in order: each part's place among the parts, and the charge's within it.
    order: Vec<(usize, usize)>,
}

/// What is decided in one place.
struct Part {
    asked: Asked,
    /// What gives it back.
    back: Back,
}

/// The charges of a part, as they can be given back.
struct Back {
    place: usize,
    charges: Vec<Owned>,
}

/// A charge that is nobody's.
struct Owned {
    limit: sekisho::Limit,
    scope: sekisho::Scope,
    key: sekisho::Key,
    cost: u64,
}

impl Split {
    /// Puts the parts of an ask to who counts them.
    pub(super) fn start(store: &RedisStore, ask: &Ask<'_>, now: Now) -> Result<Self, StoreError> {
        let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut free = Vec::new();
        for (at, charge) in ask.charges.iter().enumerate() {
            if charge.limit.as_metered().is_some() {
                places.entry(store.servers.place(charge.key)).or_default().push(at);
            } else {
                free.push(at);
            }
        }
        // What has no state is decided anywhere.
        if let Some(mut first) = places.first_entry() {
            first.get_mut().extend(free);
        }
        let never = |charge: &&Charge<'_>| {
            charge.limit.capacity().is_some_and(|most| most == 0 || charge.cost > most)
        };
        // When one can never pass, nothing is charged anywhere.
        let is_hopeless =
            ask.mode == Mode::Check && ask.charges.iter().any(|charge| never(&charge));
        let mut order = vec![(0, 0); ask.charges.len()];
        let mut questions = Vec::with_capacity(places.len());
        for (part, (place, charges)) in places.into_iter().enumerate() {
            for (within, at) in charges.iter().enumerate() {
                order[*at] = (part, within);
            }
            let charges: Vec<Charge<'_>> = charges.iter().map(|at| ask.charges[*at]).collect();
            let ask = Ask { charges: &charges, ..*ask };
            let about = store.servers.about(place);
            let mut question = Question::new(&ask, now, about, &store.layout)?;
            if is_hopeless {
                question.charge_nothing();
            }
            let owned = charges.iter().map(|charge| Owned {
                limit: *charge.limit,
                scope: charge.scope.clone(),
                key: charge.key.clone(),
                cost: charge.cost,
            });
            questions.push((question, Back { place, charges: owned.collect() }));
        }
        let parts = questions
            .into_iter()
            .map(|(question, back)| Part { asked: store.put(back.place, question), back });
        let charges = ask.mode == Mode::Check && !is_hopeless;
        Ok(Self { charges, now, parts: parts.collect(), order })
    }

    /// Waits for all parts, and makes one answer of them.
    pub(super) async fn finish(self, store: &RedisStore) -> Result<Answer, StoreError> {
        let Self { charges, now, parts, order } = self;
        let mut told = Vec::with_capacity(parts.len());
        let mut failed = None;
        for Part { asked, back } in parts {
            match store.told(asked).await {
                Ok(one) => told.push((one, back)),
                Err(error) => failed = Some(error),
            }
        }
        let all = failed.is_none() && told.iter().all(|(one, _)| one.is_allowed());
        if charges && !all {
            give_back(store, &told, now).await;
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let verdict = |(part, within): &(usize, usize)| -> (Timestamp, Verdict) {
            let one: &Told = &told[*part].0;
            let verdicts = if all { &one.answer.verdicts } else { &one.judged };
            (one.answer.at, verdicts[*within])
        };
        let (apart, mut verdicts): (Vec<Timestamp>, Vec<Verdict>) =
            order.iter().map(verdict).unzip();
        if Joint::of(&verdicts).outcome != Outcome::Allow {
            for verdict in &mut verdicts {
                verdict.delay = Span::ZERO;
            }
        }
        let at = apart.iter().copied().max().unwrap_or(Timestamp::EPOCH);
        Ok(Answer { at, verdicts, apart })
    }
}

/// Gives back what was charged. What cannot be given back stays charged: too much is counted then, never too little.
async fn give_back(store: &RedisStore, told: &[(Told, Back)], now: Now) {
    let charged = told.iter().filter(|(one, _)| one.is_allowed());
    let asked: Vec<Asked> = charged
        .filter_map(|(one, back)| {
            let charges: Vec<Charge<'_>> = back.charges.iter().map(Owned::charge).collect();
            let ask = Ask::new(&charges, Mode::Refund { at: one.answer.at });
            let question = Question::new(&ask, now, one.answer.at, &store.layout).ok()?;
            Some(store.put(back.place, question))
        })
        .collect();
    for asked in asked {
        let _stays_charged = store.told(asked).await;
    }
}

impl Owned {
    fn charge(&self) -> Charge<'_> {
        Charge { limit: &self.limit, scope: &self.scope, key: &self.key, cost: self.cost }
    }
}
