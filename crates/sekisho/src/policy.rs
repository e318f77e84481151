//! Policies: which requests are covered, what key they count under, which limits hold.
//!
//! A file is parsed into plain structs ([`mod@file`]), then compiled into what the hot path uses ([`compile`]). All that can be
//! wrong is found then, with the file's line and a stable code ([`lint`]).

pub(crate) mod address;
pub(crate) mod answer;
pub(crate) mod compile;
pub(crate) mod environment;
pub(crate) mod file;
pub(crate) mod identify;
pub(crate) mod identity;
pub(crate) mod lint;
pub(crate) mod lists;
pub(crate) mod matcher;
pub(crate) mod plan;
mod settings;
pub(crate) mod share;
pub(crate) mod store_address;
mod warnings;

use std::sync::Arc;

use sekisho_core::Limit;

pub use self::settings::{
    GatewaySettings, ListenSettings, OnStoreError, Original, Settings, SharedStoreSettings,
    SnapshotSettings, StoreSettings,
};
use self::{
    answer::{CountedAnswers, Refusal},
    compile::Problems,
    identify::KeySpec,
    lists::Lists,
    matcher::Matcher,
    plan::{CostSpec, PlanSpec},
};
use crate::{digest::Seed, store::Scope};

/// What happens to a request that lacks a part of a policy's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissingKey {
    /// It is refused.
    Deny,
    /// The policy does not hold for it.
    Skip,
    /// All such requests count together.
    Shared,
}

/// One limit of a policy.
#[derive(Clone, Debug)]
pub struct PolicyLimit {
    pub(crate) limit: Limit,
    pub(crate) scope: Scope,
    /// The name in header lists: the policy's, with the limit's id behind it when there are several.
    pub(crate) name: Arc<str>,
    pub(crate) outage: Outage,
}

/// What becomes of a limit's charges while the store is down.
#[derive(Clone, Debug)]
pub(crate) enum Outage {
    /// They are left out.
    Allow,
    /// They are made in this process, to this limit.
    Local(Arc<Limit>),
    /// The request is refused.
    Deny,
    /// The same, but no policy has said so: whoever asks may think otherwise.
    Unsaid,
}

impl PolicyLimit {
    /// Returns the limit.
    pub const fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Returns the scope that its state belongs to.
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Returns the name that headers show.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the limit that this process holds by itself while the shared store is down; `None` where it holds none.
    pub fn local(&self) -> Option<&Limit> {
        match &self.outage {
            Outage::Local(limit) => Some(limit),
            Outage::Allow | Outage::Deny | Outage::Unsaid => None,
        }
    }
}

/// One policy, compiled.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) name: Arc<str>,
    pub(crate) line: usize,
    pub(crate) matcher: Matcher,
    pub(crate) key: KeySpec,
    pub(crate) on_missing_key: OnMissingKey,
    pub(crate) on_store_error: OnStoreError,
    pub(crate) cost: CostSpec,
    pub(crate) limits: PlanSpec,
    pub(crate) lists: Lists,
    pub(crate) refusal: Option<Arc<Refusal>>,
    pub(crate) count: Option<Arc<CountedAnswers>>,
}

impl Policy {
    /// Returns the policy's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the line of the file on which it begins; 0 without a file.
    pub const fn line(&self) -> usize {
        self.line
    }

    /// Returns its plans and their limits; one plan without a name when there are none.
    pub fn plans(&self) -> impl Iterator<Item = (&str, &[PolicyLimit])> {
        self.limits.plans()
    }

    /// Returns what its denial looks like.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_deref()
    }

    /// Returns what happens to its requests while the shared store is down.
    pub const fn on_store_error(&self) -> OnStoreError {
        self.on_store_error
    }

    /// Returns which answers count; all, when it does not say.
    pub fn counted_answers(&self) -> Option<&CountedAnswers> {
        self.count.as_deref()
    }

    /// Returns the key's parts in words.
    pub fn key_in_words(&self) -> String {
        self.key.to_string()
    }

    /// Returns what is matched, in words.
    pub fn match_in_words(&self) -> String {
        self.matcher.to_string()
    }
}

