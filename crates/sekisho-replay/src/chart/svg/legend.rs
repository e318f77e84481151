//! The names: in a row above the data, or one above each panel.

use super::{View, columns, marks, panel, wide};
use crate::chart::{
    Shape,
    markup::{Markup, length},
    plan::{Plan, Rule},
    scale::number,
    text,
};

/// How wide the sample of a line is, and of anything else.
const SAMPLE_LINE: f64 = 32.0;
const SAMPLE: f64 = 15.0;
/// Between a sample and its name, and between a name and the next sample.
const SPACE: f64 = 7.0;
const GAP: f64 = 22.0;
const LINE: f64 = 21.0;
/// The most lines of a panel's name.
const LINES_MAX: usize = 3;
const SIZE: f64 = 13.0;

/// Writes samples and names of all series, and returns where they end.
pub(super) fn draw(body: &mut Markup, plan: &Plan, view: &View, top: f64) -> f64 {
    let (left, right) = (view.margin(), view.width - view.margin());
    let (mut x, mut y) = (left, top + LINE / 2.0);
    for (at, drawn) in plan.series.iter().enumerate() {
        let sample_width = if drawn.is_line() { SAMPLE_LINE } else { SAMPLE };
        let before = sample_width + SPACE;
        let name = text::fit(&drawn.name, columns(right - left - before, SIZE));
        let needed = before + wide(&name, SIZE);
        if x > left && x + needed > right {
            (x, y) = (left, y + LINE);
        }
        sample(body, plan, view, (at, x, y));
        body.element("text", &[("x", &length(x + before)), ("y", &length(y + 4.5))], &name);
        x += needed + GAP;
    }
    if plan.series.is_empty() { top } else { y + LINE / 2.0 + 10.0 }
}

/// Writes samples and names of the rules that go through all panels, in a line from the right.
pub(super) fn rules(body: &mut Markup, plan: &Plan, view: &View, y: f64) {
    let mut right = view.width - view.margin();
    for rule in plan.rules.iter().rev() {
        let (from, to, height) = (length(right - SAMPLE_LINE), length(right), length(y - 4.0));
        body.leaf(
            "line",
            &[("class", "rule"), ("x1", &from), ("x2", &to), ("y1", &height), ("y2", &height)],
        );
        right -= SAMPLE_LINE + SPACE;
        let name = rule_name(rule);
        body.element(
            "text",
            &[("class", "rule-name end"), ("x", &length(right)), ("y", &length(y))],
            &name,
        );
        right -= wide(&name, SIZE) + GAP;
    }
}

/// Writes the name of one panel at the top of its place, and returns in how many lines.
pub(super) fn panel_name(
    body: &mut Markup,
    plan: &Plan,
    series: usize,
    (left, top, width): (f64, f64, f64),
) -> usize {
    let drawn = &plan.series[series];
    if drawn.shape == Shape::Bars {
        let class = format!("bar full {}", marks::colour(series));
        let (x, y) = (length(left), length(top + 1.0));
        body.leaf(
            "rect",
            &[("class", &class), ("x", &x), ("y", &y), ("width", "10"), ("height", "10")],
        );
    } else {
        marks::mark(body, series, (left + 6.0, top + 6.0), "point");
    }
    let mut lines = text::wrap(&drawn.name, columns(width - 18.0, SIZE));
    if lines.len() > LINES_MAX {
        let rest = lines.split_off(LINES_MAX - 1).join(" ");
        lines.push(text::fit(&rest, columns(width - 18.0, SIZE)));
    }
    for (at, line) in lines.iter().enumerate() {
        let y = length(top + 10.5 + 16.0 * crate::chart::scale::float(at));
        body.element("text", &[("class", "name"), ("x", &length(left + 18.0)), ("y", &y)], line);
    }
    lines.len()
}

/// `limit 60`.
pub(super) fn rule_name(rule: &Rule) -> String {
    format!("{} {}", rule.name, number(rule.value)).trim().to_owned()
}

fn sample(body: &mut Markup, plan: &Plan, view: &View, (at, x, y): (usize, f64, f64)) {
    let colour = marks::colour(at);
    match plan.series[at].shape {
        Shape::Bars => {
            let place = panel::Rect { x, y: y - 6.0, width: SAMPLE, height: 12.0 };
            marks::bar(body, plan, view, (at, place));
        }
        Shape::Points => marks::mark(body, at, (x + SAMPLE / 2.0, y), "point"),
        Shape::Line | Shape::Steps | Shape::Rule => {
            let class = format!("line {colour} {}", marks::dash(plan, at));
            let (from, to, y_text) = (length(x), length(x + SAMPLE_LINE), length(y));
            let line = [("x1", from.as_str()), ("x2", &to), ("y1", &y_text), ("y2", &y_text)];
            let mut attributes = vec![("class", class.as_str())];
            attributes.extend(line);
            body.leaf("line", &attributes);
            if marks::has_mark(plan, at) {
                marks::mark(body, at, (x + SAMPLE_LINE / 2.0, y), "mark");
            }
        }
    }
}
