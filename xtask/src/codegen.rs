//! Files that the program itself writes, so that they cannot tell another story than it does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::workspace::Workspace;

/// A file that equals what `sekisho ARGS` prints.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) path: &'static str,
    args: &'static [&'static str],
}

/// All generated files.
pub(crate) const FILES: &[Generated] = &[
    Generated { path: "docs/policy.schema.json", args: &["schema"] },
    Generated { path: "docs/lint-codes.md", args: &["lint", "--codes"] },
    Generated { path: "docs/openapi.json", args: &["schema", "--openapi"] },
    Generated { path: "docs/cli.md", args: &["reference"] },
];

/// Writes the generated files, or with `check` only says which differ.
pub(crate) fn run(workspace: &Workspace, check: bool) -> Result<()> {
    let program = build(workspace)?;
    let mut wrong = Vec::new();
    for generated in FILES {
        let result = wanted(workspace, &program, generated)
            .and_then(|wanted| settle(workspace, generated, &wanted, check));
        match result {
            Ok(()) => {}
            Err(error) => wrong.push(format!("{error:#}")),
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("codegen: {} files", FILES.len());
    Ok(())
}

/// Builds the program and returns where it is.
///
/// It is built as a part of the whole workspace: built alone its dependencies could get other
/// features than they have in the tests, and everything would be compiled twice.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let mut command = workspace.cargo();
    command.args(["build", "--quiet", "--workspace", "--bin", "sekisho"]);
    command.args(["--message-format", "json-render-diagnostics"]);
    let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "the program `sekisho` does not build");
    executable(&String::from_utf8_lossy(&output.stdout)).context("cargo named no program `sekisho`")
}

/// Finds the program in cargo's messages, one JSON object a line.
fn executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages
        .filter(|message| message["target"]["name"] == "sekisho")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

fn wanted(workspace: &Workspace, program: &Path, generated: &Generated) -> Result<String> {
    let args = generated.args.join(" ");
    let mut command = Command::new(program);
    command.args(generated.args).current_dir(workspace.root());
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run `sekisho {args}`"))?;
    let path = generated.path;
    ensure!(output.status.success(), "`sekisho {args}` failed, so {path} cannot be made");
    String::from_utf8(output.stdout).with_context(|| format!("`sekisho {args}` printed no UTF-8"))
}

fn settle(workspace: &Workspace, generated: &Generated, wanted: &str, check: bool) -> Result<()> {
    let path = workspace.root().join(generated.path);
    let found = fs::read_to_string(&path).unwrap_or_default();
    let Some(difference) = difference(&found, wanted) else { return Ok(()) };
    if check {
        let (path, args) = (generated.path, generated.args.join(" "));
        anyhow::bail!(
            "{path} is not what `sekisho {args}` prints\n{difference}\nrun cargo xtask codegen"
        );
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    println!("codegen: wrote {}", generated.path);
    fs::write(&path, wanted).with_context(|| format!("cannot write {}", generated.path))
}

/// Returns the first place where two texts differ, or `None` if they are the same.
fn difference(found: &str, wanted: &str) -> Option<String> {
    if found == wanted {
        return None;
    }
    let same = found.lines().zip(wanted.lines()).take_while(|(a, b)| a == b).count();
    let line = |text: &str, sign: &str| {
        text.lines().nth(same).map_or_else(
            || format!("  {sign} (the end)"),
            |line| format!("  {sign} {}", line.chars().take(120).collect::<String>()),
        )
    };
    Some(format!("  @ line {}\n{}\n{}", same + 1, line(found, "-"), line(wanted, "+")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    }

    #[test]
    fn the_first_difference_is_shown() {
        assert_eq!(difference("a\nb\n", "a\nc\n").unwrap(), "  @ line 2\n  - b\n  + c");
        assert_eq!(difference("", "a\n").unwrap(), "  @ line 1\n  - (the end)\n  + a");
        assert!(difference("a", "a\n").is_some(), "a missing last newline counts");
    }

    #[test]
    fn the_program_is_found_in_the_messages() {
        let messages = r#"not json
{"reason":"compiler-artifact","target":{"name":"sekisho"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"sekisho"},"executable":"/t/sekisho"}
"#;
        assert_eq!(executable(messages), Some(PathBuf::from("/t/sekisho")));
        assert_eq!(executable("{}"), None);
    }
}
