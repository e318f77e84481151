//! `sekisho simulate`: named experiments, experiments of one's own, and traces.

mod present;
mod scenario;
mod trace;

use sekisho_replay::{
    experiment::{ALL, Experiment},
    output,
};

use self::present::{Results, present};
use crate::{
    args::{Form, Simulate},
    report::{Report, out},
};

#[expect(clippy::needless_pass_by_value, reason = "the command is handed over")]
pub(super) fn run(args: Simulate) -> Result<(), Report> {
    if let Some(name) = &args.name {
        let experiment = Experiment::named(name).ok_or_else(|| unknown(name))?;
        return present(&args, &Results::One(experiment.run().map_err(Report::failed)?));
    }
    if args.all {
        let reports = ALL.iter().map(Experiment::run).collect::<Result<_, _>>();
        return present(&args, &Results::All(reports.map_err(Report::failed)?));
    }
    if let Some(path) = &args.scenario {
        return present(&args, &Results::One(scenario::from_file(path)?));
    }
    match &args.trace {
        Some(path) if !args.own.is_given() && matches!(args.output, None | Some(Form::Jsonl)) => {
            trace::answer(&args.limits, path, args.out.as_deref())
        }
        None if args.limits.is_empty() => list(&args),
        _ => present(&args, &Results::One(scenario::from_flags(&args)?)),
    }
}

fn unknown(name: &str) -> Report {
    let names: Vec<_> = ALL.iter().map(|experiment| experiment.name).collect();
    let report = Report::input(format!("there is no experiment `{name}`"));
    if name.contains(['/', '.']) {
        return report
            .hint("a limit is given with `--limit`, and a file with `--scenario` or `--trace`");
    }
    report.hint(format!("they are {}", names.join(", ")))
}

fn list(args: &Simulate) -> Result<(), Report> {
    if args.output.is_some() || args.charts || args.out.is_some() {
        return Err(Report::input("there is nothing to print: no experiment is named")
            .hint("`sekisho simulate --all` runs them all, and `sekisho simulate` lists them"));
    }
    out(|to| {
        writeln!(to, "Experiments:\n")?;
        to.write_all(output::list(&ALL).as_bytes())?;
        writeln!(
            to,
            "\nRun one with `sekisho simulate boundary`, all with `sekisho simulate --all`, and one of your own with\n\
             `sekisho simulate --limit \"60/min\" --arrivals \"even 2/s for 2min\"`."
        )
    })
}
