//! What an SVG file holds.

use std::collections::BTreeSet;

use super::{STYLE, View, draw, render};
use crate::chart::{
    Chart, Shape,
    samples::{awkward, boundary, chart, many, series, steady},
    wellformed::{Element, read},
};

/// Every form of a chart.
fn forms(chart: &Chart) -> [String; 3] {
    [
        draw(chart),
        render(chart, &View::wide("one-wide".to_owned())),
        render(chart, &View::narrow("one-narrow".to_owned())),
    ]
}

fn elements(document: &str) -> Vec<Element> {
    read(document).unwrap_or_else(|wrong| panic!("{wrong} in {document}"))
}

fn count(elements: &[Element], tag: &str, class: &str) -> usize {
    let has_class = |element: &&Element| {
        element
            .attributes
            .get("class")
            .is_some_and(|classes| classes.split(' ').any(|one| one == class))
    };
    elements.iter().filter(|element| element.tag == tag).filter(has_class).count()
}

#[test]
fn every_drawing_is_well_formed_and_finite() {
    for chart in awkward() {
        for document in forms(&chart) {
            let elements = elements(&document);
            assert!(!document.contains("NaN") && !document.contains("inf"), "{document}");
            assert!(elements.iter().all(|element| element.tag != "script"));
            assert_eq!(elements.iter().filter(|element| element.depth == 0).count(), 1);
            assert!(document.len() < 150_000, "{} bytes of {}", document.len(), chart.title);
        }
    }
}

fn check_place(element: &Element, sides: &[f64]) {
    let number =
        |name: &str| element.attributes.get(name).and_then(|value| value.parse::<f64>().ok());
    for (names, side) in [(["x", "x1", "x2"], sides[2]), (["y", "y1", "y2"], sides[3])] {
        for value in names.into_iter().filter_map(number) {
            assert!((0.0..=side).contains(&value), "{element:?} outside of {sides:?}");
        }
    }
    for side in ["width", "height"].into_iter().filter_map(number) {
        assert!(side >= 0.0, "{element:?}");
    }
}

#[test]
fn every_coordinate_lies_in_the_picture() {
    for document in awkward().iter().flat_map(forms) {
        let elements = elements(&document);
        let view_box = elements[0].attributes["viewBox"].split(' ');
        let sides: Vec<f64> = view_box.map(|side| side.parse().unwrap()).collect();
        for element in &elements {
            check_place(element, &sides);
        }
    }
}

#[test]
fn a_screen_reader_is_told_what_it_is() {
    let mut chart = boundary();
    "A & <b>".clone_into(&mut chart.title);
    let drawn = draw(&chart);
    let elements = elements(&drawn);
    let svg = &elements[0].attributes;
    assert_eq!(
        (svg["role"].as_str(), svg["aria-labelledby"].as_str()),
        ("img", "boundary-title boundary-desc")
    );
    assert!(drawn.contains("<title id=\"boundary-title\">A &amp; &lt;b&gt;</title>"), "{drawn}");
    let told =
        "requests by time (s): fixed-window, sliding-log, burst 60, burst 10. Marked: limit 60.";
    assert!(drawn.contains(&format!("<desc id=\"boundary-desc\">{told}</desc>")), "{drawn}");
}

#[test]
fn nothing_is_loaded_from_outside() {
    for chart in awkward() {
        let drawn = draw(&chart).replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(
            !drawn.contains("http:") && !drawn.contains("https:") && !drawn.contains("@import")
        );
        let reference = drawn.split("url(").skip(1).all(|after| after.starts_with('#'));
        assert!(reference && !drawn.contains("<image") && !drawn.contains("@font-face"));
    }
}

#[test]
fn the_same_chart_gives_the_same_bytes() {
    for chart in awkward() {
        assert_eq!(forms(&chart), forms(&chart.clone()));
    }
}

/// The classes and the outlines of all marks of a kind.
fn looks(elements: &[Element], kind: &str) -> BTreeSet<(String, String)> {
    let marks = elements.iter().filter(|element| {
        element
            .attributes
            .get("class")
            .is_some_and(|classes| classes.split(' ').next() == Some(kind))
    });
    marks
        .filter_map(|mark| {
            Some((mark.attributes["class"].clone(), mark.attributes.get("d")?.clone()))
        })
        .collect()
}

#[test]
fn twelve_series_have_twelve_looks() {
    for shape in [Shape::Line, Shape::Points] {
        assert_eq!(looks(&elements(&draw(&many(shape, 12))), "point").len(), 12);
    }
}

#[test]
fn a_long_name_is_cut_in_the_legend() {
    let name = "long name ".repeat(30);
    for shape in [Shape::Line, Shape::Bars] {
        let both = vec![series(&name, shape, &[(0.0, 1.0), (1.0, 2.0)]); 2];
        let drawn = draw(&chart("long", both));
        assert_eq!(drawn.matches("…</text>").count(), 2, "{drawn}");
    }
}

