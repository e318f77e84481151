//! The fullest keys beside a plain map of everything.

use std::{collections::BTreeMap, sync::Arc, thread};

use sekisho::{
    Charge, Decision, Direct, FULLEST_WAYS, FakeClock, FullKey, Fullest, Key, KeyedLimiter, Limit,
    Limiter, Mode, Outcome, Part, PolicySet, Scope, Seed, Span, Timestamp, Verdict,
};

/// There is no set without policies.
const UNUSED: &str = "[[policy]]\nname = \"unused\"\nkey = [\"ip\"]\nlimits = [\"1/s\"]\n";

/// Chance that is the same each time.
struct Chance(u64);

impl Chance {
    fn index(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// What is known of a key whose name is never lost.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    used: u64,
    capacity: u64,
    outcome: Outcome,
    denied: u64,
    seen: Timestamp,
    next_at: Timestamp,
    fresh_at: Timestamp,
}

/// A map of everything: by limit and key.
#[derive(Default)]
struct Model(BTreeMap<(String, String), Known>);

impl Model {
    fn note(&mut self, part: &Part, mode: Mode) {
        let Verdict { capacity: Some(capacity @ 1..), remaining: Some(remaining), .. } =
            part.verdict
        else {
            return;
        };
        let name = (part.scope.limit().to_owned(), part.key.as_str().to_owned());
        let before = self.0.remove(&name);
        let decides = mode == Mode::Force || mode == Mode::Check && part.cost > 0;
        if remaining == capacity || before.is_none() && !decides {
            return;
        }
        let denied = u64::from(decides && part.verdict.outcome != Outcome::Allow);
        let known = Known {
            used: capacity - remaining,
            capacity,
            outcome: before
                .as_ref()
                .filter(|_| !decides)
                .map_or(part.verdict.outcome, |of| of.outcome),
            denied: before.map_or(0, |of| of.denied) + denied,
            seen: part.at,
            next_at: part.at.plus(part.verdict.next_after),
            fresh_at: part.at.plus(part.verdict.reset_after),
        };
        self.0.insert(name, known);
    }
}

fn known(of: &FullKey) -> Known {
    let FullKey { used, capacity, outcome, denied, seen, next_at, fresh_at, .. } = of;
    let (used, capacity, outcome, denied) = (*used, *capacity, *outcome, *denied);
    Known { used, capacity, outcome, denied, seen: *seen, next_at: *next_at, fresh_at: *fresh_at }
}

fn name(of: &FullKey) -> (String, String) {
    (of.scope.limit().to_owned(), of.key.as_str().to_owned())
}

fn note(fullest: &Fullest, part: &Part, mode: Mode) {
    let Part { limit, scope, key, cost, .. } = part;
    fullest.note(&Charge { limit, scope, key, cost: *cost }, &part.verdict, part.at, mode);
}

fn limiter(clock: &Arc<FakeClock>) -> Limiter {
    Limiter::with_clock(PolicySet::parse(UNUSED).unwrap(), Arc::clone(clock) as _)
}

fn ask(limiter: &Limiter, limit: &str, key: &str, cost: u64, mode: Mode) -> Decision {
    let limits = [limit.parse().unwrap()];
    limiter.decide_direct_now(&Direct { limits: &limits, key: key.as_bytes(), cost }, mode)
}

const LIMITS: [&str; 6] = [
    "5/min token-bucket",
    "7/min fixed-window",
    "3/10s sliding-log",
    "20/h sliding-window",
    "2/10s burst 4 leaky-queue",
    "unlimited",
];

/// Lets a world of so many keys run, and compares after each step.
fn world(seed: u64, keys: usize, steps: usize) {
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1_700_000_000)));
    let limiter = limiter(&clock);
    let (fullest, mut model) = (Fullest::new(FULLEST_WAYS), Model::default());
    let (mut chance, mut crowded) = (Chance(seed), false);
    let mut charged: Vec<(Decision, &str, String)> = Vec::new();
    for step in 0..steps {
        clock.advance(Span::from_nanos([0, 0, 1, 900_000_000, 7_000_000_000][chance.index(5)]));
        let number = chance.index(keys);
        let (mut limit, mut key) = (LIMITS[number % 6], number.to_string());
        let cost = [1, 1, 1, 2, 3, 0, 50][chance.index(7)];
        let mode = match chance.index(12) {
            0 => Mode::Look,
            1 => Mode::Force,
            2 | 3 if !charged.is_empty() => {
                let (of, its_limit, its_key) = charged.swap_remove(chance.index(charged.len()));
                (limit, key) = (its_limit, its_key);
                Mode::Refund { at: of.at }
            }
            _ => Mode::Check,
        };
        let decision = ask(&limiter, limit, &key, cost, mode);
        for part in &decision.parts {
            note(&fullest, part, mode);
            model.note(part, mode);
        }
        if mode == Mode::Check && decision.is_allowed() && cost > 0 && charged.len() < 50 {
            charged.push((decision, limit, key));
        }
        let now = limiter.store().clock().now();
        let shown = fullest.top(now, usize::MAX, |_| true);
        let living: BTreeMap<_, _> = model.0.iter().filter(|(_, of)| of.fresh_at > now).collect();
        for of in &shown {
            let Some(mut wanted) = living.get(&name(of)).map(|of| (*of).clone()) else {
                panic!("step {step} of {seed}: {of:?} is not true");
            };
            assert!(of.denied <= wanted.denied, "step {step} of {seed}: {of:?}, {wanted:?}");
            if keys > FULLEST_WAYS {
                // Some were refused while their names were away.
                wanted.denied = of.denied;
            }
            assert_eq!(known(of), wanted, "step {step} of {seed}");
        }
        let full: Vec<_> = living.iter().filter(|(_, of)| of.used == of.capacity).collect();
        crowded |= full.len() > FULLEST_WAYS;
        for (wanted, _) in full.iter().filter(|_| !crowded) {
            assert!(
                shown.iter().any(|of| name(of) == ***wanted),
                "step {step} of {seed}: {wanted:?}"
            );
        }
        if keys <= FULLEST_WAYS {
            assert_eq!(shown.len(), living.len(), "step {step} of {seed}");
            assert_eq!(fullest.crowded_out(), 0);
        }
        let fuller = |pair: &[FullKey]| {
            u128::from(pair[0].used) * u128::from(pair[1].capacity)
                >= u128::from(pair[1].used) * u128::from(pair[0].capacity)
        };
        assert!(shown.windows(2).all(fuller), "{shown:?}");
        assert!(fullest.held() <= fullest.places());
    }
}

