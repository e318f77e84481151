//! *steady*: a client that always asks for twice its limit.

use sekisho::{Span, Timestamp};

use super::{
    Experiment, Figure, Outcome,
    trial::{Bins, Traffic, Trial, axis, number, seconds, series, time},
};
use crate::{
    arrivals,
    chart::{Chart, Series, Shape},
    simulate::Simulation,
    trace::{Arrival, NO_KEY},
    world::WorldError,
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "steady",
    title: "Twice the limit, all the time",
    question: "If a client asks for twice its limit without a pause, how much does it get in the worst minute?",
    setting: "The limit is 60 a minute. Nothing comes for 100 s; then two requests a second come for two minutes, 240 in all. \
              The figure is the most that passed in any 60 s.",
    reading: "Only the sliding log never lets more than 60 pass in a minute. The fixed window lets 100 pass around the full \
              minute. The sliding window, which remembers two counts and no times, lets 86 pass. A token bucket lets its burst \
              pass on top of its rate: the larger the burst, the more. The queue refuses little at first: it makes requests \
              wait and starts them exactly one second apart, and nobody waits longer than 10 s.",
    run,
};

const QUEUE: &str = "1/s burst 10 leaky-queue";

/// Limits, and the most that the articles say passes in any 60 s.
const LIMITS: [(&str, u64); 5] = [
    ("60/min fixed-window", 100),
    ("60/min sliding-log", 60),
    ("60/min sliding-window", 86),
    ("60/min burst 10 token-bucket", 69),
    ("60/min token-bucket", 119),
];

fn run() -> Result<Outcome, WorldError> {
    let traffic = Traffic::of_one(arrivals::steady());
    let (mut rows, mut per_five, mut waits) = (Vec::new(), Vec::new(), Vec::new());
    let (from, to) = (Timestamp::from_secs(90), Timestamp::from_secs(224));
    for limit in LIMITS.map(|(limit, _)| limit).into_iter().chain([QUEUE]) {
        let mut bins = Bins::new(Span::from_secs(5));
        let row = Trial::of(limit).run(&traffic, |event, _| {
            bins.add_passed(event);
            if limit == QUEUE && event.outcome == sekisho::Outcome::Allow {
                waits.push((seconds(event.at), number(event.delay.as_nanos()) / 1e9));
            }
        })?;
        per_five.push(series(&row.limit, Shape::Steps, bins.points(from, to)));
        rows.push(match LIMITS.iter().find(|(of, _)| *of == limit) {
            Some((_, most)) => row.published(*most, Figure::MostInWindow),
            None => row.published(Span::from_secs(10).as_nanos(), Figure::LongestWait),
        });
    }
    let per_five = Chart {
        name: "passed-per-5s".to_owned(),
        title: "Requests that pass, in each 5 s".to_owned(),
        caption: "10 come in each 5 s, and 5 are the limit. The fixed window and the log let all pass and then \
                  none; the others settle near the rate."
            .to_owned(),
        x: time(),
        y: axis("passed in 5 s", ""),
        series: per_five,
    };
    let tokens = Chart {
        name: "tokens".to_owned(),
        title: "What is in the bucket".to_owned(),
        caption: "The bucket is full when the requests begin. They take two tokens a second and one comes back; once it is \
                  empty, each token is taken as soon as it is there."
            .to_owned(),
        x: time(),
        y: axis("tokens", ""),
        series: vec![tokens("60/min burst 10 token-bucket")?, tokens("60/min token-bucket")?],
    };
    let longest = Series {
        name: "the longest that may wait".to_owned(),
        shape: Shape::Rule,
        points: vec![(90.0, 10.0)],
    };
    let waits = Chart {
        name: "waits".to_owned(),
        title: "How long the queue makes them wait".to_owned(),
        caption: "Two come each second and one starts, so each waits half a second longer than the one before, until ten \
                  stand in line. From then on every other one is denied, and the rest wait for ten seconds."
            .to_owned(),
        x: axis("time of coming", "s"),
        y: axis("wait", "s"),
        series: vec![series(QUEUE, Shape::Points, waits), longest],
    };
    Ok((rows, vec![per_five, tokens, waits]))
}

/// Returns the tokens before and after each request.
fn tokens(text: &str) -> Result<Series, WorldError> {
    let limit = super::limit(text);
    let simulation = Simulation::new(vec![limit]);
    let full = number(limit.capacity().unwrap_or_default());
    let mut points = vec![(90.0, full)];
    for request in arrivals::steady() {
        for cost in [0, 1] {
            let arrival = Arrival { at: request.at, key: NO_KEY.to_owned(), cost };
            let answer = simulation.decide(&arrival)?;
            // A token comes back each second, so the seconds until it is full are the tokens that lack.
            let lacking = answer.verdicts.first().map(|verdict| verdict.reset_after);
            let lacking = number(lacking.unwrap_or_default().as_nanos()) / 1e9;
            points.push((seconds(request.at), full - lacking));
        }
    }
    Ok(series(limit.to_string(), Shape::Line, points))
}
