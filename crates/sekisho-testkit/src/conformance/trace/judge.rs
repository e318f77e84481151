//! Compares what is said of a trace's calls with what is right.

use std::fmt;

use sekisho::{Mode, Outcome, Span, Timestamp, Verdict};

use super::{Expected, MostIn, Step, Trace, span};
use crate::conformance::{steps::Numbers, subject::Seen};

/// What was said of a trace so far.
pub(super) struct Judge<'a> {
    trace: &'a Trace,
    /// The outcomes of the step at hand, a letter a call.
    pattern: String,
    most_remaining: Option<u64>,
    /// When units of the first limit were admitted, and how many.
    admissions: Vec<(Timestamp, u64)>,
}

impl<'a> Judge<'a> {
    pub(super) const fn new(trace: &'a Trace) -> Self {
        Self { trace, pattern: String::new(), most_remaining: None, admissions: Vec::new() }
    }

    pub(super) fn begin(&mut self) {
        self.pattern.clear();
        self.most_remaining = None;
    }

    pub(super) fn call(&mut self, step: &Step, at: Timestamp, seen: &Seen) -> Result<(), String> {
        always(seen)?;
        let binding = binding(seen)?;
        self.pattern.push(match seen.joint.outcome {
            Outcome::Allow => 'A',
            Outcome::Deny => 'D',
            Outcome::Never => 'N',
        });
        self.most_remaining = self.most_remaining.max(binding.remaining);
        if seen.joint.outcome == Outcome::Allow && step.mode == Mode::Check {
            self.admissions.push((at, step.cost(0)));
        }
        match &step.expected {
            Expected::Each(outcome, numbers) => each(*outcome, numbers, seen, binding),
            Expected::Together { .. } => Ok(()),
        }
    }

    pub(super) fn end(&self, step: &Step) -> Result<(), String> {
        let Expected::Together { admitted, pattern, most_remaining } = &step.expected else {
            return Ok(());
        };
        let passed = self.pattern.bytes().filter(|letter| *letter == b'A').count() as u64;
        same("admitted", admitted, &passed)?;
        if let Some(pattern) = pattern {
            same("the pattern", pattern, &self.pattern)?;
        }
        most_remaining
            .map_or(Ok(()), |most| same("the most remaining", &Some(most), &self.most_remaining))
    }

    pub(super) fn finish(&mut self) -> Result<(), String> {
        let Some(most_in) = &self.trace.most_in else { return Ok(()) };
        let window = span(&most_in.window)?;
        self.admissions.sort_unstable();
        same("the most in a stretch", &most_in.admitted, &most(&self.admissions, window))?;
        promised(self.trace, most_in, window)
    }
}

/// What holds of every answer.
fn always(seen: &Seen) -> Result<(), String> {
    let mut worst = Outcome::Allow;
    for verdict in &seen.verdicts {
        let Verdict { capacity, remaining, retry_after, delay, .. } = verdict;
        let denied = verdict.outcome == Outcome::Deny;
        if remaining > capacity || remaining.is_some() != capacity.is_some() {
            return Err(format!("{remaining:?} left of {capacity:?}"));
        }
        if denied != retry_after.is_some_and(|wait| !wait.is_zero())
            || !denied && retry_after.is_some()
        {
            return Err(format!("{:?} with a wait of {retry_after:?}", verdict.outcome));
        }
        if seen.joint.outcome != Outcome::Allow && !delay.is_zero() {
            return Err(format!("a delay of {delay} on a request that is refused"));
        }
        worst = match (worst, verdict.outcome) {
            (Outcome::Never, _) | (_, Outcome::Never) => Outcome::Never,
            (Outcome::Deny, _) | (_, Outcome::Deny) => Outcome::Deny,
            (Outcome::Allow, Outcome::Allow) => Outcome::Allow,
        };
    }
    same("the outcome of all limits together", &worst, &seen.joint.outcome)
}

fn binding(seen: &Seen) -> Result<&Verdict, String> {
    seen.verdicts.get(seen.joint.binding).ok_or_else(|| "no limit binds".to_owned())
}

fn each(outcome: Outcome, numbers: &Numbers, seen: &Seen, binding: &Verdict) -> Result<(), String> {
    same("outcome", &outcome, &seen.joint.outcome)?;
    if let Some(remaining) = numbers.remaining {
        same("remaining", &remaining, &binding.remaining)?;
    }
    if let Some(retry) = numbers.retry {
        same("retry", &Some(retry), &binding.retry_after)?;
    }
    if let Some(reset) = numbers.reset {
        same("reset", &reset, &binding.reset_after)?;
    }
    if let Some(delay) = numbers.delay {
        same("delay", &delay, &seen.joint.delay)?;
    }
    if let Some(number) = numbers.binding {
        same("the binding limit", &number, &(seen.joint.binding + 1))?;
    }
    if let Some(left) = &numbers.left {
        let seen: Vec<u64> = seen.verdicts.iter().filter_map(|verdict| verdict.remaining).collect();
        same("left", left, &seen)?;
    }
    Ok(())
}

fn same<T: PartialEq + fmt::Debug>(what: &str, wanted: &T, seen: &T) -> Result<(), String> {
    if wanted == seen { Ok(()) } else { Err(format!("{what}: wanted {wanted:?}, got {seen:?}")) }
}

/// Returns the most units within a half-open stretch; the admissions are in order.
fn most(admissions: &[(Timestamp, u64)], window: Span) -> u64 {
    let (mut most, mut sum, mut oldest) = (0, 0_u64, admissions.iter());
    for (at, units) in admissions {
        sum = sum.saturating_add(*units);
        while let Some((first, gone)) = oldest.as_slice().first()
            && at.since(*first) >= window
        {
            sum = sum.saturating_sub(*gone);
            let _left = oldest.next();
        }
        most = most.max(sum);
    }
    most
}

/// What the limit says it would ever admit is what the case says, and no less than what came about.
fn promised(trace: &Trace, most_in: &MostIn, window: Span) -> Result<(), String> {
    let [limit] = trace.limits.as_slice() else { return Ok(()) };
    let bound = limit.bound(window);
    if let Some(wanted) = most_in.bound {
        same("the bound", &Some(u128::from(wanted)), &bound.half_open)?;
    }
    if let Some(wanted) = most_in.bound_closed {
        same("the bound of a closed stretch", &Some(u128::from(wanted)), &bound.closed)?;
    }
    match bound.half_open {
        Some(bound) if bound < u128::from(most_in.admitted) => Err(format!(
            "{} were admitted, and the limit promises at most {bound}",
            most_in.admitted
        )),
        _ => Ok(()),
    }
}
