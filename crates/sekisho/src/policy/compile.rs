//! From the file's structs to what the hot path uses. All that can be wrong is found here, as much of it at once as can be.

pub(crate) mod later;
pub(crate) mod limits;
mod listen;
mod problems;
mod store;

use std::collections::BTreeSet;

use self::listen::Addresses;
pub(crate) use self::problems::Problems;
use super::{
    OnMissingKey, Policy, PolicySet, Settings,
    answer::{AnswerSettings, CountedAnswers, Refusal},
    environment::Lookup,
    file::{CostFile, OnMissingFile, OnStoreErrorFile, PolicyFile, PolicyTable, Spanned},
    identify::{KeySpec, Prefixes},
    identity::IdentitySettings,
    lint::Code,
    lists::{List, Lists},
    matcher::{Matcher, is_header_name},
    plan::CostSpec,
    settings::{OnStoreError, StoreSettings},
    warnings,
};
use crate::{digest::Seed, store::memory::CHARGES_MAX};

/// The longest name of a policy, plan or limit, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Compiles a file. What is wrong goes to `problems`; the result is of use only when that has no error.
pub(crate) fn compile(
    file: &PolicyFile,
    lookup: Lookup<'_>,
    problems: &mut Problems<'_>,
) -> PolicySet {
    later::refuse(file, problems);
    let (store, seed) = store::compile(&file.store, lookup, problems);
    let settings = Settings {
        listen: listen::compile(file.listen.as_ref(), problems),
        store,
        answer: AnswerSettings::compile(&file.answer),
        identity: IdentitySettings::compile(&file.identity, file.listen.as_ref(), problems),
    };
    let prefixes = Prefixes::compile(&file.identity, problems);
    let addresses = Addresses::of(&settings);
    // Over RESP the caller names the limits.
    if file.policy.is_empty() && settings.listen.resp.is_none() {
        problems.add(Code::NoPolicy, 0..0, "there is no `[[policy]]`, so nothing would be limited");
    }
    let mut names = BTreeSet::new();
    let mut policies = Vec::new();
    for table in &file.policy {
        let table = table.get_ref();
        check_name(&table.name, problems);
        if !names.insert(table.name.get_ref().as_str()) {
            let message = format!(
                "another policy is called `{}`: its state would be shared",
                table.name.get_ref()
            );
            problems.add(Code::Name, table.name.span(), message);
        }
        let within = Within { prefixes, addresses, seed: &seed, store: &settings.store };
        policies.push(policy(table, within, problems));
    }
    check_numbers(&policies, file, &settings, problems);
    let lists = Lists {
        allow: List::compile(&file.allow, None, &seed, problems),
        deny: List::compile(&file.deny, None, &seed, problems),
    };
    let policy_lists = file.policy.iter().map(Spanned::get_ref);
    let all_lists = policy_lists.flat_map(|policy| [&policy.allow, &policy.deny]);
    for block in all_lists.chain([&file.allow, &file.deny]).flat_map(|list| &list.cidr) {
        addresses.want(block.span(), problems);
    }
    let set = PolicySet { policies, lists, settings, seed, warnings: Vec::new() };
    warnings::find(&set, file, problems);
    set
}

/// A request may be charged to every limit of every policy: that must fit into one decision, and into the store.
fn check_numbers(
    policies: &[Policy],
    file: &PolicyFile,
    settings: &Settings,
    problems: &mut Problems<'_>,
) {
    let most = |policy: &Policy| policy.plans().map(|(_, limits)| limits.len()).max().unwrap_or(0);
    let charges: usize = policies.iter().map(most).sum();
    if charges > CHARGES_MAX {
        let last = file.policy.last().map_or(0..0, |policy| policy.get_ref().name.span());
        let message = format!(
            "all policies together have {charges} limits, and a request may be charged to at most {CHARGES_MAX}"
        );
        problems.add(Code::NoLimit, last, message);
    }
    if let (Some(entries), Some(written)) = (settings.store.max_entries, &file.store.max_entries)
        && entries < 4 * charges
    {
        let message = format!(
            "the policies have {charges} limits, and each key takes an entry in every one: at least {}",
            4 * charges
        );
        problems.add(Code::Number, written.span(), message);
    }
}

fn check_name(name: &Spanned<String>, problems: &mut Problems<'_>) {
    if !is_name(name.get_ref()) {
        problems.add(
            Code::Name,
            name.span(),
            "a name has 1 to 64 letters, digits, `-`, `_` or `.`",
        );
    }
}

fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

/// What holds for all policies of a file.
#[derive(Clone, Copy)]
struct Within<'a> {
    prefixes: Prefixes,
    addresses: Addresses,
    seed: &'a Seed,
    store: &'a StoreSettings,
}

