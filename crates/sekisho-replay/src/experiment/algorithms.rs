//! The six algorithms for someone who has never seen one: a paragraph in plain words and a picture of each.

use sekisho::{Outcome, Span, Timestamp};

use super::trial::{axis, number, seconds, series, time};
use crate::{
    chart::{Chart, Shape},
    simulate::Simulation,
    trace::{Arrival, NO_KEY},
    world::WorldError,
};

/// One algorithm, explained.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson {
    /// Its name in a limit's text.
    pub name: &'static str,
    /// Its name in words.
    pub title: &'static str,
    /// How it works, one paragraph each.
    pub text: [&'static str; 2],
    /// What it does with the same requests as all others.
    pub chart: Chart,
}

struct Words {
    name: &'static str,
    title: &'static str,
    limit: &'static str,
    text: [&'static str; 2],
}

const WORDS: [Words; 6] = [
    Words {
        name: "fixed-window",
        title: "Fixed window",
        limit: "5/10s fixed-window",
        text: [
            "Think of a doorkeeper with a counter and a wall clock. Each guest adds one. At five the door is shut. When the clock \
             reaches the next full ten seconds the counter goes back to zero and the door is open again.",
            "It remembers one number, and it is easy to explain. Its weak spot is the moment of the reset: five guests just \
             before it and five just after it are ten within a moment, twice what was promised.",
        ],
    },
    Words {
        name: "anchored-window",
        title: "Anchored window",
        limit: "5/10s anchored-window",
        text: [
            "The same doorkeeper, but the ten seconds begin when the first guest comes, not when the wall clock says so. After \
             ten seconds the counter is thrown away, and the next guest begins a new ten seconds.",
            "Guests do not all meet the same reset, since each has a first visit of its own. The weak spot stays: a window's end \
             and the next one's beginning can be used together.",
        ],
    },
    Words {
        name: "sliding-log",
        title: "Sliding log",
        limit: "5/10s sliding-log",
        text: [
            "The doorkeeper writes down the time of every guest who enters. When a new guest comes, all lines older than ten \
             seconds are crossed out. If fewer than five are left, the guest may enter.",
            "No stretch of ten seconds ever has more than five guests, wherever it begins. The price is paper: one line for each \
             guest of the last ten seconds.",
        ],
    },
    Words {
        name: "sliding-window",
        title: "Sliding window",
        limit: "5/10s sliding-window",
        text: [
            "The doorkeeper keeps two counters: this ten seconds and the ten before. The older one fades: three seconds into the \
             new ten, seven tenths of it still count. If both together leave room for one more, the guest may enter.",
            "It needs no list, and it has no hard reset. But it guesses that the older guests came evenly, so that it is \
             sometimes a little too strict and sometimes a little too kind.",
        ],
    },
    Words {
        name: "token-bucket",
        title: "Token bucket",
        limit: "5/10s burst 5 token-bucket",
        text: [
            "There is a bowl with five tokens. A guest takes one to enter. A new token falls into the bowl every two seconds; \
             when the bowl is full, nothing is added. Who finds no token waits or goes away.",
            "After a quiet time several guests may enter at once, and after that one every two seconds. The size of the bowl and \
             the pace of the tokens can be chosen apart. GCRA is the same thing written as one instant: when the bowl will be \
             full again.",
        ],
    },
    Words {
        name: "leaky-queue",
        title: "Leaky queue",
        limit: "5/10s burst 3 leaky-queue",
        text: [
            "Guests stand in a line, and the door opens for one every two seconds. There is room for three who wait. A guest who \
             finds the line full is sent away.",
            "Nobody behind the door ever sees a crowd: guests enter evenly, whatever happens outside. The price is waiting. In \
             the picture the time of entering stands beside the time of coming.",
        ],
    },
];

/// The requests of every picture: eight in a hurry before a full ten seconds, eight after it, and then one every two seconds.
fn requests() -> impl Iterator<Item = u64> {
    let hurry = |from_ms: u64| (0..8).map(move |i| from_ms + i * 200);
    hurry(8_000).chain(hurry(10_500)).chain((0..8).map(|i| 15_000 + i * 2_000))
}

/// Returns the six algorithms, explained, in the order of the documentation.
///
/// # Errors
/// [`WorldError`], which does not happen while the memory store works.
pub fn lessons() -> Result<Vec<Lesson>, WorldError> {
    WORDS.iter().map(lesson).collect()
}

fn lesson(words: &Words) -> Result<Lesson, WorldError> {
    let simulation = Simulation::new(vec![super::limit(words.limit)]);
    let ask = |ms: u64, cost| {
        let at = Timestamp::from_nanos(ms * 1_000_000);
        simulation.decide(&Arrival { at, key: NO_KEY.to_owned(), cost })
    };
    // Looks every tenth of a second show what comes back between the requests. At the same instant a look is first.
    let mut moments: Vec<(u64, u64)> = (0..=300).map(|tenth| (tenth * 100, 0)).collect();
    moments.extend(requests().map(|ms| (ms, 1)));
    moments.sort_unstable();
    let (mut left, mut passed, mut denied, mut starts) =
        (Vec::<(f64, f64)>::new(), Vec::new(), Vec::new(), Vec::new());
    for (ms, cost) in moments {
        let at = Timestamp::from_nanos(ms * 1_000_000);
        let answer = ask(ms, cost)?;
        let joint = answer.joint();
        let remaining = answer.verdicts.first().and_then(|verdict| verdict.remaining);
        let point = (seconds(at), number(remaining.unwrap_or_default()));
        if left.last().is_none_or(|last| last.1.total_cmp(&point.1).is_ne()) || ms == 30_000 {
            left.push(point);
        }
        match (cost, joint.outcome) {
            (0, _) => {}
            (_, Outcome::Allow) => passed.push(point),
            _ => denied.push((point.0, 0.0)),
        }
        if cost > 0 && joint.delay > Span::ZERO {
            starts.push((seconds(at.plus(joint.delay)), point.1));
        }
    }
    let mut drawn = vec![
        series("units left", Shape::Steps, left),
        // In this order what is denied has the warm colour.
        series("denied", Shape::Points, denied),
        series("passed", Shape::Points, passed),
    ];
    if !starts.is_empty() {
        drawn.push(series("entered after a wait", Shape::Points, starts));
    }
    let chart = Chart {
        name: words.name.to_owned(),
        title: words.limit.to_owned(),
        caption: "Eight requests come in a hurry before second 10, eight after it, and then one every two seconds.".to_owned(),
        x: time(),
        y: axis("units left", ""),
        series: drawn,
    };
    Ok(Lesson { name: words.name, title: words.title, text: words.text, chart })
}
