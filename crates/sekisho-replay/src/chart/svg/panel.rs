//! One panel: axes, bars, rules and lines between them.

use super::{COLUMNS_MAX, View, legend, marks, wide};
use crate::chart::{
    Shape,
    markup::{Markup, length},
    plan::{Arrangement, Drawn, Plan, tallest, thin},
    scale::{Scale, Tick, float, index},
};

/// More lines than this make a grey tangle.
const GHOSTS_MAX: usize = 8;
pub(super) const NO_DATA: &str = "no data";
/// The narrowest bar when there are too many to draw each, and the widest.
const BAR_MIN: f64 = 1.5;
const BAR_MAX: f64 = 64.0;
/// Half of a point's mark.
const POINT: f64 = 4.0;
const TICK_SIZE: f64 = 12.0;
/// About how many heights are named; in a small panel only some of them.
const TICKS: usize = 6;
/// Points at least so far apart have a mark each; a denser line has a few along it.
const MARKED_MIN: f64 = 36.0;
const MARKS_ALONG: usize = 6;

/// The place of a panel with everything that belongs to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// The place of the data alone, and its scales.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    x: Scale,
    y: Scale,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    data: Rect,
    is_small: bool,
}

impl Frame {
    pub(super) fn new(plan: &Plan, room: &Room, is_small: bool) -> Self {
        let (x, y) = (plan.x_scale(), plan.y_scale(TICKS));
        let mut y_ticks = y.ticks(TICKS);
        if is_small {
            let steps = y_ticks.len().saturating_sub(1);
            let fitting =
                (1..=steps).find(|every| steps.is_multiple_of(*every) && steps / every <= 3);
            // Five steps cannot be divided, and their ends alone say little.
            let every = fitting.filter(|every| steps != 5 || *every < steps).unwrap_or(1);
            y_ticks = y_ticks.into_iter().step_by(every).collect();
        }
        // The last tick may stand at the very end, with half of its label behind it.
        let behind =
            x.ticks(TICKS).last().map_or(0.0, |tick| wide(&tick.label, TICK_SIZE) / 2.0).max(10.0);
        let gutter =
            y_ticks.iter().map(|tick| wide(&tick.label, TICK_SIZE)).fold(0.0, f64::max) + 8.0;
        // Room above for a rule's name, below for ticks, at the right for half a label.
        let data = Rect {
            x: room.left + gutter,
            y: room.top + if is_small { 10.0 } else { 26.0 },
            width: room.width - gutter - behind,
            height: room.height - if is_small { 32.0 } else { 50.0 },
        };
        Self { x_ticks: fitting(&x, data.width), x, y, y_ticks, data, is_small }
    }

    fn across(&self, x: f64) -> f64 {
        self.data.x + self.x.at(x) * self.data.width
    }

    fn up(&self, y: f64) -> f64 {
        self.height(self.y.at(y))
    }

    fn height(&self, place: f64) -> f64 {
        self.data.y + (1.0 - place) * self.data.height
    }
}

/// As many ticks as have room for their labels.
pub(super) fn fitting(scale: &Scale, width: f64) -> Vec<Tick> {
    let fits = |ticks: &Vec<Tick>| {
        ticks.windows(2).all(|pair| {
            let [left, right] =
                [&pair[0].label, &pair[1].label].map(|label| wide(label, TICK_SIZE));
            let labels = f64::midpoint(left, right);
            (pair[1].place - pair[0].place) * width >= labels + 26.0
        })
    };
    (1..=8).rev().map(|wanted| scale.ticks(wanted)).find(fits).unwrap_or_default()
}

