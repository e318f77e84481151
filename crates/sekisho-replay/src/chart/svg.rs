//! Charts as SVG: one file without scripts, fonts or links, for light and dark, that a screen reader can name.

mod legend;
mod marks;
mod panel;
mod ranking;

#[cfg(test)]
mod tests;

use self::panel::{Frame, Room};
use super::{
    Chart,
    markup::{Markup, length},
    plan::{Arrangement, Plan},
    scale::{float, index},
    text,
};

/// The style sheet of every chart.
pub(super) const STYLE: &str = include_str!("svg/style.css");

/// More lines than this over one another are a tangle.
const TOGETHER_MAX: usize = 4;
/// The narrowest bar beside another.
const BAR_MIN: f64 = 4.0;
const COLUMNS_MAX: usize = 1_000;
const WIDE: f64 = 720.0;
const NARROW: f64 = 340.0;
/// About the width of a small letter, in parts of its size.
const LETTER: f64 = 0.58;
const MARGIN: f64 = 16.0;
const GAP: f64 = 24.0;

/// Where a drawing will be looked at.
#[derive(Clone, Debug)]
pub(super) struct View {
    width: f64,
    /// Begins every id, so that drawings on one page do not mix.
    prefix: String,
    /// A file of its own brings its style, its background and its heading.
    is_alone: bool,
}

impl View {
    /// For a column of text on a page.
    pub(super) fn wide(prefix: String) -> Self {
        Self { width: WIDE - 2.0 * MARGIN, prefix, is_alone: false }
    }

    /// For the screen of a phone.
    pub(super) fn narrow(prefix: String) -> Self {
        Self { width: NARROW, prefix, is_alone: false }
    }

    fn is_narrow(&self) -> bool {
        self.width <= NARROW
    }

    fn margin(&self) -> f64 {
        if self.is_alone { MARGIN } else { 0.0 }
    }

    /// An id of this drawing only.
    fn id(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }
}

/// Draws a chart as a file of its own.
///
/// ```
/// use sekisho_replay::chart::{Axis, Chart, Series, Shape, svg};
///
/// let axis = |label: &str, unit: &str| Axis { label: label.to_owned(), unit: unit.to_owned() };
/// let chart = Chart {
///     name: "steady".to_owned(),
///     title: "Two requests a second".to_owned(),
///     caption: String::new(),
///     x: axis("time", "s"),
///     y: axis("requests", ""),
///     series: vec![Series { name: "a & b".to_owned(), shape: Shape::Steps, points: vec![(0.0, 1.0), (0.5, 2.0)] }],
/// };
/// let drawn = svg::draw(&chart);
/// assert!(drawn.starts_with("<svg ") && drawn.contains("a &amp; b") && drawn.contains("time (s)"));
/// ```
pub fn draw(chart: &Chart) -> String {
    render(chart, &View { width: WIDE, prefix: text::slug(&chart.name), is_alone: true })
}

pub(super) fn render(chart: &Chart, view: &View) -> String {
    let plan = Plan::new(chart, TOGETHER_MAX, index(view.width / BAR_MIN, COLUMNS_MAX));
    let mut body = Markup::default();
    let top = if view.is_alone { heading(&mut body, &plan, view) } else { 4.0 };
    let bottom = match plan.arrangement {
        Arrangement::Together => together(&mut body, &plan, view, top),
        Arrangement::Apart => apart(&mut body, &plan, view, top),
        Arrangement::Ranking => ranking::draw(&mut body, &plan, view, top),
    };
    let (width, height) = (length(view.width), length(bottom + view.margin()));
    let (title, description) = (view.id("title"), view.id("desc"));
    let mut svg = Markup::default();
    let view_box = format!("0 0 {width} {height}");
    let labelled_by = format!("{title} {description}");
    let mut attributes =
        vec![("xmlns", "http://www.w3.org/2000/svg"), ("class", "chart"), ("role", "img")];
    attributes.extend([("aria-labelledby", labelled_by.as_str()), ("viewBox", &view_box)]);
    if view.is_alone {
        attributes.extend([("width", width.as_str()), ("height", &height)]);
    }
    svg.open("svg", &attributes);
    svg.element("title", &[("id", &title)], &plan.title);
    svg.element("desc", &[("id", &description)], &description_of(&plan));
    if view.is_alone {
        svg.open("style", &[]);
        svg.raw("\n");
        svg.raw(STYLE);
        svg.close();
        svg.leaf("rect", &[("class", "paper"), ("width", "100%"), ("height", "100%")]);
    }
    svg.raw(&body.finish());
    svg.finish()
}

