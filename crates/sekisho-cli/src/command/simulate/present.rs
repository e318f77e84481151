//! Reports in the form that was asked for, on the standard output or in files.

use std::{
    fs,
    io::{self, IsTerminal as _},
    path::Path,
};

use sekisho_replay::{
    chart::terminal,
    experiment::{Report as Outcome, lessons},
    output,
};

use crate::{
    args::{Form, Simulate},
    report::{Report, out},
};

/// One experiment, or all that have a name: an object or an array, a page of one or the whole course.
pub(super) enum Results {
    One(Outcome),
    All(Vec<Outcome>),
}

impl Results {
    fn reports(&self) -> &[Outcome] {
        match self {
            Self::One(report) => std::slice::from_ref(report),
            Self::All(reports) => reports,
        }
    }
}

pub(super) fn present(args: &Simulate, results: &Results) -> Result<(), Report> {
    let reports = results.reports();
    check(args, reports)?;
    let to = args.out.as_deref();
    match args.output.unwrap_or(Form::Table) {
        Form::Svg => pictures(reports, to.unwrap_or(Path::new("."))),
        Form::Table => {
            let terminal = Terminal::of_output(to.is_none(), args.charts);
            write(to, &tables(reports, terminal.as_ref()))
        }
        Form::Json => match results {
            Results::One(report) => write(to, &output::json(report).map_err(Report::failed)?),
            Results::All(all) => write(to, &output::json_array(all).map_err(Report::failed)?),
        },
        Form::Jsonl => write(to, &output::json_lines(reports).map_err(Report::failed)?),
        Form::Csv => write(to, &output::csv(reports)),
        Form::Html => match results {
            Results::One(_) => write(to, &output::page(reports)),
            Results::All(all) => {
                write(to, &output::course(&lessons().map_err(Report::failed)?, all))
            }
        },
    }
}

/// Refuses pictures that nothing can be drawn of, or put nowhere, before any work is done.
pub(super) fn check(args: &Simulate, reports: &[Outcome]) -> Result<(), Report> {
    if args.output != Some(Form::Svg) {
        return Ok(());
    }
    if args.out.is_none() {
        return Err(
            Report::input("`--output svg` needs a directory for its files").hint("add `--out DIR`")
        );
    }
    if reports.iter().flat_map(output::pictures).next().is_none() {
        return Err(Report::input("this experiment has no pictures")
            .hint("`--output table` shows its figures"));
    }
    Ok(())
}

fn tables(reports: &[Outcome], terminal: Option<&Terminal>) -> String {
    let mut texts = Vec::new();
    for report in reports {
        texts.push(output::table(report));
        let Some(Terminal { width, colour }) = terminal else { continue };
        texts.extend(report.charts.iter().map(|chart| terminal::draw(chart, *width, *colour)));
    }
    texts.join("\n")
}

/// Where charts are drawn with letters.
struct Terminal {
    width: usize,
    colour: bool,
}

impl Terminal {
    /// Returns what the standard output is, or `None` when no charts are wanted.
    fn of_output(on_stdout: bool, asked: bool) -> Option<Self> {
        let stdout = io::stdout();
        let is_terminal = on_stdout && stdout.is_terminal();
        if !is_terminal && !asked {
            return None;
        }
        let size = rustix::termios::tcgetwinsize(&stdout).ok().filter(|_| is_terminal);
        let width = size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        // Wider than this, lines are hard to follow.
        Some(Self { width: width.unwrap_or(100).min(160), colour: is_terminal && !plain })
    }
}

/// Writes one file a chart, and says which.
fn pictures(reports: &[Outcome], directory: &Path) -> Result<(), Report> {
    let failed =
        |path: &Path, error: io::Error| Report::failed(format!("{}: {error}", path.display()));
    fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    let mut names = Vec::new();
    for (name, picture) in reports.iter().flat_map(output::pictures) {
        let path = directory.join(name);
        fs::write(&path, picture).map_err(|error| failed(&path, error))?;
        names.push(path.display().to_string());
    }
    out(|to| names.iter().try_for_each(|name| writeln!(to, "{name}")))
}

fn write(to: Option<&Path>, text: &str) -> Result<(), Report> {
    match to {
        Some(path) => fs::write(path, text)
            .map_err(|error| Report::failed(format!("{}: {error}", path.display()))),
        None => out(|to| to.write_all(text.as_bytes())),
    }
}
