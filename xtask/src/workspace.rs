//! Where the workspace is, which packages it has, and how programs are run in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The workspace that this tool was started in.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
}

/// One package of the workspace, with its dependencies on other packages of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The folder, seen from the root.
    pub(crate) folder: PathBuf,
    /// Normal and build dependencies inside the workspace, sorted.
    pub(crate) needs: Vec<String>,
}

impl Workspace {
    /// Finds the root: the parent of this tool's own folder under `cargo run`, else the nearest
    /// folder upwards that holds `xtask/Cargo.toml`.
    pub(crate) fn find() -> Result<Self> {
        let start = match env::var_os("CARGO_MANIFEST_DIR") {
            Some(folder) => PathBuf::from(folder),
            None => env::current_dir().context("no current folder")?,
        };
        start
            .ancestors()
            .find(|folder| folder.join("xtask/Cargo.toml").is_file())
            .map(|folder| Self { root: folder.to_owned() })
            .with_context(|| format!("no workspace at or above {}", start.display()))
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn read(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.root.join(path)).with_context(|| format!("cannot read {path}"))
    }

    /// Returns a cargo call in the root, without standard input.
    pub(crate) fn cargo(&self) -> Command {
        let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(program);
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }

    /// Runs a program in the root with its output passed through.
    pub(crate) fn run(&self, program: &str, args: &[String]) -> Result<()> {
        let mut command = Command::new(program);
        succeed(command.args(args).current_dir(&self.root))
    }

    /// Asks cargo for the workspace's packages.
    pub(crate) fn packages(&self) -> Result<Vec<Package>> {
        let mut command = self.cargo();
        command.args(["metadata", "--format-version", "1", "--no-deps"]);
        let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
        ensure!(output.status.success(), "`cargo metadata` failed");
        let metadata = serde_json::from_slice(&output.stdout).context("`cargo metadata` output")?;
        packages_of(&metadata, &self.root)
    }
}

/// Runs a prepared command and fails if it does.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        let program = Path::new(command.get_program()).file_name().unwrap_or_default();
        let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
        bail!("`{} {}` failed ({status})", program.to_string_lossy(), args.join(" "));
    }
    Ok(())
}

fn packages_of(metadata: &Value, root: &Path) -> Result<Vec<Package>> {
    let packages = metadata["packages"].as_array().context("no packages in the metadata")?;
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    packages
        .iter()
        .map(|package| {
            let name = package["name"].as_str().context("a package without a name")?;
            let manifest = package["manifest_path"].as_str().context("a package without a path")?;
            let folder = Path::new(manifest).parent().unwrap_or(root);
            let none = Vec::new();
            let dependencies = package["dependencies"].as_array().unwrap_or(&none);
            let mut needs: Vec<String> = dependencies
                .iter()
                .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
                .filter_map(|dependency| dependency["name"].as_str())
                .filter(|dependency| names.contains(dependency))
                .map(str::to_owned)
                .collect();
            needs.sort();
            needs.dedup();
            let folder = folder.strip_prefix(root).unwrap_or(folder).to_owned();
            Ok(Package { name: name.to_owned(), folder, needs })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_normal_and_build_dependencies_inside_the_workspace_count() {
        let metadata = json!({ "packages": [
            { "name": "a", "manifest_path": "/w/crates/a/Cargo.toml", "dependencies": [
                { "name": "serde", "kind": null },
                { "name": "c", "kind": "build" },
                { "name": "b", "kind": null },
                { "name": "d", "kind": "dev" },
            ]},
            { "name": "b", "manifest_path": "/w/crates/b/Cargo.toml", "dependencies": [] },
            { "name": "c", "manifest_path": "/w/crates/c/Cargo.toml", "dependencies": [] },
            { "name": "d", "manifest_path": "/w/crates/d/Cargo.toml", "dependencies": [] },
        ]});
        let packages = packages_of(&metadata, Path::new("/w")).unwrap();
        assert_eq!(packages[0].folder, Path::new("crates/a"));
        assert_eq!(packages[0].needs, ["b", "c"]);
    }

    #[test]
    fn output_that_is_not_metadata_is_refused() {
        assert!(packages_of(&json!({}), Path::new("/w")).is_err());
        assert!(packages_of(&json!({ "packages": [{}] }), Path::new("/w")).is_err());
    }
}
