//! One panel: the data between its axes.

use super::{
    RULE,
    canvas::Canvas,
    row::{Ink, Row},
    sign,
};
use crate::chart::{
    Shape,
    plan::Plan,
    scale::{Scale, Tick, float, index, number},
    text,
};

/// Blocks that fill one to eight eighths of a character from below.
const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Marks along a line stand about so many columns apart.
const MARK_EVERY: usize = 12;
/// How many heights are named.
const TICKS: usize = 6;
/// About how high a panel is, and how high one of many.
const ROWS: usize = 11;
const ROWS_SMALL: usize = 4;
const NO_DATA: &str = "no data";

/// How large a panel is, with its axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) width: usize,
    /// One of many: only the ends of its height are named.
    pub(super) is_small: bool,
    pub(super) has_x_labels: bool,
}

/// Draws some of the series.
pub(super) fn draw(plan: &Plan, frame: &Frame, series: &[usize]) -> Vec<Row> {
    let (x, y) = (plan.x_scale(), plan.y_scale(TICKS));
    let height = if frame.is_small { ROWS_SMALL } else { height(&y) };
    let labels = side_labels(plan, &y, (height, frame.is_small));
    let gutter = labels.iter().map(|label| text::width(&label.1)).max().unwrap_or(0);
    let width = even(plan, &x, frame.width - gutter - 2);
    let mut pen = Pen { plan, x, y, canvas: Canvas::new(width, height) };
    pen.zero();
    pen.bars(series);
    pen.rules();
    // The first series is the most important one, so it comes on top.
    for &at in series.iter().rev() {
        pen.series(at);
    }
    if series.iter().all(|&at| plan.series[at].points.is_empty()) {
        pen.no_data();
    }
    let canvas = pen.canvas;
    let mut rows: Vec<Row> = Vec::new();
    for (data, (ink, label)) in canvas.rows().zip(labels) {
        let mut row = Row::default();
        row.pad(gutter - text::width(&label));
        row.push(ink, &label);
        row.push(Ink::Faint, if label.is_empty() { " │" } else { " ┤" });
        row.join(data);
        rows.push(row);
    }
    rows.extend(bottom(&x, gutter, canvas.width, frame.has_x_labels && plan.has_data()));
    rows
}

/// A height in which every tick is the same number of rows above the last.
fn height(y: &Scale) -> usize {
    let steps = y.ticks(TICKS).len().saturating_sub(1).max(1);
    steps * ((ROWS + steps / 2) / steps).max(1)
}

/// A width in which every bar has the same number of columns, unless too much would stay empty.
fn even(plan: &Plan, x: &Scale, width: usize) -> usize {
    let has_bars = plan.series.iter().any(|drawn| drawn.shape == Shape::Bars);
    let slots = index(((x.high() - x.low()) / plan.slot).round(), width + 1).max(1);
    let used = width / slots * slots;
    if has_bars && used * 4 >= width * 3 { used } else { width }
}

/// The axis below: a line with a tick above each label, and the labels.
pub(super) fn bottom(x: &Scale, gutter: usize, width: usize, has_labels: bool) -> Vec<Row> {
    let ticks = fitting(x, width);
    let column = |tick: &Tick| index(tick.place * float(width), width - 1);
    let mut line = vec!['─'; width];
    let mut labels = Row::default();
    for tick in ticks.iter().filter(|_| has_labels) {
        line[column(tick)] = '┬';
        let length = text::width(&tick.label);
        let centred = (gutter + 2 + column(tick)).saturating_sub(length / 2);
        labels.pad(centred.min(gutter + 2 + width - length));
        labels.push(Ink::Faint, &tick.label);
    }
    let mut axis = Row::default();
    axis.pad(gutter + 1);
    axis.push(Ink::Faint, &format!("└{}", line.into_iter().collect::<String>()));
    if has_labels { vec![axis, labels] } else { vec![axis] }
}

/// As many ticks as have room for their labels.
fn fitting(scale: &Scale, width: usize) -> Vec<Tick> {
    let fits = |ticks: &Vec<Tick>| {
        ticks.windows(2).all(|pair| {
            let halves =
                text::width(&pair[0].label).div_ceil(2) + text::width(&pair[1].label).div_ceil(2);
            (pair[1].place - pair[0].place) * float(width) + 1e-6 >= float(halves + 3)
        })
    };
    (1..=8).rev().map(|wanted| scale.ticks(wanted)).find(fits).unwrap_or_default()
}

/// What stands beside each row: a rule's value before a tick's.
fn side_labels(plan: &Plan, y: &Scale, (height, is_small): (usize, bool)) -> Vec<(Ink, String)> {
    let mut labels = vec![(Ink::Faint, String::new()); height];
    let is_end = |tick: &Tick| tick.place < 0.01 || tick.place > 0.99;
    for tick in y.ticks(TICKS).into_iter().filter(|tick| !is_small || is_end(tick)) {
        labels[row_of(tick.place, height)] = (Ink::Faint, tick.label);
    }
    for rule in &plan.rules {
        labels[row_of(y.at(rule.value), height)] = (Ink::Rule, number(rule.value));
    }
    labels
}

fn row_of(place: f64, height: usize) -> usize {
    index((1.0 - place) * float(height) + 1e-6, height - 1)
}

struct Pen<'a> {
    plan: &'a Plan,
    x: Scale,
    y: Scale,
    canvas: Canvas,
}

