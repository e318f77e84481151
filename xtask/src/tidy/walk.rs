//! Which files there are: all of the checkout, less what is built, fetched or recorded.
//!
//! It walks rather than asks git, so that a file counts before it is added and in an unpacked
//! archive.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

const SKIPPED: &[&str] = &["target", "artifacts", "corpus", "node_modules"];
const HIDDEN_BUT_OURS: &[&str] = &[".cargo", ".ci", ".config", ".github"];

/// Returns the files under `root`, as sorted paths with `/` seen from it.
pub(crate) fn files(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder));
        for entry in entries.with_context(|| format!("cannot list `{folder}`"))? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_file() {
                found.push(path);
            } else if kind.is_dir() && entered(&name) {
                folders.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn entered(name: &str) -> bool {
    if name.starts_with('.') { HIDDEN_BUT_OURS.contains(&name) } else { !SKIPPED.contains(&name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_and_hidden_folders_are_skipped() {
        assert!(entered("src") && entered(".ci"));
        assert!(!entered("target") && !entered(".git"));
    }

    #[test]
    fn this_file_is_found() {
        let found = files(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(found.iter().any(|path| path == "src/tidy/walk.rs"), "{found:?}");
    }
}
