//! Behind another limiter: its members and numbers stay, ours join them, and every field has one line.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCESS_CONTROL_EXPOSE_HEADERS, RETRY_AFTER},
};
use sekisho::{AnswerSettings, Decision, HeaderFamily, Timestamp};
use sfv::{BareItem, Item, List, ListEntry, Parser};

use super::{
    Quota, RATELIMIT, RATELIMIT_POLICY, X_RATELIMIT_LIMIT, X_RATELIMIT_REMAINING,
    X_RATELIMIT_RESET, ratelimit, ratelimit_policy,
};

/// Adds what a decision tells of its quota to a response that may tell of another limiter's already.
///
/// `RateLimit` and `RateLimit-Policy` keep the members that are there and get ours behind them. `X-RateLimit-*` tell of one
/// quota, the one of which less is left. A value that cannot be read is replaced. `Retry-After` is left alone: it belongs to
/// whoever refused, and a response that went through has none of ours. `wall` is the wall clock's time at the decision.
///
/// ```
/// use http::HeaderMap;
/// use sekisho::{AnswerSettings, Direct, Limiter, Mode, PolicySet, Timestamp};
/// use sekisho_http::headers;
///
/// let limiter = Limiter::new(PolicySet::parse("[[policy]]\nname = \"any\"\nkey = [\"ip\"]\nlimits = [\"1/s\"]\n")?);
/// let limits = ["10/min".parse()?];
/// let decision = limiter.decide_direct_now(&Direct { limits: &limits, key: b"alice", cost: 1 }, Mode::Check);
///
/// let mut response = HeaderMap::new();
/// response.insert("ratelimit", "\"upstream\";r=3;t=20".parse()?);
/// headers::merge_into(&mut response, &decision, &AnswerSettings::default(), Timestamp::from_secs(1_700_000_000));
/// assert_eq!(response["ratelimit"], r#""upstream";r=3;t=20, "default";r=9;t=0"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn merge_into(
    headers: &mut HeaderMap,
    decision: &Decision,
    settings: &AnswerSettings,
    wall: Timestamp,
) {
    merge(headers, decision, settings, Quota::of(decision, settings.reset, wall));
    expose(headers, settings);
}

/// The same without `Access-Control-Expose-Headers`.
pub(crate) fn merge(
    headers: &mut HeaderMap,
    decision: &Decision,
    settings: &AnswerSettings,
    quota: Option<Quota>,
) {
    if settings.has(HeaderFamily::RateLimit) {
        append(headers, RATELIMIT_POLICY, ratelimit_policy(decision));
        append(headers, RATELIMIT, ratelimit(decision));
    }
    if let Some(quota) = quota.filter(|_| settings.has(HeaderFamily::XRateLimit)) {
        quota.merge_into(headers);
    }
}

fn append(headers: &mut HeaderMap, name: HeaderName, ours: Option<HeaderValue>) {
    let Some(ours) = ours else { return };
    let value = members(headers, &name).and_then(|members| joined(&members, &ours)).unwrap_or(ours);
    let _upstream = headers.insert(name, value);
}

fn joined(members: &str, ours: &HeaderValue) -> Option<HeaderValue> {
    HeaderValue::try_from(format!("{members}, {}", ours.to_str().ok()?)).ok()
}

/// Returns the members of a list that stands there already, all lines in one. `None` when there is none, or when any part of
/// it is wrong: clients then ignore the whole field, and ours would be lost with it.
fn members(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut all = String::new();
    for line in headers.get_all(name) {
        let line = line.to_str().ok()?.trim();
        if !all.is_empty() && !line.is_empty() {
            all.push_str(", ");
        }
        all.push_str(line);
    }
    let list = Parser::new(&all).parse::<List>().ok()?;
    (!list.is_empty() && list.iter().all(is_quota)).then_some(all)
}

/// Returns whether a member is a name, quoted or not, with numbers where they belong. Parameters that we do not know are
/// comments.
fn is_quota(member: &ListEntry) -> bool {
    let ListEntry::Item(Item { bare_item: name, params }) = member else { return false };
    let named = matches!(name, BareItem::String(_) | BareItem::Token(_));
    named
        && ["q", "w", "r", "t"]
            .iter()
            .filter_map(|key| params.get(*key))
            .all(|value| matches!(value, BareItem::Integer(number) if i64::from(*number) >= 0))
}

/// Lets scripts of other origins read the fields that are there, if the settings say so. Names that a list holds already stay.
pub(crate) fn expose(headers: &mut HeaderMap, settings: &AnswerSettings) {
    if !settings.expose {
        return;
    }
    let lines = headers.get_all(ACCESS_CONTROL_EXPOSE_HEADERS).iter();
    let mut names: Vec<String> = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    for (name, shown) in EXPOSED {
        let listed = names.iter().any(|of| of.eq_ignore_ascii_case(shown));
        if headers.contains_key(name) && !listed {
            names.push(shown.to_owned());
        }
    }
    if let Ok(list) = HeaderValue::try_from(names.join(", "))
        && !names.is_empty()
    {
        let _upstream = headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, list);
    }
}

/// The fields of all families, as people write them.
const EXPOSED: [(HeaderName, &str); 6] = [
    (RATELIMIT, "RateLimit"),
    (RATELIMIT_POLICY, "RateLimit-Policy"),
    (RETRY_AFTER, "Retry-After"),
    (X_RATELIMIT_LIMIT, "X-RateLimit-Limit"),
    (X_RATELIMIT_REMAINING, "X-RateLimit-Remaining"),
    (X_RATELIMIT_RESET, "X-RateLimit-Reset"),
];

#[cfg(test)]
mod tests;
