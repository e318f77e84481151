//! Imports stand in three blocks with a blank line between: std, other crates, this crate.
//!
//! The formatter sorts inside a block but moves nothing between blocks.

use crate::rust::Rust;
use crate::tidy::Finding;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Block {
    Std,
    Other,
    Own,
}

impl Block {
    fn of(path: &str, own_modules: &[&str]) -> Self {
        let first = path.trim_start_matches("::").split([':', ';', ' ']).next().unwrap_or(path);
        match first {
            "alloc" | "core" | "std" if !own_modules.contains(&first) => Self::Std,
            "crate" | "self" | "super" => Self::Own,
            _ if own_modules.contains(&first) => Self::Own,
            _ => Self::Other,
        }
    }
}

/// Checks each run of top-level `use` lines. A `pub use` or any other item ends a run.
pub(crate) fn blocks(rust: &Rust) -> Vec<Finding> {
    let own_modules = own_modules(&rust.code);
    let mut findings = Vec::new();
    let mut last: Option<Block> = None;
    let (mut separated, mut unfinished) = (false, false);
    for (at, (line, code)) in rust.text.lines().zip(rust.code.lines()).enumerate() {
        if unfinished {
            unfinished = !code.contains(';');
        } else if line.trim().is_empty() {
            separated = true;
        } else if let Some(path) = code.strip_prefix("use ") {
            let block = Block::of(path, &own_modules);
            let wrong = last.and_then(|last| complaint(last, block, separated));
            findings.extend(wrong.map(|wrong| Finding::error(at + 1, wrong)));
            last = Some(block);
            separated = false;
            unfinished = !code.contains(';');
        } else if !line.starts_with('#') && !line.starts_with("//") {
            last = None;
        }
    }
    findings
}

fn complaint(last: Block, block: Block, separated: bool) -> Option<&'static str> {
    if block < last {
        Some("imports out of order: std, then other crates, then this crate")
    } else if block > last && !separated {
        Some("a blank line belongs between import blocks")
    } else {
        None
    }
}

fn own_modules(code: &str) -> Vec<&str> {
    code.lines()
        .filter_map(|line| {
            let (before, after) = line.split_once("mod ")?;
            let item = before.is_empty() || before.starts_with("pub");
            item.then(|| after.split([';', ' ', '{']).next()).flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let findings = blocks(&Rust::new(text.to_owned()));
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn three_blocks_pass() {
        let text = "mod a;\n\nuse core::fmt;\nuse std::{\n    env,\n    fs,\n};\n\n// why\n\
                    use serde::X;\n\nuse crate::b;\n#[cfg(test)]\nuse a::C;\n\npub use b::D;\n";
        assert_eq!(lines(text), [0_usize; 0]);
    }

    #[test]
    fn wrong_order_is_found() {
        assert_eq!(lines("use serde::X;\n\nuse std::fmt;\n"), [3]);
        assert_eq!(lines("use crate::a;\n\nuse serde::X;\n"), [3]);
        assert_eq!(lines("pub(crate) mod core;\nuse core::X;\n\nuse std::fmt;\n"), [4]);
    }

    #[test]
    fn a_missing_blank_line_is_found() {
        assert_eq!(lines("use std::fmt;\nuse serde::X;\nuse crate::a;\n"), [2, 3]);
    }
}
