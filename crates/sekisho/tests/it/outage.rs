//! What is decided while the store cannot: by a store that errs when it is told to.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;
use sekisho::{
    Answer, Ask, CanonicalPath, Clock, Decision, Direct, FakeClock, Key, Limiter, Memory,
    MemoryOptions, Mode, NoHeaders, Now, PolicySet, Request, Ruling, Scope, Span, Store,
    StoreError, Timestamp,
};

/// A store that errs when it is told to, and notes what it is asked to give back.
#[derive(Debug)]
struct Flaky {
    memory: Memory,
    error: Mutex<Option<StoreError>>,
    asked: AtomicUsize,
    refunds: Mutex<Vec<(Timestamp, Vec<String>)>>,
    /// How far apart the clocks of its servers are, one server a charge.
    apart: Option<Span>,
}

impl Store for Flaky {
    async fn decide(&self, asks: &[Ask<'_>], now: Now) -> Vec<Result<Answer, StoreError>> {
        let _before = self.asked.fetch_add(asks.len(), Relaxed);
        if let Some(error) = &*self.error.lock() {
            return asks.iter().map(|_| Err(error.clone())).collect();
        }
        for ask in asks {
            if let Mode::Refund { at } = ask.mode {
                let limits = ask.charges.iter().map(|charge| charge.limit.to_string()).collect();
                self.refunds.lock().push((at, limits));
            }
        }
        let mut answers = self.memory.decide_now(asks, now);
        if let Some(span) = self.apart {
            for answer in answers.iter_mut().flatten() {
                let mut at = answer.at;
                for _ in 0..answer.verdicts.len() {
                    answer.apart.push(at);
                    at = at.plus(span);
                }
            }
        }
        answers
    }

    async fn forget(&self, scope: &Scope, key: &Key) -> Result<bool, StoreError> {
        self.memory.forget(scope, key).await
    }
}

struct World {
    limiter: Limiter<Flaky>,
    clock: Arc<FakeClock>,
}

const SHARED: &str = "[store]\nurl = \"redis://127.0.0.1\"\n";

/// A policy of that name whose requests are below a path of that name.
fn policy(name: &str, on_store_error: &str, limits: &str) -> String {
    format!(
        "[[policy]]\nname = \"{name}\"\nmatch = {{ path = [\"/{name}/**\", \"/all\"] }}\nkey = [\"ip\"]\n\
         limits = [{limits}]\non_store_error = \"{on_store_error}\"\n"
    )
}

fn world(file: &str) -> World {
    apart(file, None)
}

fn apart(file: &str, apart: Option<Span>) -> World {
    let policies = PolicySet::parse(file).unwrap_or_else(|errors| panic!("{errors}"));
    let clock = Arc::new(FakeClock::at(Timestamp::from_secs(1_000)));
    // The store's clock is another machine's.
    let theirs = Arc::new(FakeClock::at(Timestamp::from_secs(2_000)));
    let store = Flaky {
        memory: Memory::with_clock(MemoryOptions::default(), theirs),
        error: Mutex::default(),
        asked: AtomicUsize::new(0),
        refunds: Mutex::default(),
        apart,
    };
    let limiter =
        Limiter::with_store_and_clock(policies, store, Arc::clone(&clock) as Arc<dyn Clock>);
    World { limiter, clock }
}

/// Nothing here ever waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits"),
    }
}

impl World {
    fn fails(&self, error: StoreError) {
        *self.limiter.store().error.lock() = Some(error);
    }

    fn down(&self) {
        self.fails(StoreError::Unavailable("down".into()));
    }

    fn up(&self) {
        *self.limiter.store().error.lock() = None;
    }

    fn ask(&self, path: &str, mode: Mode) -> Decision {
        let path = CanonicalPath::parse(path).unwrap();
        let request = Request {
            method: "GET",
            host: None,
            path: &path,
            query: None,
            client: Some([192, 0, 2, 1].into()),
            principal: None,
            headers: &NoHeaders,
        };
        now(self.limiter.decide(&request, mode))
    }

    fn check(&self, path: &str) -> Decision {
        self.ask(path, Mode::Check)
    }

    /// Returns how many of some requests pass.
    fn admitted(&self, path: &str, of: usize) -> usize {
        (0..of).filter(|_| self.check(path).is_allowed()).count()
    }