fn policy(table: &PolicyTable, within: Within<'_>, problems: &mut Problems<'_>) -> Policy {
    let Within { prefixes, addresses, seed, store } = within;
    let on_store_error = on_store_error(table, store);
    let matcher =
        table.r#match.as_ref().map(|of| Matcher::compile(of, problems)).unwrap_or_default();
    let key = KeySpec::compile(&table.key, prefixes, problems);
    if key.uses_address() {
        addresses.want(table.key.span(), problems);
    }
    if key.uses_pattern() && !matcher.has_paths() {
        problems.add(Code::Key, table.key.span(), "`path-pattern` needs a `path` in `match`");
    }
    if let Some(mode) = table.mode.as_ref().filter(|mode| mode.get_ref() != "enforce") {
        let known = matches!(mode.get_ref().as_str(), "shadow" | "tag");
        let (code, message) = if known {
            (Code::NotYet, "this mode is not in this version: only `enforce` is")
        } else {
            (Code::WrongType, "a mode is `enforce`")
        };
        problems.add(code, mode.span(), message);
    }
    Policy {
        name: table.name.get_ref().as_str().into(),
        line: problems.line(table.name.span().start),
        on_missing_key: on_missing_key(
            table,
            key.can_be_missing(matcher.segments_min(), addresses != Addresses::Sometimes),
            problems,
        ),
        cost: cost(table.cost.as_ref(), problems),
        limits: limits::compile(table, (store.shared.as_ref(), on_store_error), problems),
        on_store_error,
        lists: Lists {
            allow: List::compile(&table.allow, Some(&key), seed, problems),
            deny: List::compile(&table.deny, Some(&key), seed, problems),
        },
        refusal: table.refusal.as_ref().map(|of| Refusal::compile(of.get_ref(), problems).into()),
        count: table
            .count
            .as_ref()
            .map(|of| CountedAnswers::compile(of.get_ref(), problems).into()),
        matcher,
        key,
    }
}

/// Returns what happens while the store is down. Memory is never down: what it cannot decide is refused, as it is full then and
/// was told to refuse.
fn on_store_error(table: &PolicyTable, store: &StoreSettings) -> OnStoreError {
    match table.on_store_error.as_ref().map(Spanned::get_ref) {
        Some(OnStoreErrorFile::Allow) => OnStoreError::Allow,
        Some(OnStoreErrorFile::Local) => OnStoreError::Local,
        None if store.shared.is_some() => OnStoreError::default(),
        Some(OnStoreErrorFile::Deny) | None => OnStoreError::Deny,
    }
}

fn on_missing_key(
    table: &PolicyTable,
    can_be_missing: Option<bool>,
    problems: &mut Problems<'_>,
) -> OnMissingKey {
    match (&table.on_missing_key, can_be_missing) {
        (None, Some(true)) => problems.add(
            Code::OnMissingKey,
            table.key.span(),
            "a request may lack a part of this key, so say what happens then: `on_missing_key = \"deny\"`, `\"skip\"` or `\"shared\"`; or give the part an `or`",
        ),
        (Some(given), Some(false)) => problems.add(
            Code::OnMissingKey,
            given.span(),
            "no part of this key can be absent: leave `on_missing_key` out",
        ),
        (None, Some(false)) | (Some(_), Some(true)) | (_, None) => {}
    }
    match table.on_missing_key.as_ref().map(Spanned::get_ref) {
        None | Some(OnMissingFile::Deny) => OnMissingKey::Deny,
        Some(OnMissingFile::Skip) => OnMissingKey::Skip,
        Some(OnMissingFile::Shared) => OnMissingKey::Shared,
    }
}

fn cost(file: Option<&Spanned<CostFile>>, problems: &mut Problems<'_>) -> CostSpec {
    let Some(file) = file else { return CostSpec::Fixed(1) };
    let mut number = |value: i64| {
        u64::try_from(value).unwrap_or_else(|_| {
            problems.add(Code::Cost, file.span(), "a cost is a whole number, at least 0");
            0
        })
    };
    match file.get_ref() {
        CostFile::Number(value) => CostSpec::Fixed(number(*value)),
        CostFile::Table(table) => {
            let (min, max) = (number(table.min.unwrap_or(1)), number(table.max));
            let default = table.default.map_or(min, number);
            if min > max || !(min..=max).contains(&default) {
                problems.add(
                    Code::Cost,
                    file.span(),
                    "a cost's `default` lies from `min` (1 if absent) to `max`",
                );
            }
            if !is_header_name(&table.header) {
                problems.add(
                    Code::Cost,
                    file.span(),
                    "a header's name has letters, digits and `-`",
                );
            }
            CostSpec::Header { name: table.header.to_ascii_lowercase(), min, max, default }
        }
    }
}
