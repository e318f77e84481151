//! *burst*: what is in a bucket after a pause.

use sekisho::Timestamp;

use super::{
    Experiment, Figure, Outcome, Row,
    trial::{Traffic, Trial},
};
use crate::{pattern::Request, world::WorldError};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "burst",
    title: "A pause fills the bucket",
    question: "After a pause, how many requests may come at once?",
    setting: "A bucket holds 20 tokens, and 100 come back each minute. It is emptied; then nothing comes for 10 s. In the first \
              row all 20 ask again, one by one. In the second only 15 ask, and then five more.",
    reading: "10 s bring 16 whole tokens and two thirds of one. So 16 of the 20 pass. If 15 ask at once, all of them pass and \
              one token is left: of the five more, one passes.",
    run,
};

const LIMIT: &str = "100/min burst 20 token-bucket";

fn run() -> Result<Outcome, WorldError> {
    let at = |second, cost| Request { at: Timestamp::from_secs(second), key: 0, cost };
    let after_pause = |costs: &[u64]| -> Result<Row, WorldError> {
        let mut requests = vec![at(100, 20)];
        requests.extend(costs.iter().map(|cost| at(110, *cost)));
        let mut row = Trial::of(LIMIT).run(&Traffic::of_one(requests), |_, _| ())?;
        // What emptied it is not part of the figure.
        row.passed -= 20;
        Ok(row)
    };
    let all = after_pause(&[1; 20])?;
    let fifteen = after_pause(&[15])?;
    let mut left = after_pause(&[15, 1, 1, 1, 1, 1])?;
    left.passed -= fifteen.passed;
    Ok((
        vec![
            all.called("20 after the pause").published(16, Figure::Passed),
            fifteen.called("15 at once after the pause").published(15, Figure::Passed),
            left.called("5 more after those").published(1, Figure::Passed),
        ],
        Vec::new(),
    ))
}
