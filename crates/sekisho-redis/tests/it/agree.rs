//! Memory and Redis say the same of every trace in whole microseconds, to the last nanosecond.
//!
//! `SEKISHO_DECISIONS` sets how many decisions are made (8,000 by default), `SEKISHO_SEED` the first seed.

use std::{collections::BTreeMap, env};

use sekisho::{Ask, Charge, Mode, Now, Outcome, Span, StoreError, Timestamp};
use sekisho_testkit::generate::Rng;

use crate::support::{Counted, Pair, all_expire};

const SECOND: u64 = 1_000_000;
/// How many decisions are made on one server.
const TRACE: u64 = 2_000;

/// Limits of which every three share a state, so that the numbers change under way.
pub(crate) const LIMITS: [(&str, [&str; 3]); 22] = [
    ("seven", ["7/min", "11/min burst 3", "60/min burst 100"]),
    ("fast", ["999999/s", "3000000000/s", "1/s burst 5"]),
    ("tiny", ["3/10us", "7/10us burst 2", "1/10us"]),
    ("slow", ["1/day burst 4", "1000000/day", "9/day"]),
    ("ages", ["1/3650day burst 9", "7/3650day burst 63", "3/3650day burst 20"]),
    ("huge", ["2251799813685248/s", "2251799813685247/s burst 5", "1/s"]),
    ("minute", ["10/min fixed-window", "3/min fixed-window", "1000/min fixed-window"]),
    ("odd", ["5/7us fixed-window", "2251799813685248/7us fixed-window", "2/7us fixed-window"]),
    ("today", ["9/calendar-day", "3/calendar-day", "100/calendar-day"]),
    (
        "berlin",
        [
            "9/calendar-month zone Europe/Berlin",
            "5/calendar-month zone Europe/Berlin",
            "5/calendar-month zone Asia/Tokyo",
        ],
    ),
    (
        "first",
        ["7/10s anchored-window", "3/10s anchored-window", "2251799813685248/10s anchored-window"],
    ),
    ("anchor", ["5/7us anchored-window", "2/7us anchored-window", "9/7us anchored-window"]),
    ("slide", ["7/min sliding-window", "3/min sliding-window", "100/min sliding-window"]),
    (
        "glide",
        ["5/7us sliding-window", "2/7us sliding-window", "2251799813685248/7us sliding-window"],
    ),
    (
        "epoch",
        [
            "2251799813685248/3650day sliding-window",
            "9007199254740/3650day sliding-window",
            "3/3650day sliding-window",
        ],
    ),
    ("log", ["7/min sliding-log", "3/min sliding-log", "20/min sliding-log"]),
    ("diary", ["5/7us sliding-log", "2/7us sliding-log", "2251799813685248/7us sliding-log"]),
    (
        "coarse",
        [
            "7/min sliding-log resolution 10s",
            "3/min sliding-log resolution 7s",
            "20/min sliding-log resolution 1min",
        ],
    ),
    (
        "rough",
        [
            "5/7us sliding-log resolution 3us",
            "2/7us sliding-log resolution 7us",
            "2251799813685248/7us sliding-log",
        ],
    ),
    ("queue", ["7/min burst 5 leaky-queue", "3/min leaky-queue", "60/min burst 20 leaky-queue"]),
    ("line", ["3/10us burst 6 leaky-queue", "7/10us burst 2 leaky-queue", "1/10us leaky-queue"]),
    (
        "row",
        ["999999/s burst 9 leaky-queue", "3000000000/s leaky-queue", "1/day burst 5 leaky-queue"],
    ),
];

pub(crate) fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// A trace's time, which mostly goes on, by about what matters to one of the limits.
fn step(rng: &mut Rng, us: u64) -> u64 {
    match rng.below(20) {
        0..7 => us,
        7..12 => us + rng.below(20),
        12..14 => us + rng.below(SECOND),
        14..16 => us + rng.below(20) * SECOND,
        16 => us + rng.below(100_000) * SECOND,
        17 => us.saturating_sub(rng.below(20)),
        18 => us.saturating_sub(rng.below(90 * SECOND)),
        _ => (us / (60 * SECOND) + 1) * 60 * SECOND - rng.below(2),
    }
}

pub(crate) fn cost(rng: &mut Rng, capacity: u64) -> u64 {
    match rng.below(14) {
        0..7 => 1,
        7 => 0,
        8 => capacity,
        9 if rng.chance(1, 4) => capacity.saturating_add(1),
        10 => rng.between(0, capacity),
        11 => capacity / 2,
        _ => rng.below(4),
    }
}

fn mode(rng: &mut Rng, us: u64, before: u64) -> Mode {
    match rng.below(20) {
        0..14 => Mode::Check,
        14 => Mode::Look,
        15 | 16 => Mode::Force,
        _ => {
            let at = match rng.below(8) {
                0..5 => before,
                5 => us,
                6 => us.saturating_sub(rng.below(20)),
                _ => us.saturating_sub(rng.below(90 * SECOND)),
            };
            Mode::Refund { at: Timestamp::from_nanos(at * 1_000) }
        }
    }
}