#[test]
fn what_is_shown_is_what_a_map_of_everything_says() {
    for seed in 0..60 {
        world(seed, 14, 400);
        world(seed, 25, 400);
        world(seed, 90, 400);
    }
}

#[test]
fn the_same_decisions_leave_the_same_names() {
    let run = || {
        let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1)));
        let (limiter, mut chance) = (limiter(&clock), Chance(7));
        let fullest = limiter.keep_fullest();
        for _ in 0..20_000 {
            let key = chance.index(5_000).to_string();
            let _decision = ask(&limiter, "4/h", &key, 1, Mode::Check);
        }
        (fullest.top(clock_now(&limiter), usize::MAX, |_| true), fullest.crowded_out())
    };
    let (first, crowded_out) = run();
    assert_eq!(
        (first.len(), crowded_out > 0),
        (1_024, true),
        "more are exhausted than it has places for"
    );
    assert_eq!(run(), (first, crowded_out));
}

fn clock_now(limiter: &Limiter) -> Timestamp {
    limiter.store().clock().now()
}

#[test]
fn a_flood_of_made_up_keys_pushes_out_no_exhausted_key() {
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1)));
    let limiter = limiter(&clock);
    let fullest = limiter.keep_fullest();
    for number in 0..100 {
        for _ in 0..5 + number % 3 {
            let _decision = ask(&limiter, "5/h", &format!("real-{number}"), 1, Mode::Check);
        }
    }
    for number in 0..100_000 {
        let _decision = ask(&limiter, "5/h", &format!("made-up-{number}"), 1, Mode::Check);
    }
    let top = fullest.top(clock_now(&limiter), 101, |_| true);
    assert_eq!((fullest.held(), fullest.places()), (1_024, 1_024));
    assert_eq!(fullest.crowded_out(), 0);
    for of in &top[..100] {
        let number: u64 = of.key.as_str().strip_prefix("=real-").unwrap().parse().unwrap();
        let denied = number % 3;
        assert_eq!((of.used, of.capacity, of.remaining(), of.denied), (5, 5, 0, denied), "{of:?}");
        let outcome = if denied > 0 { Outcome::Deny } else { Outcome::Allow };
        assert_eq!((of.outcome, of.used_percent()), (outcome, 100));
    }
    assert_eq!((top[100].used, top[100].used_percent()), (1, 20));
}

#[test]
fn those_that_are_fresh_again_go_first() {
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1)));
    let limiter = limiter(&clock);
    let fullest = limiter.keep_fullest();
    for number in 0..20_000 {
        let _decision = ask(&limiter, "1/min", &number.to_string(), 1, Mode::Check);
    }
    clock.advance(Span::from_secs(60));
    assert_eq!(fullest.top(clock_now(&limiter), 10, |_| true), []);
    // The least that there is takes the place of what was exhausted.
    let _decision = ask(&limiter, "9/min", "new", 1, Mode::Check);
    let top = fullest.top(clock_now(&limiter), 10, |_| true);
    let seen: Vec<_> = top.iter().map(|of| (of.key.as_str(), of.used, of.capacity)).collect();
    assert_eq!(seen, [("=new", 1, 9)]);
}

