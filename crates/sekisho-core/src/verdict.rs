//! What is asked of a limit and what it answers.

use crate::{Span, Timestamp};

/// How units are charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Charges the cost if every limit admits it. A cost of 0 looks.
    #[default]
    Check,
    /// Charges nothing and shows what is there, whatever the cost says.
    Look,
    /// Charges the cost whatever the limits say: for a cost that is known only afterwards.
    Force,
    /// Gives back units that were charged at `at`.
    Refund {
        /// The instant of the charge that is taken back.
        at: Timestamp,
    },
}

/// One question to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The instant of the request.
    pub now: Timestamp,
    /// How many units it spends; 0 looks without spending.
    pub cost: u64,
    /// How they are charged.
    pub mode: Mode,
}

/// Whether a request may go ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It may, after [`Verdict::delay`].
    Allow,
    /// Not now; the same request alone passes after [`Verdict::retry_after`].
    Deny,
    /// It costs more than the limit can ever hold. There is nothing to wait for.
    Never,
}

impl Outcome {
    /// Returns the word used in traces and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Never => "never",
        }
    }
}

/// What one limit says of one charge: after the charge when allowed, otherwise as things stand.
#[must_use = "a verdict does nothing until it is acted on"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the charge is admitted.
    pub outcome: Outcome,
    /// The most units that can be there at once: L for windows and logs, B for a bucket, B + 1 for a queue, 0 for `block`;
    /// `None` for `unlimited`.
    pub capacity: Option<u64>,
    /// Units that are left, from 0 to the capacity; `None` for `unlimited`.
    pub remaining: Option<u64>,
    /// On a denial: the same request, alone, passes after this and not a nanosecond before. Otherwise `None`.
    pub retry_after: Option<Span>,
    /// Time until the state equals a fresh key's.
    pub reset_after: Span,
    /// How long an admitted request waits for its slot; 0 for all but `leaky-queue`.
    pub delay: Span,
    /// Time until one more unit is there; 0 while some remain.
    pub next_after: Span,
    /// The `t` of a `RateLimit` field: [`retry_after`](Self::retry_after) on a denial; else
    /// [`next_after`](Self::next_after) for bucket and queue, the rest of the window for windows, the time until the
    /// oldest entry leaves for a log (the period when it is empty).
    pub quota_after: Span,
}

impl Verdict {
    /// The answer of `unlimited`.
    pub const UNLIMITED: Self = Self {
        outcome: Outcome::Allow,
        capacity: None,
        remaining: None,
        retry_after: None,
        reset_after: Span::ZERO,
        delay: Span::ZERO,
        next_after: Span::ZERO,
        quota_after: Span::ZERO,
    };

    /// The answer of `block`.
    pub const BLOCK: Self =
        Self { outcome: Outcome::Never, capacity: Some(0), remaining: Some(0), ..Self::UNLIMITED };

    /// Returns whether the request may go ahead.
    pub const fn is_allowed(&self) -> bool {
        matches!(self.outcome, Outcome::Allow)
    }

    /// Returns whether this is the answer of `block`: no other limit has a capacity of 0.
    pub const fn is_block(&self) -> bool {
        matches!((self.outcome, self.capacity), (Outcome::Never, Some(0)))
    }

    /// Returns whether this is the answer of `unlimited`.
    pub const fn is_unlimited(&self) -> bool {
        self.capacity.is_none()
    }
}
