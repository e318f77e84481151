//! `sekisho explain`: which policies match a request, under which key, and what it is charged.

use sekisho::{CanonicalPath, OnStoreError, Part, Policy, PolicySet, Request, Ruling};

use crate::{
    args::{Explain, TextOrJson},
    command,
    report::{Report, out},
};

pub(super) fn run(args: &Explain) -> Result<(), Report> {
    let set = command::policies(&args.config)?;
    let (method, target) = args.request.split_once(' ').ok_or_else(|| {
        Report::input(format!("`{}` is no request", args.request))
            .hint("a request is a method and a path, like 'POST /v1/x'")
    })?;
    let path = CanonicalPath::parse(target).map_err(|error| {
        Report::input(format!("`{target}`: {error}"))
            .hint("every door answers such a path with 400 or 403")
    })?;
    let mut headers = Vec::new();
    for line in &args.headers {
        let (name, value) = line.split_once(':').ok_or_else(|| {
            Report::input(format!("`{line}` is no header line"))
                .hint("a header line is like 'x-api-key: a'")
        })?;
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let query =
        target.split('#').next().and_then(|target| target.split_once('?')).map(|(_, query)| query);
    let request = Request {
        method,
        host: args.host.as_deref(),
        path: &path,
        query,
        client: args.peer,
        principal: None,
        headers: &headers,
    };
    match args.output {
        TextOrJson::Text => print_text(&set, &request),
        TextOrJson::Json => print_json(&set, &request),
    }
}

fn print_text(set: &PolicySet, request: &Request<'_>) -> Result<(), Report> {
    out(|to| {
        writeln!(to, "{} {}", request.method, request.path)?;
        let parts = match set.explain(request) {
            Ok(parts) => parts,
            Err((ruling, policy)) => {
                return writeln!(to, "{}", refusal(&ruling, policy.as_deref()));
            }
        };
        if parts.is_empty() {
            return writeln!(to, "no policy holds: it passes, and nothing is counted");
        }
        let mut before = None;
        for part in &parts {
            if before != Some(&part.policy) {
                let line = set
                    .policies()
                    .iter()
                    .find(|policy| policy.name() == &*part.policy)
                    .map_or(0, Policy::line);
                writeln!(to, "policy {} (line {line})", part.policy)?;
                writeln!(to, "  key   {}", part.key)?;
                if let Some(plan) = &part.plan {
                    writeln!(to, "  plan  {plan}")?;
                }
                before = Some(&part.policy);
            }
            writeln!(to, "  limit {} (id {}), cost {}", part.limit, part.scope.limit(), part.cost)?;
        }
        writeln!(to, "all of these are charged, or none")?;
        if set.settings().store.shared.is_none() {
            return Ok(());
        }
        // Deny goes before local, and local before allow.
        let holding = set
            .policies()
            .iter()
            .filter(|policy| parts.iter().any(|part| *part.policy == *policy.name()));
        let outcome = match holding.map(Policy::on_store_error).max() {
            Some(OnStoreError::Deny) => "it is refused with 503",
            Some(OnStoreError::Local) => "this process decides for its `local` policies by itself",
            Some(OnStoreError::Allow) | None => "it passes, uncounted",
        };
        writeln!(to, "while the store is down, {outcome}")
    })
}

fn refusal(ruling: &Ruling, policy: Option<&str>) -> String {
    let by =
        policy.map_or_else(|| "the file's lists".to_owned(), |policy| format!("policy {policy}"));
    match ruling {
        Ruling::Blocked => format!("refused by {by}: the client is on a deny list"),
        Ruling::MissingKey => {
            format!("refused by {by}: a part of its key is absent, and `on_missing_key` is `deny`")
        }
        Ruling::BadRequest(error) => format!("refused by {by}: {error}"),
        other => format!("refused by {by}: {}", other.as_str()),
    }
}

fn print_json(set: &PolicySet, request: &Request<'_>) -> Result<(), Report> {
    let charge = |part: &Part| {
        serde_json::json!({
            "policy": &*part.policy, "id": part.scope.limit(), "limit": part.limit.to_string(),
            "plan": part.plan.as_deref(), "key": part.key.as_str(), "cost": part.cost,
        })
    };
    let object = match set.explain(request) {
        Ok(parts) => serde_json::json!({
            "method": request.method, "path": request.path.to_string(), "ruling": null,
            "charges": parts.iter().map(charge).collect::<Vec<_>>(),
        }),
        Err((ruling, policy)) => serde_json::json!({
            "method": request.method, "path": request.path.to_string(), "ruling": ruling.as_str(),
            "policy": policy.as_deref(), "charges": [],
        }),
    };
    out(|to| writeln!(to, "{object:#}"))
}
