//! *race*: several processes, one key, one shared store.
//!
//! It needs a server and the time of real clocks, so whoever runs it brings the counts: this says what is raced, what has to come
//! out, and how it is told.

use sekisho::Span;

use super::{Extra, Figure, Report, Row, Trials};

/// The word that runs it.
pub const NAME: &str = "race";
/// What it asks.
pub const QUESTION: &str =
    "Do several processes that count in one store let through exactly what one would?";
/// How many processes ask at the same moment.
pub const PROCESSES: u32 = 8;
/// How many requests each of them has.
pub const REQUESTS: u32 = 50;
/// How many of all requests may pass.
pub const ALLOWED: u64 = 100;
/// How often a way of counting is tried when nobody says.
pub const TRIALS: u32 = 20;

/// A way to count that is raced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// The algorithm's name, or what the faulty way does.
    pub name: &'static str,
    /// The limit, of which exactly [`ALLOWED`] fit at once.
    pub limit: &'static str,
    /// `None` for ours. Otherwise the count is read, compared, and then raised, with this pause before the last.
    pub pause: Option<Span>,
    /// Whether each process sends all of its requests before it has an answer, or one after the other.
    pub at_once: bool,
    published: Option<(u64, Figure)>,
}

/// What is raced, in the order of the rows. Nothing comes back within seconds: at most a unit in 36 s.
///
/// A store may decide in one call what is on its way at once, and that is how a busy server asks. One by one, as the faulty way
/// does, every request that passes is a call of its own, between those of all other processes.
pub const METHODS: [Method; 14] = {
    let [fixed, anchored, log, sliding, bucket, queue] = OURS;
    [
        at_once(fixed),
        at_once(anchored),
        at_once(log),
        at_once(sliding),
        at_once(bucket),
        at_once(queue),
        fixed,
        anchored,
        log,
        sliding,
        bucket,
        queue,
        faulty(Span::ZERO, 106),
        faulty(Span::from_nanos(1_000_000), 107),
    ]
};

const OURS: [Method; 6] = [
    ours("fixed-window", "100/h fixed-window", None),
    ours("anchored-window", "100/h anchored-window", Some((100, Figure::Passed))),
    ours("sliding-log", "100/h sliding-log", None),
    ours("sliding-window", "100/h sliding-window", None),
    ours("token-bucket", "1/h burst 100 token-bucket", Some((100, Figure::Passed))),
    ours("leaky-queue", "100/h burst 99 leaky-queue", None),
];

const fn ours(name: &'static str, limit: &'static str, published: Option<(u64, Figure)>) -> Method {
    Method { name, limit, pause: None, at_once: false, published }
}

const fn at_once(method: Method) -> Method {
    Method { at_once: true, ..method }
}

/// What is read and then written is an anchored window, as `INCR` and `EXPIRE` make one.
const fn faulty(pause: Span, published: u64) -> Method {
    Method {
        name: "check-then-incr",
        limit: "100/h anchored-window",
        pause: Some(pause),
        at_once: false,
        published: Some((published, Figure::AtMost)),
    }
}

/// What came out of a method's trials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raced {
    /// What was raced.
    pub method: Method,
    /// How many requests passed, trial by trial.
    pub passed: Vec<u64>,
    /// How many calls of the method the server ran in all trials; `None` when it does not say.
    pub calls: Option<u64>,
    /// How long all trials took together, from their starts to their last answers.
    pub took: Span,
    /// The median of the server's replies to `PING`, one after the other, just before.
    pub ping_median: Span,
}

/// Returns the report.
pub fn report(raced: &[Raced]) -> Report {
    Report {
        name: NAME.to_owned(),
        title: "Many processes, one key".to_owned(),
        question: QUESTION.to_owned(),
        setting: format!(
            "{PROCESSES} processes share one key in one store, of whose limit {ALLOWED} requests may pass. They are told to \
             begin at the same moment, and each has {REQUESTS} requests, so {} in all; nothing comes back meanwhile. Sekisho is \
             asked {REQUESTS} times at once by each process, and then one by one. The faulty way in the last two rows reads the \
             count, compares it, and then raises it, one by one: first without and then with a pause of 1 ms in between.",
            PROCESSES * REQUESTS
        ),
        reading: "Sekisho decides and counts in one step on the server, so nobody comes in between. Who reads first and \
                  raises later lets through what others have read meanwhile: with one request at a time in each process, up to \
                  one more for every other process. A process of Sekisho decides in one call what it is asked at once, and \
                  repeats a denial that must still hold by itself, so there are far more decisions than calls: only the calls \
                  can be compared with PING."
            .to_owned(),
        rows: raced.iter().map(row).collect(),
        charts: Vec::new(),
    }
}

