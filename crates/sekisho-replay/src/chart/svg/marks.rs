//! What tells series apart besides colour: the shapes of marks, the dashes of lines, the hatching of bars.

use super::{View, panel::Rect};
use crate::chart::{
    Shape,
    markup::{Markup, length},
    plan::{Arrangement, Plan},
};

/// How many colours and dashes the style sheet names.
const COLOURS: usize = 8;
const DASHES: usize = 6;
/// The outlines of marks around nought. Their number has no divisor in common with that of the colours, so
/// that a colour comes with another mark each time.
const MARKS: [&str; 7] = [
    "M4 0A4 4 0 1 1 -4 0A4 4 0 1 1 4 0Z",
    "M0 -5L4.8 3.6L-4.8 3.6Z",
    "M-3.7 -3.7H3.7V3.7H-3.7Z",
    "M0 -5.2L5.2 0L0 5.2L-5.2 0Z",
    "M0 5L4.8 -3.6L-4.8 -3.6Z",
    "M-1.6 -5H1.6V-1.6H5V1.6H1.6V5H-1.6V1.6H-5V-1.6H-1.6Z",
    "M0 -5.6L1.5 -1.9L5.4 -1.6L2.4 0.9L3.4 4.7L0 2.6L-3.4 4.7L-2.4 0.9L-5.4 -1.6L-1.5 -1.9Z",
];
/// The lines of the hatchings, in a square of eight.
const HATCHES: [&str; 5] = [
    "M-2 2L2 -2M0 8L8 0M6 10L10 6",
    "M0 2H8M0 6H8",
    "M-2 6L2 10M0 0L8 8M6 -2L10 2",
    "M2 0V8M6 0V8",
    "M0 0L8 8M8 0L0 8",
];

/// The class of a series' colour.
pub(super) fn colour(series: usize) -> String {
    format!("s{}", series % COLOURS)
}

/// The classes of a line's dashes. The first line is the thickest, so that others can lie on it and both be seen.
pub(super) fn dash(plan: &Plan, series: usize) -> String {
    match (plan.arrangement, series) {
        (Arrangement::Together, 0) => "first".to_owned(),
        (Arrangement::Together, _) => format!("d{}", series % DASHES),
        _ => String::new(),
    }
}

/// Whether a line carries marks: not when it is the only one and goes through points, which would look alike.
pub(super) fn has_mark(plan: &Plan, series: usize) -> bool {
    let has_points = plan.series.iter().any(|drawn| drawn.shape == Shape::Points);
    plan.has_other_lines() || !has_points || plan.series[series].points.len() == 1
}

/// Draws a mark around a point.
pub(super) fn mark(body: &mut Markup, series: usize, (x, y): (f64, f64), class: &str) {
    let class = format!("{class} {}", colour(series));
    let place = format!("translate({} {})", length(x), length(y));
    body.leaf(
        "path",
        &[("class", &class), ("transform", &place), ("d", MARKS[series % MARKS.len()])],
    );
}

/// Draws a rule in a gap, so that it is seen on a bar of any colour.
pub(super) fn rule(body: &mut Markup, ends: &[(&str, &str); 4]) {
    for class in ["gap", "rule"] {
        let mut attributes = vec![("class", class)];
        attributes.extend(ends);
        body.leaf("line", &attributes);
    }
}

/// Draws a bar: full for the first series of bars, hatched for the others.
pub(super) fn bar(body: &mut Markup, plan: &Plan, view: &View, (series, place): (usize, Rect)) {
    let sides = [place.x, place.y, place.width.max(0.5), place.height.max(0.0)].map(length);
    let mut shape = vec![
        ("x", sides[0].as_str()),
        ("y", &sides[1]),
        ("width", &sides[2]),
        ("height", &sides[3]),
    ];
    let hatch = hatch(plan, series);
    let class = format!("bar {} {}", if hatch.is_none() { "full" } else { "wash" }, colour(series));
    let fill = format!("url(#{})", view.id(&format!("hatch-{series}")));
    shape.push(("class", &class));
    body.leaf("rect", &shape);
    if hatch.is_some() {
        shape.pop();
        shape.push(("fill", &fill));
        body.leaf("rect", &shape);
    }
}

/// Defines the hatchings that the bars use.
pub(super) fn define(body: &mut Markup, plan: &Plan, view: &View) {
    let hatched = (0..plan.series.len()).filter_map(|at| Some((at, hatch(plan, at)?)));
    for (at, lines) in hatched {
        let id = view.id(&format!("hatch-{at}"));
        body.open(
            "pattern",
            &[("id", &id), ("width", "8"), ("height", "8"), ("patternUnits", "userSpaceOnUse")],
        );
        body.leaf("path", &[("class", &format!("hatch {}", colour(at))), ("d", lines)]);
        body.close();
    }
}

/// The hatching of a series of bars that is not the first and shares its place.
fn hatch(plan: &Plan, series: usize) -> Option<&'static str> {
    let is_bars = |at: &usize| plan.series[*at].shape == Shape::Bars;
    let before = (0..series).filter(is_bars).count();
    let is_shared = plan.arrangement == Arrangement::Together && is_bars(&series);
    (is_shared && before > 0).then(|| HATCHES[(before - 1) % HATCHES.len()])
}
