//! What every form of a chart decides alike: which points can be drawn, over which range, and in how many panels.

use super::{
    Axis, Chart, Series, Shape,
    scale::{Scale, float, index, tame},
    text::{clean, with_unit},
};

/// A chart, ready to be drawn.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) title: String,
    pub(super) caption: String,
    pub(super) x_label: String,
    pub(super) y_label: String,
    /// What is drawn, without rules. Its place gives its colour and its mark.
    pub(super) series: Vec<Drawn>,
    pub(super) rules: Vec<Rule>,
    pub(super) arrangement: Arrangement,
    /// How far apart two neighbouring bars are, in units of x.
    pub(super) slot: f64,
    x: (f64, f64),
    y: (f64, f64),
    whole: (bool, bool),
}

/// A series whose points are all finite and go from left to right.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) points: Vec<(f64, f64)>,
}

/// A height that is marked over the whole width.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) value: f64,
}

/// How the series share the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// Over one another.
    Together,
    /// A small panel each, all with the same scale.
    Apart,
    /// One bar for each series, its name beside it.
    Ranking,
}

impl Plan {
    /// Plans a chart of which at most `together` series of a kind are drawn over one another, and no more bars than `columns`.
    pub(super) fn new(chart: &Chart, together: usize, columns: usize) -> Self {
        let is_rule = |series: &&Series| series.shape == Shape::Rule;
        let rules: Vec<Rule> = chart.series.iter().filter(is_rule).filter_map(rule).collect();
        let series: Vec<Drawn> =
            chart.series.iter().filter(|series| !is_rule(series)).map(drawn).collect();
        let points = || series.iter().flat_map(|drawn| &drawn.points);
        let slot = slot(&series);
        let has_bars = series.iter().any(|drawn| drawn.shape == Shape::Bars);
        let half = if has_bars { slot / 2.0 } else { 0.0 };
        let x = range(points().map(|point| point.0))
            .map_or((0.0, 1.0), |(low, high)| (low - half, high + half));
        let heights = points().map(|point| point.1).chain(rules.iter().map(|rule| rule.value));
        let y = range(heights).unwrap_or((0.0, 1.0));
        let from_zero = has_bars || chart.y.unit.is_empty() || (y.0 > 0.0 && y.0 < y.1 / 2.0);
        let y = if from_zero { (y.0.min(0.0), y.1.max(0.0)) } else { y };
        let whole = |axis: &Axis, mut values: Box<dyn Iterator<Item = f64> + '_>| {
            axis.unit.is_empty() && values.all(|value| (value - value.round()).abs() < f64::EPSILON)
        };
        let mut plan = Self {
            title: clean(&chart.title),
            caption: clean(&chart.caption),
            x_label: with_unit(&chart.x.label, &chart.x.unit),
            y_label: with_unit(&chart.y.label, &chart.y.unit),
            whole: (
                whole(&chart.x, Box::new(points().map(|point| point.0))),
                whole(&chart.y, Box::new(points().map(|point| point.1))),
            ),
            arrangement: arrangement(&series, together),
            series,
            rules,
            slot,
            x,
            y,
        };
        let bars = plan.series.iter().filter(|drawn| drawn.shape == Shape::Bars).count();
        // Every bar needs a column, and every group one more.
        if plan.arrangement == Arrangement::Together
            && bars > 1
            && plan.slot_columns(columns) <= bars
        {
            plan.arrangement = Arrangement::Apart;
        }
        plan
    }

    pub(super) fn has_data(&self) -> bool {
        self.series.iter().any(|drawn| !drawn.points.is_empty())
    }

    /// Whether a line needs marks to be told from other lines.
    pub(super) fn has_other_lines(&self) -> bool {
        self.series.iter().filter(|drawn| drawn.is_line()).count() > 1
    }

    /// How many whole columns there are from one bar to the next.
    pub(super) fn slot_columns(&self, columns: usize) -> usize {
        let x = self.x_scale();
        index(float(columns) * self.slot / (x.high() - x.low()) + 1e-6, columns)
    }

    /// From the first to the last point.
    pub(super) fn x_scale(&self) -> Scale {
        Scale::exact(self.x.0, self.x.1, self.whole.0)
    }

    /// From a tick to a tick, around all heights.
    pub(super) fn y_scale(&self, ticks: usize) -> Scale {
        Scale::round(self.y.0, self.y.1, ticks, self.whole.1)
    }
}

