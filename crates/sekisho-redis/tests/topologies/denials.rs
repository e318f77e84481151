//! Denials that are repeated without asking: the same answers, for a second at most, and never a denial too many.

use std::{
    future::poll_fn,
    pin::pin,
    task::Poll,
    time::{Duration, Instant},
};

use sekisho::{Answer, Ask, Charge, Mode, Now, Outcome, Span, Store, Verdict};
use sekisho_redis::RedisStore;
use sekisho_testkit::redis_server::RedisServer;
use tokio::time::sleep;

use crate::common::{Counted, ask, check, evalshas, is_allowed, slow, store};

/// Returns the time at which a wait ends, in nanoseconds.
fn due(answer: &Answer, verdict: &Verdict) -> u64 {
    answer.at.as_nanos() + verdict.retry_after.unwrap().as_nanos()
}

/// Takes all units that somebody has.
async fn used_up(store: &RedisStore, limit: &str, who: &str) -> Counted {
    let counted = Counted::new(limit, limit, who);
    assert!(is_allowed(&check(store, &counted, 3).await.unwrap()));
    counted
}

#[tokio::test]
async fn a_repeated_denial_costs_nothing_and_says_what_the_server_would() {
    let server = RedisServer::start();
    let (own, other) = (store(&server.url()), store(&server.url()));
    for limit in slow(3) {
        let counted = used_up(&own, &limit, "u").await;
        let began = Instant::now();
        let first = check(&own, &counted, 1).await.unwrap();
        let trip = began.elapsed();
        let (asked, repeated) = (evalshas(&server), own.stats().cached_denials);
        let mut last = first.clone();
        for _ in 0..200 {
            let answer = check(&own, &counted, 1).await.unwrap();
            assert!(
                answer.at >= last.at
                    && due(&answer, &answer.verdicts[0]) == due(&first, &first.verdicts[0]),
                "{limit}"
            );
            last = answer;
        }
        if began.elapsed() < Duration::from_millis(900) {
            assert_eq!(evalshas(&server), asked, "{limit}");
            assert_eq!(own.stats().cached_denials, repeated + 200);
        }
        // The server itself, just after: its clock has gone on by what the two took, and no more.
        let began = Instant::now();
        let last = check(&own, &counted, 1).await.unwrap();
        let theirs = check(&other, &counted, 1).await.unwrap();
        let took = u64::try_from(began.elapsed().as_nanos()).unwrap();
        assert!(theirs.at.as_nanos() <= last.at.as_nanos() + took + 1_000, "{limit}");
        assert!(
            last.at.as_nanos() <= theirs.at.as_nanos() + u64::try_from(trip.as_nanos()).unwrap()
        );
        let (ours, its) = (last.verdicts[0], theirs.verdicts[0]);
        assert_eq!(due(&last, &ours), due(&theirs, &its), "{limit}");
        let same = |of: Verdict| (of.outcome, of.capacity, of.remaining, of.delay);
        assert_eq!(same(ours), same(its));
        let fresh_at =
            |answer: &Answer| answer.at.as_nanos() + answer.verdicts[0].reset_after.as_nanos();
        assert_eq!(fresh_at(&last), fresh_at(&theirs), "{limit}");
    }
}

#[tokio::test]
async fn under_several_limits_the_one_that_is_full_is_enough() {
    let server = RedisServer::start();
    let store = store(&server.url());
    let full = used_up(&store, "3/week", "u").await;
    let free = Counted::new("5/week sliding-log", "free", "u");
    let open = Counted::new("unlimited", "open", "u");
    let charges = [open.charge(1), free.charge(1), full.charge(1)];
    let first = ask(&store, &charges, Mode::Check).await.unwrap();
    let asked = evalshas(&server);
    for _ in 0..100 {
        let answer = ask(&store, &charges, Mode::Check).await.unwrap();
        assert_eq!((answer.joint().outcome, answer.joint().binding), (Outcome::Deny, 2));
        let remaining: Vec<_> = answer.verdicts.iter().map(|of| of.remaining).collect();
        assert_eq!(remaining, [None, Some(5), Some(0)]);
        assert_eq!(due(&answer, &answer.verdicts[2]), due(&first, &first.verdicts[2]));
    }
    assert_eq!(evalshas(&server), asked);
    // Under the other alone, all goes on.
    assert!(is_allowed(&check(&store, &free, 1).await.unwrap()));
}