/// The policies of one file, compiled, and the settings beside them.
#[derive(Clone, Debug)]
pub struct PolicySet {
    pub(crate) policies: Vec<Policy>,
    pub(crate) lists: Lists,
    pub(crate) seed: Seed,
    settings: Settings,
    warnings: Vec<lint::Diagnostic>,
}

impl PolicySet {
    /// Parses and compiles a policy file. `${NAME}` in `[store]` is taken from the environment of this process.
    ///
    /// ```
    /// use sekisho::PolicySet;
    ///
    /// let policies = PolicySet::parse(r#"
    ///     [[policy]]
    ///     name = "api"
    ///     match = { path = "/v1/**" }
    ///     key = [{ header = "x-api-key", or = "ip" }]
    ///     limits = ["100/min", "1000/h sliding-log"]
    /// "#)?;
    /// assert_eq!(policies.policies()[0].name(), "api");
    ///
    /// let wrong = PolicySet::parse("[[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"0/min\"]\n");
    /// let errors = wrong.unwrap_err();
    /// let problem = &errors.diagnostics()[0];
    /// assert_eq!((problem.line, problem.field.as_str()), (4, "policy[0].limits[0]"));
    /// assert!(problem.message.contains("block"));
    /// # Ok::<(), sekisho::PolicyErrors>(())
    /// ```
    ///
    /// # Errors
    /// Everything that is wrong with the file, each with its line, field and code.
    pub fn parse(text: &str) -> Result<Self, lint::PolicyErrors> {
        Self::parse_with(text, &|name| std::env::var(name).ok())
    }

    /// Parses and compiles a policy file as [`parse`](Self::parse) does, and takes `${NAME}` from `lookup`.
    ///
    /// ```
    /// use sekisho::PolicySet;
    ///
    /// let file = "[store]\nurl = \"redis://:${PASSWORD}@127.0.0.1\"\n\
    ///     [[policy]]\nname = \"api\"\nkey = [\"ip\"]\nlimits = [\"100/min\"]\n";
    /// let set = PolicySet::parse_with(file, &|name| (name == "PASSWORD").then(|| "secret".to_owned()))?;
    /// let store = set.settings().store.shared.as_ref();
    /// assert_eq!(store.map(|of| of.addresses[0].to_string()).as_deref(), Some("redis://:***@127.0.0.1:6379"));
    /// # Ok::<(), sekisho::PolicyErrors>(())
    /// ```
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with(
        text: &str,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, lint::PolicyErrors> {
        let mut problems = Problems::new(text);
        let compiled = file::parse(text, &mut problems)
            .map(|file| compile::compile(&file, lookup, &mut problems));
        let (errors, warnings) = problems.finish();
        match compiled {
            Some(set) if errors.is_empty() => Ok(Self { warnings, ..set }),
            _ => Err(lint::PolicyErrors::new(errors, warnings)),
        }
    }

    /// Returns what the digests in keys are made with: those of headers and cookies.
    pub const fn seed(&self) -> &Seed {
        &self.seed
    }

    /// Returns the same policies with digests that are made with `seed`: for counts that were made under it and come back from
    /// a [`Snapshot`](crate::Snapshot). Where several servers share a store, all of them have the seed that their file says, and
    /// none other is right.
    ///
    /// ```
    /// use sekisho::{PolicySet, Seed};
    ///
    /// let policies = PolicySet::parse(
    ///     "[[policy]]\nname = \"api\"\nkey = [{ header = \"x-key\", or = \"ip\" }]\nlimits = [\"9/s\"]\n",
    /// )?;
    /// let policies = policies.with_seed(Seed::from_bytes([7; 16]));
    /// assert_eq!(policies.policies()[0].name(), "api");
    /// # Ok::<(), sekisho::PolicyErrors>(())
    /// ```
    #[must_use]
    pub fn with_seed(mut self, seed: Seed) -> Self {
        for policy in &mut self.policies {
            policy.lists.rekey(&policy.key, &seed);
        }
        self.seed = seed;
        self
    }

    /// Returns the policies in the file's order, which changes no outcome.
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// Returns where to listen, how to store, whom to believe.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns what is allowed but probably not meant.
    pub fn warnings(&self) -> &[lint::Diagnostic] {
        &self.warnings
    }
}