pub(super) fn draw(
    body: &mut Markup,
    plan: &Plan,
    view: &View,
    (frame, series): (&Frame, &[usize]),
) {
    axes(body, frame, plan.has_data());
    if series.iter().all(|&at| plan.series[at].points.is_empty()) {
        let (x, y) =
            (frame.data.x + frame.data.width / 2.0, frame.data.y + frame.data.height / 2.0 + 4.0);
        body.element(
            "text",
            &[("class", "halo middle"), ("x", &length(x)), ("y", &length(y))],
            NO_DATA,
        );
    }
    if has_ghosts(plan) {
        // The class stands here, not on what is used: style sheets do not reach into it.
        let (href, place) = (format!("#{}", view.id("all")), shift(frame));
        body.leaf("use", &[("class", "ghost"), ("href", &href), ("transform", &place)]);
    }
    bars(body, plan, view, (frame, series));
    rules(body, plan, frame);
    for &at in series {
        lines(body, plan, (frame, at));
    }
    if !frame.is_small {
        rule_names(body, plan, frame);
    }
}

/// All lines, thin and grey, once; each panel shows them behind its own.
pub(super) fn ghosts(body: &mut Markup, plan: &Plan, view: &View, frame: &Frame) {
    if !has_ghosts(plan) {
        return;
    }
    let origin = Frame { data: Rect { x: 0.0, y: 0.0, ..frame.data }, ..frame.clone() };
    body.open("defs", &[]);
    body.open("g", &[("id", &view.id("all"))]);
    for drawn in plan.series.iter().filter(|drawn| drawn.is_line() && !drawn.points.is_empty()) {
        body.leaf("path", &[("d", &path(drawn, &origin))]);
    }
    body.close();
    body.close();
}

fn has_ghosts(plan: &Plan) -> bool {
    plan.arrangement == Arrangement::Apart && plan.series.len() <= GHOSTS_MAX
}

fn shift(frame: &Frame) -> String {
    format!("translate({} {})", length(frame.data.x), length(frame.data.y))
}

fn axes(body: &mut Markup, frame: &Frame, has_x_ticks: bool) {
    let data = &frame.data;
    let (left, right) = (length(data.x), length(data.x + data.width));
    for tick in &frame.y_ticks {
        let y = frame.height(tick.place);
        let line = [
            ("class", "grid"),
            ("x1", &left),
            ("x2", &right),
            ("y1", &length(y)),
            ("y2", &length(y)),
        ];
        body.leaf("line", &line);
        let place = [("class", "tick end"), ("x", &length(data.x - 8.0)), ("y", &length(y + 4.0))];
        body.element("text", &place, &tick.label);
    }
    let bottom = data.y + data.height;
    for tick in frame.x_ticks.iter().filter(|_| has_x_ticks) {
        let x = length(data.x + tick.place * data.width);
        let (from, to) = (length(bottom), length(bottom + 5.0));
        body.leaf("line", &[("class", "axis"), ("x1", &x), ("x2", &x), ("y1", &from), ("y2", &to)]);
        let place = [("class", "tick middle"), ("x", x.as_str()), ("y", &length(bottom + 18.0))];
        body.element("text", &place, &tick.label);
    }
    let zero = length(if frame.y.low() < 0.0 { frame.up(0.0) } else { bottom });
    body.leaf(
        "line",
        &[("class", "axis"), ("x1", &left), ("x2", &right), ("y1", &zero), ("y2", &zero)],
    );
}

fn rules(body: &mut Markup, plan: &Plan, frame: &Frame) {
    let (left, right) = (frame.data.x, frame.data.x + frame.data.width);
    for rule in &plan.rules {
        let y = frame.up(rule.value);
        let line =
            [("x1", &length(left)), ("x2", &length(right)), ("y1", &length(y)), ("y2", &length(y))];
        marks::rule(body, &line.map(|(name, value)| (name, value.as_str())));
    }
}

/// The names of the rules, above everything.
fn rule_names(body: &mut Markup, plan: &Plan, frame: &Frame) {
    let (left, right) = (frame.data.x, frame.data.x + frame.data.width);
    for (at, rule) in plan.rules.iter().enumerate() {
        let y = frame.up(rule.value);
        // Names take turns at the right and the left, so that two near rules do not write over each other.
        let (x, class) = if at % 2 == 0 {
            (right, "rule-name halo end")
        } else {
            (left + 2.0, "rule-name halo")
        };
        let place = [("class", class), ("x", &length(x)), ("y", &length(y - 7.0))];
        body.element("text", &place, &legend::rule_name(rule));
    }
}

