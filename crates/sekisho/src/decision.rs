//! What all charges of a request say together, and which one binds.

use std::sync::Arc;

use sekisho_core::{Joint, Limit, Outcome, Span, Timestamp, Verdict};

use crate::{
    key::Key,
    policy::{
        Outage,
        answer::{CountedAnswers, Refusal},
        plan::CostError,
    },
    store::{Scope, StoreError},
};

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It may go ahead, after [`Decision::delay`].
    Allow,
    /// Not now.
    Deny,
    /// Never: it costs more than a limit holds.
    Never,
    /// Never: a limit is `block`, or the client is on a deny list.
    Blocked,
    /// It lacks a part of a policy's key, and that policy denies then.
    MissingKey,
    /// The store could not decide. Nothing was charged, as far as is known.
    StoreDown(StoreError),
    /// The request cannot be judged as it stands: its cost is out of bounds.
    BadRequest(CostError),
}

impl Ruling {
    /// Returns the word that traces, metrics and the wire use.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Never => "never",
            Self::Blocked => "blocked",
            Self::MissingKey => "missing-key",
            Self::StoreDown(_) => "store-down",
            Self::BadRequest(_) => "bad-request",
        }
    }
}

/// What one limit said.
#[derive(Clone, Debug)]
pub struct Part {
    /// The policy's name; empty for a limit that is used without one.
    pub policy: Arc<str>,
    /// The limit's name in header lists.
    pub name: Arc<str>,
    /// Which state was counted in.
    pub scope: Scope,
    /// The limit.
    pub limit: Limit,
    /// The plan that chose it.
    pub plan: Option<Arc<str>>,
    /// Who was counted.
    pub key: Key,
    /// How many units.
    pub cost: u64,
    /// Which answers count; all, when the policy does not say.
    pub counted: Option<Arc<CountedAnswers>>,
    /// What it said; what `judge` would when the request was refused before it was asked.
    pub verdict: Verdict,
    /// When it was asked, by the clock of who decided it: what a refund of it names.
    pub at: Timestamp,
    pub(crate) outage: Outage,
    /// When the same was charged in this process's memory too, by its own clock; `None` when it was not.
    pub(crate) warmed: Option<Timestamp>,
}

/// How a decision was made that the store could not make: what each policy of the request had said for this case.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Degraded {
    /// What the store said.
    pub error: StoreError,
    /// The policies that let it pass, uncounted.
    pub allowed: Vec<Arc<str>>,
    /// The policies that this process decided by itself.
    pub local: Vec<Arc<str>>,
    /// The policies that refuse it; when there is one, the others had no say.
    pub denied: Vec<Arc<str>>,
}

/// What all limits of a request say together.
#[must_use = "a decision does nothing until it is acted on"]
#[derive(Clone, Debug)]
pub struct Decision {
    /// What becomes of the request.
    pub ruling: Ruling,
    /// When it was decided.
    pub at: Timestamp,
    /// What each limit said, in the file's order; empty when none was asked.
    pub parts: Vec<Part>,
    /// The policy that refused a request before any limit was asked.
    pub refused_by: Option<Arc<str>>,
    /// What the refusal of the policy that refuses looks like, when its file says so.
    pub refusal: Option<Arc<Refusal>>,
    /// The longest wait for a slot, when allowed.
    pub delay: Span,
    /// How the policies decided where the store could not; `None` when it did, and when none of them says what happens then.
    pub degraded: Option<Box<Degraded>>,
    binding: usize,
}

impl Decision {
    /// Returns the decision that the limits made together.
    pub(crate) fn from_parts(at: Timestamp, parts: Vec<Part>) -> Self {
        let joint = Joint::of(parts.iter().map(|part| &part.verdict));
        let blocked = parts.get(joint.binding).is_some_and(|part| part.verdict.is_block());
        let ruling = match joint.outcome {
            Outcome::Allow => Ruling::Allow,
            Outcome::Deny => Ruling::Deny,
            Outcome::Never if blocked => Ruling::Blocked,
            Outcome::Never => Ruling::Never,
        };
        Self {
            ruling,
            at,
            parts,
            refused_by: None,
            refusal: None,
            delay: joint.delay,
            degraded: None,
            binding: joint.binding,
        }
    }

    /// Returns a decision that no limit was asked for.
    pub(crate) const fn without_limits(
        ruling: Ruling,
        at: Timestamp,
        refused_by: Option<Arc<str>>,
    ) -> Self {
        Self {
            ruling,
            at,
            parts: Vec::new(),
            refused_by,
            refusal: None,
            delay: Span::ZERO,
            degraded: None,
            binding: 0,
        }
    }

    /// Returns whether the request may go ahead.
    pub fn is_allowed(&self) -> bool {
        self.ruling == Ruling::Allow
    }

    /// Returns the limit whose numbers the answer shows; `None` when no limit was asked.
    pub fn binding(&self) -> Option<&Part> {
        self.parts.get(self.binding)
    }

    /// Returns the limits that refuse: those with the outcome of the whole.
    pub fn violated(&self) -> impl Iterator<Item = &Part> {
        let wanted = match self.ruling {
            Ruling::Deny => Some(Outcome::Deny),
            Ruling::Never | Ruling::Blocked => Some(Outcome::Never),
            _ => None,
        };
        self.parts.iter().filter(move |part| Some(part.verdict.outcome) == wanted)
    }
}
