//! What can be wrong with a policy file: a stable code, the place, and what to do.

use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file is not used.
    Error,
    /// The file is used; something in it is probably not meant.
    Warning,
}

macro_rules! codes {
    ($($name:ident = $code:literal, $severity:ident, $title:literal;)*) => {
        /// What is wrong. A code, once given, keeps its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $title] $name,)*
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the code as it is printed: `SK001`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// Returns how bad it is.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }

            /// Returns what it means, in a line.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }
        }
    };
}

codes! {
    Syntax = "SK001", Error, "The file is not TOML.";
    UnknownField = "SK002", Error, "A field has a name that does not exist.";
    WrongType = "SK003", Error, "A field has a value of the wrong kind, or lacks one that it needs.";
    NotYet = "SK004", Error, "A field whose behaviour is not in this version.";
    NoPolicy = "SK005", Error, "The file has no policy, and no `resp` door, whose callers bring limits of their own.";
    Name = "SK010", Error, "A policy's name or a limit's id is missing, taken, or has characters that it may not have.";
    Limit = "SK011", Error, "A limit's text or resolution is wrong.";
    NoLimit = "SK012", Error, "A policy has no limits, or both `limits` and `plans`; or all policies together have too many.";
    SameId = "SK013", Error, "Two limits of one policy have the same id.";
    PlanIds = "SK014", Error, "Limits of two plans share an id but not the period and algorithm, so no usage could be kept.";
    UnknownZone = "SK015", Error, "A time zone that the IANA database does not have.";
    Match = "SK020", Error, "A method, host, header or path pattern that matches nothing.";
    Key = "SK021", Error, "A key has no parts, or a part that cannot be.";
    OnMissingKey = "SK022", Error, "`on_missing_key` is needed and missing, or there and not needed.";
    Cost = "SK023", Error, "A cost that is out of its bounds.";
    Plan = "SK024", Error, "A plan that does not exist, or plans without a way to choose one.";
    List = "SK025", Error, "An entry of an allow or deny list that is no address block and no key.";
    Address = "SK026", Error, "An address to listen on that is none, or that two doors share.";
    Number = "SK027", Error, "A number that is out of its bounds.";
    Identity = "SK028", Error, "An address source without anyone to believe, proxies asked for nothing, or addresses that no client has.";
    Answer = "SK029", Error, "A status, media type, detail or counted answer that cannot be.";
    Store = "SK030", Error, "An address, prefix, share or file of a shared store that cannot be, or one of these without an address.";
    Environment = "SK031", Error, "A `${NAME}` that the environment does not have, or a `$` that stands alone.";
    SharedLimit = "SK032", Error, "A limit that a shared store cannot count.";
    Snapshot = "SK033", Error, "A snapshot beside a shared store, without a file, or how often one is written where there is none.";
    UnverifiedHeader = "SK101", Warning, "A key is a header that any client can make up, and no limit by address holds the same requests.";
    CostAboveCapacity = "SK102", Warning, "A cost can exceed a limit's capacity: such a request never passes.";
    PlanFromClient = "SK103", Warning, "The plan is chosen by a header: whoever sets that header chooses the plan.";
    OpenAddress = "SK104", Warning, "A door without authentication listens on an address that others can reach.";
    NothingDown = "SK105", Warning, "`on_store_error` without a shared store: memory is never down.";
    OpenDigest = "SK106", Warning, "A shared store holds digests of headers or cookies that anybody can make.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What kind of thing.
    pub code: Code,
    /// The line of the file, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// The field, like `policy[0].limits[1]`; empty when it is the file as a whole.
    pub field: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Diagnostic {
    /// Returns the diagnostic with the file's name before it, as compilers print theirs.
    pub fn in_file(&self, file: &str) -> String {
        format!("{file}:{self}")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.code.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{}:{}: {kind}[{}]", self.line, self.column, self.code)?;
        if !self.field.is_empty() {
            write!(f, " {}", self.field)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Everything that is wrong with a policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyErrors {
    // Invariant: at least one.
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl PolicyErrors {
    pub(crate) const fn new(errors: Vec<Diagnostic>, warnings: Vec<Diagnostic>) -> Self {
        Self { errors, warnings }
    }

    /// Returns the errors in the file's order; at least one.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.errors
    }

    /// Returns what else is probably not meant.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }
}

impl fmt::Display for PolicyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.errors.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for PolicyErrors {}