impl Pen<'_> {
    /// Where nought is, when there is something below it.
    fn zero(&mut self) {
        if self.y.low() < 0.0 && self.y.high() > 0.0 {
            self.across(self.y.at(0.0), '─', Ink::Faint);
        }
    }

    fn no_data(&mut self) {
        let first = self.canvas.width.saturating_sub(NO_DATA.len()) / 2;
        for (at, letter) in NO_DATA.chars().enumerate() {
            self.canvas.mark(first + at, self.canvas.height / 2, letter, Ink::Plain);
        }
    }

    fn rules(&mut self) {
        for rule in &self.plan.rules {
            self.across(self.y.at(rule.value), RULE, Ink::Rule);
        }
    }

    fn across(&mut self, place: f64, glyph: char, ink: Ink) {
        let row = row_of(place, self.canvas.height);
        for column in 0..self.canvas.width {
            self.canvas.base(column, row, glyph, ink);
        }
    }

    fn bars(&mut self, series: &[usize]) {
        let is_bars = |at: &usize| self.plan.series[*at].shape == Shape::Bars;
        let bars: Vec<usize> = series.iter().copied().filter(is_bars).collect();
        let slot = self.plan.slot_columns(self.canvas.width);
        let group = if slot > bars.len() { (slot * 4 / 5).max(bars.len()) } else { slot.max(1) };
        let each = (group / bars.len().max(1)).max(1);
        for (place, &at) in bars.iter().enumerate() {
            // Where several bars fall into one column the farthest from nought is drawn.
            let mut heights: Vec<Option<f64>> = vec![None; self.canvas.width];
            for &(x, height) in &self.plan.series[at].points {
                let middle = self.x.at(x) * float(self.canvas.width);
                let first = middle - float(each * bars.len()) / 2.0 + float(place * each);
                let first = index(first.round(), self.canvas.width.saturating_sub(1));
                for tallest in heights.iter_mut().skip(first).take(each) {
                    *tallest =
                        Some(tallest.filter(|other| other.abs() > height.abs()).unwrap_or(height));
                }
            }
            for (column, height) in heights.iter().enumerate() {
                if let Some(height) = height {
                    self.bar(column, *height, at, bars.len() > 1);
                }
            }
        }
    }

    /// One column of a bar, up from nought or down. Shades have no eighths, so they are whole characters.
    fn bar(&mut self, column: usize, height: f64, series: usize, shaded: bool) {
        let rows = self.canvas.height;
        let length = (self.y.at(height) - self.y.at(0.0)).abs() * float(rows * 8);
        let eighths = if height.abs() > 0.0 { index(length.round(), rows * 8).max(1) } else { 0 };
        // With something below nought, the line of nought has a row of its own.
        let zero = if self.y.low() < 0.0 { row_of(self.y.at(0.0), rows) } else { rows };
        for (at, done) in (0..eighths).step_by(8).enumerate() {
            let filled = (eighths - done).min(8);
            let glyph = match (filled, shaded) {
                (4.., true) => sign(self.plan, series),
                (_, true) if at == 0 => sign(self.plan, series),
                (_, true) => continue,
                (8, false) => '█',
                (filled, false) if height > 0.0 => EIGHTHS[filled - 1],
                (4.., false) => '▀',
                (_, false) => '▔',
            };
            let row = if height > 0.0 { zero.checked_sub(1 + at) } else { Some(zero + 1 + at) };
            if let Some(row) = row {
                self.canvas.base(column, row, glyph, Ink::Series(series));
            }
        }
    }

    fn series(&mut self, at: usize) {
        let drawn = &self.plan.series[at];
        let ink = Ink::Series(at);
        let sign = sign(self.plan, at);
        if drawn.shape == Shape::Points {
            for &point in &drawn.points {
                let (x, y) = self.dot_of(point);
                self.canvas.mark(x / 2, y / 4, sign, ink);
            }
        }
        if !drawn.is_line() {
            return;
        }
        let path = drawn.path(self.x.high());
        let dots: Vec<(usize, usize)> = path.into_iter().map(|point| self.dot_of(point)).collect();
        for pair in dots.windows(2) {
            self.canvas.line(pair[0], pair[1], ink);
        }
        self.marks(at, &dots);
    }

    /// Marks along a line, so that lines can be told apart; those of several series take turns.
    fn marks(&mut self, at: usize, dots: &[(usize, usize)]) {
        let (Some(first), Some(last)) = (dots.first(), dots.last()) else { return };
        let alone = self.canvas.height == ROWS_SMALL || !self.plan.has_other_lines();
        let sign = sign(self.plan, at);
        if first.0 == last.0 {
            self.canvas.mark(first.0 / 2, first.1 / 4, sign, Ink::Series(at));
        }
        let shift = 2 + at * MARK_EVERY / super::TOGETHER_MAX;
        let columns = (shift..self.canvas.width).step_by(MARK_EVERY).filter(|_| !alone);
        for column in columns {
            let x = column * 2;
            let Some(pair) = dots.windows(2).find(|pair| (pair[0].0..=pair[1].0).contains(&x))
            else {
                continue;
            };
            let part = float(x - pair[0].0) / float((pair[1].0 - pair[0].0).max(1));
            let (from, to) = (float(pair[0].1), float(pair[1].1));
            let y = index((from + (to - from) * part).round(), self.canvas.height * 4 - 1);
            self.canvas.mark(column, y / 4, sign, Ink::Series(at));
        }
    }

    fn dot_of(&self, (x, y): (f64, f64)) -> (usize, usize) {
        let (width, height) = (self.canvas.width * 2, self.canvas.height * 4);
        (
            index(self.x.at(x) * float(width), width - 1),
            index((1.0 - self.y.at(y)) * float(height) + 1e-6, height - 1),
        )
    }
}
