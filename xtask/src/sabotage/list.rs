//! The list of faults: what each changes, and why that is one.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use toml::{Table, Value};

use crate::workspace::Workspace;

const LIST: &str = "xtask/sabotage.toml";

/// One line that is made wrong.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) name: String,
    /// Whose fault it is; `joint` and `all` are no algorithms.
    pub(super) algorithm: String,
    /// The file, seen from the root.
    pub(super) file: String,
    old: String,
    new: String,
}

impl Fault {
    /// Returns the text with this fault in it.
    pub(super) fn made_in(&self, text: &str) -> Result<String> {
        let found = text.matches(&self.old).count();
        let (name, file) = (&self.name, &self.file);
        ensure!(
            found == 1,
            "the list is out of date: the old text of `{name}` is {found} times in {file}, not once"
        );
        Ok(text.replacen(&self.old, &self.new, 1))
    }
}

/// Reads the committed list.
pub(super) fn read(workspace: &Workspace) -> Result<Vec<Fault>> {
    parse(&workspace.read(LIST)?).context(LIST)
}

pub(super) fn parse(text: &str) -> Result<Vec<Fault>> {
    let table: Table = text.parse()?;
    let list = table.get("fault").and_then(Value::as_array).context("no [[fault]]")?;
    let faults = list.iter().map(fault).collect::<Result<Vec<_>>>()?;
    let mut names = BTreeSet::new();
    for fault in &faults {
        ensure!(names.insert(&fault.name), "two faults are named `{}`", fault.name);
    }
    Ok(faults)
}

fn fault(value: &Value) -> Result<Fault> {
    let word = |key: &str| {
        let text = value.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        text.map(str::to_owned).with_context(|| format!("`{key}` must say something in {value}"))
    };
    // What nobody can explain is no fault, but a change.
    word("why")?;
    let (name, algorithm, file) = (word("name")?, word("algorithm")?, word("file")?);
    let (old, new) = (word("old")?, word("new")?);
    ensure!(!old.contains('\n') && !new.contains('\n'), "`{name}` is more than one line");
    ensure!(old != new, "`{name}` changes nothing");
    Ok(Fault { name, algorithm, file, old, new })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const GOOD: &str = r#"
[[fault]]
name = "one-more"
algorithm = "fixed-window"
file = "a.rs"
old = "sum <= most"
new = "sum <= most + 1"
why = "one more than the limit passes"
"#;

    #[test]
    fn a_fault_is_made_where_its_text_is_found_once() {
        let fault = parse(GOOD).unwrap().remove(0);
        assert_eq!(fault.made_in("if sum <= most {").unwrap(), "if sum <= most + 1 {");
        for text in ["if sum < most {", "sum <= most && sum <= most"] {
            let error = fault.made_in(text).unwrap_err().to_string();
            assert!(error.contains("out of date"), "{error}");
        }
    }

    #[test]
    fn a_list_that_says_too_little_is_refused() {
        assert!(parse("").is_err());
        assert!(parse(&GOOD.repeat(2)).unwrap_err().to_string().contains("two faults"));
        for key in ["name", "algorithm", "file", "old", "new", "why"] {
            let without = GOOD.replace(&format!("{key} = \""), &format!("{key} = \"\" # "));
            let error = parse(&without).unwrap_err().to_string();
            assert!(error.contains(&format!("`{key}`")), "{error}");
        }
        let same = GOOD.replace("new = \"sum <= most + 1\"", "new = \"sum <= most\"");
        assert!(parse(&same).unwrap_err().to_string().contains("nothing"));
    }
}