/// Returns what is wrong with ours, one sentence a method. The faulty way may do as it likes.
pub fn wrong(raced: &[Raced]) -> Vec<String> {
    let ours = raced.iter().filter(|raced| raced.method.pause.is_none());
    ours.filter_map(|raced| {
        let wrong: Vec<_> = raced.passed.iter().filter(|passed| **passed != ALLOWED).collect();
        let first = wrong.first()?;
        let (name, trials) = (raced.method.name, raced.passed.len());
        let count = wrong.len();
        let how = if raced.method.at_once { "at once" } else { "one by one" };
        Some(format!(
            "{name}, {how}: not {ALLOWED} but {first} passed, in {count} of {trials} trials so"
        ))
    })
    .collect()
}

fn row(raced: &Raced) -> Row {
    let Raced { method, passed, calls, took, ping_median } = raced;
    let most = passed.iter().max().copied().unwrap_or_default();
    let count = passed.len() as u64;
    let requests = u64::from(PROCESSES * REQUESTS);
    let per_second =
        u128::from(count * requests) * 1_000_000_000 / u128::from(took.as_nanos().max(1));
    let extras = method.pause.map(|pause| Extra {
        name: "pause_ns",
        title: "pause",
        value: pause.as_nanos(),
    });
    let row = Row {
        limit: method.limit.to_owned(),
        method: Some(method.name.to_owned()),
        passed: most,
        denied: requests.saturating_sub(most),
        most_in_window: None,
        longest_wait: Span::ZERO,
        published: None,
        published_for: Figure::Passed,
        trials: Some(Trials {
            count,
            passed_min: passed.iter().min().copied().unwrap_or_default(),
            passed_max: most,
            over: passed.iter().filter(|passed| **passed > ALLOWED).count() as u64,
            at_once: if method.at_once { REQUESTS.into() } else { 1 },
            calls: *calls,
            per_second: u64::try_from(per_second).unwrap_or(u64::MAX),
            ping_median: *ping_median,
        }),
        extras: extras.into_iter().collect(),
    };
    match method.published {
        Some((figure, of)) => row.published(figure, of),
        None => row,
    }
}

#[cfg(test)]
mod tests {
    use sekisho::Limit;

    use super::*;

    fn raced(method: Method, passed: &[u64]) -> Raced {
        let ping_median = Span::from_nanos(27_000);
        Raced {
            method,
            passed: passed.to_vec(),
            calls: None,
            took: Span::from_secs(2),
            ping_median,
        }
    }

    #[test]
    fn exactly_a_hundred_fit_and_nothing_comes_back_soon() {
        for method in METHODS {
            let limit: Limit = method.limit.parse().unwrap();
            assert_eq!(limit.to_string(), method.limit);
            assert_eq!(limit.capacity(), Some(ALLOWED), "{limit}");
            let metered = limit.as_metered().unwrap();
            assert!(
                metered.amount().get() <= 100
                    && metered.period().shortest() >= Span::from_secs(3_600)
            );
            let algorithm = metered.algorithm().to_string();
            assert!(method.pause.is_some() || algorithm == method.name, "{limit}");
        }
    }

    #[test]
    fn one_trial_that_is_off_by_one_is_wrong_for_ours_alone() {
        let [fixed, .., faulty] = METHODS;
        assert_eq!(wrong(&[raced(fixed, &[100, 100]), raced(faulty, &[100, 107])]), [""; 0]);
        assert_eq!(
            wrong(&[raced(fixed, &[100, 99]), raced(faulty, &[107])]),
            ["fixed-window, at once: not 100 but 99 passed, in 1 of 2 trials so"]
        );
    }

    #[test]
    fn a_row_has_the_least_and_the_most() {
        let report = report(&[raced(METHODS[13], &[100, 107, 103])]);
        let trials = report.rows[0].trials.clone().unwrap();
        assert_eq!(
            (trials.count, trials.passed_min, trials.passed_max, trials.over),
            (3, 100, 107, 2)
        );
        assert_eq!((trials.per_second, report.rows[0].ours()), (600, 107));
    }
}
