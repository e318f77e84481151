//! What a policy file may say, but probably does not mean.

use super::{
    PolicySet,
    address::ListenAddress,
    compile::Problems,
    file::{PolicyFile, Spanned},
    lint::Code,
};

/// Finds what is probably not meant.
pub(super) fn find(set: &PolicySet, file: &PolicyFile, problems: &mut Problems<'_>) {
    for (policy, table) in set.policies.iter().zip(&file.policy) {
        let table = table.get_ref();
        let outer = |other: &&super::Policy| {
            other.key.is_address() && other.matcher.covers(&policy.matcher)
        };
        if let Some(part) =
            policy.key.made_up().filter(|_| !set.policies.iter().any(|other| outer(&other)))
        {
            let message = format!(
                "any client can make up a new `{part}` and get a new count with it: add a policy with `key = [\"ip\"]` for the same requests, or count by what has been verified"
            );
            problems.add(Code::UnverifiedHeader, table.key.span(), message);
        }
        let most = policy.cost.max();
        for (_, limits) in policy.plans() {
            for limit in limits {
                let capacity = limit.limit().capacity().filter(|capacity| *capacity > 0);
                if let Some(capacity) = capacity.filter(|capacity| most > *capacity) {
                    let message = format!(
                        "a request can cost {most}, and `{}` never holds more than {capacity}: such a request never passes",
                        limit.limit()
                    );
                    problems.add(Code::CostAboveCapacity, table.name.span(), message);
                }
            }
        }
        if let Some(plan) = &table.plan {
            let message = format!(
                "whoever sets `{}` chooses the plan: make sure that only your own servers can",
                plan.get_ref().header
            );
            problems.add(Code::PlanFromClient, plan.span(), message);
        }
    }
    stores(set, file, problems);
    let Some(listen) = &file.listen else { return };
    let gateway = listen.gateway.as_ref().map(|gateway| &gateway.get_ref().at);
    let doors = [listen.http.as_ref(), listen.resp.as_ref(), listen.admin.as_ref(), gateway];
    for address in doors.into_iter().flatten() {
        open_address(address, problems);
    }
}

/// Finds what is said of a store that there is not, and not said of the one that there is.
fn stores(set: &PolicySet, file: &PolicyFile, problems: &mut Problems<'_>) {
    let shared = set.settings.store.shared.is_some();
    for (policy, table) in set.policies.iter().zip(&file.policy) {
        let table = table.get_ref();
        if let Some(given) = table.on_store_error.as_ref().filter(|_| !shared) {
            let message = "counts are in this process's memory, which is never down: leave this out, or name a `url` in `[store]`";
            problems.add(Code::NothingDown, given.span(), message);
        }
        if shared && file.store.digest_secret.is_none() && policy.key.uses_secret() {
            let message = "without `digest_secret` in `[store]` everybody can make the digests that this key has there: whoever \
                reads the store can try out values";
            problems.add(Code::OpenDigest, table.key.span(), message);
        }
    }
}

fn open_address(text: &Spanned<String>, problems: &mut Problems<'_>) {
    let address: Option<ListenAddress> = text.get_ref().parse().ok();
    if address.is_some_and(|address| !address.is_local()) {
        let message =
            "others than this machine can reach this door, and it asks nobody who they are";
        problems.add(Code::OpenAddress, text.span(), message);
    }
}
