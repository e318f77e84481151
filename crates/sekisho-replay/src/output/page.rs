//! Reports as one page that needs nothing else: the whole course with the algorithms explained, or some reports alone.

use super::table::cells;
use crate::{
    chart::page::{self, Section, Table},
    experiment::{Lesson, Report},
};

/// Returns a page of some reports.
pub fn page(reports: &[Report]) -> String {
    let sections: Vec<_> = reports.iter().map(section).collect();
    let title = match reports {
        [report] => report.title.as_str(),
        _ => "Rate limits, tried out",
    };
    page::write(title, intro(reports), &sections)
}

/// Returns a page that explains each algorithm, and then shows every report.
pub fn course(lessons: &[Lesson], reports: &[Report]) -> String {
    let mut sections = vec![Section {
        name: "how-to-read".to_owned(),
        title: "What a rate limiter does".to_owned(),
        text: HOW.map(str::to_owned).into(),
        tables: Vec::new(),
        charts: Vec::new(),
    }];
    sections.extend(lessons.iter().map(|lesson| Section {
        name: lesson.name.to_owned(),
        title: lesson.title.to_owned(),
        text: lesson.text.map(str::to_owned).into(),
        tables: Vec::new(),
        charts: vec![lesson.chart.clone()],
    }));
    sections.extend(reports.iter().map(section));
    page::write("How rate limits behave", intro(reports), &sections)
}

const INTRO: &str = "Every figure on this page was made by running the limiter itself on requests whose times are given, so \
                     that it comes out the same each time and on every machine. Published figures are those of two articles of \
                     November 2026.";

const INTRO_WITH_TRIALS: &str = "The figures on this page were made by running the limiter itself. Most are of requests whose times \
                                 are given, so that they come out the same each time and on every machine; what was tried \
                                 several times was tried in real time, on a real server, and how fast that was is this \
                                 machine's. Published figures are those of two articles of November 2026.";

fn intro(reports: &[Report]) -> &'static str {
    let tried = reports.iter().flat_map(|report| &report.rows).any(|row| row.trials.is_some());
    if tried { INTRO_WITH_TRIALS } else { INTRO }
}

const HOW: [&str; 3] = [
    "A rate limiter stands at a door and answers one question: may this caller go ahead now? It keeps a service from being \
     overrun by one client, and it holds callers to what they were promised, like 60 requests a minute.",
    "There are several ways to count, and they differ most when requests come in a hurry. Six of them follow. Each picture \
     shows the same requests against a limit of 5 in 10 seconds: the line is how many more may pass at that moment, and the \
     points are requests that passed or were denied.",
    "After them come experiments. Each asks one question, says what was done, and shows what happened.",
];

fn section(report: &Report) -> Section {
    let mut rows = cells(report);
    let columns = rows.remove(0);
    let paragraphs = [&report.question, &report.setting, &report.reading];
    let text = paragraphs.into_iter().filter(|text| !text.is_empty()).cloned().collect();
    let caption = format!("What passed and what did not: {}", report.title);
    Section {
        name: report.name.clone(),
        title: report.title.clone(),
        text,
        tables: vec![Table { caption, columns, rows }],
        charts: report.charts.clone(),
    }
}
