//! *boundary*: two full helpings around the moment at which a window ends.

use sekisho::{Span, Timestamp};

use super::{
    Experiment, Figure, Outcome,
    trial::{Bins, Traffic, Trial, axis, seconds, series, time},
};
use crate::{
    arrivals,
    chart::{Chart, Shape},
    world::WorldError,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "boundary",
    title: "The end of a window",
    question: "Can a client get twice its limit by asking just before and just after the count starts anew?",
    setting: "The limit is 60 a minute. 60 requests come in the last second of a minute, and 60 more in the first second of \
              the next: 120 within two seconds.",
    reading: "A fixed window lets all 120 pass, twice what was promised, since it starts a new count at the full minute. A \
              sliding log and a sliding window let 60 pass. A token bucket lets its burst pass and then one a second.",
    run,
};

/// Limits, and how many of the 120 the articles say that pass.
const LIMITS: [(&str, u64); 5] = [
    ("60/min fixed-window", 120),
    ("60/min sliding-log", 60),
    ("60/min sliding-window", 60),
    ("60/min token-bucket", 61),
    ("60/min burst 10 token-bucket", 11),
];

fn run() -> Result<Outcome, WorldError> {
    let traffic = Traffic::of_one(arrivals::boundary());
    let (mut rows, mut per_second, mut in_window) = (Vec::new(), Vec::new(), Vec::new());
    let (from, to) = (Timestamp::from_secs(57), Timestamp::from_secs(62));
    for (limit, published) in LIMITS {
        let mut bins = Bins::new(Span::from_secs(1));
        let mut recent = vec![(seconds(from), 0.0)];
        let row = Trial::of(limit).run(&traffic, |event, units| {
            bins.add_passed(event);
            recent.push((seconds(event.at), super::trial::number(units)));
        })?;
        recent.push((seconds(to), super::trial::number(row.most_in_window.unwrap_or_default())));
        per_second.push(series(&row.limit, Shape::Bars, bins.points(from, to)));
        in_window.push(series(&row.limit, Shape::Steps, recent));
        rows.push(row.published(published, Figure::Passed));
    }
    in_window.push(series("the limit", Shape::Rule, vec![(seconds(from), 60.0)]));
    let per_second = Chart {
        name: "passed-per-second".to_owned(),
        title: "Requests that pass, second by second".to_owned(),
        caption: "60 requests come in second 59 and 60 in second 60.".to_owned(),
        x: time(),
        y: axis("passed", ""),
        series: per_second,
    };
    let in_window = Chart {
        name: "passed-in-the-last-minute".to_owned(),
        title: "Requests that have passed in the last 60 s".to_owned(),
        caption: "Only the fixed window goes far above the limit of 60; the full bucket goes one above it.".to_owned(),
        x: time(),
        y: axis("passed in the last 60 s", ""),
        series: in_window,
    };
    Ok((rows, vec![per_second, in_window]))
}
