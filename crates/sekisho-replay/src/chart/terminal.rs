//! Charts for a terminal: a few rows of Unicode that also read without colour, on paper and in a log.

mod canvas;
mod panel;
mod ranking;
mod row;

#[cfg(test)]
mod tests;

use self::{
    panel::Frame,
    row::{Ink, Row},
};
use super::{
    Chart, Shape,
    plan::{Arrangement, Plan},
    scale::number,
    text,
};

/// The narrowest drawing.
const WIDTH_MIN: usize = 40;
/// From here on small panels stand in two columns.
const WIDTH_TWO: usize = 72;
/// More lines than this over one another are a tangle.
const TOGETHER_MAX: usize = 3;
/// About the width of the axis at the left.
const BESIDE: usize = 8;
/// Between two panels.
const GAP: usize = 3;
/// One for each series; more series stand in their own panels, each with its name.
const MARKS: [char; 12] = ['●', '▲', '■', '◆', '○', '△', '□', '◇', '★', '✚', '✖', '▼'];
const FILLS: [char; 4] = ['█', '░', '▓', '▒'];
/// A line that is the only one needs no mark.
const LINE: char = '─';
const RULE: char = '╌';

/// Draws a chart in at most `width` columns, which are at least 40. Without `colour` there is nothing but text.
///
/// ```
/// use sekisho_replay::chart::{Axis, Chart, Series, Shape, terminal};
///
/// let axis = |label: &str, unit: &str| Axis { label: label.to_owned(), unit: unit.to_owned() };
/// let bar = |name: &str, height| Series { name: name.to_owned(), shape: Shape::Bars, points: vec![(0.0, height)] };
/// let chart = Chart {
///     name: "boundary".to_owned(),
///     title: "Admitted around the edge of a minute".to_owned(),
///     caption: String::new(),
///     x: axis("", ""),
///     y: axis("requests", ""),
///     series: vec![bar("fixed-window", 120.0), bar("sliding-log", 60.0)],
/// };
/// let drawn = terminal::draw(&chart, 60, false);
/// assert!(drawn.lines().any(|line| line.starts_with("fixed-window │████") && line.ends_with("█ 120")));
/// ```
pub fn draw(chart: &Chart, width: usize, colour: bool) -> String {
    let width = width.max(WIDTH_MIN);
    let plan = Plan::new(chart, TOGETHER_MAX, width - BESIDE);
    let mut rows = heading(&plan, width);
    match plan.arrangement {
        Arrangement::Ranking => rows.extend(ranking::draw(&plan, width)),
        Arrangement::Together => {
            let all: Vec<usize> = (0..plan.series.len()).collect();
            let frame = Frame { width, is_small: false, has_x_labels: true };
            rows.extend(y_label(&plan, width));
            rows.extend(panel::draw(&plan, &frame, &all));
            rows.extend(x_label(&plan, width));
            rows.extend(legend(&plan, width));
        }
        Arrangement::Apart => {
            rows.extend(y_label(&plan, width));
            rows.extend(apart(&plan, width));
            rows.extend(x_label(&plan, width));
            rows.extend(rule_legend(&plan, width));
        }
    }
    row::paint(&rows, colour)
}

/// The sign of a series in a drawing and in the legend.
fn sign(plan: &Plan, series: usize) -> char {
    let drawn = &plan.series[series];
    if drawn.is_line() && !plan.has_other_lines() && drawn.points.len() != 1 {
        return LINE;
    }
    if drawn.shape != Shape::Bars {
        return MARKS[series % MARKS.len()];
    }
    let is_bars = |at: &usize| plan.series[*at].shape == Shape::Bars;
    if plan.arrangement == Arrangement::Together {
        FILLS[(0..series).filter(is_bars).count() % FILLS.len()]
    } else {
        FILLS[0]
    }
}

fn heading(plan: &Plan, width: usize) -> Vec<Row> {
    let title = text::wrap(&plan.title, width).into_iter().map(|line| Row::of(Ink::Strong, &line));
    let caption =
        text::wrap(&plan.caption, width).into_iter().map(|line| Row::of(Ink::Plain, &line));
    title.chain(caption).chain([Row::default()]).collect()
}

