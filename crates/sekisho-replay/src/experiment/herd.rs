//! *herd*: clients that obey `Retry-After` and come back together.

use sekisho::{Span, Timestamp};

use super::{
    Experiment, Extra, Outcome,
    trial::{Bins, Traffic, Trial, axis, series, time},
};
use crate::{
    arrivals,
    chart::{Chart, Shape},
    world::{Clients, Retry, World, WorldError},
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "herd",
    title: "They all come back at once",
    question: "If every refused client waits as long as it is told, what happens when the waiting is over?",
    setting: "2,000 clients share a limit of 1,000 a minute, one request each, spread evenly over a minute: 33 or 34 a second. \
              Whoever is refused comes back after the `Retry-After` of the answer, in whole seconds as on the wire; in the rows \
              with jitter each waits up to 30 s longer, at random, never shorter. Nobody gives up.",
    reading: "A fixed window tells everybody the same moment: the second after the reset brings 1,000 requests instead of 33. \
              Jitter spreads them. A log, a sliding window and a bucket tell each client when the next unit is free, and all who \
              wait hear nearly the same: they come back every second and most are refused again, so that there are many more \
              requests in all. Jitter helps there too, and makes the last ones wait longer. A queue has no herd: a client is told \
              to wait in line, and then it is served.",
    run,
};

/// How much longer than told a client waits at most, where it does.
const JITTER: u64 = 30;

fn run() -> Result<Outcome, WorldError> {
    let traffic = Traffic::of_one(arrivals::herd());
    let (mut rows, mut arrived) = (Vec::new(), Vec::new());
    let (from, to) = (Timestamp::from_secs(60), Timestamp::from_secs(180));
    for (limit, jitter) in [
        ("1000/min fixed-window", 0),
        ("1000/min fixed-window", JITTER),
        ("1000/min sliding-log", 0),
        ("1000/min sliding-window", 0),
        ("1000/min burst 100 token-bucket", 0),
        ("1000/min burst 100 token-bucket", JITTER),
        ("1000/min burst 1000 leaky-queue", 0),
    ] {
        let clients =
            Clients { retry: Retry::Obey, jitter: Span::from_secs(jitter), tries: u32::MAX };
        let trial = Trial { world: World { clients, ..World::default() }, ..Trial::of(limit) };
        let mut bins = Bins::new(Span::from_secs(1));
        let mut row = trial.run(&traffic, |event, _| bins.add(event.at, 1))?;
        row.extras.push(Extra {
            name: "most_arrivals_per_second",
            title: "most arrivals in a second",
            value: bins.most(),
        });
        if jitter > 0 {
            row = row.called(format!("jitter up to {jitter} s"));
        }
        arrived.push(series(row.title(), Shape::Steps, bins.points(from, to)));
        rows.push(row);
    }
    let chart = Chart {
        name: "arrivals-per-second".to_owned(),
        title: "Requests that come, second by second".to_owned(),
        caption: "New clients come from 60 s to 120 s; all others are clients that come back. The fixed window ends at 120 s."
            .to_owned(),
        x: time(),
        y: axis("arrivals in a second", ""),
        series: arrived,
    };
    Ok((rows, vec![chart]))
}