#[test]
fn of_equally_full_keys_the_one_that_is_refused_stays() {
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1)));
    let limiter = limiter(&clock);
    let fullest = Fullest::new(1);
    let decide = |key: &str| {
        for part in &ask(&limiter, "1/h", key, 1, Mode::Check).parts {
            note(&fullest, part, Mode::Check);
        }
    };
    (0..16).for_each(|number| decide(&format!("quiet-{number}")));
    decide("knocks");
    assert_eq!(fullest.crowded_out(), 1, "no fuller than those that are there");
    decide("knocks");
    assert_eq!(fullest.crowded_out(), 2, "it takes the place of one that asked once");
    let top = fullest.top(clock_now(&limiter), 17, |_| true);
    assert_eq!((top[0].key.as_str(), top[0].denied, top.len()), ("=knocks", 1, 16));
}

#[test]
fn what_is_given_back_is_not_used() {
    let policies =
        "[[policy]]\nname = \"login\"\nkey = [\"ip\"]\nlimits = [\"3/h\", \"9/h sliding-log\"]\n";
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1)));
    let limiter = Limiter::with_clock(PolicySet::parse(policies).unwrap(), Arc::clone(&clock) as _);
    let fullest = limiter.keep_fullest();
    let path = sekisho::CanonicalPath::parse("/").unwrap();
    let request = sekisho::Request {
        method: "GET",
        host: None,
        path: &path,
        query: None,
        client: Some([192, 0, 2, 1].into()),
        principal: None,
        headers: &sekisho::NoHeaders,
    };
    let used = || {
        let top = fullest.top(clock_now(&limiter), 10, |_| true);
        top.iter().map(|of| (of.scope.limit().to_owned(), of.used)).collect::<Vec<_>>()
    };
    let [bucket, log] = ["3600s-token-bucket", "3600s-sliding-log"].map(str::to_owned);
    let first = limiter.decide_now(&request, Mode::Check);
    let second = limiter.decide_now(&request, Mode::Check);
    assert_eq!(used(), [(bucket.clone(), 2), (log.clone(), 2)]);
    limiter.refund_now(&second, |_| true).unwrap();
    assert_eq!(used(), [(bucket, 1), (log.clone(), 1)]);
    limiter.refund_now(&first, |part| part.scope.limit().ends_with("bucket")).unwrap();
    assert_eq!(used(), [(log, 1)]);
}

