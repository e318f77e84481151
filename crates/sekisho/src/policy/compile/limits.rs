//! A policy's limits, by plan or the same for all.

use std::{borrow::Cow, collections::BTreeMap, ops::Range, sync::Arc};

use sekisho_core::{Algorithm, Limit, Period};

use super::{Problems, Spanned, is_name, store::uncountable};
use crate::{
    calendar::Zones,
    policy::{
        Outage, PolicyLimit,
        file::{LimitFile, LimitTable, PolicyTable},
        lint::Code,
        matcher::is_header_name,
        plan::PlanSpec,
        settings::{OnStoreError, SharedStoreSettings},
    },
    store::Scope,
};

/// What a limit's state depends on besides its numbers, by id.
type Kinds = BTreeMap<String, (Algorithm, Period)>;

/// The store that counts, and what a policy does while that is down.
type Store<'a> = (Option<&'a SharedStoreSettings>, OnStoreError);

pub(super) fn compile(
    table: &PolicyTable,
    store: Store<'_>,
    problems: &mut Problems<'_>,
) -> PlanSpec {
    let mut plans = of_table(table, store.0.is_some(), problems);
    plans.each_mut(&mut |limit| {
        limit.outage = match store {
            (Some(shared), OnStoreError::Local) => {
                Outage::Local(Arc::new(shared.local_share.of_limit(&limit.limit)))
            }
            (None, OnStoreError::Deny) if table.on_store_error.is_none() => Outage::Unsaid,
            // Without a shared store there is nothing that stands in for it.
            (None, OnStoreError::Local) | (_, OnStoreError::Deny) => Outage::Deny,
            (_, OnStoreError::Allow) => Outage::Allow,
        };
    });
    plans
}

fn of_table(table: &PolicyTable, shared: bool, problems: &mut Problems<'_>) -> PlanSpec {
    let name = table.name.get_ref().as_str();
    let mut kinds = Kinds::new();
    match (&table.limits, &table.plans) {
        (Some(limits), None) => {
            if let Some(plan) = &table.plan {
                problems.add(
                    Code::Plan,
                    plan.span(),
                    "`plan` chooses among `[policy.plans]`, and there are none",
                );
            }
            if limits.get_ref().is_empty() {
                problems.add(
                    Code::NoLimit,
                    limits.span(),
                    "a policy has at least one limit; `unlimited` is one that only counts",
                );
            }
            PlanSpec::Same(list((name, shared), limits.get_ref(), &mut kinds, problems))
        }
        (None, Some(plans)) => by_plan((table, shared), plans, &mut kinds, problems),
        (Some(_), Some(plans)) => {
            problems.add(Code::NoLimit, plans.span(), "a policy has `limits` or `plans`, not both");
            PlanSpec::Same(Vec::new())
        }
        (None, None) => {
            problems.add(
                Code::NoLimit,
                table.name.span(),
                "this policy has neither `limits` nor `plans`",
            );
            PlanSpec::Same(Vec::new())
        }
    }
}

fn by_plan(
    (table, shared): (&PolicyTable, bool),
    plans: &Spanned<BTreeMap<String, Vec<Spanned<LimitFile>>>>,
    kinds: &mut Kinds,
    problems: &mut Problems<'_>,
) -> PlanSpec {
    let name = table.name.get_ref().as_str();
    let mut compiled = Vec::new();
    for (plan, limits) in plans.get_ref() {
        if !is_name(plan) || limits.is_empty() {
            let message = format!(
                "plan `{plan}`: a name has 1 to 64 letters, digits, `-`, `_` or `.`, and a plan at least one limit"
            );
            problems.add(Code::Plan, plans.span(), message);
        }
        compiled.push((plan.clone(), list((name, shared), limits, kinds, problems)));
    }
    let Some(plan) = &table.plan else {
        problems.add(
            Code::Plan,
            plans.span(),
            "say how a request's plan is known: `plan = { header = \"x-plan\", default = \"free\" }`",
        );
        return PlanSpec::Same(Vec::new());
    };
    let default = compiled.iter().position(|(name, _)| *name == plan.get_ref().default);
    if default.is_none() {
        let message = format!("there is no plan `{}` to fall back to", plan.get_ref().default);
        problems.add(Code::Plan, plan.span(), message);
    }
    if !is_header_name(&plan.get_ref().header) {
        problems.add(Code::Plan, plan.span(), "a header's name has letters, digits and `-`");
    }
    if compiled.is_empty() {
        return PlanSpec::Same(Vec::new());
    }
    let header = plan.get_ref().header.to_ascii_lowercase();
    PlanSpec::ByHeader { header, default: default.unwrap_or(0), plans: compiled }
}