#[test]
fn there_are_no_more_bars_than_can_be_seen() {
    let dense: Vec<(f64, f64)> = (0..5_000).map(|at| (f64::from(at), f64::from(at % 7))).collect();
    let drawn = elements(&draw(&chart("dense", vec![series("a", Shape::Bars, &dense)])));
    assert!((300..500).contains(&count(&drawn, "rect", "bar")));
}

#[test]
fn lines_differ_in_mark_and_dash() {
    let drawn = elements(&draw(&many(Shape::Line, 4)));
    assert_eq!(looks(&drawn, "mark").len(), 4);
    let outlines: BTreeSet<String> = looks(&drawn, "mark").into_iter().map(|look| look.1).collect();
    assert_eq!(outlines.len(), 4);
    for dash in ["first", "d1", "d2", "d3"] {
        // One in the legend, one in the data.
        assert_eq!(count(&drawn, "line", dash) + count(&drawn, "path", dash), 2, "{dash}");
    }
}

#[test]
fn a_lone_line_among_points_has_no_marks() {
    let line = series("left", Shape::Line, &[(0.0, 5.0), (9.0, 0.0)]);
    let points = series("passed", Shape::Points, &[(9.0, 0.0)]);
    let marks = |series| count(&elements(&draw(&chart("lesson", series))), "path", "mark");
    assert_eq!((marks(vec![line.clone(), points]), marks(vec![line])), (0, 3));
}

#[test]
fn many_lines_have_a_panel_each() {
    let drawn = elements(&draw(&many(Shape::Steps, 5)));
    assert_eq!(count(&drawn, "text", "name"), 5);
    assert_eq!(count(&drawn, "path", "line"), 5);
    assert_eq!(count(&drawn, "use", "ghost"), 5);
    assert_eq!(count(&elements(&draw(&many(Shape::Steps, 12))), "use", "ghost"), 0);
    assert_eq!(count(&elements(&draw(&many(Shape::Steps, 4))), "text", "name"), 0);
}

#[test]
fn bars_that_share_a_place_are_hatched() {
    let drawn = draw(&many(Shape::Bars, 3));
    let elements = elements(&drawn);
    let patterns: Vec<&str> = elements
        .iter()
        .filter(|element| element.tag == "pattern")
        .map(|element| element.attributes["id"].as_str())
        .collect();
    assert_eq!(patterns, ["many-hatch-1", "many-hatch-2"]);
    assert!(patterns.iter().all(|id| drawn.contains(&format!("url(#{id})"))));
}

#[test]
fn a_rule_is_drawn_and_named() {
    for chart in [boundary(), steady()] {
        let drawn = draw(&chart);
        assert_eq!(count(&elements(&drawn), "line", "rule"), 1);
        assert!(drawn.contains(">limit 60</text>"), "{drawn}");
    }
}

#[test]
fn nothing_is_called_no_data() {
    let drawn = draw(&chart("empty", vec![series("a", Shape::Bars, &[(1.0, f64::NAN)])]));
    assert!(drawn.contains(">no data</text>") && drawn.contains(">requests</text>"), "{drawn}");
}

/// The contrast of two colours, 1 to 21.
fn contrast(one: &str, other: &str) -> f64 {
    let channel = |digits: &str| {
        let value = f64::from(u8::from_str_radix(digits, 16).unwrap()) / 255.0;
        if value <= 0.04 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    let light = |colour: &str| {
        let long: String = colour
            .chars()
            .flat_map(|digit| vec![digit; if colour.len() == 3 { 2 } else { 1 }])
            .collect();
        0.2126 * channel(&long[..2]) + 0.7152 * channel(&long[2..4]) + 0.0722 * channel(&long[4..])
    };
    let (low, high) = (light(one).min(light(other)), light(one).max(light(other)));
    (high + 0.05) / (low + 0.05)
}

#[test]
fn every_colour_is_seen_on_its_paper() {
    let modes: Vec<&str> = STYLE.split("--paper:#").skip(1).collect();
    assert_eq!(modes.len(), 2);
    for mode in modes {
        let paper = mode.split(';').next().unwrap();
        let colour = |name: &str| {
            let (_, after) = mode.split_once(&format!("--{name}:#")).unwrap();
            after.split([';', '}']).next().unwrap()
        };
        for name in ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"] {
            let contrast = contrast(colour(name), paper);
            assert!(contrast >= 3.0, "{name} on {paper}: {contrast}");
        }
        for name in ["ink", "faint", "rule"] {
            let contrast = contrast(colour(name), paper);
            assert!(contrast >= 4.5, "{name} on {paper}: {contrast}");
        }
    }
}
