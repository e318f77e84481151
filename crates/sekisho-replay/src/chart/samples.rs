//! Charts for the tests of every form: a plain one, and all that is awkward to draw.

use super::{Axis, Chart, Series, Shape};

/// What a hostile user would call a key.
pub(super) const HOSTILE: &str = "</text><script>alert(\"1\")</script>&'\u{1b}[2J\u{202e}\u{0}";

const SHAPES: [Shape; 4] = [Shape::Line, Shape::Steps, Shape::Bars, Shape::Points];

pub(super) fn series(name: &str, shape: Shape, points: &[(f64, f64)]) -> Series {
    Series { name: name.to_owned(), shape, points: points.to_vec() }
}

pub(super) fn chart(title: &str, series: Vec<Series>) -> Chart {
    Chart {
        name: title.to_owned(),
        title: title.to_owned(),
        caption: String::new(),
        x: Axis { label: "time".to_owned(), unit: "s".to_owned() },
        y: Axis { label: "requests".to_owned(), unit: String::new() },
        series,
    }
}

/// The totals of four limits.
pub(super) fn boundary() -> Chart {
    let passed =
        [("fixed-window", 120.0), ("sliding-log", 60.0), ("burst 60", 61.0), ("burst 10", 11.0)];
    let bars = passed.map(|(name, passed)| series(name, Shape::Bars, &[(0.0, passed)]));
    let limit = series("limit", Shape::Rule, &[(0.0, 60.0)]);
    chart("boundary", bars.into_iter().chain([limit]).collect())
}

/// Two limits over time.
pub(super) fn steady() -> Chart {
    let window: Vec<(f64, f64)> =
        (0..=8).map(|at| (f64::from(at * 10), f64::from(at * 20 % 120))).collect();
    let log: Vec<(f64, f64)> =
        (0..=8).map(|at| (f64::from(at * 10), f64::from((at * 20).min(60)))).collect();
    let limit = series("limit", Shape::Rule, &[(0.0, 60.0)]);
    let both = [series("window", Shape::Steps, &window), series("log", Shape::Line, &log)];
    chart("steady", both.into_iter().chain([limit]).collect())
}

/// Everything that once broke a chart somewhere.
pub(super) fn awkward() -> Vec<Chart> {
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    let mut charts = vec![
        chart("nothing", vec![]),
        chart("only-a-rule", vec![series("limit", Shape::Rule, &[(0.0, 60.0)])]),
        chart("a-rule-nowhere", vec![series("limit", Shape::Rule, &[])]),
    ];
    for shape in SHAPES {
        let points: [&[(f64, f64)]; 10] = [
            &[],
            &[(3.0, 7.0)],
            &[(0.0, 0.0), (1.0, 0.0)],
            &[(0.0, 5.0), (0.0, 6.0), (0.0, -4.0)],
            &[(nan, 1.0), (1.0, nan), (infinity, 1.0), (2.0, -infinity), (3.0, 3.0)],
            &[(nan, nan)],
            &[(0.0, f64::MAX), (1.0, -f64::MAX), (f64::MAX, 1.0)],
            &[(0.0, f64::MIN_POSITIVE), (1e-300, 1e-12), (2e-12, 3e-12)],
            &[(-5.0, -3.0), (5.0, -1.0), (7.0, 12.0)],
            &[(1e15, 1e15 + 1.0), (1e15 + 1.0, 1e15)],
        ];
        charts.extend(points.map(|points| chart("points", vec![series("a", shape, points)])));
        charts.push(chart("hostile", vec![series(HOSTILE, shape, &[(0.0, 1.0), (1.0, 2.0)])]));
        charts.extend([2, 3, 4, 5, 12].map(|count| many(shape, count)));
        charts.push(chart("long", vec![series(&"long name ".repeat(30), shape, &[(0.0, 1.0)]); 2]));
        let dense: Vec<(f64, f64)> =
            (0..5_000).map(|at| (f64::from(at), f64::from(at * 37 % 101))).collect();
        charts.push(chart("dense", vec![series("a", shape, &dense)]));
    }
    charts.extend([boundary(), steady()]);
    for chart in &mut charts[5..30] {
        HOSTILE.clone_into(&mut chart.title);
        HOSTILE.clone_into(&mut chart.caption);
        HOSTILE.clone_into(&mut chart.x.label);
        HOSTILE.clone_into(&mut chart.y.unit);
        HOSTILE.clone_into(&mut chart.name);
    }
    charts
}

/// Some series of the same shape, and two rules.
pub(super) fn many(shape: Shape, count: u32) -> Chart {
    let one = |number: u32| {
        let points: Vec<(f64, f64)> =
            (0..20).map(|at| (f64::from(at), f64::from(at * (number + 1) % 13) - 2.0)).collect();
        series(&format!("key-{number}"), shape, &points)
    };
    let rules = [10.0, 10.5].map(|height| series("quota", Shape::Rule, &[(0.0, height)]));
    chart("many", (0..count).map(one).chain(rules).collect())
}
