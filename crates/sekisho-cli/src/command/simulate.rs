//! `sekisho simulate`: named experiments, experiments of one's own, and traces.

mod place;
mod present;
mod race;
mod scenario;
mod store_trace;
mod trace;

use sekisho_replay::{
    experiment::{
        ALL, Experiment,
        race::{self as the_race, Raced},
    },
    output,
};

use self::present::{Results, present};
use crate::{
    args::{Form, Simulate, StoreUrl},
    report::{Report, out},
};

#[expect(clippy::needless_pass_by_value, reason = "the command is handed over")]
pub(super) fn run(args: Simulate) -> Result<(), Report> {
    if args.racer {
        return race::be_a_racer();
    }
    if args.name.as_deref() == Some(the_race::NAME) {
        return run_race(&args);
    }
    if args.all {
        return run_all(&args);
    }
    if let Some(name) = &args.name {
        let experiment = Experiment::named(name).ok_or_else(|| unknown(name))?;
        only_in_memory(&args)?;
        return present(&args, &Results::One(experiment.run().map_err(Report::failed)?));
    }
    if let Some(path) = &args.scenario {
        return present(&args, &Results::One(scenario::from_file(path)?));
    }
    match (&args.trace, &args.store) {
        (Some(path), store)
            if !args.own.is_given() && matches!(args.output, None | Some(Form::Jsonl)) =>
        {
            let out = args.out.as_deref();
            match store {
                None => trace::answer(&args.limits, path, out),
                Some(url) => store_trace::answer(&args.limits, path, out, url),
            }
        }
        (None, None) if args.limits.is_empty() => list(&args),
        _ => {
            only_in_memory(&args)?;
            present(&args, &Results::One(scenario::from_flags(&args)?))
        }
    }
}

/// Runs the experiment that needs a store.
fn run_race(args: &Simulate) -> Result<(), Report> {
    let Some(url) = &args.store else {
        return Err(Report::input("`race` needs a Redis or Valkey server")
            .hint("add `--store redis://127.0.0.1:6379`; nothing of the race stays there"));
    };
    present::check(args, &[])?;
    let raced = raced(args, url)?;
    present(args, &Results::One(the_race::report(&raced)))?;
    judge(&raced)
}

fn run_all(args: &Simulate) -> Result<(), Report> {
    let mut reports =
        ALL.iter().map(Experiment::run).collect::<Result<Vec<_>, _>>().map_err(Report::failed)?;
    let raced = args.store.as_ref().map(|url| raced(args, url)).transpose()?;
    reports.extend(raced.as_deref().map(the_race::report));
    present(args, &Results::All(reports))?;
    judge(raced.as_deref().unwrap_or_default())
}

fn raced(args: &Simulate, url: &StoreUrl) -> Result<Vec<Raced>, Report> {
    race::run(url, args.trials.unwrap_or(the_race::TRIALS))
}

/// A limit of ours that is not kept is an error, however well it is printed.
fn judge(raced: &[Raced]) -> Result<(), Report> {
    match the_race::wrong(raced).as_slice() {
        [] => Ok(()),
        wrong => Err(Report::failed(wrong.join("\n"))),
    }
}

/// Refuses a store for what does not use it.
fn only_in_memory(args: &Simulate) -> Result<(), Report> {
    match args.store {
        None => Ok(()),
        Some(_) => Err(Report::input("this is run in memory: `--store` has no use here")
            .hint("`race` and the answers to a trace (`--limit` with `--trace`) use a store")),
    }
}

fn unknown(name: &str) -> Report {
    let names: Vec<_> = ALL.iter().map(|experiment| experiment.name).collect();
    let report = Report::input(format!("there is no experiment `{name}`"));
    if name.contains(['/', '.']) {
        return report
            .hint("a limit is given with `--limit`, and a file with `--scenario` or `--trace`");
    }
    report.hint(format!("they are {} and {}", names.join(", "), the_race::NAME))
}

fn list(args: &Simulate) -> Result<(), Report> {
    if args.output.is_some() || args.charts || args.out.is_some() {
        return Err(Report::input("there is nothing to print: no experiment is named")
            .hint("`sekisho simulate --all` runs them all, and `sekisho simulate` lists them"));
    }
    let race = format!("{} It needs a server: `--store redis://…`.", the_race::QUESTION);
    let mut experiments: Vec<_> = ALL.iter().map(|one| (one.name, one.question)).collect();
    experiments.push((the_race::NAME, &race));
    out(|to| {
        writeln!(to, "Experiments:\n")?;
        to.write_all(output::list(&experiments).as_bytes())?;
        writeln!(
            to,
            "\nRun one with `sekisho simulate boundary`, all with `sekisho simulate --all`, and one of your own with\n\
             `sekisho simulate --limit \"60/min\" --arrivals \"even 2/s for 2min\"`."
        )
    })
}

#[cfg(test)]
mod tests {
    use sekisho::Span;

    use super::*;

    #[test]
    fn a_limit_of_ours_that_is_not_kept_is_an_error() {
        let raced = |passed: u64| {
            let (took, ping_median) = (Span::from_secs(1), Span::from_nanos(1));
            let method = the_race::METHODS[0];
            [Raced { method, passed: vec![100, passed], calls: None, took, ping_median }]
        };
        assert!(judge(&raced(100)).is_ok());
        assert!(judge(&raced(101)).is_err() && judge(&raced(99)).is_err());
    }
}
