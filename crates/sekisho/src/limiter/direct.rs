//! The limits that callers name themselves, as a decision wants them: made once for each, as the same ones come again.

use std::{collections::HashMap, sync::Arc};

use parking_lot::RwLock;
use sekisho_core::Limit;

use crate::{policy::compile::limits::default_id, store::Scope};

/// How many are kept. More than these are made anew each time, so that nobody can fill the memory with them.
const KEPT_MAX: usize = 1_024;

/// What a decision wants of a limit that a caller names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// Its id, which is its name among several.
    pub(crate) id: Arc<str>,
    pub(crate) scope: Scope,
}

/// Those that were named before.
#[derive(Debug)]
pub(crate) struct DirectLimits {
    kept: RwLock<HashMap<Limit, Named>>,
    /// The name of a limit that comes alone.
    pub(crate) alone: Arc<str>,
    /// The policy of all of them: none.
    pub(crate) policy: Arc<str>,
}

impl Default for DirectLimits {
    fn default() -> Self {
        Self { kept: RwLock::default(), alone: "default".into(), policy: "".into() }
    }
}

impl DirectLimits {
    /// Returns what stands for a limit.
    pub(crate) fn get(&self, limit: &Limit) -> Named {
        if let Some(named) = self.kept.read().get(limit) {
            return named.clone();
        }
        let id = default_id(limit);
        let named = Named { scope: Scope::new("", &id), id: id.into() };
        let mut kept = self.kept.write();
        if kept.len() < KEPT_MAX {
            let _before = kept.insert(*limit, named.clone());
        }
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_the_rest_is_the_same() {
        let limits = DirectLimits::default();
        let limit = |burst: usize| -> Limit { format!("1/s burst {burst}").parse().unwrap() };
        for burst in 1..=2 * KEPT_MAX {
            let named = limits.get(&limit(burst));
            assert_eq!((&*named.id, named.scope.limit()), ("1s-token-bucket", "1s-token-bucket"));
        }
        assert_eq!(limits.kept.read().len(), KEPT_MAX);
    }
}