    fn remaining(&self, path: &str) -> Option<u64> {
        self.ask(path, Mode::Look).binding().and_then(|part| part.verdict.remaining)
    }
}

fn names(policies: &[Arc<str>]) -> Vec<&str> {
    policies.iter().map(|name| &**name).collect()
}

#[test]
fn deny_goes_before_local_and_local_before_allow_in_every_order() {
    let kinds = [("a", "allow"), ("l", "local"), ("d", "deny")];
    let file = |of: &[(&str, &str)]| {
        let policies = of.iter().map(|(name, what)| policy(name, what, "\"2/min\""));
        format!("{SHARED}{}", policies.collect::<String>())
    };
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let all = order.map(|index| kinds[index]);
        let world = world(&file(&all));
        world.down();
        let decision = world.check("/all");
        assert!(matches!(decision.ruling, Ruling::StoreDown(_)), "{all:?} {decision:?}");
        assert_eq!(decision.refused_by.as_deref(), Some("d"));
        let degraded = decision.degraded.as_deref().unwrap();
        assert_eq!(names(&degraded.denied), ["d"]);
        assert!(degraded.local.is_empty() && degraded.allowed.is_empty());
        // The refused one was charged to nobody.
        assert_eq!(world.admitted("/l/x", 5), 2, "{all:?}");
        assert_eq!(world.admitted("/a/x", 5), 5, "{all:?}");
    }
    for two in [[0, 1], [1, 0]] {
        let world = world(&file(&two.map(|index| kinds[index])));
        world.down();
        let decision = world.check("/all");
        assert!(decision.is_allowed());
        assert_eq!(decision.parts.len(), 1, "what passes uncounted has no number");
        assert_eq!(&*decision.parts[0].policy, "l");
        let degraded = decision.degraded.as_deref().unwrap();
        assert_eq!((names(&degraded.allowed), names(&degraded.local)), (vec!["a"], vec!["l"]));
        assert_eq!(world.admitted("/all", 5), 1);
    }
}

#[test]
fn a_request_of_allowing_policies_passes_and_has_no_numbers() {
    let world = world(&format!("{SHARED}{}", policy("a", "allow", "\"1/min\", \"2/h\"")));
    let before = world.check("/a");
    assert_eq!((before.parts.len(), before.degraded.is_none()), (2, true));
    world.down();
    for mode in [Mode::Check, Mode::Look, Mode::Force, Mode::Refund { at: before.at }] {
        let decision = world.ask("/a", mode);
        assert!(decision.is_allowed() && decision.parts.is_empty(), "{decision:?}");
        let degraded = decision.degraded.as_deref().unwrap();
        assert_eq!(names(&degraded.allowed), ["a"], "a policy is named once");
        assert_eq!(degraded.error, StoreError::Unavailable("down".into()));
    }
    world.up();
    assert_eq!(world.check("/a").ruling, Ruling::Deny);
}

#[test]
fn which_errors_are_an_outage() {
    let file = policy("a", "allow", "\"1/min\"");
    let shared = format!("{SHARED}{file}");
    let timeout = StoreError::Timeout(Span::from_secs(1));
    let unavailable = StoreError::Unavailable("x".into());
    let unsupported = StoreError::Unsupported("cost".into());
    for (file, error, passes) in [
        (&shared, timeout.clone(), true),
        (&shared, unavailable.clone(), true),
        (&shared, StoreError::Full, true),
        // A fault must open nothing: a client may have caused it.
        (&shared, unsupported, false),
        (&shared, StoreError::Twice, false),
        (&file, timeout, true),
        (&file, unavailable, true),
        // Memory was told what to do when it is full.
        (&file, StoreError::Full, false),
    ] {
        let world = world(file);
        world.fails(error.clone());
        let decision = world.check("/a");
        assert_eq!(decision.is_allowed(), passes, "{error}");
        if !passes {
            assert_eq!(decision.ruling, Ruling::StoreDown(error));
        }
    }
}

#[test]
fn without_a_word_a_shared_store_opens_and_memory_closes() {
    let silent = policy("p", "allow", "\"1/min\"").replace("on_store_error = \"allow\"\n", "");
    for (file, passes) in [(format!("{SHARED}{silent}"), true), (silent, false)] {
        let world = world(&file);
        world.down();
        assert_eq!(world.check("/p").is_allowed(), passes);
    }
}