fn list(
    (policy, shared): (&str, bool),
    limits: &[Spanned<LimitFile>],
    kinds: &mut Kinds,
    problems: &mut Problems<'_>,
) -> Vec<PolicyLimit> {
    let mut compiled: Vec<PolicyLimit> = Vec::new();
    for file in limits {
        let (explicit, text) = match file.get_ref() {
            LimitFile::Text(text) => (None, Cow::from(text)),
            LimitFile::Table(table) => (table.id.as_deref(), text_of(table, file.span(), problems)),
        };
        let limit: Limit = match text.parse() {
            Ok(limit) => limit,
            Err(error) => {
                problems.add(Code::Limit, file.span(), format!("`{text}`: {error}"));
                continue;
            }
        };
        if let Some(zone) = unknown_zone(&limit) {
            problems.add(Code::UnknownZone, file.span(), format!("there is no time zone `{zone}`"));
        }
        if let Some(what) = uncountable(&limit).filter(|_| shared) {
            problems.add(Code::SharedLimit, file.span(), format!("`{text}`: {what}"));
        }
        if explicit.is_some_and(|id| !is_name(id)) {
            problems.add(
                Code::Name,
                file.span(),
                "an id has 1 to 64 letters, digits, `-`, `_` or `.`",
            );
        }
        let id = explicit.map_or_else(|| default_id(&limit), str::to_owned);
        if compiled.iter().any(|other| other.scope.limit() == id) {
            let message = format!(
                "another limit of this policy has the id `{id}`: give one of them its own, `{{ id = \"…\", rate = \"{text}\" }}`"
            );
            problems.add(Code::SameId, file.span(), message);
        }
        if let Some(of) = limit.as_metered() {
            let kind = (of.algorithm(), *of.period());
            if *kinds.entry(id.clone()).or_insert(kind) != kind {
                let message = format!(
                    "another plan's limit `{id}` has another period or algorithm: give one of them its own id"
                );
                problems.add(Code::PlanIds, file.span(), message);
            }
        }
        compiled.push(PolicyLimit {
            limit,
            scope: Scope::new(policy, &id),
            name: "".into(),
            outage: Outage::Deny,
        });
    }
    let alone = compiled.len() == 1;
    for limit in &mut compiled {
        limit.name = if alone {
            Arc::from(policy)
        } else {
            format!("{policy}-{}", limit.scope.limit()).into()
        };
    }
    compiled
}

/// Returns the text of a limit that is a table.
fn text_of<'a>(
    table: &'a LimitTable,
    span: Range<usize>,
    problems: &mut Problems<'_>,
) -> Cow<'a, str> {
    let Some(resolution) = &table.resolution else { return Cow::from(&table.rate) };
    if table.rate.split_ascii_whitespace().any(|word| word == "resolution") {
        let message = format!("`{}` has a resolution already: leave one of them out", table.rate);
        problems.add(Code::Limit, span, message);
        return Cow::from(&table.rate);
    }
    Cow::from(format!("{} resolution {resolution}", table.rate))
}

/// Returns the id of a limit that is given none.
pub(crate) fn default_id(limit: &Limit) -> String {
    limit.as_metered().map_or_else(|| limit.to_string(), |of| of.id().to_string())
}

fn unknown_zone(limit: &Limit) -> Option<&str> {
    match limit.as_metered()?.period() {
        Period::Calendar(_, zone) if !Zones::knows(zone) => Some(zone.as_str()),
        Period::Calendar(..) | Period::Fixed(_) => None,
    }
}
