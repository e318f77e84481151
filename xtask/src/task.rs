//! The words of the command line, as tasks.
//!
//! Several checks may stand in one call (`cargo xtask tidy arrows`). `ci`, `bench` and `sabotage` take
//! the words after them, so they come last.

use anyhow::{Context, Result, bail, ensure};

/// What `cargo xtask help` prints.
pub(crate) const HELP: &str = "\
Usage: cargo xtask <task>...

  tidy               sizes, module docs, import blocks, banned words, the core's own rules
  arrows             dependencies between crates match the table in ARCHITECTURE.md
  cases              every required case file exists and says how it was seen failing
  codegen [--check]  write the generated files, or only compare them
  features           check each crate with no, the default and all features
  ci [args]          exactly ./test
  bench NAME [args]  run one benchmark
  sabotage [NAME]    make each fault of xtask/sabotage.toml in a copy, and see which tests notice it:
                     two minutes to build, then five seconds each

The checks may be combined: cargo xtask tidy arrows cases codegen --check
";

/// One thing to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Tidy,
    Arrows,
    Cases,
    Codegen { check: bool },
    Features,
    Ci { args: Vec<String> },
    Bench { name: String, args: Vec<String> },
    Sabotage { name: Option<String> },
}

impl Task {
    /// Returns the word that asks for this task.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Help => "help",
            Self::Tidy => "tidy",
            Self::Arrows => "arrows",
            Self::Cases => "cases",
            Self::Codegen { .. } => "codegen",
            Self::Features => "features",
            Self::Ci { .. } => "ci",
            Self::Bench { .. } => "bench",
            Self::Sabotage { .. } => "sabotage",
        }
    }
}

/// Reads the words after `cargo xtask`.
pub(crate) fn parse(words: &[String]) -> Result<Vec<Task>> {
    let mut tasks = Vec::new();
    let mut rest = words;
    while let [word, after @ ..] = rest {
        rest = after;
        match word.as_str() {
            "help" | "--help" | "-h" => tasks.push(Task::Help),
            "tidy" => tasks.push(Task::Tidy),
            "arrows" => tasks.push(Task::Arrows),
            "cases" => tasks.push(Task::Cases),
            "features" => tasks.push(Task::Features),
            "codegen" => {
                let check = rest.first().is_some_and(|next| next == "--check");
                rest = &rest[usize::from(check)..];
                tasks.push(Task::Codegen { check });
            }
            "ci" => {
                tasks.push(Task::Ci { args: rest.to_vec() });
                rest = &[];
            }
            "bench" => {
                let (name, args) = rest.split_first().context("`bench` needs a name")?;
                tasks.push(Task::Bench { name: name.clone(), args: args.to_vec() });
                rest = &[];
            }
            "sabotage" => {
                ensure!(rest.len() <= 1, "`sabotage` takes one name or none");
                tasks.push(Task::Sabotage { name: rest.first().cloned() });
                rest = &[];
            }
            other => bail!("no task `{other}`; see `cargo xtask help`"),
        }
    }
    if tasks.is_empty() {
        tasks.push(Task::Help);
    }
    Ok(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(line: &str) -> Result<Vec<Task>> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn several_checks_stand_in_one_call() {
        let found = tasks("tidy arrows cases codegen --check").unwrap();
        let wanted = vec![Task::Tidy, Task::Arrows, Task::Cases, Task::Codegen { check: true }];
        assert_eq!(found, wanted);
        assert_eq!(tasks("codegen").unwrap(), vec![Task::Codegen { check: false }]);
    }

    #[test]
    fn bench_passes_the_rest_on() {
        let found = tasks("bench keyed --quick").unwrap();
        let wanted = Task::Bench { name: "keyed".to_owned(), args: vec!["--quick".to_owned()] };
        assert_eq!(found, vec![wanted]);
    }

    #[test]
    fn sabotage_takes_one_name_or_none() {
        let named = |name: Option<&str>| vec![Task::Sabotage { name: name.map(str::to_owned) }];
        assert_eq!(tasks("sabotage").unwrap(), named(None));
        assert_eq!(tasks("sabotage tidy").unwrap(), named(Some("tidy")));
        assert!(tasks("sabotage one two").is_err());
    }

    #[test]
    fn wrong_words_are_refused() {
        assert!(tasks("tidy --check").is_err());
        assert!(tasks("bench").is_err());
        assert!(tasks("typo").is_err());
    }
}
