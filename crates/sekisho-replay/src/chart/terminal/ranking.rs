//! One bar for each series, lying, with its name before and its value behind.

use super::{
    canvas::Canvas,
    panel,
    row::{Ink, Row},
    rule_legend,
};
use crate::chart::{
    plan::Plan,
    scale::{Scale, float, index, number},
    text,
};

/// Blocks that fill one to seven eighths of a character from the left.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
/// How many values the axis names.
const TICKS: usize = 6;
const RULE: char = '╎';

pub(super) fn draw(plan: &Plan, width: usize) -> Vec<Row> {
    let names: Vec<&str> = plan.series.iter().map(|drawn| drawn.name.as_str()).collect();
    let longest = names.iter().map(|name| text::width(name)).max().unwrap_or(0);
    // A name that is cut may look like another, so long names stand above their bars.
    let is_beside = longest <= width * 2 / 5;
    let gutter = if is_beside { longest } else { 0 };
    let values: Vec<f64> =
        plan.series.iter().filter_map(|drawn| Some(drawn.points.first()?.1)).collect();
    let after = values.iter().map(|value| text::width(&number(*value)) + 1).max().unwrap_or(0);
    // The longest bar still has room for its value.
    let room = (width - gutter - 2).saturating_sub(after).max(4);
    let scale = plan.y_scale(TICKS);
    let mut rows = Vec::new();
    for (data, name) in bars(plan, &values, &scale, (room, after)).rows().zip(names) {
        if !is_beside {
            rows.push(Row::of(Ink::Plain, &text::fit(name, width)));
        }
        let mut row = Row::of(Ink::Plain, &text::pad(if is_beside { name } else { "" }, gutter));
        row.push(Ink::Faint, " │");
        row.join(data);
        rows.push(row);
    }
    rows.extend(panel::bottom(&scale, gutter, room, true));
    let label = text::fit(&plan.y_label, width);
    if !label.is_empty() {
        let mut row = Row::default();
        row.pad((gutter + 2 + room).saturating_sub(text::width(&label)));
        row.push(Ink::Faint, &label);
        rows.push(row);
    }
    rows.extend(rule_legend(plan, width));
    rows
}

/// A row for each value, with the value behind its bar.
fn bars(plan: &Plan, values: &[f64], scale: &Scale, (room, after): (usize, usize)) -> Canvas {
    let mut canvas = Canvas::new(room + after, values.len());
    for (row, value) in values.iter().enumerate() {
        bar(&mut canvas, scale, room, (row, *value));
        for rule in &plan.rules {
            // A bar that ends at the rule ends with it.
            let column = index(scale.at(rule.value) * float(room) - 0.01, room - 1);
            canvas.base(column, row, RULE, Ink::Rule);
        }
        let end = index((scale.at(value.max(0.0)) * float(room)).ceil(), room);
        for (at, letter) in number(*value).chars().enumerate() {
            canvas.mark(end + 1 + at, row, letter, Ink::Plain);
        }
    }
    canvas
}

fn bar(canvas: &mut Canvas, scale: &Scale, room: usize, (row, value): (usize, f64)) {
    let full = float(room * 8);
    let eighths = |value: f64| index((scale.at(value) * full).round(), room * 8);
    let (zero, end) = (eighths(0.0), eighths(value));
    let end = if end == zero && value > 0.0 { zero + 1 } else { end };
    let (low, high) = (zero.min(end), zero.max(end));
    for column in 0..room {
        let left = column * 8;
        let filled = high.min(left + 8).saturating_sub(low.max(left));
        let glyph = match filled {
            0 => continue,
            8 => '█',
            filled if low <= left => EIGHTHS[filled - 1],
            _ => '▐',
        };
        canvas.base(column, row, glyph, Ink::Series(row));
    }
}
