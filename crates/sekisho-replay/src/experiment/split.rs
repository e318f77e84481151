//! *split*: a limit divided over two servers.

use super::{
    Experiment, Figure, Outcome,
    trial::{Traffic, Trial},
};
use crate::{
    arrivals,
    world::{Counting, Servers, World, WorldError},
};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "split",
    title: "One limit, two servers",
    question: "May each of two servers simply enforce half of the limit?",
    setting: "The limit is 60 a minute. A client sends exactly 60 in a minute, which it may. Two servers share the work, and \
              each lets 30 pass; or both count in one place.",
    reading: "Halves are right only while the client's requests are divided evenly. When one server gets 80 % of them it sees \
              48, lets 30 pass and denies 18, though the client is within its limit; and the other half stays unused. Counted \
              in one place, all 60 pass however they are divided.",
    run,
};

fn run() -> Result<Outcome, WorldError> {
    let traffic = Traffic::of_one(arrivals::split());
    let mut rows = Vec::new();
    for (method, counting, shares, (published, figure)) in [
        ("30 + 30, divided evenly", Counting::Split, [50, 50], (60, Figure::Passed)),
        ("30 + 30, divided 80 to 20", Counting::Split, [80, 20], (18, Figure::Denied)),
        (
            "counted in one place, divided 80 to 20",
            Counting::Shared,
            [80, 20],
            (60, Figure::Passed),
        ),
    ] {
        let servers = Servers::several(counting, shares.to_vec());
        let trial = Trial {
            world: World { servers, ..World::default() },
            ..Trial::of("60/min fixed-window")
        };
        rows.push(trial.run(&traffic, |_, _| ())?.called(method).published(published, figure));
    }
    Ok((rows, Vec::new()))
}
