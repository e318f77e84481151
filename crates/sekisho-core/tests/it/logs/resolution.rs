//! What a resolution means.

use sekisho_core::{Call, Mode, Outcome, Span, State, Timestamp, Utc};
use sekisho_testkit::generate::Rng;

use super::{Numbers, SECOND, entries};
use crate::Key;

/// What the name says, for any limit, any resolution and any costs: of all requests that pass no stretch as long as the period has
/// more than the amount. And the log is as short as its resolution says.
#[test]
fn no_stretch_of_a_period_has_more_than_the_amount() {
    let (mut passed, mut denied) = (0, 0);
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let amount = rng.between(1, 12);
        let period = *rng.pick(&[1, 2, 7, 10, 64, 1_000, 60 * SECOND]);
        let resolution = rng.between(1, period);
        let of = Numbers { amount, period, resolution };
        let (limit, mut state) = (of.limit(), State::Fresh);
        let (mut now, mut admitted) = (rng.below(3 * period), Vec::new());
        for _ in 0..60 {
            now += match rng.below(6) {
                0 | 1 => 0,
                2 => rng.below(period + 1),
                3 => resolution - now % resolution,
                4 => rng.below(resolution + 1),
                _ => rng.below(period.div_ceil(amount) + 1),
            };
            let cost = if rng.chance(3, 4) { 1 } else { rng.between(1, amount) };
            let call = Call { now: Timestamp::from_nanos(now), cost, mode: Mode::Check };
            let verdict = limit.decide(&mut state, call, &Utc);
            if let Some(wait) = verdict.retry_after.map(Span::as_nanos) {
                denied += 1;
                let again = |now| {
                    let call = Call { now: Timestamp::from_nanos(now), ..call };
                    limit.judge(&state, call, &Utc).outcome
                };
                assert_eq!(again(now + wait), Outcome::Allow, "{limit} at {now}");
                assert_eq!(again(now + wait - 1), Outcome::Deny, "{limit} at {now}");
            } else {
                passed += 1;
                admitted.push((now, cost));
                let from = |first: &&(u64, u64)| first.0 + period > now;
                let stretch: u64 = admitted.iter().rev().take_while(from).map(|one| one.1).sum();
                assert!(stretch <= amount, "{limit}: {stretch} in {period} ns up to {now}");
            }
            let most = period.div_ceil(resolution) + 1;
            assert!(entries(&state).len() as u64 <= most, "{limit}: more than {most} entries");
        }
    }
    assert!(passed > 20_000 && denied > 20_000, "{passed} passed, {denied} denied");
}

/// One trace by hand: entries at multiples of 10 ns, of a limit of 3 in 100 ns.
#[test]
fn a_resolution_rounds_the_time_of_an_entry_up() {
    let mut key = Key::new("3/100ns sliding-log resolution 10ns");
    let first = key.check(1, 1);
    assert_eq!((first.remaining, first.reset_after.as_nanos()), (Some(2), 109));
    // Entered at 10 as well: neither late nor early.
    let second = key.check(7, 1);
    assert_eq!((second.remaining, second.reset_after.as_nanos()), (Some(1), 103));
    assert_eq!((second.quota_after.as_nanos(), second.next_after.as_nanos()), (103, 0));
    assert_eq!(key.check(11, 1).remaining, Some(0));
    assert_eq!(entries(&key.state), [(10, 2), (20, 1)]);
    let denied = key.check(12, 1);
    assert_eq!((denied.outcome, denied.retry_after), (Outcome::Deny, Some(Span::from_nanos(98))));
    assert_eq!(key.check(109, 1).retry_after, Some(Span::from_nanos(1)));
    assert_eq!(key.limit.fresh_at(&key.state, &Utc), Timestamp::from_nanos(120));
    // A refund names the time of its charge.
    let back = key.call(13, 1, Mode::Refund { at: Timestamp::from_nanos(7) });
    assert_eq!((back.remaining, entries(&key.state)), (Some(1), vec![(10, 1), (20, 1)]));
    let none = key.call(13, 1, Mode::Refund { at: Timestamp::from_nanos(21) });
    assert_eq!(none.remaining, Some(1));
    // A stamp of a tenth before the newest entry's is late, and entered there.
    assert_eq!(key.check(9, 1).remaining, Some(0));
    assert_eq!(entries(&key.state), [(10, 1), (20, 2)]);
    assert_eq!(key.check(110, 1).remaining, Some(0));
    assert_eq!(entries(&key.state), [(20, 2), (110, 1)]);
}

/// What is less than one resolution ahead is not after now; what is more is moved to where a request of now is entered.
#[test]
fn a_repair_knows_what_a_request_of_now_makes() {
    let mut key = Key::new("9/100ns sliding-log resolution 10ns");
    assert!(key.check(11, 1).is_allowed() && key.check(21, 2).is_allowed());
    for (now, wanted) in [(21, vec![(20, 1), (30, 2)]), (20, vec![(20, 3)]), (12, vec![(20, 3)])] {
        key.limit.repair(&mut key.state, Timestamp::from_nanos(now), &Utc);
        assert_eq!(entries(&key.state), wanted, "at {now}");
    }
    key.limit.repair(&mut key.state, Timestamp::from_nanos(10), &Utc);
    assert_eq!(entries(&key.state), [(10, 3)]);
}

/// Entries stay when the resolution is changed, and are never before one another.
#[test]
fn a_changed_resolution_keeps_the_entries() {
    let mut key = Key::new("9/100ns sliding-log");
    assert!(key.check(13, 1).is_allowed());
    key.limit = "9/100ns sliding-log resolution 10ns".parse().unwrap();
    // It would be entered at 10, before the entry of 13.
    assert_eq!(key.check(9, 1).remaining, Some(7));
    assert_eq!(entries(&key.state), [(13, 2)]);
    assert_eq!(key.check(14, 1).remaining, Some(6));
    assert_eq!(entries(&key.state), [(13, 2), (20, 1)]);
    key.limit = "9/100ns sliding-log".parse().unwrap();
    assert_eq!(key.check(21, 1).remaining, Some(5));
    assert_eq!(entries(&key.state), [(13, 2), (20, 1), (21, 1)]);
}