/// Notes a charge and a verdict of a test's own: so much used of 9, at that second, fresh again so many seconds later.
fn seen(fullest: &Fullest, key: &str, used: u64, (at, fresh_after): (u64, u64)) {
    let limit: Limit = "9/h".parse().unwrap();
    let key = Key::plain(key.as_bytes(), &Seed::from_bytes([0; 16]));
    let charge = Charge { limit: &limit, scope: &Scope::new("p", "l"), key: &key, cost: 1 };
    let verdict = Verdict {
        capacity: Some(9),
        remaining: Some(9 - used),
        reset_after: Span::from_secs(fresh_after),
        ..Verdict::UNLIMITED
    };
    fullest.note(&charge, &verdict, Timestamp::from_nanos(at), Mode::Check);
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn late_numbers_are_not_taken_and_a_clock_set_back_is() {
    let fullest = Fullest::default();
    let used =
        || fullest.top(Timestamp::EPOCH, 9, |_| true).iter().map(|of| of.used).collect::<Vec<_>>();
    seen(&fullest, "k", 4, (10 * SECOND, 100));
    seen(&fullest, "k", 3, (10 * SECOND - 1, 100));
    assert_eq!(used(), [4], "noted late");
    seen(&fullest, "k", 2, (9 * SECOND, 100));
    assert_eq!(used(), [2], "a clock that was set back");
}

#[test]
fn a_place_that_is_worth_less_than_before_is_found() {
    let names = |fullest: &Fullest, at: u64| {
        let top = fullest.top(Timestamp::from_nanos(at), 17, |_| true);
        top.iter().map(|of| (of.key.as_str().to_owned(), of.used)).collect::<Vec<_>>()
    };
    let full = || {
        let fullest = Fullest::new(1);
        (0..16).for_each(|number| seen(&fullest, &format!("a{number}"), 5, (0, 1_000)));
        // No fuller than those that are there: from now on it is known what they have at least.
        seen(&fullest, "late", 5, (0, 1_000));
        assert!(names(&fullest, 0).iter().all(|(key, _)| key.starts_with("=a")));
        fullest
    };
    // One of them refills, and somebody comes who has more than that.
    let fullest = full();
    seen(&fullest, "a3", 2, (SECOND, 1_000));
    seen(&fullest, "b", 3, (SECOND, 1_000));
    let found = names(&fullest, SECOND);
    assert_eq!((found.len(), found.last()), (16, Some(&("=b".to_owned(), 3))), "{found:?}");
    // One gets fuller and is fresh again sooner than all others, and somebody comes after that.
    let fullest = full();
    seen(&fullest, "a3", 6, (SECOND, 2));
    seen(&fullest, "b", 1, (4 * SECOND, 1_000));
    let found = names(&fullest, 4 * SECOND);
    assert_eq!((found.len(), found.last()), (16, Some(&("=b".to_owned(), 1))), "{found:?}");
    // The same of somebody new.
    let fullest = full();
    seen(&fullest, "new", 6, (SECOND, 2));
    seen(&fullest, "b", 1, (4 * SECOND, 1_000));
    let found = names(&fullest, 4 * SECOND);
    assert_eq!((found.len(), found.last()), (16, Some(&("=b".to_owned(), 1))), "{found:?}");
}

#[test]
fn numbers_beyond_all_measure_are_compared_exactly() {
    let fullest = Fullest::default();
    let limit: Limit = "9/h".parse().unwrap();
    let charge = |key: &Key, capacity, remaining| {
        let charge = Charge { limit: &limit, scope: &Scope::new("p", "l"), key, cost: 1 };
        let (capacity, remaining) = (Some(capacity), Some(remaining));
        let reset_after = Span::from_nanos(u64::MAX);
        let verdict = Verdict { capacity, remaining, reset_after, ..Verdict::UNLIMITED };
        fullest.note(&charge, &verdict, Timestamp::from_nanos(u64::MAX - 1), Mode::Check);
    };
    let seed = Seed::from_bytes([0; 16]);
    let [nearly, full, over] = [b"nearly", &b"full"[..], b"over"].map(|key| Key::plain(key, &seed));
    charge(&nearly, u64::MAX, 1);
    charge(&full, u64::MAX - 1, 0);
    // More than the capacity cannot be left; if it is, nothing is used.
    charge(&over, 3, u64::MAX);
    let top = fullest.top(Timestamp::EPOCH, 9, |_| true);
    let percents: Vec<_> = top.iter().map(|of| (of.key.clone(), of.used_percent())).collect();
    assert_eq!(percents, [(full, 100), (nearly, 99)]);
}

#[test]
fn threads_leave_the_numbers_of_the_last_decision() {
    let limiter = Limiter::new(PolicySet::parse(UNUSED).unwrap());
    let fullest = limiter.keep_fullest();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..4_000_u32 {
                    let key = (number % 8).to_string();
                    let _decision = ask(&limiter, "1900/week fixed-window", &key, 1, Mode::Check);
                }
            });
        }
    });
    let top = fullest.top(clock_now(&limiter), 9, |_| true);
    let denied: Vec<_> = top.iter().map(|of| (of.used, of.denied, of.outcome)).collect();
    assert_eq!(denied, [(1_900, 100, Outcome::Deny); 8]);
}

#[test]
fn no_denial_is_lost_however_many_note_at_once() {
    let fullest = Fullest::default();
    let limit: Limit = "9/h".parse().unwrap();
    let (scope, key) = (Scope::new("p", "l"), Key::plain(b"k", &Seed::from_bytes([0; 16])));
    let charge = Charge { limit: &limit, scope: &scope, key: &key, cost: 1 };
    let (capacity, remaining) = (Some(9), Some(0));
    let (outcome, reset_after) = (Outcome::Deny, Span::from_secs(9));
    let verdict = Verdict { outcome, capacity, remaining, reset_after, ..Verdict::UNLIMITED };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for at in 0..100_000 {
                    fullest.note(&charge, &verdict, Timestamp::from_nanos(at), Mode::Check);
                }
            });
        }
    });
    let top = fullest.top(Timestamp::EPOCH, 9, |_| true);
    let seen: Vec<_> = top.iter().map(|of| (of.denied, of.seen.as_nanos())).collect();
    assert_eq!(seen, [(400_000, 99_999)]);
}

#[test]
fn nobody_keeps_names_that_nobody_asked_for() {
    let limiter = limiter(&Arc::new(FakeClock::default()));
    let _decision = ask(&limiter, "1/h", "k", 1, Mode::Check);
    assert!(limiter.fullest().is_none());
    assert_eq!(limiter.keep_fullest().held(), 0);
    let _decision = ask(&limiter, "1/h", "k", 1, Mode::Check);
    assert_eq!(limiter.fullest().unwrap().held(), 1);
    let direct = KeyedLimiter::new("1/h".parse().unwrap());
    assert!(direct.check("k").unwrap().is_allowed());
}