#[tokio::test]
async fn what_costs_as_much_is_denied_as_well_and_what_costs_less_is_asked() {
    let server = RedisServer::start();
    let store = store(&server.url());
    for limit in slow(5) {
        let counted = used_up(&store, &limit, "u").await;
        let first = check(&store, &counted, 3).await.unwrap();
        assert_eq!(first.verdicts[0].remaining, Some(2), "{limit}");
        let asked = evalshas(&server);
        for cost in [3, 4, 5, 3] {
            let answer = check(&store, &counted, cost).await.unwrap();
            assert_eq!(answer.joint().outcome, Outcome::Deny, "{limit} {cost}");
        }
        // Of a log is known what the first cost needed, and no more.
        let more = evalshas(&server) - asked;
        assert!(more == 0 || limit.contains("log") && more <= 3, "{limit}: {more}");
        assert!(is_allowed(&check(&store, &counted, 2).await.unwrap()), "{limit}");
        assert_eq!(check(&store, &counted, 6).await.unwrap().joint().outcome, Outcome::Never);
    }
}

#[tokio::test]
async fn who_waits_longer_is_asked_for() {
    let server = RedisServer::start();
    let store = store(&server.url());
    let queue = Counted::new("2/week burst 1 leaky-queue", "queue", "u");
    assert!(is_allowed(&check(&store, &queue, 1).await.unwrap()));
    let charges = [queue.charge(1)];
    let at_once = Ask { longest: Some(Span::ZERO), ..Ask::new(&charges, Mode::Check) };
    let ask_at_once = async || store.decide(&[at_once], Now::StoreClock).await.pop().unwrap();
    assert!(!is_allowed(&ask_at_once().await.unwrap()));
    let asked = evalshas(&server);
    assert!(!is_allowed(&ask_at_once().await.unwrap()));
    assert_eq!(evalshas(&server), asked);
    let answer = check(&store, &queue, 1).await.unwrap();
    assert!(is_allowed(&answer) && !answer.joint().delay.is_zero(), "{answer:?}");
}

#[tokio::test]
async fn other_numbers_are_another_question() {
    let server = RedisServer::start();
    let (own, other) = (store(&server.url()), store(&server.url()));
    for (many, few) in slow(5).iter().zip(slow(3)) {
        let many = Counted::new(many, many, "u");
        let few = Counted { limit: few.parse().unwrap(), ..many.clone() };
        for _ in 0..5 {
            assert!(is_allowed(&check(&own, &many, 1).await.unwrap()));
        }
        // Of a log is known when its first entry leaves, which is enough for one more under these numbers.
        assert!(!is_allowed(&check(&own, &many, 1).await.unwrap()));
        let (ours, theirs) =
            (check(&own, &few, 1).await.unwrap(), check(&other, &few, 1).await.unwrap());
        let text = few.limit.to_string();
        // What keeps one time value has been cut to a full one, from now.
        let has_one_time = text.contains("bucket") || text.contains("queue");
        let apart = due(&ours, &ours.verdicts[0]).abs_diff(due(&theirs, &theirs.verdicts[0]));
        assert!(apart == 0 || has_one_time && apart < 1_000_000_000, "{text}: {apart} ns");
    }
}