#[test]
fn limits_without_a_policy_are_never_decided_alone() {
    let world = world(&format!("{SHARED}{}", policy("l", "local", "\"1/min\"")));
    world.down();
    let limits = ["1/min".parse().unwrap()];
    let direct = Direct { limits: &limits, key: b"k", cost: 1 };
    let decision = now(world.limiter.decide_direct(&direct, Mode::Check));
    assert!(matches!(decision.ruling, Ruling::StoreDown(_)));
    assert_eq!(decision.refused_by, None);
}

#[test]
fn local_holds_the_limit_and_its_numbers_are_those_of_the_share() {
    let text = format!("{SHARED}local_share = 0.5\n{}", policy("l", "local", "\"10/min burst 4\""));
    let world = world(&text);
    world.down();
    let first = world.check("/l");
    let part = first.binding().unwrap();
    assert_eq!(part.limit.to_string(), "5/min burst 2 token-bucket");
    assert_eq!((part.verdict.capacity, part.verdict.remaining), (Some(2), Some(1)));
    assert_eq!((first.at, part.at), (world.clock.now(), world.clock.now()));
    assert_eq!(world.admitted("/l", 10), 1);
    let denied = world.check("/l");
    assert_eq!(denied.ruling, Ruling::Deny);
    let wait = denied.binding().unwrap().verdict.retry_after;
    assert_eq!(wait, Some(Span::from_secs(12)), "a fifth of a minute: the wait is true here");
    world.clock.advance(Span::from_secs(12));
    assert_eq!(world.admitted("/l", 10), 1);
    // Back on the store, whose quota nobody has used.
    world.up();
    assert_eq!(world.admitted("/l", 10), 4);
}

#[test]
fn what_is_dearer_than_the_share_is_not_called_impossible() {
    let text = format!("{SHARED}local_share = \"1/4\"\n{}", policy("l", "local", "\"10/min\""));
    let world = world(&text.replace("limits", "cost = 5\nlimits"));
    world.down();
    let decision = world.check("/l");
    assert!(matches!(decision.ruling, Ruling::StoreDown(_)), "{decision:?}");
    assert_eq!(decision.refused_by.as_deref(), Some("l"));
    // What no store would ever let through is.
    let world = self::world(&text.replace("limits", "cost = 11\nlimits"));
    world.down();
    assert_eq!(world.check("/l").ruling, Ruling::Never);
}

#[test]
fn an_outage_does_not_begin_with_a_fresh_quota() {
    let world = world(&format!("{SHARED}{}", policy("l", "local", "\"10/h\"")));
    assert_eq!(world.admitted("/l", 7), 7);
    world.down();
    assert_eq!(world.admitted("/l", 20), 3);
    // What the outage used is not in the store, and the store's denials are charged to nobody.
    world.up();
    assert_eq!(world.admitted("/l", 20), 3);
    world.down();
    assert_eq!(world.remaining("/l"), Some(0));
    world.clock.advance(Span::from_secs(360));
    assert_eq!(
        world.remaining("/l"),
        Some(1),
        "no debt: one unit is back after a tenth of an hour"
    );
}

#[test]
fn what_fits_is_charged_here_and_no_debt_is_made() {
    let text = format!("{SHARED}local_share = \"1/5\"\n{}", policy("l", "local", "\"10/h\""));
    let world = world(&text);
    assert_eq!(world.admitted("/l", 20), 10, "the store's is the whole limit");
    world.down();
    assert_eq!(world.remaining("/l"), Some(0));
    world.clock.advance(Span::from_secs(1_800));
    assert_eq!(world.admitted("/l", 20), 1, "of two an hour, one in half an hour");
}

#[test]
fn each_limit_is_warmed_by_itself() {
    let text = format!("{SHARED}{}", policy("l", "local", "\"2/s\", \"100/h\""));
    let world = world(&text);
    for _ in 0..3 {
        assert_eq!(world.ask("/l", Mode::Force).ruling, Ruling::Allow);
    }
    world.down();
    let left: Vec<_> =
        world.ask("/l", Mode::Look).parts.iter().map(|part| part.verdict.remaining).collect();
    assert_eq!(left, [Some(0), Some(97)]);
}