impl Drawn {
    pub(super) fn is_line(&self) -> bool {
        matches!(self.shape, Shape::Line | Shape::Steps)
    }

    /// The corners of its line. A step stays until the next one, the last until `end`.
    pub(super) fn path(&self, end: f64) -> Vec<(f64, f64)> {
        if self.shape != Shape::Steps {
            return self.points.clone();
        }
        let next = self.points.iter().skip(1).map(|point| point.0).chain([end]);
        let stairs = self.points.iter().zip(next);
        stairs.flat_map(|(&(from, height), to)| [(from, height), (to.max(from), height)]).collect()
    }
}

fn rule(series: &Series) -> Option<Rule> {
    let value = series.points.iter().find_map(|point| tame(point.1))?;
    Some(Rule { name: clean(&series.name), value })
}

fn drawn(series: &Series) -> Drawn {
    let finite = series.points.iter().filter_map(|&(x, y)| Some((tame(x)?, tame(y)?)));
    let mut points: Vec<(f64, f64)> = finite.collect();
    points.sort_by(|left, right| left.0.total_cmp(&right.0));
    Drawn { name: clean(&series.name), shape: series.shape, points }
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range: Option<(f64, f64)>, value| {
        let (low, high) = range.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

/// The smallest distance of two bars' places, one when there is only one place.
fn slot(series: &[Drawn]) -> f64 {
    let bars = series.iter().filter(|drawn| drawn.shape == Shape::Bars);
    let mut places: Vec<f64> =
        bars.flat_map(|drawn| drawn.points.iter().map(|point| point.0)).collect();
    places.sort_by(f64::total_cmp);
    let gaps = places.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0);
    gaps.min_by(f64::total_cmp).unwrap_or(1.0)
}

fn arrangement(series: &[Drawn], together: usize) -> Arrangement {
    let single = |drawn: &Drawn| drawn.shape == Shape::Bars && drawn.points.len() == 1;
    let count = |shape: fn(&Drawn) -> bool| series.iter().filter(|drawn| shape(drawn)).count();
    let bars = count(|drawn| drawn.shape == Shape::Bars);
    let points = count(|drawn| drawn.shape == Shape::Points);
    // Lines through a cloud of points, or over bars, are read apart from them.
    let most = count(Drawn::is_line).max(bars).max(points);
    if series.len() > 1 && series.iter().all(single) {
        Arrangement::Ranking
    } else if most > together || series.len() > 2 * together {
        Arrangement::Apart
    } else {
        Arrangement::Together
    }
}

/// At most four points for each of `columns`: its first, lowest, highest and last. More cannot be seen.
pub(super) fn thin(points: &[(f64, f64)], scale: &Scale, columns: usize) -> Vec<(f64, f64)> {
    if points.len() <= 4 * columns {
        return points.to_vec();
    }
    let column = |point: &(f64, f64)| index(scale.at(point.0) * float(columns), columns);
    let mut out = Vec::new();
    for stretch in points.chunk_by(|left, right| column(left) == column(right)) {
        let places = 0..stretch.len();
        let lowest =
            places.clone().min_by(|&left, &right| stretch[left].1.total_cmp(&stretch[right].1));
        let highest = places.max_by(|&left, &right| stretch[left].1.total_cmp(&stretch[right].1));
        let mut kept: Vec<usize> = [Some(0), lowest, highest, stretch.len().checked_sub(1)]
            .into_iter()
            .flatten()
            .collect();
        kept.sort_unstable();
        kept.dedup();
        out.extend(kept.into_iter().map(|at| stretch[at]));
    }
    out
}

/// One point for each of `columns`: the farthest from nought.
pub(super) fn tallest(points: &[(f64, f64)], scale: &Scale, columns: usize) -> Vec<(f64, f64)> {
    if points.len() <= columns {
        return points.to_vec();
    }
    let column = |point: &(f64, f64)| index(scale.at(point.0) * float(columns), columns);
    let stretches = points.chunk_by(|left, right| column(left) == column(right));
    let tallest = stretches.filter_map(|stretch| {
        stretch.iter().max_by(|left, right| left.1.abs().total_cmp(&right.1.abs()))
    });
    tallest.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(series: Vec<Series>) -> Chart {
        let axis = |label: &str| Axis { label: label.to_owned(), unit: String::new() };
        let word = String::new;
        Chart { name: word(), title: word(), caption: word(), x: axis("x"), y: axis("y"), series }
    }

    fn series(shape: Shape, points: &[(f64, f64)]) -> Series {
        Series { name: "a".to_owned(), shape, points: points.to_vec() }
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let points = [(f64::NAN, 1.0), (2.0, f64::INFINITY), (3.0, 4.0), (1.0, 2.0)];
        let plan = Plan::new(&chart(vec![series(Shape::Line, &points)]), 4, 100);
        assert_eq!(plan.series[0].points, [(1.0, 2.0), (3.0, 4.0)]);
        assert!(plan.has_data());
        assert!(!Plan::new(&chart(vec![series(Shape::Rule, &points)]), 4, 100).has_data());
    }

    #[test]
    fn counts_and_bars_begin_at_zero() {
        let mut high = chart(vec![series(Shape::Line, &[(0.0, 90.0), (1.0, 100.0)])]);
        let low = |chart: &Chart| Plan::new(chart, 4, 100).y_scale(4).low();
        assert!(low(&high).abs() < f64::EPSILON);
        "ms".clone_into(&mut high.y.unit);
        assert!((low(&high) - 90.0).abs() < f64::EPSILON);
        high.series[0].shape = Shape::Bars;
        assert!(low(&high).abs() < f64::EPSILON);
    }

    #[test]
    fn many_lines_stand_apart_and_single_bars_in_a_row() {
        let of = |shape, count, points: &[(f64, f64)]| {
            Plan::new(&chart(vec![series(shape, points); count]), 4, 100).arrangement
        };
        let two = [(0.0, 1.0), (1.0, 2.0)];
        assert_eq!(of(Shape::Steps, 4, &two), Arrangement::Together);
        assert_eq!(of(Shape::Steps, 5, &two), Arrangement::Apart);
        assert_eq!(of(Shape::Bars, 5, &two), Arrangement::Apart);
        assert_eq!(of(Shape::Bars, 5, &two[..1]), Arrangement::Ranking);
        let mut mixed = vec![series(Shape::Line, &two); 3];
        mixed.extend(vec![series(Shape::Points, &two); 4]);
        assert_eq!(Plan::new(&chart(mixed), 4, 100).arrangement, Arrangement::Together);
    }

    #[test]
    fn a_step_stays_until_the_next() {
        let drawn = drawn(&series(Shape::Steps, &[(0.0, 1.0), (2.0, 5.0)]));
        assert_eq!(drawn.path(3.0), [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0), (3.0, 5.0)]);
    }

    #[test]
    fn a_peak_survives_thinning() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|at| (f64::from(at), 1.0)).collect();
        points[5_003].1 = 9.0;
        let scale = Scale::exact(0.0, 10_000.0, false);
        assert!(tallest(&points, &scale, 100).contains(&(5_003.0, 9.0)));
        let thinned = thin(&points, &scale, 100);
        assert!(thinned.len() <= 404 && thinned.contains(&(5_003.0, 9.0)));
        assert_eq!((thinned[0], thinned.last()), (points[0], points.last()));
    }
}
