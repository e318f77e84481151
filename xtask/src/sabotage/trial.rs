//! One run of the tests on what stands in the copy.

use std::process::Command;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use super::copy::Copy;

/// What became of the tests.
#[derive(Debug)]
pub(super) enum Trial {
    /// They ran, and these failed.
    Ran { failed: Vec<String> },
    /// There was nothing to run.
    DoesNotCompile,
}

impl Trial {
    pub(super) fn failed(&self) -> &[String] {
        match self {
            Self::Ran { failed } => failed,
            Self::DoesNotCompile => &[],
        }
    }

    pub(super) fn in_short(&self) -> String {
        match self {
            Self::Ran { failed } => format!("{} checks noticed", failed.len()),
            Self::DoesNotCompile => "does not compile".to_owned(),
        }
    }
}

/// The test programs that ask the core. The test kit's others ask its models only, and no fault of the core shows there.
const TESTS: &[&str] = &[
    "--package=sekisho-core",
    "--package=sekisho-testkit",
    "--lib",
    "--test=it",
    "--test=promises",
    "--test=peers",
];

/// What makes a build quick: nobody looks at a backtrace, and the store is not what is tried here.
const QUICK: &[&str] =
    &["--config=profile.dev.debug=false", "--config=profile.dev.incremental=true"];

/// How many decisions each random test makes here.
const DECISIONS: &str = "30000";

/// Builds the tests in the copy and runs all of them to the end.
pub(super) fn of(copy: &Copy) -> Result<Trial> {
    let built = cargo(copy, &["test", "--quiet", "--no-run"], &[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot start cargo")?;
    if !built.success() {
        return Ok(Trial::DoesNotCompile);
    }
    let output = cargo(copy, &["test", "--no-fail-fast"], &["--color=never"])
        .output()
        .context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let failed = failed(&text);
    // A test program that ends itself names nobody.
    ensure!(
        output.status.success() == failed.is_empty(),
        "the tests ended without naming who failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(Trial::Ran { failed })
}

fn cargo(copy: &Copy, words: &[&str], to_tests: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(words).args(QUICK).args(TESTS).arg("--").args(to_tests);
    command.current_dir(copy.tree()).stdin(Stdio::null());
    command.env("CARGO_TARGET_DIR", copy.build());
    command.env("SEKISHO_DECISIONS", DECISIONS).env("RUST_BACKTRACE", "0");
    for unset in ["SEKISHO_LONG", "SEKISHO_SEED"] {
        command.env_remove(unset);
    }
    command
}

/// Returns the names on the lines that a test program prints of tests that failed.
fn failed(output: &str) -> Vec<String> {
    let name = |line: &str| {
        let rest = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(rest.trim_end_matches(" - should panic").to_owned())
    };
    let mut names: Vec<String> = output.lines().filter_map(name).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_failed_is_read_from_what_a_test_program_prints() {
        let output = "running 3 tests\ntest a::b ... FAILED\ntest c ... ok\ntest a::a ... FAILED\n\
            \nfailures:\n\n---- a::b stdout ----\ntest x ... FAILED not\n\nfailures:\n    a::b\n";
        assert_eq!(failed(output), ["a::a", "a::b"]);
        assert_eq!(failed("test c ... ok\n"), [""; 0]);
    }
}
