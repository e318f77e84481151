//! Each crate compiles with no, the default and all features: a feature adds and never takes away.

use anyhow::Result;

use crate::workspace::{Workspace, succeed};

const SETS: &[&[&str]] = &[&["--no-default-features"], &[], &["--all-features"]];

/// Checks every package with every set of features.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    for package in workspace.packages()? {
        for set in SETS {
            let name = &package.name;
            println!("features: {name} {}", set.first().unwrap_or(&"(default)"));
            let mut command = workspace.cargo();
            succeed(command.args(["check", "--quiet", "--package", name]).args(*set))?;
        }
    }
    Ok(())
}
