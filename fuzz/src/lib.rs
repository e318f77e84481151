//! What each fuzz target holds, and the one place that knows the product's functions.
//!
//! The targets themselves only pass bytes on. When a function below is renamed, this file changes
//! and nothing else does.

use sekisho_core::Limit;

/// A limit's text reads back as the same limit and prints unchanged.
pub fn limit_text(text: &str) {
    let Ok(limit) = text.parse::<Limit>() else { return };
    let printed = limit.to_string();
    let again: Limit = match printed.parse() {
        Ok(again) => again,
        Err(error) => panic!("`{text}` reads, its print `{printed}` does not: {error}"),
    };
    assert_eq!(limit, again, "`{text}` and its print `{printed}` are two limits");
    assert_eq!(printed, again.to_string(), "the print of a print differs");
}

/// A policy file of any content is taken or refused, and never a panic.
pub fn policy_file(text: &str) {
    drop(sekisho::PolicySet::parse(text));
}

/// A check request of any bytes is taken or refused, and never a panic.
pub fn check_body(bytes: &[u8]) {
    drop(sekisho_server::door::check::parse_body(bytes));
}

/// A log line of any bytes is taken or refused, and never a panic.
pub fn trace_line(bytes: &[u8]) {
    drop(sekisho_replay::trace::parse_line(bytes));
}