#[tokio::test]
async fn what_this_store_gives_back_is_seen_at_once() {
    let server = RedisServer::start();
    let store = store(&server.url());
    for limit in slow(3) {
        let counted = Counted::new(&limit, &limit, "u");
        let charged = check(&store, &counted, 3).await.unwrap();
        let deny = async || assert!(!is_allowed(&check(&store, &counted, 1).await.unwrap()));
        deny().await;
        deny().await;
        let back = Mode::Refund { at: charged.at };
        let _answer = ask(&store, &[counted.charge(1)], back).await.unwrap();
        assert!(is_allowed(&check(&store, &counted, 1).await.unwrap()), "{limit}");
        deny().await;
        assert_eq!(store.forget(&counted.scope, &counted.key).await, Ok(true));
        assert!(is_allowed(&check(&store, &counted, 3).await.unwrap()), "{limit}");
        deny().await;
        // Other numbers are another question.
        let raised = Counted { limit: limit.replace('3', "4").parse().unwrap(), ..counted.clone() };
        let raised = if limit.contains("queue") {
            Counted { limit: "4/week burst 3 leaky-queue".parse().unwrap(), ..raised }
        } else {
            raised
        };
        assert!(is_allowed(&check(&store, &raised, 1).await.unwrap()), "{limit}");
    }
}

/// Asks until it is allowed, and returns how long that took.
async fn allowed_after(store: &RedisStore, counted: &Counted) -> Duration {
    let began = Instant::now();
    while !is_allowed(&check(store, counted, 1).await.unwrap()) {
        assert!(began.elapsed() < Duration::from_secs(5));
        sleep(Duration::from_millis(2)).await;
    }
    began.elapsed()
}

#[tokio::test]
async fn what_others_give_back_is_seen_within_a_second() {
    let server = RedisServer::start();
    let (own, other) = (store(&server.url()), store(&server.url()));
    let people =
        [used_up(&own, "3/week", "u").await, used_up(&own, "3/week sliding-log", "v").await];
    let denied = |counted: Counted| {
        let own = &own;
        async move { assert!(!is_allowed(&check(own, &counted, 1).await.unwrap())) }
    };
    for counted in &people {
        denied(counted.clone()).await;
        assert_eq!(other.forget(&counted.scope, &counted.key).await, Ok(true));
    }
    let asked = evalshas(&server);
    let (first, second) =
        tokio::join!(allowed_after(&own, &people[0]), allowed_after(&own, &people[1]));
    println!("seen after {first:?} and {second:?}");
    for seen in [first, second] {
        // Each is asked once: when its second is over.
        assert!(
            Duration::from_millis(500) < seen && seen < Duration::from_millis(1_300),
            "{seen:?}"
        );
    }
    assert!((1..=2).contains(&(evalshas(&server) - asked)));
}

#[tokio::test]
async fn a_denial_that_is_read_late_does_not_outlive_what_came_after_it() {
    let server = RedisServer::start();
    let store = store(&server.url());
    let counted = Counted::new("3/week", "three", "u");
    let charged = check(&store, &counted, 3).await.unwrap();
    {
        let charges = [counted.charge(1)];
        let mut slow = pin!(ask(&store, &charges, Mode::Check));
        // It goes out, and whoever sent it has other things to do.
        poll_fn(|context| {
            assert!(slow.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        let back = Mode::Refund { at: charged.at };
        let _answer = ask(&store, &[counted.charge(3)], back).await.unwrap();
        assert!(!is_allowed(&slow.await.unwrap()));
    }
    assert!(is_allowed(&check(&store, &counted, 1).await.unwrap()));
}

#[tokio::test]
async fn no_more_are_kept_than_there_is_room_for() {
    const PEOPLE: u64 = 9_000;
    const KEPT_MAX: u64 = 8_192;
    let server = RedisServer::start();
    let store = store(&server.url());
    let people: Vec<_> =
        (0..PEOPLE).map(|who| Counted::new("1/week", "one", &format!("u{who}"))).collect();
    let charges: Vec<Charge<'_>> = people.iter().map(|who| who.charge(1)).collect();
    let asks: Vec<Ask<'_>> =
        charges.chunks(1).map(|charge| Ask::new(charge, Mode::Check)).collect();
    for round in 0..3 {
        let answers = store.decide(&asks, Now::StoreClock).await;
        assert!(answers.iter().all(|answer| is_allowed(answer.as_ref().unwrap()) == (round == 0)));
    }
    let repeated = store.stats().cached_denials;
    println!("{repeated} repeated");
    assert!(0 < repeated && repeated <= KEPT_MAX, "{repeated}");
}
