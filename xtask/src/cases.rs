//! Every required case exists as a file and says how it was seen failing.
//!
//! A case that has never failed proves nothing, so each file names the fault that was put in and
//! what went wrong then. What a file means is the test kit's business; here only its frame is read.

use std::path::Path;
use std::{fs, io};

use anyhow::{Context, Result, ensure};
use toml::{Table, Value};

use crate::workspace::Workspace;

const FOLDER: &str = "crates/sekisho-testkit/cases";

/// The cases that the core, the library and the policy file must answer.
const REQUIRED: &[&str] = &[
    "B02", "B04", "B06", "B07", "B17", "B20", "B21", "B22", "B23", "B24", "B25", "B26", "B28",
    "B30", "B31", "B34", "B35", "B36", "B39", "B40", "B41", "B43", "B58", "B60", "B66", "B70",
    "B75", "B76", "B83",
];
const KINDS: &[&str] = &["S1", "S2", "S3"];
const BODIES: &[&str] = &["trace", "text", "file", "parallel", "rust"];

/// The frame of one case file.
#[derive(Debug, PartialEq, Eq)]
struct Case {
    id: String,
    kind: String,
    title: String,
    /// What the case asks for and nothing answers yet.
    pending: Vec<String>,
}

/// Lists the cases and fails if one is missing or badly framed.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut wrong = Vec::new();
    let mut cases = Vec::new();
    for stem in stems(&workspace.root().join(FOLDER))? {
        let text = workspace.read(&format!("{FOLDER}/{stem}.toml"))?;
        match frame(&stem, &text) {
            Ok(case) => cases.push(case),
            Err(problems) => wrong.extend(problems.iter().map(|what| format!("{stem}: {what}"))),
        }
    }
    for case in &cases {
        println!("{:5} {:3} {}", case.id, case.kind, case.title);
        for pending in &case.pending {
            println!("{:9} pending: {pending}", "");
        }
    }
    let known: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    let badly_framed = |id: &str| wrong.iter().any(|what| what.starts_with(id));
    let missing: Vec<String> = missing(&known)
        .filter(|id| !badly_framed(id))
        .map(|id| format!("{id}: no {FOLDER}/{id}.toml"))
        .collect();
    wrong.extend(missing);
    ensure!(wrong.is_empty(), "{} problems\n  {}", wrong.len(), wrong.join("\n  "));
    let pending = cases.iter().filter(|case| !case.pending.is_empty()).count();
    println!("cases: {}, of which {pending} have something pending", cases.len());
    Ok(())
}

/// Returns the names of the case files, sorted, without `.toml`. No folder means no case.
fn stems(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context("cannot list the cases"),
    };
    let mut stems = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            stems.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
        }
    }
    stems.sort();
    Ok(stems)
}

fn missing(known: &[&str]) -> impl Iterator<Item = &'static str> {
    REQUIRED.iter().copied().filter(|id| !known.contains(id))
}

/// Reads the frame of a case file, or returns all that is wrong with it.
fn frame(stem: &str, text: &str) -> Result<Case, Vec<String>> {
    let table: Table = text.parse().map_err(|error| vec![format!("{error}")])?;
    let mut wrong = Vec::new();
    let mut word = |key: &str| match table.get(key).and_then(Value::as_str).map(str::trim) {
        Some(value) if !value.is_empty() => value.to_owned(),
        _ => {
            wrong.push(format!("`{key}` must be a string that says something"));
            String::new()
        }
    };
    let (id, title, kind) = (word("id"), word("title"), word("kind"));
    word("seen_failing");
    if !id.is_empty() && id != stem {
        wrong.push(format!("`id` is `{id}`, the file's name says `{stem}`"));
    }
    if !kind.is_empty() && !KINDS.contains(&kind.as_str()) {
        wrong.push(format!("`kind` is `{kind}`, not one of {}", KINDS.join(", ")));
    }
    if !BODIES.iter().any(|body| is_list_of_tables(table.get(*body))) {
        wrong.push(format!("no [[table]] of any of {}", BODIES.join(", ")));
    }
    let pending = strings(table.get("pending")).unwrap_or_else(|| {
        wrong.push("`pending` must be a list of strings".to_owned());
        Vec::new()
    });
    if wrong.is_empty() { Ok(Case { id, kind, title, pending }) } else { Err(wrong) }
}

fn is_list_of_tables(value: Option<&Value>) -> bool {
    let list = value.and_then(Value::as_array);
    list.is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_table))
}

fn strings(value: Option<&Value>) -> Option<Vec<String>> {
    let Some(value) = value else { return Some(Vec::new()) };
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
id = "B06"
title = "part-refilled token"
kind = "S3"
seen_failing = "rounded the wait up: the trace asked for 0.8 s and got 1 s"
pending = ["the same on Redis"]

[[trace]]
limit = "1/s"
"#;

    #[test]
    fn a_good_frame_is_read() {
        let case = frame("B06", GOOD).unwrap();
        assert_eq!((case.id.as_str(), case.kind.as_str()), ("B06", "S3"));
        assert_eq!(case.pending, ["the same on Redis"]);
    }

    #[test]
    fn each_fault_of_a_frame_is_named() {
        let faults = [
            ("id = \"B06\"", "id = \"B07\"", "the file's name"),
            ("kind = \"S3\"", "kind = \"S4\"", "`kind` is `S4`"),
            ("title = \"part-refilled token\"", "", "`title`"),
            ("seen_failing = \"", "seen_failing = \"\" # ", "`seen_failing`"),
            ("[[trace]]", "[[tracing]]", "no [[table]]"),
            ("[[trace]]", "[trace]", "no [[table]]"),
            ("[\"the same on Redis\"]", "true", "`pending`"),
            ("id =", "id", "TOML"),
        ];
        for (from, to, said) in faults {
            let wrong = frame("B06", &GOOD.replacen(from, to, 1)).unwrap_err();
            assert!(wrong.iter().any(|what| what.contains(said)), "{from} -> {to}: {wrong:?}");
        }
    }

    #[test]
    fn a_missing_case_is_named() {
        let all_but_one: Vec<&str> = REQUIRED.iter().copied().filter(|id| *id != "B22").collect();
        assert_eq!(missing(&all_but_one).collect::<Vec<_>>(), ["B22"]);
        assert_eq!(missing(REQUIRED).count(), 0);
    }
}
