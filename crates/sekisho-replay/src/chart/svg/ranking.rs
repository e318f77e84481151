//! One bar for each series, lying, with its name before or above it and its value behind.

use super::{View, columns, legend, marks, panel, wide};
use crate::chart::{
    markup::{Markup, length},
    plan::Plan,
    scale::{Scale, float, number},
    text,
};

const SIZE: f64 = 13.0;
const BAR: f64 = 20.0;
const TICKS: usize = 6;

/// Where the bars lie.
struct Place {
    left: f64,
    width: f64,
    top: f64,
    /// From one bar to the next.
    step: f64,
    /// Names stand before the bars, not above them.
    is_beside: bool,
}

/// Draws the bars, and returns where they end.
pub(super) fn draw(body: &mut Markup, plan: &Plan, view: &View, top: f64) -> f64 {
    let scale = plan.y_scale(TICKS);
    let place = place(plan, view, top);
    let bottom = place.top + place.step * float(plan.series.len()) + 2.0;
    let across = |value: f64| place.left + scale.at(value) * place.width;
    axis(body, &scale, &place, bottom);
    let bar = |at: usize| {
        let value = plan.series[at].points.first().map_or(0.0, |point| point.1);
        let y = place.top + place.step * float(at) + (place.step - BAR) - 4.0;
        let (zero, end) = (across(0.0), across(value));
        (value, panel::Rect { x: zero.min(end), y, width: (end - zero).abs(), height: BAR })
    };
    for at in 0..plan.series.len() {
        marks::bar(body, plan, view, (at, bar(at).1));
    }
    for (at, rule) in plan.rules.iter().enumerate() {
        let x = length(across(rule.value));
        marks::rule(
            body,
            &[("x1", &x), ("x2", &x), ("y1", &length(place.top - 4.0)), ("y2", &length(bottom))],
        );
        let y = length(place.top - 9.0 - 14.0 * float(at));
        body.element(
            "text",
            &[("class", "rule-name middle"), ("x", &x), ("y", &y)],
            &legend::rule_name(rule),
        );
    }
    for (at, drawn) in plan.series.iter().enumerate() {
        let (value, rect) = bar(at);
        name(body, &drawn.name, &place, rect.y);
        let (x, y) = (length(rect.x + rect.width + 7.0), length(rect.y + 14.5));
        body.element("text", &[("class", "value halo"), ("x", &x), ("y", &y)], &number(value));
    }
    let right = length(place.left + place.width);
    let label = [("class", "label end"), ("x", right.as_str()), ("y", &length(bottom + 36.0))];
    body.element("text", &label, &plan.y_label);
    bottom + 42.0
}

fn place(plan: &Plan, view: &View, top: f64) -> Place {
    let longest = plan.series.iter().map(|drawn| wide(&drawn.name, SIZE)).fold(0.0, f64::max);
    let inner = view.width - 2.0 * view.margin();
    // A name that is cut may look like another, so long names stand above their bars.
    let is_beside = longest < inner * 0.4;
    let gutter = if is_beside { longest + 14.0 } else { 5.0 };
    let values = plan.series.iter().filter_map(|drawn| drawn.points.first());
    let after = values.map(|point| wide(&number(point.1), SIZE)).fold(0.0, f64::max) + 14.0;
    Place {
        left: view.margin() + gutter,
        width: inner - gutter - after,
        top: top + 8.0 + 14.0 * float(plan.rules.len()),
        step: if is_beside { 30.0 } else { 48.0 },
        is_beside,
    }
}

fn axis(body: &mut Markup, scale: &Scale, place: &Place, bottom: f64) {
    let (from, to) = (length(place.top - 4.0), length(bottom));
    for tick in panel::fitting(scale, place.width) {
        let x = length(place.left + tick.place * place.width);
        body.leaf("line", &[("class", "grid"), ("x1", &x), ("x2", &x), ("y1", &from), ("y2", &to)]);
        let spot = [("class", "tick middle"), ("x", x.as_str()), ("y", &length(bottom + 17.0))];
        body.element("text", &spot, &tick.label);
    }
    let zero = length(place.left + scale.at(0.0) * place.width);
    body.leaf(
        "line",
        &[("class", "axis"), ("x1", &zero), ("x2", &zero), ("y1", &from), ("y2", &to)],
    );
}

fn name(body: &mut Markup, name: &str, place: &Place, y: f64) {
    if place.is_beside {
        let spot = [("class", "end"), ("x", &length(place.left - 10.0)), ("y", &length(y + 14.5))];
        body.element("text", &spot, name);
    } else {
        let name = text::fit(name, columns(place.width, SIZE));
        body.element(
            "text",
            &[("class", "halo"), ("x", &length(place.left)), ("y", &length(y - 6.0))],
            &name,
        );
    }
}
