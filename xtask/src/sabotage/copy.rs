//! The copy of the checkout that faults are made in.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::tidy::walk;
use crate::workspace::Workspace;

/// A copy that is kept for the next time, so that only what has changed is built again.
#[derive(Debug)]
pub(super) struct Copy {
    tree: PathBuf,
    build: PathBuf,
}

impl Copy {
    /// Makes the copy equal to the checkout.
    pub(super) fn of(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.root().join("target/sabotage");
        let copy = Self { tree: folder.join("tree"), build: folder.join("build") };
        mirror(workspace.root(), &copy.tree)?;
        Ok(copy)
    }

    pub(super) fn tree(&self) -> &Path {
        &self.tree
    }

    /// Returns the folder that cargo builds in: not the checkout's, whose builds would be pushed out.
    pub(super) fn build(&self) -> &Path {
        &self.build
    }

    pub(super) fn read(&self, file: &str) -> Result<String> {
        fs::read_to_string(self.tree.join(file)).with_context(|| format!("cannot read {file}"))
    }

    pub(super) fn write(&self, file: &str, text: &str) -> Result<()> {
        fs::write(self.tree.join(file), text).with_context(|| format!("cannot write {file}"))
    }
}

/// Makes `to` equal to `from`. What is equal already is not touched, so that cargo sees no change.
fn mirror(from: &Path, to: &Path) -> Result<()> {
    let wanted: BTreeSet<String> = walk::files(from)?.into_iter().collect();
    fs::create_dir_all(to)?;
    for file in walk::files(to)? {
        if !wanted.contains(&file) {
            fs::remove_file(to.join(file))?;
        }
    }
    for file in wanted {
        let bytes = fs::read(from.join(&file)).with_context(|| format!("cannot read {file}"))?;
        let target = to.join(&file);
        if fs::read(&target).is_ok_and(|before| before == bytes) {
            continue;
        }
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&target, bytes).with_context(|| format!("cannot write {file}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{env, process};

    use super::*;

    #[test]
    fn a_copy_takes_back_what_was_left_in_it() {
        let root = env::temp_dir().join(format!("sekisho-xtask-copy-{}", process::id()));
        let (from, to) = (root.join("from"), root.join("to"));
        fs::create_dir_all(from.join("a")).unwrap();
        fs::write(from.join("a/b"), "sound").unwrap();
        mirror(&from, &to).unwrap();
        fs::write(to.join("a/b"), "faulty").unwrap();
        fs::write(to.join("a/c"), "left").unwrap();
        mirror(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("a/b")).unwrap(), "sound");
        assert!(!to.join("a/c").exists());
        fs::remove_dir_all(root).unwrap();
    }
}
