//! What fits two words, and comes back from them as it was.

use sekisho_core::{Call, Limit, Mode};

use super::*;
use crate::calendar::Zones;

/// A generator that needs no crate: xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number of any length in bits, so that small ones are as frequent as large ones.
    fn any(&mut self) -> u64 {
        let bits = self.next() % 64;
        self.next() >> bits
    }
}

#[test]
fn a_slot_is_half_a_cache_line() {
    assert_eq!((size_of::<Slot>(), size_of::<Words>()), (32, 16));
}

#[test]
fn what_fits_comes_back_as_it_was() {
    let mut random = Random(0x5eed);
    let texts = [
        "60/min",
        "7/min burst 3",
        "4000000000/h",
        "5000000000/h",
        "3/ns",
        "1/3650day burst 1",
        "10/s fixed-window",
        "1000000000000/day fixed-window",
        "5/7h anchored-window",
        "9/333ns anchored-window",
        "100/min sliding-window",
        "9000000/h sliding-window",
        "5/calendar-month zone Asia/Tokyo",
        "2/16777217s fixed-window",
        "1/17min sliding-window",
    ];
    let mut fitted = 0;
    for text in texts {
        let limit: Limit = text.parse().unwrap();
        for _ in 0..2_000 {
            let mut state = State::Fresh;
            let start = random.any().min(Timestamp::MAX.as_nanos() / 2);
            for _ in 0..=random.next() % 4 {
                let now = Timestamp::from_nanos(start + random.any() % (1 << 40));
                let mode = if random.next() % 4 == 0 { Mode::Force } else { Mode::Check };
                let _verdict =
                    limit.decide(&mut state, Call { now, cost: random.any(), mode }, &Zones);
            }
            let fresh_at = limit.fresh_at(&state, &Zones);
            let Some(words) = Words::of(&state, fresh_at) else { continue };
            assert_eq!(words.state().as_ref(), Some(&state), "{text}");
            assert_eq!(words.fresh_at(), fresh_at, "{text}: {state:?}");
            assert_eq!((words.place(), words.0 >> TAG_SHIFT > 0), (None, true), "{text}");
            fitted += 1;
        }
    }
    assert!(fitted > 5_000, "{fitted}");
}

#[test]
fn usual_states_of_all_but_queues_and_logs_fit() {
    for text in
        ["60/min", "7/min", "10/s fixed-window", "5/day anchored-window", "100/min sliding-window"]
    {
        let limit: Limit = text.parse().unwrap();
        let mut state = State::Fresh;
        let call = Call { now: Timestamp::from_secs(1_800_000_000), cost: 1, mode: Mode::Check };
        assert!(limit.decide(&mut state, call, &Zones).is_allowed());
        assert!(Words::of(&state, limit.fresh_at(&state, &Zones)).is_some(), "{text}");
    }
}

#[test]
fn what_is_too_large_is_kept_elsewhere() {
    let bucket = |ns, rest, amount: u64| {
        let tat = ExactTime { ns, rest, amount: NonZero::new(amount).unwrap() };
        Words::of_bucket(&TokenBucket { tat, debt_at: None })
    };
    assert!(bucket(INSTANT, 6, 7).is_some());
    assert!(bucket(INSTANT + 1, 6, 7).is_none(), "after 2116");
    assert!(bucket(1, 7, 7).is_none(), "a remainder that is none");
    assert!(bucket(1, 0, u64::from(u32::MAX)).is_some());
    assert!(bucket(1, 0, u64::from(u32::MAX) + 1).is_none());
    let tat = ExactTime { ns: 1, rest: 0, amount: NonZero::new(7).unwrap() };
    let debt = TokenBucket { tat, debt_at: Some(Timestamp::EPOCH) };
    assert!(Words::of_bucket(&debt).is_none(), "a debt carries its time");

    let window = |used| {
        let window = FixedWindow { start: Timestamp::from_secs(60), used };
        Words::of(&State::FixedWindow(window), Timestamp::from_secs(120))
    };
    assert!(window(USED).is_some() && window(USED + 1).is_none());
    let sliding = |previous, current| {
        let window = SlidingWindow { number: 1, previous, current };
        let ahead = if current > 0 { 180 } else { 120 };
        Words::of(&State::SlidingWindow(window), Timestamp::from_secs(ahead))
    };
    assert!(sliding(HALF, HALF).is_some() && sliding(HALF, 0).is_some());
    assert!(sliding(HALF + 1, 1).is_none() && sliding(1, HALF + 1).is_none());
}

#[test]
fn a_period_is_kept_exactly_or_not_at_all() {
    let mut random = Random(7);
    for _ in 0..100_000 {
        let ns = random.any();
        if let Some(period) = Period::of(ns) {
            assert_eq!(period.ns(), ns);
        }
    }
    for ns in [1, 333, 1_000_000_000, 60_000_000_000, 86_400_000_000_000, 604_800_000_000_000] {
        assert_eq!(Period::of(ns).map(Period::ns), Some(ns));
    }
    assert!(Period::of(0).is_none() && Period::of(u64::MAX).is_none());
}

#[test]
fn elsewhere_says_where_and_until_when() {
    let words = Words::elsewhere(u32::MAX, Timestamp::from_nanos(5));
    assert_eq!((words.place(), words.fresh_at()), (Some(u32::MAX), Timestamp::from_nanos(5)));
    assert_eq!((words.state(), words.bucket()), (None, None));
    for at in [Timestamp::NEVER, Timestamp::MAX, Timestamp::from_nanos(INSTANT + 7)] {
        assert_eq!(Words::elsewhere(u32::MAX, at).fresh_at(), at);
        assert_eq!(Words::elsewhere(7, at).place(), Some(7));
    }
    assert_eq!(Words::TAKEN.fresh_at(), Timestamp::NEVER);
    assert_eq!(Words::TAKEN.state(), Some(State::Fresh));
}