/// Returns one to four of the limits, each with one of its numbers.
fn some(rng: &mut Rng) -> Vec<Counted> {
    let key = *rng.pick(&["u", "v"]);
    let first = usize::try_from(rng.below(LIMITS.len() as u64)).unwrap();
    let several = if rng.chance(1, 3) { rng.between(2, 4) } else { 1 };
    let apart = *rng.pick(&[1, 3, 7]);
    (0..usize::try_from(several).unwrap())
        .map(|more| {
            let (id, numbers) = LIMITS[(first + more * apart) % LIMITS.len()];
            let number = if rng.chance(3, 4) { 0 } else { rng.between(1, 2) };
            Counted::new(numbers[usize::try_from(number).unwrap()], id, key)
        })
        .collect()
}

/// Makes some decisions on a server of their own, and counts what was said by whom.
async fn trace(seed: u64, decisions: u64) -> BTreeMap<String, usize> {
    let pair = Pair::start();
    let mut connection = pair.connection().await;
    let mut rng = Rng::new(seed);
    let mut us = 1_700_000_000 * SECOND + rng.below(86_400 * SECOND);
    let mut said = BTreeMap::new();
    for _ in 0..decisions {
        let before = us;
        us = step(&mut rng, us);
        if rng.chance(1, 400) {
            let _: () =
                redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut connection).await.unwrap();
        }
        let counted = some(&mut rng);
        let charges: Vec<Charge<'_>> = counted
            .iter()
            .map(|one| one.charge(cost(&mut rng, one.limit.capacity().unwrap())))
            .collect();
        let mode = mode(&mut rng, us, before);
        let longest = match rng.below(4) {
            0 => Some(Span::from_nanos(rng.below(5_000))),
            1 => Some(Span::from_nanos(rng.below(20) * 1_000_000_000)),
            _ => None,
        };
        let ask = Ask { longest, ..Ask::new(&charges, mode) };
        let word = match pair.decide(ask, Now::At(Timestamp::from_nanos(us * 1_000))).await {
            Ok(answer) => answer.joint().outcome.as_str(),
            Err(StoreError::Unsupported(_)) => "unsupported",
            Err(error) => panic!("seed {seed}: {error}"),
        };
        *said.entry(word.to_owned()).or_default() += 1;
        if let [one] = counted.as_slice() {
            let algorithm = one.limit.as_metered().unwrap().algorithm();
            *said.entry(format!("{algorithm} {word}")).or_default() += 1;
        }
    }
    assert!(all_expire(&mut connection).await >= LIMITS.len());
    said
}

#[tokio::test]
async fn random_traces_are_answered_as_in_memory() {
    let (decisions, first) = (setting("SEKISHO_DECISIONS", 8_000), setting("SEKISHO_SEED", 1));
    println!("{decisions} decisions from seed {first}");
    let (mut made, mut seed) = (0, first);
    let mut said = BTreeMap::<_, usize>::new();
    while made < decisions {
        println!("seed {seed}");
        for (what, times) in trace(seed, TRACE.min(decisions - made)).await {
            *said.entry(what).or_default() += times;
        }
        made += TRACE;
        seed += 1;
    }
    println!("{said:#?}");
    // Nothing of what is asked is left out.
    for outcome in [Outcome::Allow, Outcome::Deny, Outcome::Never] {
        assert!(said[outcome.as_str()] as u64 > decisions / 50, "{said:?}");
    }
    assert!((said.get("unsupported").copied().unwrap_or(0) as u64) < decisions / 20, "{said:?}");
}

#[tokio::test]
async fn the_states_are_what_other_versions_read() {
    let pair = Pair::start();
    let mut connection = pair.connection().await;
    let at = 1_700_000_000 * SECOND;
    for (limit, mode, cost, wanted) in [
        ("7/min", Mode::Check, 1, "b 1700000008571428 4 7"),
        ("7/min", Mode::Check, 4, "b 1700000034285714 2 7"),
        ("7/min", Mode::Force, 8, "b 1700000068571428 4 7 7 1700000000000000"),
        ("7/min leaky-queue", Mode::Check, 1, "q 1700000008571428 4 7 0 1700000000000000 1"),
        (
            "7/min leaky-queue",
            Mode::Force,
            2,
            "q 1700000017142857 1 7 0 1700000000000000 2 1700000000000000",
        ),
        ("10/min fixed-window", Mode::Check, 3, "w 1699999980000000 3"),
        ("10/calendar-day", Mode::Check, 3, "w 1699920000000000 3"),
        ("10/min anchored-window", Mode::Check, 3, "a 1700000000000000 3"),
        ("10/min sliding-window", Mode::Check, 3, "s 1699999980000000 0 3"),
        (
            "10/min sliding-log",
            Mode::Check,
            3,
            "l 0000000000000000 1700000000000000 0000000000000003",
        ),
    ] {
        let id = format!("{limit} {cost}");
        let counted = Counted::new(limit, &id, "u");
        pair.ask(&[counted.charge(cost)], mode, at).await;
        let key = format!("sk1:{{=u}}test:{}", id.replace(' ', "%20"));
        let state: String = redis::cmd("GET").arg(&key).query_async(&mut connection).await.unwrap();
        assert_eq!(state, wanted);
        // A trace's time is not the server's, which would have it expire in a minute.
        let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.unwrap();
        let most = if limit.contains("calendar") { 86_400_000 } else { 600_000 };
        assert!((500_000..=most).contains(&left), "{limit}: {left}");
    }
}