fn bars(body: &mut Markup, plan: &Plan, view: &View, (frame, series): (&Frame, &[usize])) {
    let is_bars = |at: &usize| plan.series[*at].shape == Shape::Bars;
    let bars: Vec<usize> = series.iter().copied().filter(is_bars).collect();
    let slot = frame.data.width * plan.slot / (frame.x.high() - frame.x.low());
    let each = (slot * 0.76 / float(bars.len().max(1))).clamp(BAR_MIN, BAR_MAX);
    for (place, &at) in bars.iter().enumerate() {
        let left = (float(place) - float(bars.len()) / 2.0) * each;
        let points = tallest(
            &plan.series[at].points,
            &frame.x,
            index(frame.data.width / BAR_MIN, COLUMNS_MAX),
        );
        for (x, y) in points {
            let (zero, end) = (frame.up(0.0), frame.up(y));
            let place = Rect {
                x: frame.across(x) + left,
                y: zero.min(end),
                width: if each > 4.0 { each - 1.0 } else { each },
                height: (zero - end).abs(),
            };
            marks::bar(body, plan, view, (at, place));
        }
    }
}

fn lines(body: &mut Markup, plan: &Plan, (frame, at): (&Frame, usize)) {
    let drawn = &plan.series[at];
    let spot = |(x, y): &(f64, f64)| (frame.across(*x), frame.up(*y));
    if drawn.shape == Shape::Points {
        for point in &thin(&drawn.points, &frame.x, index(frame.data.width / POINT, COLUMNS_MAX)) {
            marks::mark(body, at, spot(point), "point");
        }
    }
    if !drawn.is_line() || drawn.points.is_empty() {
        return;
    }
    let class = format!("line {} {}", marks::colour(at), marks::dash(plan, at));
    body.leaf("path", &[("class", class.trim()), ("d", &path(drawn, frame))]);
    let is_loose =
        |pair: &[(f64, f64)]| frame.across(pair[1].0) - frame.across(pair[0].0) >= MARKED_MIN;
    let marked = if drawn.points.len() == 1 {
        drawn.points.clone()
    } else if frame.is_small || !marks::has_mark(plan, at) {
        Vec::new()
    } else if drawn.points.windows(2).all(is_loose) {
        drawn.points.clone()
    } else if plan.has_other_lines() {
        along(drawn, frame, at)
    } else {
        Vec::new()
    };
    for point in &marked {
        marks::mark(body, at, spot(point), "mark");
    }
}

/// A few places along a line; those of several series take turns.
fn along(drawn: &Drawn, frame: &Frame, series: usize) -> Vec<(f64, f64)> {
    let part = |mark: usize| (float(mark) + 0.2 + 0.2 * float(series % 4)) / float(MARKS_ALONG);
    let wanted =
        (0..MARKS_ALONG).map(|mark| frame.x.low() + (frame.x.high() - frame.x.low()) * part(mark));
    let path = drawn.path(frame.x.high());
    let height = |x: f64| {
        let pair = path.windows(2).find(|pair| (pair[0].0..=pair[1].0).contains(&x))?;
        let (from, to) = (pair[0], pair[1]);
        let part = if to.0 > from.0 { (x - from.0) / (to.0 - from.0) } else { 0.0 };
        Some((x, from.1 + (to.1 - from.1) * part))
    };
    wanted.filter_map(height).collect()
}

fn path(drawn: &Drawn, frame: &Frame) -> String {
    let corners = drawn.path(frame.x.high());
    let mut out = String::new();
    for (x, y) in thin(&corners, &frame.x, index(frame.data.width, COLUMNS_MAX)) {
        let command = if out.is_empty() { "M" } else { "L" };
        out.extend([command, &length(frame.across(x)), " ", &length(frame.up(y))]);
    }
    out
}
