//! Keys of ours that have lost their expiry, or never had one.

use std::time::Duration;

use sekisho::{Ask, Charge, Mode, Now, Outcome, Store, Timestamp};
use sekisho_testkit::{
    faulty_wire::FaultyWire, generate::Rng, redis_server::RedisServer, wait::PATIENCE,
};

use crate::{
    load::percentile,
    support::{Counted, ask, beside, exact_again, now, pass, passes, patient, store, tell},
    table::Row,
};

const LIMITS: [&str; 6] = [
    "5/20s",
    "5/20s fixed-window",
    "5/20s anchored-window",
    "5/20s sliding-window",
    "5/20s sliding-log",
    "5/20s burst 4 leaky-queue",
];

/// A window that is used up and a number of somebody else's, both without an end: without a repair, nobody could pass again.
pub(crate) async fn no_expiry() -> Row {
    let server = RedisServer::start();
    let store = patient(&server.url());
    let limit = "3/2s anchored-window";
    let [ours, theirs] = ["ours", "theirs"].map(|id| Counted::new(limit, id, "u"));
    let keys = ["sk1:{=u}fault:ours", "sk1:{=u}fault:theirs"];
    let at = ask(&store, &[ours.charge(0)], Mode::Look).await.unwrap().at;
    let state = format!("a {} 101", at.as_nanos() / 1_000);
    beside(|| {
        tell(&server, &["SET", keys[0], &state]);
        tell(&server, &["SET", keys[1], "101"]);
        assert_eq!(server.keys_without_expiry("sk1:"), keys);
    });
    let whole = now();
    // The first is full, and gets an end by that; the second is not a state of ours, and counts as fresh.
    assert_eq!(passes(&store, &ours).await, Ok(false));
    assert_eq!(passes(&store, &theirs).await, Ok(true));
    beside(|| assert_eq!(server.keys_without_expiry("sk1:"), [""; 0]));
    let (mut requests, mut last, mut gap) = (3, now(), Duration::ZERO);
    while !passes(&store, &ours).await.unwrap() {
        pass(Duration::from_millis(20)).await;
        gap = gap.max(last.elapsed());
        (requests, last) = (requests + 1, now());
        assert!(whole.elapsed() < PATIENCE, "locked out");
    }
    let waited = whole.elapsed();
    // A busy machine asks late.
    assert!(waited < Duration::from_millis(2_300) + 2 * gap, "{waited:?}; asked after {gap:?}");
    let began = now();
    let back = exact_again(&store, &ours.key, began).await;
    Row {
        how: format!(
            "states without expiry; the full one of 2 s let somebody in after {waited:.1?}"
        ),
        requests,
        errors: 0,
        admitted: 2,
        most: 2,
        because: "one unit of each, as soon as it has one".to_owned(),
        back,
        p99: began.elapsed(),
        bare: beside(|| server.keys_without_expiry("sk1:").len() as u64),
    }
}

/// Ten thousand random requests of every algorithm and mode, while the connection is cut again and again.
pub(crate) async fn random_cuts() -> Row {
    let server = RedisServer::start();
    let wire = FaultyWire::to(server.port());
    let store = store(&wire.url());
    let counted: Vec<_> = LIMITS.iter().map(|limit| Counted::new(limit, limit, "u")).collect();
    let mut rng = Rng::new(45);
    let (mut errors, mut admitted, mut most, mut took) = (0, 0, 0, Vec::new());
    exact_again(&store, &counted[0].key, now()).await;
    for round in 0..200 {
        if round % 25 == 12 {
            wire.cut_after(usize::try_from(rng.below(600)).unwrap());
        }
        let batch: Vec<_> = (0..50).map(|_| random(&counted, &mut rng)).collect();
        let asks: Vec<_> = batch.iter().map(|(charges, mode)| Ask::new(charges, *mode)).collect();
        let at = now();
        let before = errors;
        for answer in store.decide(&asks, Now::StoreClock).await {
            most += 1;
            match answer {
                Ok(answer) => admitted += u64::from(answer.joint().outcome == Outcome::Allow),
                Err(_) => errors += 1,
            }
        }
        took.push(at.elapsed() / 50);
        if errors > before {
            exact_again(&store, &counted[0].key, now()).await;
        }
    }
    assert!(errors > 0, "nothing was cut");
    took.sort();
    Row {
        how: "10,000 random requests of every algorithm and mode, the connection cut 8 times"
            .into(),
        requests: most,
        errors,
        admitted,
        most,
        because: "looks, forces and refunds too".to_owned(),
        back: exact_again(&store, &counted[0].key, now()).await,
        p99: percentile(&took, 99),
        bare: beside(|| server.keys_without_expiry("sk1:").len() as u64),
    }
}

fn random<'c>(counted: &'c [Counted], rng: &mut Rng) -> (Vec<Charge<'c>>, Mode) {
    let mut charges: Vec<_> = counted.iter().map(|one| one.charge(rng.below(3))).collect();
    charges.retain(|_| rng.chance(1, 3));
    let mode = match rng.below(8) {
        0 => Mode::Force,
        1 => Mode::Refund { at: Timestamp::from_nanos(rng.below(1 << 50) * 1_000) },
        2 => Mode::Look,
        _ => Mode::Check,
    };
    (charges, mode)
}
