//! Memory and Redis say the same of every trace in whole microseconds, to the last nanosecond.

use std::collections::BTreeMap;

use sekisho::{Mode, Outcome};
use sekisho_testkit::generate::Rng;

use crate::support::{Counted, Pair, all_expire};

const SECOND: u64 = 1_000_000;
const DECISIONS: usize = 1_500;

/// Limits of which every two share a state, so that the numbers change under way.
const LIMITS: [(&str, [&str; 3]); 8] = [
    ("seven", ["7/min", "11/min burst 3", "60/min burst 100"]),
    ("fast", ["999999/s", "3000000000/s", "1/s burst 5"]),
    ("tiny", ["3/10us", "7/10us burst 2", "1/10us"]),
    ("slow", ["1/day burst 4", "1000000/day", "9/day"]),
    ("ages", ["1/3650day burst 9", "7/3650day burst 63", "3/3650day burst 20"]),
    ("huge", ["2251799813685248/s", "2251799813685247/s burst 5", "1/s"]),
    ("minute", ["10/min fixed-window", "3/min fixed-window", "1000/min fixed-window"]),
    ("odd", ["5/7us fixed-window", "2251799813685248/7us fixed-window", "2/7us fixed-window"]),
];

/// A trace's time, which mostly goes on, by about what matters to one of the limits.
fn step(rng: &mut Rng, us: u64) -> u64 {
    match rng.below(20) {
        0..6 => us,
        6..12 => us + rng.below(20),
        12..14 => us + rng.below(SECOND),
        14..17 => us + rng.below(20) * SECOND,
        17 => us + rng.below(100_000) * SECOND,
        18 => us.saturating_sub(rng.below(90 * SECOND)),
        _ => (us / (60 * SECOND) + 1) * 60 * SECOND - rng.below(2),
    }
}

fn cost(rng: &mut Rng, capacity: u64) -> u64 {
    match rng.below(12) {
        0..6 => 1,
        6 => 0,
        7 => capacity,
        8 => capacity.saturating_add(1),
        9 => rng.between(0, capacity),
        10 => capacity / 2,
        _ => rng.below(4),
    }
}

/// Returns one to three of the limits, each with one of its numbers.
fn some(rng: &mut Rng) -> Vec<Counted> {
    let key = *rng.pick(&["u", "v"]);
    let first = usize::try_from(rng.below(LIMITS.len() as u64)).unwrap();
    let several = if rng.chance(1, 3) { rng.between(2, 3) } else { 1 };
    (0..usize::try_from(several).unwrap())
        .map(|more| {
            let (id, numbers) = LIMITS[(first + more) % LIMITS.len()];
            let number = if rng.chance(3, 4) { 0 } else { rng.between(1, 2) };
            Counted::new(numbers[usize::try_from(number).unwrap()], id, key)
        })
        .collect()
}

async fn trace(seed: u64) -> BTreeMap<&'static str, usize> {
    let pair = Pair::start();
    let mut connection = pair.connection().await;
    let mut rng = Rng::new(seed);
    let mut us = 1_700_000_000 * SECOND + rng.below(86_400 * SECOND);
    let mut outcomes = BTreeMap::new();
    for _ in 0..DECISIONS {
        us = step(&mut rng, us);
        if rng.chance(1, 200) {
            let _: () =
                redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut connection).await.unwrap();
        }
        let counted = some(&mut rng);
        let charges: Vec<_> = counted
            .iter()
            .map(|one| one.charge(cost(&mut rng, one.limit.capacity().unwrap())))
            .collect();
        let mode = if rng.chance(1, 10) { Mode::Look } else { Mode::Check };
        let answer = pair.ask(&charges, mode, us).await;
        *outcomes.entry(answer.joint().outcome.as_str()).or_default() += 1;
    }
    assert!(all_expire(&mut connection).await >= LIMITS.len());
    outcomes
}

#[tokio::test]
async fn random_traces_are_answered_as_in_memory() {
    let mut outcomes = BTreeMap::<_, usize>::new();
    for seed in 1..=4 {
        for (outcome, times) in trace(seed).await {
            *outcomes.entry(outcome).or_default() += times;
        }
    }
    // Neither half of what is asked is left out.
    for outcome in [Outcome::Allow, Outcome::Deny, Outcome::Never] {
        assert!(outcomes[outcome.as_str()] > 300, "{outcomes:?}");
    }
}

#[tokio::test]
async fn the_states_are_what_other_versions_read() {
    let pair = Pair::start();
    let mut connection = pair.connection().await;
    let at = 1_700_000_000 * SECOND;
    for (limit, cost, wanted) in [
        ("7/min", 1, "b 1700000008571428 4 7"),
        ("7/min", 4, "b 1700000034285714 2 7"),
        ("10/min fixed-window", 3, "w 1699999980000000 3"),
    ] {
        let counted = Counted::new(limit, &format!("{limit} {cost}"), "u");
        pair.check(&counted, cost, at).await;
        let key = format!("sk1:{{=u}}test:{}", format!("{limit} {cost}").replace(' ', "%20"));
        let state: String = redis::cmd("GET").arg(&key).query_async(&mut connection).await.unwrap();
        assert_eq!(state, wanted);
        // A trace's time is not the server's, which would have it expire in a minute.
        let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.unwrap();
        assert!((500_000..=600_000).contains(&left), "{left}");
    }
}
