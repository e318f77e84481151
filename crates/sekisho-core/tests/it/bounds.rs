//! The worst case, beside what a search over small worlds finds.

use sekisho_core::{Limit, Span};

use crate::Key;

fn bound(limit: &str, ns: u64) -> (u128, u128) {
    let bound = limit.parse::<Limit>().unwrap().bound(Span::from_nanos(ns));
    (bound.half_open.unwrap(), bound.closed.unwrap())
}

#[test]
fn the_published_worst_case_of_each_algorithm() {
    let minute = 60_000_000_000;
    for (limit, half_open) in [
        ("60/min fixed-window", 120),
        ("60/min anchored-window", 119),
        ("60/min sliding-log", 60),
        ("60/min sliding-log resolution 7s", 60),
        ("60/min sliding-window", 119),
        ("60/min", 119),
        ("60/min burst 10", 69),
        ("60/min burst 10 leaky-queue", 70),
    ] {
        assert_eq!(bound(limit, minute).0, half_open, "{limit}");
    }
    assert_eq!(bound("60/min", minute).1, 120);
    // Those of the first minute's end are entered 3 s later.
    let coarse = "60/min sliding-log resolution 7s";
    let at = |seconds: u64| bound(coarse, seconds * 1_000_000_000);
    assert_eq!([at(60), at(61), at(123), at(124)], [(60, 120), (120, 120), (120, 180), (180, 180)]);
    assert_eq!(bound("60/min burst 10", minute).1, 70);
    assert_eq!("block".parse::<Limit>().unwrap().bound(Span::from_secs(1)).half_open, Some(0));
    assert_eq!("unlimited".parse::<Limit>().unwrap().bound(Span::from_secs(1)).half_open, None);
    assert_eq!(bound("60/min", 0), (0, 60));
}

/// Every arrival pattern of single units on a few nanoseconds: the most that any stretch admits is the bound.
#[test]
fn small_worlds_reach_the_bound_and_never_pass_it() {
    const INSTANTS: usize = 9;
    for limit in [
        "2/3ns fixed-window",
        "2/3ns anchored-window",
        "2/3ns sliding-log",
        "2/3ns sliding-log resolution 2ns",
        "2/3ns sliding-log resolution 3ns",
        "2/2ns sliding-log resolution 2ns",
        "2/3ns sliding-window",
        "3/4ns sliding-window",
        "1/3ns sliding-window",
        "1/2ns burst 2",
        "1/3ns burst 1",
        "2/3ns burst 2",
        "1/2ns burst 1 leaky-queue",
        "2/3ns anchored-window",
    ] {
        let capacity = limit.parse::<Limit>().unwrap().capacity().unwrap();
        let base = usize::try_from(capacity).unwrap() + 1;
        let mut most = [0_u128; 10];
        // A pattern is how many units come at each instant, as the digits of a number.
        for pattern in 0..base.pow(u32::try_from(INSTANTS).unwrap()) {
            let mut key = Key::new(limit);
            let mut admitted = [0_u128; INSTANTS];
            let mut digits = pattern;
            for (at, slot) in admitted.iter_mut().enumerate() {
                for _ in 0..digits % base {
                    *slot += u128::from(key.check(at as u64, 1).is_allowed());
                }
                digits /= base;
            }
            for (length, most) in most.iter_mut().enumerate().skip(1) {
                for stretch in admitted.windows(length) {
                    *most = (*most).max(stretch.iter().sum());
                }
            }
        }
        // The stretches at the far end may not have had the room before them that the worst case needs.
        for (length, most) in most.iter().enumerate().take(7).skip(1) {
            let (half_open, closed) = bound(limit, length as u64);
            assert_eq!(*most, half_open, "{limit}: {length} ns");
            assert!(closed >= half_open);
        }
    }
}
