//! Imports between crates run downwards only, as ARCHITECTURE.md draws them.
//!
//! The table stands twice, here and in ARCHITECTURE.md, and both must say the same: a reader sees
//! the drawing, and a change to it is a change to a document.

use std::fmt::Write;

use anyhow::{Result, bail, ensure};

use crate::workspace::{Package, Workspace};

const DOCUMENT: &str = "ARCHITECTURE.md";
/// Folders whose packages may need anything: they are uses of the product, not parts of it.
const FREE: &[&str] = &["bench", "examples", "fuzz"];

/// Each crate and what it may need. Development dependencies are not arrows.
const ARROWS: &[(&str, &[&str])] = &[
    ("sekisho-core", &[]),
    ("sekisho", &["sekisho-core"]),
    ("sekisho-redis", &["sekisho", "sekisho-core"]),
    ("sekisho-http", &["sekisho", "sekisho-core"]),
    ("sekisho-replay", &["sekisho", "sekisho-core", "sekisho-http"]),
    ("sekisho-server", &["sekisho", "sekisho-core", "sekisho-http", "sekisho-redis"]),
    (
        "sekisho-cli",
        &[
            "sekisho",
            "sekisho-core",
            "sekisho-http",
            "sekisho-redis",
            "sekisho-replay",
            "sekisho-server",
        ],
    ),
    ("sekisho-testkit", &["sekisho", "sekisho-core"]),
    ("xtask", &[]),
];

/// Compares the packages' dependencies and the document with the table.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let packages = workspace.packages()?;
    let mut wrong = wrong_arrows(&packages);
    // An absent document draws nothing, and the message then shows what it has to.
    let document = workspace.read(DOCUMENT).unwrap_or_default();
    if let Err(error) = compare(&document) {
        wrong.push(error.to_string());
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n  "));
    println!("arrows: {} packages", packages.len());
    Ok(())
}

fn wrong_arrows(packages: &[Package]) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in packages {
        if FREE.iter().any(|folder| package.folder.starts_with(folder)) {
            continue;
        }
        let name = &package.name;
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| known == name) else {
            wrong.push(format!("`{name}` has no row in the table of arrows"));
            continue;
        };
        let bad = package.needs.iter().filter(|need| !allowed.contains(&need.as_str()));
        wrong.extend(bad.map(|need| format!("`{name}` must not depend on `{need}`")));
    }
    wrong
}

/// Fails unless the document's table says what this file's does, in any order.
fn compare(document: &str) -> Result<()> {
    let Some(mut drawn) = drawn_table(document) else {
        bail!("{DOCUMENT} lacks this fenced block:\n\n{}", fenced_table());
    };
    let mut wanted: Vec<String> = table().lines().map(normal).collect();
    drawn.sort();
    wanted.sort();
    let missing = wanted.iter().filter(|line| !drawn.contains(line)).map(|line| ("lacks", line));
    let extra = drawn.iter().filter(|line| !wanted.contains(line)).map(|line| ("has", line));
    let differences: Vec<String> =
        missing.chain(extra).map(|(verb, line)| format!("{DOCUMENT} {verb} `{line}`")).collect();
    ensure!(differences.is_empty(), "{}", differences.join("\n  "));
    Ok(())
}

fn drawn_table(document: &str) -> Option<Vec<String>> {
    let mut lines = document.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if !line.starts_with("```") {
            continue;
        }
        let body: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        if body.first() == Some(&"arrows:") {
            return Some(
                body[1..].iter().filter(|line| !line.is_empty()).map(|l| normal(l)).collect(),
            );
        }
    }
    None
}

/// Brings a row to one form: single spaces, names in order, `nothing` for none.
fn normal(line: &str) -> String {
    let (name, needs) = line.split_once("->").unwrap_or((line, "?"));
    let mut needs: Vec<&str> = needs.split(',').map(str::trim).collect();
    needs.retain(|need| !need.is_empty() && *need != "nothing");
    needs.sort_unstable();
    let needs = if needs.is_empty() { "nothing".to_owned() } else { needs.join(", ") };
    format!("{} -> {needs}", name.trim())
}

fn table() -> String {
    let mut text = String::new();
    for (name, needs) in ARROWS {
        let needs = if needs.is_empty() { "nothing".to_owned() } else { needs.join(", ") };
        writeln!(text, "{name} -> {needs}").expect("writing to a String cannot fail");
    }
    text
}

fn fenced_table() -> String {
    format!("```text\narrows:\n{}```", table())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn package(folder: &str, name: &str, needs: &[&str]) -> Package {
        let needs = needs.iter().map(|need| (*need).to_owned()).collect();
        Package { name: name.to_owned(), folder: PathBuf::from(folder), needs }
    }

    #[test]
    fn arrows_run_downwards_in_the_table_itself() {
        // A row may only name rows above it; the testkit and this tool stand outside.
        for (at, (name, needs)) in ARROWS.iter().enumerate() {
            for need in *needs {
                let above = ARROWS[..at].iter().any(|(known, _)| known == need);
                assert!(above, "`{name}` points at `{need}`, which is not above it");
            }
        }
    }

    #[test]
    fn an_arrow_upwards_is_found() {
        let packages = [
            package("crates/sekisho-core", "sekisho-core", &["sekisho"]),
            package("crates/sekisho-http", "sekisho-http", &["sekisho", "sekisho-redis"]),
            package("crates/sekisho", "sekisho", &["sekisho-core", "sekisho-testkit"]),
            package("crates/new", "sekisho-new", &[]),
            package("examples/hello", "hello", &["sekisho-testkit"]),
        ];
        let wrong = wrong_arrows(&packages);
        assert_eq!(wrong.len(), 4, "{wrong:?}");
        assert!(wrong[1].contains("`sekisho-http` must not depend on `sekisho-redis`"));
    }

    #[test]
    fn the_document_must_hold_the_same_table() {
        let good = format!("# A\n\n```rust\nx\n```\n\n{}\n", fenced_table());
        compare(&good).unwrap();
        compare(&good.replace("sekisho, sekisho-core", "sekisho-core,  sekisho")).unwrap();
        assert!(compare("# no table\n").is_err());
        assert!(compare(&good.replace("xtask -> nothing\n", "")).is_err());
        assert!(compare(&good.replace("xtask -> nothing", "xtask -> sekisho")).is_err());
    }
}
