//! The parts that callers hold in their hands: instants and lengths, words, the numbers of a limit, calendars.

use std::time::Duration;

use sekisho_core::{
    Algorithm, Calendar, CalendarUnit, Call, Joint, Limit, LimitError, Mode, Outcome, Period, Rate,
    Slot, Span, State, Timestamp, Utc, Verdict, Zone, decide, judge, limits,
};

use crate::Key;

const DAY: u64 = 86_400;

fn limit(text: &str) -> Limit {
    text.parse().unwrap()
}

#[test]
fn instants_stop_at_the_end_of_time() {
    let second = Timestamp::from_secs(1);
    assert_eq!(second.as_nanos(), 1_000_000_000);
    assert_eq!(Timestamp::from_nanos(u64::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::from_secs(u64::MAX), Timestamp::MAX);
    assert_eq!(
        Timestamp::from_nanos(limits::TIMESTAMP_NS_MAX - 1).as_nanos(),
        limits::TIMESTAMP_NS_MAX - 1
    );
    assert_eq!(second.plus(Span::from_secs(2)), Timestamp::from_secs(3));
    assert_eq!(Timestamp::MAX.plus(Span::from_nanos(1)), Timestamp::MAX);
    assert_eq!(Timestamp::from_secs(3).since(second), Span::from_secs(2));
    assert_eq!(second.since(Timestamp::from_secs(3)), Span::ZERO);
}

#[test]
fn lengths_round_up_and_saturate() {
    let seconds = |ns| Span::from_nanos(ns).as_secs_ceil();
    assert_eq!([0, 1, 999_999_999, 1_000_000_000, 1_000_000_001].map(seconds), [0, 1, 1, 1, 2]);
    let millis = |ns| Span::from_nanos(ns).as_millis_ceil();
    assert_eq!([0, 1, 1_000_000, 1_000_001].map(millis), [0, 1, 1, 2]);
    assert_eq!(Span::from_secs(u64::MAX).as_nanos(), u64::MAX);
    assert!(Span::ZERO.is_zero() && !Span::from_nanos(1).is_zero());
    assert_eq!(Duration::from(Span::from_secs(2)), Duration::from_secs(2));
    assert_eq!(Span::from(Duration::from_millis(3)), Span::from_nanos(3_000_000));
    assert_eq!(Span::from(Duration::MAX).as_nanos(), u64::MAX);
    assert_eq!(Span::from_nanos(1_500_000_000).to_string(), "1.5s");
    assert_eq!("1500ms".parse(), Ok(Span::from_nanos(1_500_000_000)));
    for wrong in ["", "s", "2", "2 s", "-1s", "month", "0s", "calendar-day"] {
        assert!(wrong.parse::<Span>().is_err(), "{wrong}");
    }
}

#[test]
fn words_go_both_ways() {
    for algorithm in Algorithm::ALL {
        assert_eq!(Algorithm::from_word(algorithm.as_str()), Some(algorithm));
        assert_eq!(algorithm.to_string(), algorithm.as_str());
    }
    let bucket = Some(Algorithm::TokenBucket);
    assert_eq!([Algorithm::from_word("gcra"), Algorithm::from_word("leaky-bucket")], [bucket; 2]);
    assert_eq!(Algorithm::from_word("bucket"), None);
    let outcomes = [Outcome::Allow, Outcome::Deny, Outcome::Never].map(Outcome::as_str);
    assert_eq!(outcomes, ["allow", "deny", "never"]);
    assert_eq!(format!("{:?}", Zone::new("Asia/Tokyo").unwrap()), "Zone(Asia/Tokyo)");
    assert_eq!(Zone::new(&"x".repeat(limits::ZONE_BYTES_MAX)).unwrap().as_str().len(), 40);
    for character in ["/", "_", "-", "+", "7"] {
        assert!(Zone::new(character).is_ok(), "{character}");
    }
    for error in [LimitError::ZeroAmount, LimitError::BurstWithoutUse(Algorithm::SlidingLog)] {
        let said = error.to_string();
        assert!(said.contains("block") || said.contains("`sliding-log` has no burst"), "{said}");
    }
}

#[test]
fn a_unit_has_its_names_and_a_word_is_said_once() {
    for (text, same, canonical) in [
        ("5/us", "5/1000ns", "us"),
        ("5/ms", "5/1000us", "ms"),
        ("5/second", "5/1000ms", "s"),
        ("5/minute", "5/60s", "min"),
        ("5/hour", "5/60m", "h"),
        ("5/2h", "5/120min", "2h"),
        ("5/d", "5/24h", "day"),
        ("5/w", "5/7day", "week"),
    ] {
        assert_eq!(limit(text), limit(same), "{text}");
        assert_eq!(limit(same).to_string(), format!("5/{canonical} token-bucket"));
    }
    for twice in ["5/s burst 2 burst 2", "5/calendar-day zone UTC zone UTC", "5/s gcra gcra"] {
        assert_eq!(twice.parse::<Limit>(), Err(LimitError::Word), "{twice}");
    }
}

#[test]
fn a_limit_tells_its_numbers() {
    for (text, capacity) in [
        ("60/min", Some(60)),
        ("60/min burst 7", Some(7)),
        ("60/min leaky-queue", Some(1)),
        ("60/min burst 7 leaky-queue", Some(8)),
        ("60/min sliding-log", Some(60)),
        ("60/min sliding-window", Some(60)),
        ("60/min fixed-window", Some(60)),
        ("60/min anchored-window", Some(60)),
        ("block", Some(0)),
        ("unlimited", None),
    ] {
        assert_eq!(limit(text).capacity(), capacity, "{text}");
    }
    assert_eq!(Rate::per_second(5).unwrap().token_bucket(7), Ok(limit("5/s burst 7")));
    assert_eq!(Rate::per_minute(5).unwrap().sliding_log(), Ok(limit("5/min sliding-log")));
    assert_eq!(Rate::per_minute(5).unwrap().leaky_queue(2), Ok(limit("5/min burst 2 leaky-queue")));
    assert!(limit("block").as_metered().is_none() && limit("unlimited").as_metered().is_none());
    let metered = *limit("5/s burst 7").as_metered().unwrap();
    assert_eq!((metered.amount().get(), metered.burst()), (5, 7));
    assert_eq!(metered.rate().amount().get(), 5);
    assert_eq!(metered.period().longest(), Span::from_secs(1));
}

#[test]
fn the_ceilings_are_reached_and_not_passed() {
    assert!(Period::fixed(Span::from_nanos(limits::PERIOD_NS_MAX)).is_ok());
    assert_eq!(
        Period::fixed(Span::from_nanos(limits::PERIOD_NS_MAX + 1)),
        Err(LimitError::LongPeriod)
    );
    assert_eq!(limits::PERIOD_NS_MAX, 3_650 * DAY * 1_000_000_000);
    assert_eq!(limits::WAIT_NS_MAX, 36_500 * DAY * 1_000_000_000);
    assert!("1/3650d burst 10".parse::<Limit>().is_ok());
    assert_eq!("1/3650d burst 11".parse::<Limit>(), Err(LimitError::LongWait));
}

#[test]
fn a_calendar_period_is_as_long_as_its_windows_are() {
    let of = |unit, zone: &str| Period::Calendar(unit, Zone::new(zone).unwrap());
    let hours =
        |period: &Period| [period.shortest(), period.longest()].map(|of| of.as_secs_ceil() / 3_600);
    assert_eq!(hours(&of(CalendarUnit::Day, "UTC")), [24, 25]);
    assert_eq!(hours(&of(CalendarUnit::Month, "UTC")), [28 * 24, 31 * 24 + 1]);
    assert_eq!(hours(&of(CalendarUnit::Day, "Asia/Tokyo")), [22, 25]);
    assert_eq!(hours(&of(CalendarUnit::Month, "Asia/Tokyo")), [28 * 24 - 2, 31 * 24 + 1]);
    let most = |text: &str, days: u64| limit(text).bound(Span::from_secs(days * DAY)).half_open;
    assert_eq!(most("5/calendar-day", 1), Some(10));
    assert_eq!(most("5/calendar-month", 28), Some(10));
    assert_eq!(most("5/calendar-month", 29), Some(15));
    assert_eq!(most("5/calendar-day zone Asia/Tokyo", 1), Some(15));
}

/// The first days of all months from 1970 to 2285, counted another way: days before a year by its leap years.
#[test]
fn months_in_utc_begin_where_they_should() {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let leaps_before = |year: u64| (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    let new_year = |year: u64| (year - 1970) * 365 + leaps_before(year) - leaps_before(1970);
    let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for year in 1970..2285 {
        let mut first = new_year(year);
        for (month, length) in lengths.into_iter().enumerate() {
            let length = length + u64::from(month == 1 && leap(year));
            let after = first + length;
            for day in [first, first + length / 2, after - 1] {
                let at = Timestamp::from_secs(day * DAY + DAY - 1);
                let window = Utc.window(CalendarUnit::Month, &Zone::UTC, at);
                let days = [window.start, window.end].map(|at| at.as_nanos() / limits::DAY_NS);
                assert_eq!(days, [first, after], "{year}-{}", month + 1);
            }
            first = after;
        }
    }
}

#[test]
fn a_calendar_limit_counts_in_its_window() {
    let mut key = Key::new("2/calendar-day");
    let noon = 19_000 * DAY * 1_000_000_000 + limits::DAY_NS / 2;
    assert!(key.check(noon, 2).is_allowed());
    let denied = key.check(noon, 1);
    assert_eq!(denied.retry_after.unwrap().as_nanos(), limits::DAY_NS / 2);
    let fresh_at = key.limit.fresh_at(&key.state, &Utc).as_nanos();
    assert_eq!(fresh_at, noon + limits::DAY_NS / 2);
    assert!(key.check(fresh_at, 2).is_allowed());
}

#[test]
fn what_has_no_numbers_binds_last_and_a_block_first() {
    let joint = |texts: &[&str], cost| {
        let limits: Vec<_> = texts.iter().map(|text| limit(text)).collect();
        let mut states = vec![State::Fresh; limits.len()];
        let mut slots: Vec<_> = (limits.iter().zip(&mut states))
            .map(|(limit, state)| Slot { limit, state, cost })
            .collect();
        let mut verdicts = vec![Verdict::UNLIMITED; slots.len()];
        let said = judge(&slots, &mut verdicts, Timestamp::EPOCH, Mode::Check, &Utc);
        let done = decide(&mut slots, &mut verdicts, Timestamp::EPOCH, Mode::Check, &Utc);
        assert_eq!((said.outcome, said.delay), (done.outcome, done.delay));
        (done.outcome, done.binding)
    };
    assert_eq!(joint(&["unlimited", "5/s"], 1), (Outcome::Allow, 1));
    assert_eq!(joint(&["5/s", "unlimited"], 1), (Outcome::Allow, 0));
    assert_eq!(joint(&["unlimited", "unlimited"], 1), (Outcome::Allow, 0));
    assert_eq!(joint(&["5/s", "block", "block"], 6), (Outcome::Never, 1));
    assert_eq!(joint(&["5/s", "4/s", "9/s"], 6), (Outcome::Never, 0));
    assert_eq!(Joint::of([]).outcome, Outcome::Allow);
    assert!(Verdict::BLOCK.is_block() && !Verdict::UNLIMITED.is_block());
    assert!(Verdict::UNLIMITED.is_unlimited() && !Verdict::BLOCK.is_unlimited());
    assert!(Verdict::UNLIMITED.is_allowed() && !Verdict::BLOCK.is_allowed());
    assert!(!Key::new("5/s").check(0, 6).is_block());
}

#[test]
fn a_block_refuses_checks_and_not_what_has_happened() {
    let mut key = Key::new("block");
    assert_eq!(key.check(0, 1).outcome, Outcome::Never);
    let look = key.call(0, 1, Mode::Look);
    assert_eq!((look.outcome, look.capacity, look.remaining), (Outcome::Never, Some(0), Some(0)));
    assert_eq!(key.call(0, 1, Mode::Force).outcome, Outcome::Allow);
    assert_eq!(key.call(0, 1, Mode::Refund { at: Timestamp::EPOCH }).outcome, Outcome::Allow);
    assert_eq!(
        (key.state.clone(), key.limit.fresh_at(&key.state, &Utc)),
        (State::Fresh, Timestamp::EPOCH)
    );
}

#[test]
fn a_state_of_another_algorithm_is_a_fresh_one() {
    let mut key = Key::new("5/h sliding-log");
    assert!(key.check(0, 5).is_allowed());
    for other in ["5/h", "5/h fixed-window", "5/h sliding-window", "5/h burst 4 leaky-queue"] {
        let call = Call { now: Timestamp::EPOCH, cost: 5, mode: Mode::Check };
        let verdict = limit(other).decide(&mut key.state.clone(), call, &Utc);
        assert!(verdict.is_allowed(), "{other}");
    }
}

/// A refund of nothing makes no state that a store would have to keep.
#[test]
fn nothing_is_kept_for_a_refund_of_nothing() {
    for algorithm in Algorithm::ALL {
        let mut key = Key::new(&format!("5/h {algorithm}"));
        let back = key.call(0, 1, Mode::Refund { at: Timestamp::EPOCH });
        assert_eq!(
            (back.remaining, &key.state),
            (key.limit.capacity(), &State::Fresh),
            "{algorithm}"
        );
        key.limit.repair(&mut key.state, Timestamp::EPOCH, &Utc);
        assert_eq!(key.state, State::Fresh, "{algorithm}");
    }
}

/// The debt of a queue is as long after the clock was set back as before, also when it is longer than anybody may wait.
#[test]
fn a_queues_debt_moves_with_the_clock() {
    let mut key = Key::new("1/10ns burst 5 leaky-queue");
    assert_eq!(key.call(1_000, 20, Mode::Force).reset_after.as_nanos(), 200);
    for (now, reset) in [(1_000, 200), (300, 200), (400, 100), (290, 200)] {
        key.limit.repair(&mut key.state, Timestamp::from_nanos(now), &Utc);
        assert_eq!(key.call(now, 0, Mode::Look).reset_after.as_nanos(), reset, "at {now}");
    }
}

/// A repair that moves nothing leaves a queue's last charge what it was.
#[test]
fn a_full_queue_still_takes_back_its_last_charge_after_a_repair() {
    let mut key = Key::new("1/10ns burst 5 leaky-queue");
    assert!(key.check(100, 6).is_allowed());
    let now = Timestamp::from_nanos(100);
    key.limit.repair(&mut key.state, now, &Utc);
    assert_eq!(key.call(100, 1, Mode::Refund { at: now }).reset_after.as_nanos(), 50);
}

/// A repair is for what lies after now. Without that it touches nothing, not even under a limit that cuts time otherwise.
#[test]
fn a_repair_with_nothing_to_move_changes_nothing() {
    for algorithm in Algorithm::ALL {
        let burst = if algorithm == Algorithm::LeakyQueue { "burst 4 " } else { "" };
        let mut key = Key::new(&format!("5/10ns {burst}{algorithm}"));
        assert!(key.check(10, 1).is_allowed());
        let before = key.state.clone();
        for other in ["5/10ns", "5/3ns"] {
            let other = limit(&format!("{other} {burst}{algorithm}"));
            other.repair(&mut key.state, Timestamp::from_nanos(10), &Utc);
            assert_eq!(key.state, before, "{other}");
        }
    }
}

/// What a repair moves to now joins what was entered there: one instant has one entry, which is given back as one.
#[test]
fn a_repaired_log_has_one_entry_an_instant() {
    let mut key = Key::new("5/h sliding-log");
    assert!(key.check(10, 2).is_allowed() && key.check(20, 3).is_allowed());
    let now = Timestamp::from_nanos(10);
    key.limit.repair(&mut key.state, now, &Utc);
    let State::SlidingLog(log) = &key.state else { panic!("a log") };
    assert!(log.entries().map(|entry| (entry.at, entry.units)).eq([(now, 5)]));
    assert_eq!(key.call(10, 5, Mode::Refund { at: now }).remaining, Some(5));
}

/// A force that just uses up what there is leaves no debt, and so no time of one.
#[test]
fn a_debt_begins_above_the_capacity() {
    let debt_at = |state: &State| match state {
        State::TokenBucket(bucket) => bucket.debt_at,
        State::LeakyQueue(queue) => queue.debt_at,
        other => panic!("{other:?}"),
    };
    for text in ["1/10ns burst 6", "1/10ns burst 5 leaky-queue"] {
        let mut key = Key::new(text);
        assert_eq!(key.call(100, 6, Mode::Force).remaining, Some(0));
        assert_eq!(debt_at(&key.state), None, "{text}");
        assert_eq!(key.call(100, 1, Mode::Force).remaining, Some(0));
        assert_eq!(debt_at(&key.state), Some(Timestamp::from_nanos(100)), "{text}");
        assert_eq!(
            key.call(100, 1, Mode::Refund { at: Timestamp::from_nanos(100) }).remaining,
            Some(0)
        );
        assert_eq!(debt_at(&key.state), None, "{text}");
    }
}

#[test]
fn a_state_names_the_first_instant_at_which_it_is_fresh() {
    for (limit, fresh_at) in [
        ("1/10ns burst 3", 22),
        ("3/10ns burst 3", 16),
        ("1/10ns burst 2 leaky-queue", 22),
        ("5/10ns fixed-window", 20),
        ("5/10ns anchored-window", 22),
        ("5/10ns sliding-log", 22),
        ("5/10ns sliding-window", 30),
    ] {
        let mut key = Key::new(limit);
        assert!(key.check(12, 1).is_allowed());
        assert_eq!(key.limit.fresh_at(&key.state, &Utc).as_nanos(), fresh_at, "{limit}");
    }
}
