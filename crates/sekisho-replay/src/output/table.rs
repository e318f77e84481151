//! Reports as tables of text.

use std::fmt::Write as _;

use sekisho::Span;

use crate::experiment::{Extra, Figure, Report, Row, Trials};

/// How wide running text is.
const WIDTH: usize = 100;

/// Returns a list of named experiments, each with its question.
pub fn list(experiments: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, question) in experiments {
        for (number, line) in wrapped(question, WIDTH - 14).iter().enumerate() {
            let name = if number == 0 { name } else { "" };
            let _never_fails = writeln!(text, "  {name:<12}{line}");
        }
    }
    text
}

/// Returns a report for people, without its charts.
pub fn table(report: &Report) -> String {
    let mut text = format!("{}: {}\n", report.name, report.title);
    for paragraph in [&report.question, &report.setting] {
        if !paragraph.is_empty() {
            text += "\n";
            text += &block(paragraph);
        }
    }
    text.push('\n');
    let cells = cells(report);
    let width =
        |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..cells[0].len()).map(width).collect();
    for row in &cells {
        let mut line = String::from(" ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Names begin at the left, figures end at the right.
            let _never_fails = if column == 0 {
                write!(line, " {cell:<width$}")
            } else {
                write!(line, "  {cell:>width$}")
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    if !report.reading.is_empty() {
        text += "\n";
        text += &block(&report.reading);
    }
    text
}

/// Returns the heading and the rows.
pub(super) fn cells(report: &Report) -> Vec<Vec<String>> {
    let tried: Vec<_> =
        report.rows.iter().filter_map(|row| Some((row, row.trials.as_ref()?))).collect();
    if !tried.is_empty() {
        return cells_of_trials(&tried);
    }
    let published = report.rows.iter().any(|row| row.published.is_some());
    let extras = report.rows.first().map_or(&[][..], |row| &row.extras);
    let mut heading: Vec<String> =
        ["limit", "passed", "denied", "most in any window", "longest wait"]
            .map(str::to_owned)
            .into();
    heading.extend(extras.iter().map(|extra| extra.title.to_owned()));
    if published {
        heading.push("published".to_owned());
    }
    let mut rows = vec![heading];
    for row in &report.rows {
        let mut cells = vec![
            row.title(),
            row.passed.to_string(),
            row.denied.to_string(),
            row.most_in_window.map_or_else(|| "-".to_owned(), |most| most.to_string()),
            wait(row.longest_wait),
        ];
        let own = |extra: &Extra| {
            let same = row.extras.iter().find(|own| own.name == extra.name);
            same.map(|own| own.value.to_string()).unwrap_or_default()
        };
        cells.extend(extras.iter().map(own));
        if published {
            cells.push(beside(row));
        }
        rows.push(cells);
    }
    rows
}

/// Returns the heading and the rows of what was tried several times.
fn cells_of_trials(rows: &[(&Row, &Trials)]) -> Vec<Vec<String>> {
    let heading = [
        "limit",
        "trials",
        "fewest passed",
        "most passed",
        "trials over",
        "server calls",
        "decisions/s",
        "PING median",
        "published",
    ];
    let mut cells = vec![heading.map(str::to_owned).into()];
    for (row, trials) in rows {
        // What is ours has its name at the end of its limit.
        let pause = row.extras.iter().find(|extra| extra.name == "pause_ns");
        let name = match (pause, &row.method) {
            (None, _) | (_, None) if trials.at_once > 1 => {
                format!("{}, {} at once", row.limit, trials.at_once)
            }
            (None, _) | (_, None) => format!("{}, one by one", row.limit),
            (Some(Extra { value: 0, .. }), Some(method)) => method.clone(),
            (Some(pause), Some(method)) => {
                format!("{method}, {} between", Span::from_nanos(pause.value))
            }
        };
        cells.push(vec![
            name,
            trials.count.to_string(),
            trials.passed_min.to_string(),
            trials.passed_max.to_string(),
            trials.over.to_string(),
            trials.calls.map_or_else(|| "-".to_owned(), |calls| calls.to_string()),
            trials.per_second.to_string(),
            wait(trials.ping_median),
            beside(row),
        ]);
    }
    cells
}

/// Returns the published figure, what it is, and how far ours is from it.
fn beside(row: &Row) -> String {
    let Some(figure) = row.published else { return "-".to_owned() };
    let shown = match row.published_for {
        Figure::LongestWait => wait(Span::from_nanos(figure)),
        _ => figure.to_string(),
    };
    if row.published_for == Figure::AtMost {
        return format!("{} {shown}", row.published_for.as_str());
    }
    let same = if row.ours() == figure { "the same" } else { "DIFFERS" };
    format!("{shown} {}, {same}", row.published_for.as_str())
}

/// Returns a wait for people: from a second up, in whole milliseconds, rounded up.
fn wait(span: Span) -> String {
    match span.as_nanos() {
        0 => "-".to_owned(),
        ns if ns < 1_000_000_000 => span.to_string(),
        _ => Span::from_nanos(span.as_millis_ceil().saturating_mul(1_000_000)).to_string(),
    }
}

/// Returns a paragraph as lines that end.
fn block(paragraph: &str) -> String {
    wrapped(paragraph, WIDTH).join("\n") + "\n"
}

/// Breaks a paragraph into lines.
fn wrapped(paragraph: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in paragraph.split_ascii_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_broken_between_words() {
        assert_eq!(wrapped("a bc  def g", 4), ["a bc", "def", "g"]);
        assert_eq!(wrapped("longer-than-that a", 4), ["longer-than-that", "a"]);
    }
}