/// What is told to someone who cannot see it.
fn description_of(plan: &Plan) -> String {
    let names: Vec<&str> = plan.series.iter().map(|drawn| drawn.name.as_str()).collect();
    let rules = plan.rules.iter().map(legend::rule_name);
    let marked: Vec<String> = rules.collect();
    let axes = match (plan.y_label.is_empty(), plan.x_label.is_empty()) {
        (false, false) => format!("{} by {}: ", plan.y_label, plan.x_label),
        (false, true) => format!("{}: ", plan.y_label),
        (true, _) => String::new(),
    };
    let mut parts = vec![plan.caption.clone()];
    parts.push(format!("{axes}{}.", names.join(", ")));
    if !marked.is_empty() {
        parts.push(format!("Marked: {}.", marked.join(", ")));
    }
    if !plan.has_data() {
        parts.push("There is no data.".to_owned());
    }
    parts.join(" ").trim().to_owned()
}

fn heading(body: &mut Markup, plan: &Plan, view: &View) -> f64 {
    let mut y = view.margin();
    let mut lines = |text: &str, class: &str, size: f64| {
        for line in text::wrap(text, columns(view.width - 2.0 * view.margin(), size)) {
            y += size * 1.35;
            let at = [("class", class), ("x", &length(view.margin())), ("y", &length(y))];
            body.element("text", &at, &line);
        }
    };
    lines(&plan.title, "title", 18.0);
    lines(&plan.caption, "caption", 14.0);
    y + 12.0
}

/// How many letters of a size fit into a width.
fn columns(width: f64, size: f64) -> usize {
    index(width / (size * LETTER), COLUMNS_MAX)
}

/// About how wide a text is.
fn wide(text: &str, size: f64) -> f64 {
    float(text::width(text)) * size * LETTER
}

fn together(body: &mut Markup, plan: &Plan, view: &View, top: f64) -> f64 {
    let all: Vec<usize> = (0..plan.series.len()).collect();
    marks::define(body, plan, view);
    let legend_end = legend::draw(body, plan, view, top);
    let room = Room {
        left: view.margin(),
        top: legend_end,
        width: view.width - 2.0 * view.margin(),
        height: if view.is_narrow() { 200.0 } else { 280.0 },
    };
    let frame = Frame::new(plan, &room, false);
    y_label(body, plan, view, legend_end + 12.0);
    panel::draw(body, plan, view, (&frame, &all));
    x_label(body, plan, view, room.top + room.height + 12.0)
}

/// Small panels with the same scales. All other series stand behind each as thin lines, to compare.
fn apart(body: &mut Markup, plan: &Plan, view: &View, top: f64) -> f64 {
    let count = plan.series.len();
    let columns = if view.is_narrow() { 1 } else { 3 };
    let inner = view.width - 2.0 * view.margin();
    let width = (inner - GAP * float(columns - 1)) / float(columns);
    let height = if view.is_narrow() { 120.0 } else { 140.0 };
    y_label(body, plan, view, top + 12.0);
    // On a phone there is no room for both in one line.
    let rules_y =
        if view.is_narrow() && !plan.y_label.is_empty() { top + 30.0 } else { top + 12.0 };
    legend::rules(body, plan, view, rules_y);
    let mut y = rules_y + 14.0;
    for first in (0..count).step_by(columns) {
        let group: Vec<usize> = (first..count.min(first + columns)).collect();
        let mut lines_max = 1;
        for (column, &at) in group.iter().enumerate() {
            let left = view.margin() + (width + GAP) * float(column);
            lines_max = lines_max.max(legend::panel_name(body, plan, at, (left, y, width)));
        }
        let room_top = y + float(lines_max) * 16.0;
        for (column, &at) in group.iter().enumerate() {
            let left = view.margin() + (width + GAP) * float(column);
            let room = Room { left, top: room_top, width, height };
            let frame = Frame::new(plan, &room, true);
            if first == 0 && column == 0 {
                panel::ghosts(body, plan, view, &frame);
            }
            panel::draw(body, plan, view, (&frame, &[at]));
        }
        y = room_top + height + 14.0;
    }
    x_label(body, plan, view, y)
}

fn y_label(body: &mut Markup, plan: &Plan, view: &View, y: f64) {
    if !plan.y_label.is_empty() {
        let at = [("class", "label"), ("x", &length(view.margin())), ("y", &length(y))];
        body.element("text", &at, &text::fit(&plan.y_label, columns(view.width, 12.0)));
    }
}

/// Writes the label at the right, below the ticks, and returns where it ends.
fn x_label(body: &mut Markup, plan: &Plan, view: &View, y: f64) -> f64 {
    if plan.x_label.is_empty() {
        return y;
    }
    let right = length(view.width - view.margin());
    let at = [("class", "label end"), ("x", &right), ("y", &length(y + 4.0))];
    body.element("text", &at, &text::fit(&plan.x_label, columns(view.width, 12.0)));
    y + 8.0
}
