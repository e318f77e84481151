//! Faults that are put in on purpose, one at a time, to see that the tests notice.
//!
//! `xtask/sabotage.toml` lists them. Each is made in a copy of the checkout under `target/sabotage`, never in the checkout
//! itself; then the tests of the core and of the test kit run there to their end. A fault that fewer than two checks notice
//! hangs by a thread, and is an error here; so is one whose text is no longer there, and one that does not compile.

mod copy;
mod list;
mod trial;

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use self::{copy::Copy, list::Fault, trial::Trial};
use crate::workspace::Workspace;

/// How many checks must notice a fault.
const NOTICED_MIN: usize = 2;

/// Makes each fault of the list, or the one of that name, and prints which checks noticed it.
pub(crate) fn run(workspace: &Workspace, name: Option<&str>) -> Result<()> {
    let faults = chosen(list::read(workspace)?, name)?;
    let copy = Copy::of(workspace)?;
    // All of the list is looked at before the first build: a stale entry shows at once.
    for fault in &faults {
        let _made = fault.made_in(&copy.read(&fault.file)?)?;
    }
    let begin = now();
    println!("sabotage: first without any fault; this builds everything once");
    match trial::of(&copy)? {
        Trial::Ran { failed } if failed.is_empty() => {}
        Trial::Ran { failed } => bail!("without any fault these fail: {}", failed.join(", ")),
        Trial::DoesNotCompile => bail!("the checkout does not compile"),
    }
    println!("sabotage: all pass; {} s", begin.elapsed().as_secs());
    let mut trials = Vec::new();
    for (index, fault) in faults.iter().enumerate() {
        let begin_one = now();
        let trial = sabotaged(&copy, fault)?;
        let (place, all) = (index + 1, faults.len());
        let (one, total) = (begin_one.elapsed().as_secs(), begin.elapsed().as_secs());
        println!(
            "[{place}/{all}] {}: {} ({one} s, {total} s in all)",
            fault.name,
            trial.in_short()
        );
        trials.push((fault, trial));
    }
    print!("\n{}", table(&trials));
    let unnoticed: Vec<&str> = trials
        .iter()
        .filter(|(_, trial)| trial.failed().len() < NOTICED_MIN)
        .map(|(fault, _)| fault.name.as_str())
        .collect();
    ensure!(
        unnoticed.is_empty(),
        "fewer than {NOTICED_MIN} checks noticed, or it did not compile: {}",
        unnoticed.join(", ")
    );
    println!("sabotage: {} faults, each noticed by {NOTICED_MIN} checks or more", trials.len());
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a person waits, and wants to know how long")]
fn now() -> Instant {
    Instant::now()
}

fn chosen(mut faults: Vec<Fault>, name: Option<&str>) -> Result<Vec<Fault>> {
    let Some(name) = name else { return Ok(faults) };
    let names: Vec<&str> = faults.iter().map(|fault| fault.name.as_str()).collect();
    let known = format!("no fault `{name}`; there are {}", names.join(", "));
    faults.retain(|fault| fault.name == name);
    faults.first().context(known)?;
    Ok(faults)
}

/// Makes a fault, tries the tests on it, and takes it back.
fn sabotaged(copy: &Copy, fault: &Fault) -> Result<Trial> {
    let sound = copy.read(&fault.file)?;
    copy.write(&fault.file, &fault.made_in(&sound)?)?;
    let trial = trial::of(copy);
    copy.write(&fault.file, &sound)?;
    trial
}

fn table(trials: &[(&Fault, Trial)]) -> String {
    let mut table = String::from("| algorithm | fault | result | checks |\n|---|---|---|---|\n");
    for (fault, trial) in trials {
        let cells = [&fault.algorithm, &fault.name, &trial.in_short(), &trial.failed().join(", ")];
        table.extend(cells.iter().map(|cell| format!("| {cell} ")));
        table.push_str("|\n");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_fits_the_checkout() {
        let workspace = Workspace::find().unwrap();
        let faults = list::read(&workspace).unwrap();
        for fault in &faults {
            fault.made_in(&workspace.read(&fault.file).unwrap()).unwrap();
        }
        for algorithm in [
            "fixed-window",
            "anchored-window",
            "sliding-log",
            "sliding-window",
            "token-bucket",
            "leaky-queue",
            "joint",
        ] {
            let count = faults.iter().filter(|fault| fault.algorithm == algorithm).count();
            assert!(count >= 4, "{algorithm}: only {count}");
        }
    }

    #[test]
    fn one_is_chosen_by_name() {
        let faults = || list::read(&Workspace::find().unwrap()).unwrap();
        let first = faults().remove(0).name;
        assert_eq!(chosen(faults(), Some(&first)).unwrap().len(), 1);
        assert_eq!(chosen(faults(), None).unwrap().len(), faults().len());
        let error = chosen(faults(), Some("typo")).err().unwrap().to_string();
        assert!(error.contains(&first), "{error}");
    }

    #[test]
    fn the_table_names_who_noticed() {
        let fault = list::parse(list::tests::GOOD).unwrap().remove(0);
        let trial = Trial::Ran { failed: vec!["a::b".to_owned(), "c".to_owned()] };
        let table = table(&[(&fault, trial)]);
        assert!(
            table.ends_with("| fixed-window | one-more | 2 checks noticed | a::b, c |\n"),
            "{table}"
        );
    }
}
