//! Old and new versions of a policy, and of this program, that share a server.

use sekisho::{Mode, Outcome};
use sekisho_redis::RedisStore;
use sekisho_testkit::redis_server::RedisServer;

use crate::common::{Counted, ask, at, check, is_allowed, left, slow, store};

#[tokio::test]
async fn who_counts_with_other_numbers_keeps_what_is_used() {
    let server = RedisServer::start();
    let (old, new) = (store(&server.url()), store(&server.url()));
    for (few, many) in slow(100).iter().zip(slow(1_000)) {
        let few = Counted::new(few, few, "u");
        let many = Counted { limit: many.parse().unwrap(), ..few.clone() };
        assert!(is_allowed(&check(&old, &few, 30).await.unwrap()));
        assert_eq!(left(&new, &many).await, 970, "{few:?}");
        assert!(is_allowed(&check(&new, &many, 40).await.unwrap()));
        assert_eq!(left(&old, &few).await, 30, "{few:?}");
        assert!(is_allowed(&check(&new, &many, 500).await.unwrap()));
        // Its own numbers decide, for each of them.
        let denied = check(&old, &few, 1).await.unwrap();
        assert_eq!(denied.joint().outcome, Outcome::Deny, "{few:?}");
        assert_eq!(denied.verdicts[0].remaining, Some(0));
        assert_eq!(left(&new, &many).await, 430, "{few:?}");
        // Whoever gives units back gives back those, and writes down his own numbers.
        let refund = Mode::Refund { at: denied.at };
        let _void_or_not = ask(&old, &[few.charge(1)], refund).await.unwrap();
        let after = left(&new, &many).await;
        assert!((430..=431).contains(&after), "{few:?}: {after}");
        assert!(is_allowed(&check(&new, &many, 10).await.unwrap()));
        assert_eq!(left(&new, &many).await, after - 10, "{few:?}");
    }
}

/// Fails unless nobody is told anything, and nothing is written.
async fn refuses(store: &RedisStore, counted: &Counted, beside: &Counted) {
    for mode in [Mode::Check, Mode::Force, Mode::Look, Mode::Refund { at: at(1_700_000_000) }] {
        for charges in [&[counted.charge(1)][..], &[beside.charge(1), counted.charge(1)]] {
            let error = ask(store, charges, mode).await.unwrap_err().to_string();
            assert!(error.contains("what this script never wrote"), "{mode:?}: {error}");
        }
    }
}

#[tokio::test]
async fn a_state_of_a_version_to_come_is_refused_and_stays() {
    let server = RedisServer::start();
    let store = store(&server.url());
    for limit in slow(10) {
        let counted = Counted::new(&limit, &limit, "u");
        let beside = Counted::new("10/week", "beside", "u");
        assert!(is_allowed(&check(&store, &counted, 1).await.unwrap()));
        let state = server.command(&["GET", &counted.stored()]).text();
        let letter = &state[..1];
        for later in [
            format!("{state} 7 8 9"),
            format!("{letter}2 1700000000000000 1"),
            format!("{letter}:1700000000000000:1"),
            format!("{letter}\u{1}\u{2}"),
            state.replacen(' ', "  ", 1),
        ] {
            server.command(&["SET", &counted.stored(), &later, "PX", "60000"]);
            refuses(&store, &counted, &beside).await;
            assert_eq!(server.command(&["GET", &counted.stored()]).text(), later);
            assert!(server.command(&["PTTL", &counted.stored()]).integer() > 50_000);
        }
        assert_eq!(left(&store, &beside).await, 10);
    }
}

/// Another letter is another algorithm's: the policy was changed, and its counts begin anew.
#[tokio::test]
async fn what_another_algorithm_left_begins_anew() {
    let server = RedisServer::start();
    let store = store(&server.url());
    let all = slow(10);
    let windows = |limit: &str| limit.contains("fixed") || limit.contains("calendar");
    for before in &all {
        // A calendar's windows are windows too.
        for after in all.iter().filter(|after| !windows(before) || !windows(after)) {
            let [before, after] = [before, after].map(|limit| Counted::new(limit, "same", "u"));
            server.command(&["DEL", &before.stored()]);
            assert!(is_allowed(&check(&store, &before, 4).await.unwrap()));
            let wanted = if before.limit == after.limit { 6 } else { 10 };
            assert_eq!(left(&store, &after).await, wanted, "{before:?} {after:?}");
            let answer = check(&store, &after, 1).await.unwrap();
            assert_eq!(answer.verdicts[0].remaining, Some(wanted - 1));
        }
    }
}