#[test]
fn only_what_is_local_is_kept_here_and_looking_changes_nothing() {
    let (local, allow) = (policy("l", "local", "\"5/h\""), policy("a", "allow", "\"5/h\""));
    let world = world(&format!("{SHARED}{local}{allow}"));
    let entries = || world.limiter.fallback().unwrap().occupancy().entries;
    assert_eq!(world.admitted("/a", 2), 2);
    let _looked = world.ask("/l", Mode::Look);
    assert_eq!(entries(), 0);
    assert_eq!(world.admitted("/l", 2), 2);
    assert_eq!(entries(), 1);
    for file in [format!("{SHARED}{allow}"), local, allow] {
        assert!(self::world(&file).limiter.fallback().is_none(), "{file}");
    }
}

#[test]
fn what_stands_in_is_bounded_as_the_file_says() {
    let text = format!(
        "{SHARED}max_entries = 4\noverflow = \"deny\"\n{}",
        policy("l", "local", "\"5/h\"").replace("\"ip\"", "{ segment = 2, or = \"ip\" }")
    );
    let world = world(&text);
    world.down();
    let passed = (0..100).filter(|key| world.check(&format!("/l/{key}")).is_allowed()).count();
    assert_eq!(passed, 3, "one entry is kept for those who share");
    let decision = world.check("/l/another");
    assert_eq!(decision.ruling, Ruling::StoreDown(StoreError::Full));
    assert_eq!(decision.refused_by.as_deref(), Some("l"));
    // Full as it is, it holds up nobody while the store works.
    world.up();
    assert!(world.check("/l/another").is_allowed());
}

#[test]
fn what_is_blocked_stays_blocked() {
    let block = policy("b", "allow", "\"block\"");
    for file in [
        format!("{SHARED}{block}{}", policy("l", "local", "\"5/h\"")),
        format!("{SHARED}{}{block}", policy("l", "allow", "\"5/h\"")),
    ] {
        let world = world(&file);
        world.down();
        assert_eq!(world.check("/b").ruling, Ruling::Blocked, "{file}");
        assert_eq!(world.check("/all").ruling, Ruling::Blocked, "{file}");
        assert_eq!(world.remaining("/l").unwrap_or(5), 5, "nothing was charged beside it");
    }
}

#[test]
fn forced_units_and_refunds_follow() {
    let world = world(&format!("{SHARED}{}", policy("l", "local", "\"10/h sliding-log\"")));
    let charged = world.check("/l");
    let _forced = world.ask("/l", Mode::Force);
    world.down();
    assert_eq!(world.remaining("/l"), Some(8), "both are here too");
    world.up();
    assert_eq!(now(world.limiter.refund(&charged, |_| true)), Ok(1));
    assert_eq!(world.remaining("/l"), Some(9));
    world.down();
    assert_eq!(world.remaining("/l"), Some(9), "given back here too");

    // In the outage itself: forced units make a debt here, and a refund of a charge of here is of here.
    let charged = world.check("/l");
    assert_eq!(charged.at, world.clock.now());
    for _ in 0..9 {
        assert!(world.ask("/l", Mode::Force).is_allowed());
    }
    assert_eq!(world.check("/l").ruling, Ruling::Deny);
    let asked = world.limiter.store().asked.load(Relaxed);
    assert_eq!(now(world.limiter.refund(&charged, |_| true)), Ok(1));
    assert_eq!(world.limiter.store().asked.load(Relaxed), asked, "the store knows nothing of it");
    assert_eq!(world.ask("/l", Mode::Refund { at: charged.at }).ruling, Ruling::Allow);
    assert!(world.check("/l").is_allowed());
    world.up();
    assert_eq!(world.remaining("/l"), Some(9));
}

#[test]
fn a_refund_while_the_store_is_down_is_made_here_and_said_to_have_failed() {
    let world = world(&format!("{SHARED}{}", policy("l", "local", "\"10/h sliding-log\"")));
    let charged = world.check("/l");
    world.down();
    assert!(now(world.limiter.refund(&charged, |_| true)).is_err());
    assert_eq!(world.remaining("/l"), Some(10));
    world.up();
    assert_eq!(world.remaining("/l"), Some(9));
}

