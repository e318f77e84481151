//! What a refusal says to people: the policy's own words, or ours.

use std::borrow::Cow;

use sekisho::{Decision, Refusal, Ruling};

use super::retry_after;

/// Says what happened, in words that name nothing the client does not know: no key, no address, no inside of the store.
pub(crate) fn detail(decision: &Decision) -> Cow<'_, str> {
    let own = of_limits(decision).and_then(|refusal| refusal.detail.as_deref());
    match own.and_then(|words| filled_in(words, decision)) {
        Some(words) => words.into(),
        None => usual(decision),
    }
}

/// Returns what the policy says of its denials, when it is limits that refuse. A request that lacks a key or is on a list was
/// not counted, and words about a quota would be wrong for it.
pub(super) fn of_limits(decision: &Decision) -> Option<&Refusal> {
    let by_limits = matches!(decision.ruling, Ruling::Deny | Ruling::Never | Ruling::Blocked)
        && !decision.parts.is_empty();
    decision.refusal.as_deref().filter(|_| by_limits)
}

/// Fills in the places of a text. `None` when one has no value: a request that never passes has no wait to tell of.
fn filled_in(words: &str, decision: &Decision) -> Option<String> {
    let part = decision.binding()?;
    let value = |place: &str| match place {
        "policy" => Some(part.policy.to_string()),
        "limit" => part.verdict.capacity.map(|number| number.to_string()),
        "remaining" => part.verdict.remaining.map(|number| number.to_string()),
        "retry_after" => retry_after(decision).map(|seconds| seconds.to_string()),
        // The policy file has no others.
        other => Some(format!("{{{other}}}")),
    };
    let mut text = String::with_capacity(words.len());
    let mut rest = words;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((place, behind)) = after.split_once('}') else {
            text.push('{');
            rest = after;
            break;
        };
        text.push_str(&value(place)?);
        rest = behind;
    }
    text.push_str(rest);
    Some(text)
}

fn usual(decision: &Decision) -> Cow<'_, str> {
    let policy = decision.refused_by.as_deref();
    match (&decision.ruling, decision.binding()) {
        (Ruling::Deny, Some(part)) => {
            let seconds = retry_after(decision).unwrap_or(1);
            // A dear request may be denied while something is left, and so may one that would wait for too long.
            let used_up = part.verdict.remaining == Some(0);
            let why = if used_up { "is used up" } else { "does not allow this request yet" };
            format!("the quota `{}` {why}; the same request passes in {seconds} s", part.name)
                .into()
        }
        (Ruling::Never, Some(part)) => {
            let capacity = part.verdict.capacity.unwrap_or_default();
            format!(
                "the request costs {}, and `{}` never holds more than {capacity}",
                part.cost, part.name
            )
            .into()
        }
        (Ruling::MissingKey, _) => match policy {
            Some(policy) => format!("the request lacks what policy `{policy}` counts by").into(),
            None => "the request lacks what it would be counted by".into(),
        },
        (Ruling::BadRequest(error), _) => error.to_string().into(),
        (Ruling::StoreDown(_), _) => "the limiter cannot decide at the moment".into(),
        _ => "this request is not let through".into(),
    }
}
