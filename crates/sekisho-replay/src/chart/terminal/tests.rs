//! What a terminal shows.

use super::draw;
use crate::chart::{
    Shape,
    samples::{awkward, boundary, chart, many, series, steady},
    text,
};

#[test]
fn totals_are_a_ranking() {
    let expected = "\
boundary

fixed-window │████████████████████╎█████████████████████ 120
sliding-log  │████████████████████╎ 60
burst 60     │████████████████████╎▍ 61
burst 10     │███▉ 11             ╎
             └┬──────┬──────┬──────┬──────┬──────┬─────┬
              0     20     40     60     80     100  120
                                                requests
╎ limit = 60
";
    assert_eq!(draw(&boundary(), 60, false), expected);
}

#[test]
fn lines_over_time_have_marks() {
    let expected = "\
steady

requests
100 ┤                                  ⡏⠉⠉⠉●⠉⠉⡇
    │                                  ⡇      ⡇
 80 ┤                           ⢸⠉⠉⠉⠉⠉⠉⠁      ⡇
    │                           ⢸             ⡇
 60 ┤╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌⢀▲⠔⢺⠉⠉⠉⠉⠉●⠉⠉⠉▲⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⡏▲⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉▲
    │              ⣀⠤⠒⠁  ⢸                    ⡇
 40 ┤          ⢀⡠⠔⢺●⠉⠉⠉⠉⠉⠉                    ⡇            ⢸
    │       ⣀⠤⠒⠁  ⢸                           ⡇            ⢸
 20 ┤   ⢀⡠⠔▲⠉⠉⠉⠉⠉⠉⠉                           ⡇      ⡏⠉●⠉⠉⠉⠉
  0 ┤⣠⣔●⣁⣀⣀⣸                                  ⣇⣀⣀⣀⣀⣀⣀⡇
    └┬─────┬──────┬──────┬──────┬──────┬──────┬──────┬─────┬
     0    10     20     30     40     50     60     70    80
                                                    time (s)
● window   ▲ log   ╌╌ limit = 60
";
    assert_eq!(draw(&steady(), 60, false), expected);
}

#[test]
fn no_line_is_too_long_and_nothing_steers_the_terminal() {
    for chart in awkward() {
        for width in [40, 41, 71, 72, 80, 200] {
            for line in draw(&chart, width, false).lines() {
                assert!(text::width(line) <= width, "{width}: {line:?} of {chart:?}");
                assert!(
                    !line.contains(|letter: char| letter.is_control() || letter == '\u{202e}'),
                    "{line:?}"
                );
                assert!(!line.contains("NaN") && !line.contains("inf"), "{line:?}");
            }
        }
    }
}

#[test]
fn colour_adds_codes_and_nothing_else() {
    for chart in awkward() {
        let (plain, colourful) = (draw(&chart, 80, false), draw(&chart, 80, true));
        let parts = colourful.split('\u{1b}').enumerate();
        let without: String = parts
            .map(
                |(at, part)| {
                    if at == 0 { part } else { part.split_once('m').map_or("", |code| code.1) }
                },
            )
            .collect();
        assert_eq!(without, plain);
        assert_ne!(colourful, plain);
    }
}

#[test]
fn a_narrow_terminal_is_forty_columns() {
    assert_eq!(draw(&steady(), 0, false), draw(&steady(), 40, false));
}

#[test]
fn nothing_is_called_no_data() {
    for points in [&[][..], &[(f64::NAN, 1.0)]] {
        let drawn = draw(&chart("empty", vec![series("a", Shape::Line, points)]), 80, false);
        assert!(
            drawn.contains("no data") && drawn.contains("requests") && drawn.contains("time (s)"),
            "{drawn}"
        );
    }
}

#[test]
fn every_series_has_its_own_mark_beside_its_name() {
    for shape in [Shape::Line, Shape::Steps, Shape::Points, Shape::Bars] {
        for count in [2, 3, 12] {
            let drawn = draw(&many(shape, count), 80, false);
            let mut signs: Vec<char> = (0..count)
                .map(|number| {
                    let at = drawn.replace('\n', " ").rfind(&format!(" key-{number} ")).unwrap();
                    drawn[..at].chars().next_back().unwrap()
                })
                .collect();
            assert!(signs.iter().all(|sign| !sign.is_whitespace()), "{drawn}");
            signs.sort_unstable();
            signs.dedup();
            // Three bars a place have no room, and bars that stand apart are told apart by their names.
            let apart = shape == Shape::Bars && count > 2;
            assert_eq!(
                signs.len(),
                if apart { 1 } else { usize::try_from(count).unwrap() },
                "{drawn}"
            );
        }
    }
}

#[test]
fn a_lone_line_among_points_has_no_marks() {
    let line = series("left", Shape::Steps, &[(0.0, 5.0), (9.0, 0.0)]);
    let points = series("passed", Shape::Points, &[(9.0, 0.0)]);
    let drawn = draw(&chart("lesson", vec![line, points]), 60, false);
    assert!(drawn.contains("─ left   ▲ passed"), "{drawn}");
    assert_eq!((drawn.matches('●').count(), drawn.matches('▲').count()), (0, 2), "{drawn}");
}

#[test]
fn a_long_name_has_two_lines() {
    let mut many = many(Shape::Line, 4);
    "1000/min burst 100 token-bucket, jitter up to 30 s".clone_into(&mut many.series[0].name);
    let drawn = draw(&many, 80, false);
    assert!(
        drawn.contains("● 1000/min burst 100 token-bucket,")
            && drawn.contains("\n  jitter up to 30 s\n"),
        "{drawn}"
    );
}

#[test]
fn twelve_lines_are_twelve_panels_with_one_scale() {
    let drawn = draw(&many(Shape::Steps, 12), 80, false);
    assert_eq!(drawn.matches("−5 ┤").count(), 12, "{drawn}");
    assert!(drawn.contains("╌╌ quota = 10"), "{drawn}");
}

#[test]
fn a_rule_is_dashed_and_has_its_value() {
    let drawn = draw(&steady(), 80, false);
    let line = drawn.lines().find(|line| line.contains('╌')).unwrap();
    assert!(line.starts_with(" 60 ┤╌╌"), "{drawn}");
    assert!(drawn.contains("╌╌ limit = 60"), "{drawn}");
}

#[test]
fn bars_go_down_from_nought() {
    let bars = series("a", Shape::Bars, &[(0.0, 4.0), (1.0, -4.0)]);
    let drawn = draw(&chart("both", vec![bars]), 40, false);
    let lines: Vec<&str> = drawn.lines().collect();
    let zero = lines.iter().position(|line| line.starts_with(" 0 ┤─")).unwrap();
    let column = |line: &str| line.chars().position(|letter| letter == '█').unwrap();
    assert!(column(lines[zero - 1]) < column(lines[zero + 1]), "{drawn}");
}