#[test]
fn a_refund_names_the_time_of_each_charge() {
    let limits = "\"5/h sliding-log\", \"7/min sliding-log\", \"9/s sliding-log\"";
    for (span, wanted) in [
        (None, vec![(2_000, vec!["5/h sliding-log", "7/min sliding-log", "9/s sliding-log"])]),
        (
            Some(Span::ZERO),
            vec![(2_000, vec!["5/h sliding-log", "7/min sliding-log", "9/s sliding-log"])],
        ),
        (
            Some(Span::from_secs(1)),
            vec![
                (2_000, vec!["5/h sliding-log"]),
                (2_001, vec!["7/min sliding-log"]),
                (2_002, vec!["9/s sliding-log"]),
            ],
        ),
    ] {
        let world = apart(&format!("{SHARED}{}", policy("a", "allow", limits)), span);
        let charged = world.check("/a");
        let gap = span.unwrap_or(Span::ZERO).as_nanos() / 1_000_000_000;
        let times: Vec<_> = charged.parts.iter().map(|part| part.at).collect();
        assert_eq!(times, [0, 1, 2].map(|index| Timestamp::from_secs(2_000 + index * gap)));
        assert_eq!(now(world.limiter.refund(&charged, |_| true)), Ok(3));
        let refunds = world.limiter.store().refunds.lock().clone();
        let wanted: Vec<_> = wanted
            .into_iter()
            .map(|(at, limits)| {
                (Timestamp::from_secs(at), limits.into_iter().map(str::to_owned).collect())
            })
            .collect();
        assert_eq!(refunds, wanted);
    }
}

#[test]
fn a_queue_of_here_is_left_as_one_of_the_store_is() {
    let world = world(&format!("{SHARED}{}", policy("l", "local", "\"1/s burst 3 leaky-queue\"")));
    world.down();
    let clock: Arc<dyn Clock> = Arc::clone(&world.clock) as _;
    let line_up = || {
        let decision = world.check("/l");
        assert!(decision.is_allowed());
        world.limiter.line_up(&clock, &[decision]).0
    };
    let _at_once = line_up();
    let (first, mut second) = (line_up(), line_up());
    let asked = world.limiter.store().asked.load(Relaxed);
    for slot in first.leave() {
        assert_eq!(now(world.limiter.free(slot)), Ok(true));
    }
    assert_eq!(world.limiter.store().asked.load(Relaxed), asked, "the store knows nothing of it");
    world.clock.advance(Span::from_secs(1));
    now(second.turn());
}

/// The store's clock is a thousand seconds ahead of ours.
#[test]
fn a_slot_of_another_machines_clock_is_waited_for_by_ours() {
    let world = world(&format!("{SHARED}{}", policy("l", "allow", "\"1/s burst 3 leaky-queue\"")));
    let clock: Arc<dyn Clock> = Arc::clone(&world.clock) as _;
    let line_up = || world.limiter.line_up(&clock, &[world.check("/l")]).0;
    let _at_once = line_up();
    let (mut first, mut second, third) = (line_up(), line_up(), line_up());
    let mut context = Context::from_waker(Waker::noop());
    assert!(pin!(first.turn()).poll(&mut context).is_pending());
    world.clock.advance(Span::from_secs(1));
    now(first.turn());
    assert!(pin!(second.turn()).poll(&mut context).is_pending());
    // The store takes the last one back.
    for slot in third.leave() {
        assert_eq!(now(world.limiter.free(slot)), Ok(true));
    }
    world.clock.advance(Span::from_secs(1));
    now(second.turn());
}

#[test]
fn what_the_store_denies_is_charged_to_nobody_here() {
    let (small, large) = (policy("d", "deny", "\"1/h\""), policy("l", "local", "\"5/h\""));
    let world = world(&format!("{SHARED}{small}{large}"));
    assert_eq!(world.admitted("/all", 4), 1);
    world.down();
    assert_eq!(world.remaining("/l"), Some(4));
}

#[test]
fn what_is_forced_is_a_debt_here_as_it_is_there() {
    let world = world(&format!("{SHARED}{}", policy("l", "local", "\"2/h\"")));
    for _ in 0..4 {
        assert!(world.ask("/l", Mode::Force).is_allowed());
    }
    world.down();
    world.clock.advance(Span::from_secs(1_800));
    assert_eq!(world.remaining("/l"), Some(0), "one of two units that are owed is back");
}
