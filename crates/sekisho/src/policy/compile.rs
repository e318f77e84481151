//! From the file's structs to what the hot path uses. All that can be wrong is found here, as much of it at once as can be.

pub(crate) mod later;
pub(crate) mod limits;
mod listen;
mod problems;

use std::collections::BTreeSet;

use self::listen::Addresses;
pub(crate) use self::problems::Problems;
use super::{
    OnMissingKey, Policy, PolicySet, Settings,
    answer::{AnswerSettings, CountedAnswers, Refusal},
    file::{
        Bytes, CostFile, OnMissingFile, OverflowFile, PolicyFile, PolicyTable, Spanned, StoreFile,
    },
    identify::{KeySpec, Prefixes},
    identity::IdentitySettings,
    lint::Code,
    lists::{List, Lists},
    matcher::{Matcher, is_header_name},
    plan::CostSpec,
    settings::StoreSettings,
    warnings,
};
use crate::{
    digest::Seed,
    store::memory::{CHARGES_MAX, Overflow},
};

/// The longest name of a policy, plan or limit, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Compiles a file. What is wrong goes to `problems`; the result is of use only when that has no error.
pub(crate) fn compile(file: &PolicyFile, problems: &mut Problems<'_>) -> PolicySet {
    later::refuse(file, problems);
    let seed = Seed::random();
    let settings = Settings {
        listen: listen::compile(file.listen.as_ref(), problems),
        store: store(&file.store, problems),
        answer: AnswerSettings::compile(&file.answer),
        identity: IdentitySettings::compile(&file.identity, file.listen.as_ref(), problems),
    };
    let prefixes = Prefixes::compile(&file.identity, problems);
    let addresses = Addresses::of(&settings);
    if file.policy.is_empty() {
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
        policies.push(policy(table, (prefixes, addresses), &seed, problems));
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

fn policy(
    table: &PolicyTable,
    (prefixes, addresses): (Prefixes, Addresses),
    seed: &Seed,
    problems: &mut Problems<'_>,
) -> Policy {
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
        limits: limits::compile(table, problems),
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

fn store(file: &StoreFile, problems: &mut Problems<'_>) -> StoreSettings {
    let max_bytes = file.max_bytes.as_ref().and_then(|bytes| {
        let parsed = parse_bytes(bytes.get_ref()).filter(|bytes| *bytes >= 1 << 20);
        if parsed.is_none() {
            problems.add(
                Code::Number,
                bytes.span(),
                "this is a number of bytes, at least `1MiB`, like 536870912 or `512MiB`",
            );
        }
        parsed
    });
    let max_entries = file.max_entries.as_ref().and_then(|entries| {
        let parsed = usize::try_from(*entries.get_ref()).ok().filter(|entries| *entries >= 2);
        if parsed.is_none() {
            problems.add(Code::Number, entries.span(), "a store has at least 2 entries");
        }
        parsed
    });
    let overflow = file.overflow.as_ref().map(|overflow| match overflow.get_ref() {
        OverflowFile::Shared => Overflow::Shared,
        OverflowFile::Deny => Overflow::Deny,
        OverflowFile::Allow => Overflow::Allow,
    });
    StoreSettings { max_bytes, max_entries, overflow }
}

fn parse_bytes(bytes: &Bytes) -> Option<usize> {
    let text = match bytes {
        Bytes::Number(number) => return usize::try_from(*number).ok(),
        Bytes::Text(text) => text,
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}