fn y_label(plan: &Plan, width: usize) -> Option<Row> {
    (!plan.y_label.is_empty()).then(|| Row::of(Ink::Faint, &text::fit(&plan.y_label, width)))
}

fn x_label(plan: &Plan, width: usize) -> Option<Row> {
    let label = text::fit(&plan.x_label, width);
    let before = " ".repeat(width - text::width(&label));
    (!label.is_empty()).then(|| Row::of(Ink::Faint, &(before + &label)))
}

fn apart(plan: &Plan, width: usize) -> Vec<Row> {
    let columns = if width >= WIDTH_TWO { 2 } else { 1 };
    let each = (width - GAP * (columns - 1)) / columns;
    let count = plan.series.len();
    let all: Vec<usize> = (0..count).collect();
    let mut rows = Vec::new();
    for group in all.chunks(columns) {
        let titles: Vec<Vec<Row>> = group.iter().map(|&at| panel_title(plan, each, at)).collect();
        let lines = titles.iter().map(Vec::len).max().unwrap_or(0);
        let panels = group.iter().zip(titles).map(|(&at, mut title)| {
            let frame = Frame { width: each, is_small: true, has_x_labels: at + columns >= count };
            title.resize(lines, Row::default());
            title.extend(panel::draw(plan, &frame, &[at]));
            title
        });
        rows.extend(side_by_side(&panels.collect::<Vec<_>>(), each + GAP));
    }
    rows
}

fn side_by_side(panels: &[Vec<Row>], width: usize) -> Vec<Row> {
    let height = panels.iter().map(Vec::len).max().unwrap_or(0);
    let row = |at: usize| {
        let mut joined = Row::default();
        for (column, panel) in panels.iter().enumerate() {
            joined.pad(column * width);
            joined.join(panel.get(at).cloned().unwrap_or_default());
        }
        joined
    };
    (0..height).map(row).collect()
}

/// The mark and the name of one panel, in at most two lines.
fn panel_title(plan: &Plan, width: usize, series: usize) -> Vec<Row> {
    let mut lines = text::wrap(&plan.series[series].name, width - 2);
    if lines.len() > 2 {
        let rest = lines.split_off(1).join(" ");
        lines.push(text::fit(&rest, width - 2));
    }
    let mut title = vec![Row::of(Ink::Series(series), &sign(plan, series).to_string())];
    title.resize(lines.len().max(1), Row::of(Ink::Plain, " "));
    for (row, line) in title.iter_mut().zip(&lines) {
        row.push(Ink::Plain, " ");
        row.push(Ink::Strong, line);
    }
    title
}

/// The names of all series and rules, as many in a row as fit.
fn legend(plan: &Plan, width: usize) -> Vec<Row> {
    let series = plan
        .series
        .iter()
        .enumerate()
        .map(|(at, drawn)| (Ink::Series(at), sign(plan, at).to_string(), drawn.name.clone()));
    entries(series.chain(rules(plan)), width)
}

fn rule_legend(plan: &Plan, width: usize) -> Vec<Row> {
    entries(rules(plan), width)
}

fn rules(plan: &Plan) -> impl Iterator<Item = (Ink, String, String)> + '_ {
    let sign = if plan.arrangement == Arrangement::Ranking { '╎' } else { RULE };
    plan.rules.iter().map(move |rule| {
        let sign = if sign == RULE { format!("{RULE}{RULE}") } else { sign.to_string() };
        (Ink::Rule, sign, format!("{} = {}", rule.name, number(rule.value)))
    })
}

fn entries(entries: impl Iterator<Item = (Ink, String, String)>, width: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (ink, sign, name) in entries {
        let name = text::fit(&name, width - text::width(&sign) - 1);
        let needed = text::width(&sign) + 1 + text::width(&name);
        let row = match rows.last_mut() {
            Some(row) if row.width() + GAP + needed <= width => {
                row.pad(row.width() + GAP);
                row
            }
            _ => rows.push_mut(Row::default()),
        };
        row.push(ink, &sign);
        row.push(Ink::Plain, " ");
        row.push(Ink::Plain, &name);
    }
    rows
}
