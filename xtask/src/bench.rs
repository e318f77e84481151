//! The benchmarks by name, whatever kind of program each is.

use anyhow::{Context, Result};

use crate::workspace::{Workspace, succeed};

enum Bench {
    /// A bench target of a package.
    Cargo { package: &'static str, target: &'static str },
    /// A script, seen from the root.
    Script { path: &'static str },
}

const BENCHES: &[(&str, Bench)] = &[
    ("memory", Bench::Cargo { package: "sekisho", target: "memory" }),
    ("fullest", Bench::Cargo { package: "sekisho", target: "fullest" }),
    ("redis", Bench::Cargo { package: "sekisho-redis", target: "shared" }),
    ("instructions", Bench::Script { path: "bench/instructions.sh" }),
    ("doors", Bench::Script { path: "bench/doors.sh" }),
    ("gateway", Bench::Script { path: "bench/gateway.sh" }),
];

/// Runs one benchmark and passes `args` on to it.
pub(crate) fn run(workspace: &Workspace, name: &str, args: &[String]) -> Result<()> {
    match find(name)? {
        Bench::Cargo { package, target } => {
            let mut command = workspace.cargo();
            command.args(["bench", "--package", package, "--bench", target, "--"]);
            succeed(command.args(args))
        }
        Bench::Script { path } => workspace.run("bash", &crate::with_first(path, args)),
    }
}

fn find(name: &str) -> Result<&'static Bench> {
    let found = BENCHES.iter().find(|(known, _)| *known == name);
    found.map(|(_, bench)| bench).with_context(|| {
        let known: Vec<&str> = BENCHES.iter().map(|(known, _)| *known).collect();
        format!("no benchmark `{name}`; there are {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = find("typo").err().unwrap().to_string();
        assert!(error.contains("memory, fullest, redis, instructions, doors, gateway"), "{error}");
        assert!(matches!(find("memory"), Ok(Bench::Cargo { package: "sekisho", .. })));
    }
}
