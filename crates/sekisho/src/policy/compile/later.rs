//! Refuses the fields whose behaviour is not there yet, by name. Parsed and ignored, they would promise what does not happen.

use super::{Problems, Spanned};
use crate::policy::{
    file::{LimitFile, PolicyFile},
    lint::Code,
};

/// The names of fields that no table has in this version.
pub(crate) const NAMES: [&str; 8] = [
    "grpc",
    "ban",
    "on_change",
    "enforce_percent",
    "count_denied",
    "descriptor",
    "domain",
    "scope",
];

type Later<'a> = (&'a str, &'a Option<Spanned<toml::Value>>);

/// Refuses every field of a later version that the file has.
pub(super) fn refuse(file: &PolicyFile, problems: &mut Problems<'_>) {
    if let Some(listen) = &file.listen {
        refuse_all(&[("grpc", &listen.grpc)], problems);
    }
    for policy in &file.policy {
        let policy = policy.get_ref();
        refuse_all(
            &[
                ("ban", &policy.ban),
                ("on_change", &policy.on_change),
                ("enforce_percent", &policy.enforce_percent),
                ("count_denied", &policy.count_denied),
                ("headers", &policy.headers),
                ("descriptor", &policy.descriptor),
                ("domain", &policy.domain),
                ("scope", &policy.scope),
            ],
            problems,
        );
        let alone = policy.limits.iter().flat_map(Spanned::get_ref);
        let planned = policy.plans.iter().flat_map(|plans| plans.get_ref().values().flatten());
        for limit in alone.chain(planned) {
            if let LimitFile::Table(table) = limit.get_ref() {
                refuse_all(&[("scope", &table.scope)], problems);
            }
        }
    }
}

fn refuse_all(fields: &[Later<'_>], problems: &mut Problems<'_>) {
    for (name, value) in fields {
        if let Some(value) = value {
            problems.add(
                Code::NotYet,
                value.span(),
                format!("`{name}` is not in this version: leave it out"),
            );
        }
    }
}
