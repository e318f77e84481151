//! `sekisho lint`: what is wrong with a policy file, what is probably not meant, and what each limit lets through at worst.

use std::path::Path;

use sekisho::{Code, Diagnostic, PolicySet, Severity};

use crate::{
    args::{Lint, TextOrJson},
    command::{self, bound, serve},
    report::{Report, out},
};

pub(super) fn run(args: &Lint) -> Result<(), Report> {
    if args.codes {
        return codes();
    }
    let Some(path) = &args.config else {
        return Err(Report::input("name a policy file with `-c FILE`"));
    };
    let text = command::read(path)?;
    let parsed = PolicySet::parse(&text);
    let (errors, warnings) = match &parsed {
        Ok(set) => (&[][..], set.warnings()),
        Err(errors) => (errors.diagnostics(), errors.warnings()),
    };
    match args.output {
        TextOrJson::Text => print_text(path, &parsed, errors, warnings)?,
        TextOrJson::Json => print_json(path, &parsed, errors, warnings)?,
    }
    match (errors.len(), warnings.len()) {
        (0, 0) => Ok(()),
        (0, count) if args.strict => {
            Err(Report::input(format!("{}: {}", path.display(), counted(count, "warning"))))
        }
        (0, _) => Ok(()),
        (count, _) => {
            Err(Report::input(format!("{}: {}", path.display(), counted(count, "error"))))
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

type Parsed = Result<PolicySet, sekisho::PolicyErrors>;

fn print_text(
    path: &Path,
    parsed: &Parsed,
    errors: &[Diagnostic],
    warnings: &[Diagnostic],
) -> Result<(), Report> {
    out(|to| {
        let mut all: Vec<_> = errors.iter().chain(warnings).collect();
        all.sort_by_key(|problem| (problem.line, problem.column));
        for problem in all {
            writeln!(to, "{}", problem.in_file(&path.display().to_string()))?;
        }
        let Ok(set) = parsed else { return Ok(()) };
        for policy in set.policies() {
            writeln!(
                to,
                "policy {} (line {}): {}, by {}",
                policy.name(),
                policy.line(),
                policy.match_in_words(),
                policy.key_in_words()
            )?;
            if let Some(shared) = &set.settings().store.shared {
                writeln!(to, "  {}", serve::outage_in_words(policy.on_store_error(), shared))?;
            }
            for (plan, limits) in policy.plans() {
                let plan = if plan.is_empty() { String::new() } else { format!("plan {plan}: ") };
                for limit in limits {
                    let of = limit.limit();
                    let period = of
                        .as_metered()
                        .map_or(sekisho::Span::from_secs(1), |of| of.period().shortest());
                    writeln!(to, "  {plan}{of}: {}", bound::in_words(of, period))?;
                }
            }
        }
        match &set.settings().store.shared {
            None => writeln!(
                to,
                "scope: process. Counts live in this process's memory: each server that runs this file admits the whole of every limit.{}",
                restart(set)
            ),
            Some(shared) => writeln!(
                to,
                "scope: shared. Counts live in {}: all servers that run this file admit each limit together.",
                serve::places(shared)
            ),
        }
    })
}

/// Returns what is said of a restart: something where there is a snapshot.
fn restart(set: &PolicySet) -> String {
    let snapshot = set.settings().store.snapshot.as_ref();
    let words = snapshot.map(|_| format!(" They {}.", serve::restart_in_words(snapshot)));
    words.unwrap_or_default()
}

fn print_json(
    path: &Path,
    parsed: &Parsed,
    errors: &[Diagnostic],
    warnings: &[Diagnostic],
) -> Result<(), Report> {
    let diagnostics: Vec<_> = errors.iter().chain(warnings).map(diagnostic).collect();
    let policies: Vec<_> = parsed.iter().flat_map(PolicySet::policies).map(policy).collect();
    let shared = parsed.as_ref().ok().and_then(|set| set.settings().store.shared.as_ref());
    let store = shared.map(|shared| {
        serde_json::json!({
            "at": shared.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "local_share": shared.local_share.to_string(),
        })
    });
    let snapshot = parsed.as_ref().ok().and_then(|set| set.settings().store.snapshot.as_ref());
    let snapshot = snapshot.map(|of| {
        serde_json::json!({"path": of.path.display().to_string(), "every_ns": of.every.as_nanos()})
    });
    let object = serde_json::json!({
        "file": path.display().to_string(),
        "ok": parsed.is_ok(),
        "diagnostics": diagnostics,
        "policies": policies,
        "scope": if shared.is_some() { "shared" } else { "process" },
        "store": store,
        "snapshot": snapshot,
    });
    out(|to| writeln!(to, "{object:#}"))
}

fn diagnostic(of: &Diagnostic) -> serde_json::Value {
    let severity = match of.code.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    serde_json::json!({
        "code": of.code.as_str(), "severity": severity, "line": of.line, "column": of.column,
        "field": of.field, "message": of.message,
    })
}

fn policy(of: &sekisho::Policy) -> serde_json::Value {
    let limits: Vec<_> = of
        .plans()
        .flat_map(|(plan, limits)| limits.iter().map(move |limit| (plan, limit)))
        .map(|(plan, limit)| {
            let metered = limit.limit().as_metered();
            let within = metered.map(|of| of.period().shortest());
            let bound = within.map(|within| limit.limit().bound(within));
            let units =
                |units: Option<u128>| units.map(|units| u64::try_from(units).unwrap_or(u64::MAX));
            serde_json::json!({
                "plan": if plan.is_empty() { None } else { Some(plan) },
                "id": limit.scope().limit(),
                "limit": limit.limit().to_string(),
                "local": limit.local().map(ToString::to_string),
                "within_ns": within.map(sekisho::Span::as_nanos),
                "half_open": bound.and_then(|bound| units(bound.half_open)),
                "closed": bound.and_then(|bound| units(bound.closed)),
            })
        })
        .collect();
    serde_json::json!({
        "name": of.name(), "line": of.line(), "match": of.match_in_words(), "key": of.key_in_words(),
        "on_store_error": of.on_store_error().as_str(), "limits": limits,
    })
}

fn codes() -> Result<(), Report> {
    out(|to| {
        writeln!(to, "# What `sekisho lint` says\n")?;
        writeln!(to, "Written by `cargo xtask codegen`. A code, once given, keeps its meaning.\n")?;
        writeln!(to, "| code | kind | meaning |\n|---|---|---|")?;
        for code in Code::ALL {
            let kind = match code.severity() {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            writeln!(to, "| {code} | {kind} | {} |", code.title())?;
        }
        Ok(())
    })
}
