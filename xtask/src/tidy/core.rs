//! What holds in `sekisho-core` alone: it runs without an operating system, counts in integers and
//! has no unsafe code.

use crate::rust::{Rust, find_word, line_of};
use crate::tidy::Finding;

const FOLDER: &str = "crates/sekisho-core/src/";

/// Checks a file if it belongs to the core.
pub(crate) fn rules(path: &str, rust: &Rust) -> Vec<Finding> {
    let Some(path) = path.strip_prefix(FOLDER) else { return Vec::new() };
    let mut findings = Vec::new();
    if path == "lib.rs" {
        let wanted = ["#![no_std]", "#![forbid(unsafe_code)]"];
        let missing = wanted.iter().filter(|wanted| !rust.code.contains(**wanted));
        findings.extend(missing.map(|wanted| Finding::error(1, format!("no `{wanted}`"))));
    }
    findings.extend(floats(&rust.code));
    if !is_test_file(path, &rust.code) {
        findings.extend(std_paths(&rust.code_outside_tests()));
    }
    findings
}

/// A name of its own counts, and so does the suffix of a number: `1f64`, `1_f64`.
fn floats(code: &str) -> Vec<Finding> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut findings = Vec::new();
    for word in ["f32", "f64"] {
        let places = code.match_indices(word).map(|(at, _)| at).filter(|at| {
            let before = code[..*at].rsplit(|character| !is_word(character)).next();
            let after = code[at + word.len()..].chars().next();
            before.is_none_or(|text| text.is_empty() || text.starts_with(|c: char| c.is_numeric()))
                && !after.is_some_and(is_word)
        });
        findings.extend(places.map(|at| Finding::error(line_of(code, at), format!("an `{word}`"))));
    }
    findings
}

fn std_paths(code: &str) -> Vec<Finding> {
    let lines = code.lines().enumerate();
    lines
        .filter(|(_, line)| {
            let start = find_word(line, "std");
            start.is_some_and(|at| line[at..].starts_with("std::"))
        })
        .map(|(at, _)| Finding::error(at + 1, "`std::` outside tests; use `core::`"))
        .collect()
}

fn is_test_file(path: &str, code: &str) -> bool {
    let in_tests = path.split('/').any(|part| part == "tests" || part == "tests.rs");
    in_tests || code.contains("#![cfg(test)]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let rust = Rust::new(text.to_owned());
        rules(path, &rust).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_attributes_are_required_at_the_top_only() {
        let path = "crates/sekisho-core/src/lib.rs";
        assert_eq!(messages(path, "// #![no_std]\n").len(), 2);
        assert!(messages(path, "#![no_std]\n#![forbid(unsafe_code)]\n").is_empty());
        assert!(messages("crates/sekisho-core/src/rate.rs", "").is_empty());
        assert!(messages("crates/sekisho/src/lib.rs", "use std::fmt; fn f(x: f64) {}").is_empty());
    }

    #[test]
    fn floats_are_found() {
        for bad in ["x as f64", "fn f(x: f32) {}", "1f64", "1_f64", "f64::MAX"] {
            assert_eq!(floats(bad).len(), 1, "{bad}");
        }
        for good in ["to_f64()", "f64x", "xf32", "my_f32"] {
            assert_eq!(floats(good), [], "{good}");
        }
        assert!(messages("crates/sekisho-core/src/a.rs", "// no f64 here\n").is_empty());
    }

    #[test]
    fn std_is_found_outside_tests() {
        let path = "crates/sekisho-core/src/a.rs";
        assert_eq!(messages(path, "use std::fmt;\n").len(), 1);
        assert!(messages(path, "#[cfg(test)]\nmod tests {\n    use std::fmt;\n}\n").is_empty());
        assert!(messages(path, "use my_std::fmt;\n").is_empty());
        assert!(messages("crates/sekisho-core/src/a/tests.rs", "use std::fmt;\n").is_empty());
    }
}
