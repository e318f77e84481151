//! What every file keeps to: size, width, a first line that says what it is for, no leftovers.

mod core;
mod imports;
mod rules;
pub(crate) mod walk;

use std::fmt;

use anyhow::{Result, ensure};

use crate::rust::Rust;
use crate::tidy::rules::FileKind;
use crate::workspace::Workspace;

/// One thing that a rule found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Whether the run fails.
    pub(crate) fatal: bool,
    /// Counted from 1; 0 is the file as a whole.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn error(line: usize, message: impl Into<String>) -> Self {
        Self { fatal: true, line, message: message.into() }
    }

    pub(crate) fn warning(line: usize, message: impl Into<String>) -> Self {
        Self { fatal: false, line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}: ", self.line)?;
        }
        f.write_str(&self.message)
    }
}

/// Checks every file of the workspace.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let files = walk::files(workspace.root())?;
    let own_path = rules::own_path(workspace.root());
    let (mut checked, mut fatal) = (0_usize, 0_usize);
    for path in &files {
        let Some(kind) = FileKind::of(path) else { continue };
        checked += 1;
        for finding in check(path, kind, workspace.read(path)?, own_path.as_deref()) {
            fatal += usize::from(finding.fatal);
            let level = if finding.fatal { "error" } else { "warning" };
            println!("{level}: {path}:{finding}");
        }
    }
    ensure!(fatal == 0, "{fatal} errors in {checked} files");
    println!("tidy: {checked} files");
    Ok(())
}

fn check(path: &str, kind: FileKind, text: String, own_path: Option<&str>) -> Vec<Finding> {
    let mut findings = rules::machine_paths(&text, own_path);
    if kind != FileKind::Rust {
        findings.extend(rules::width(path, &text, &[]));
        return findings;
    }
    let rust = Rust::new(text);
    findings.extend(rules::name(path));
    findings.extend(rules::module_doc(&rust));
    findings.extend(rules::size(&rust));
    findings.extend(rules::width(path, &rust.text, &rust.begins_in_literal));
    findings.extend(rules::leftovers(&rust));
    findings.extend(imports::blocks(&rust));
    findings.extend(core::rules(path, &rust));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_file_has_no_findings() {
        let text = "//! Says why.\n\nuse std::fmt;\n\nfn f() {}\n".to_owned();
        assert_eq!(check("crates/sekisho/src/lib.rs", FileKind::Rust, text, None), []);
    }

    #[test]
    fn every_rule_is_reached() {
        let line = format!("todo!(); let x = {};", "1".repeat(140));
        let text = format!("use crate::a;\nuse std::fmt;\nfn f() {{ {line} }}\n");
        let findings = check("crates/sekisho-core/src/a/mod.rs", FileKind::Rust, text, None);
        // the name, the missing doc, the width, the leftover, the import order, the core's `std::`
        assert_eq!(findings.len(), 6, "{findings:?}");
    }

    #[test]
    fn text_files_are_measured_too() {
        let findings = check("docs/a.md", FileKind::Text, "x".repeat(141), None);
        assert_eq!(findings.len(), 1);
    }
}
