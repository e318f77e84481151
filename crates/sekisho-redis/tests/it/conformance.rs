//! Cases from people who run rate limiters, under their names. Each is asked of memory too.

use sekisho::{Mode, Outcome, Span, Verdict};

use crate::support::{Counted, Pair, all_expire};

const SECOND: u64 = 1_000_000;
/// A whole number of minutes, half hours and days after the epoch, in microseconds.
const START: u64 = 1_700_006_400 * SECOND;

#[tokio::test]
async fn b17_high_rates_are_neither_zero_nor_unlimited() {
    let pair = Pair::start();
    let fast = Counted::new("2000/s burst 1", "fast", "u");
    let mut outcomes = Vec::new();
    for after in [0, 100, 500] {
        outcomes.push(pair.check(&fast, 1, START + after).await.verdicts[0].outcome);
    }
    assert_eq!(outcomes, [Outcome::Allow, Outcome::Deny, Outcome::Allow]);

    let deep = Counted::new("1000/min burst 1001", "deep", "u");
    for left in [1_000, 999, 998] {
        assert_eq!(pair.check(&deep, 1, START).await.verdicts[0].remaining, Some(left));
    }

    // Three units a nanosecond: the wait is a third of one, rounded up.
    let billions = Counted::new("3000000000/s", "billions", "u");
    let all = pair.check(&billions, 3_000_000_000, START).await.verdicts[0];
    assert_eq!((all.outcome, all.remaining), (Outcome::Allow, Some(0)));
    let more = pair.check(&billions, 1, START).await.verdicts[0];
    assert_eq!(more.retry_after, Some(Span::from_nanos(1)));
    let later = pair.check(&billions, 2_999, START + 1).await.verdicts[0];
    assert_eq!((later.outcome, later.remaining), (Outcome::Allow, Some(1)));
    assert_eq!(all_expire(&mut pair.connection().await).await, 3);
}

#[tokio::test]
async fn b21_seven_a_minute_admit_no_more_in_a_day() {
    const POLL: u64 = SECOND / 10;
    let pair = Pair::start();
    let seven = Counted::new("7/min burst 7", "seven", "u");
    let (mut after, mut admitted) = (0, 0);
    // A poll every tenth of a second. Those that a wait rules out are left out, but for the last of them.
    while after < 86_400 * SECOND {
        let verdict = pair.check(&seven, 1, START + after).await.verdicts[0];
        let Some(wait) = verdict.retry_after else {
            admitted += 1;
            after += POLL;
            continue;
        };
        let next = after + wait.as_nanos().div_ceil(1_000 * POLL) * POLL;
        if next - POLL > after && next - POLL < 86_400 * SECOND {
            let early = pair.check(&seven, 1, START + next - POLL).await.verdicts[0];
            assert_eq!(early.outcome, Outcome::Deny);
        }
        after = next;
    }
    assert_eq!(admitted, 10_086);

    let daily = Counted::new("1/day", "daily", "u");
    assert_eq!(pair.check(&daily, 1, START).await.verdicts[0].outcome, Outcome::Allow);
    let wait = pair.check(&daily, 1, START).await.verdicts[0].retry_after;
    assert_eq!(wait, Some(Span::from_secs(86_400)));
}

#[tokio::test]
async fn b36_stacked_limits_are_charged_all_or_none() {
    let pair = Pair::start();
    for (key, order) in [("as listed", [0, 1]), ("the other way round", [1, 0])] {
        let limits = [
            Counted::new("10/min fixed-window", "minute", key),
            Counted::new("30/30min fixed-window", "half-hour", key),
        ];
        let mut admitted = Vec::new();
        for (minute, requests) in [(0, 16), (1, 15), (2, 15)] {
            let mut passed = 0;
            for request in 0..requests {
                let us = START + minute * 60 * SECOND + request;
                let charges = order.map(|index: usize| limits[index].charge(1));
                let answer = pair.ask(&charges, Mode::Check, us).await;
                passed += u64::from(answer.verdicts.iter().all(Verdict::is_allowed));
            }
            admitted.push(passed);
        }
        assert_eq!(admitted, [10, 10, 10]);
        let left = pair.ask(&[limits[1].charge(0)], Mode::Look, START + 3 * 60 * SECOND).await;
        assert_eq!(left.verdicts[0].remaining, Some(0));
    }
}
