//! The smallest numbers: charges that are nearly nothing, and limits of nothing at all.

use std::sync::Arc;

use sekisho::{Algorithm, FakeClock, KeyedLimiter, Limit, LimitError, Period, Rate, Span};

#[test]
pub(crate) fn a_small_charge_is_kept() {
    for (text, left) in [("1000/min burst 1001", [1_000, 999, 998]), ("3000000000/s burst 3", [2, 1, 0])] {
        let clock = Arc::new(FakeClock::default());
        let limiter = KeyedLimiter::with_clock(text.parse().unwrap(), clock);
        for left in left {
            let checked = limiter.check("a").unwrap();
            assert!(checked.is_allowed() && !checked.reset_after.is_zero(), "{text}");
            assert_eq!(checked.remaining, Some(left), "{text}");
            assert_eq!(limiter.store().occupancy().entries, 1, "{text}");
            assert_eq!(limiter.store().sweep(), 0, "{text}: it is not as new yet");
        }
    }
}

#[test]
pub(crate) fn nothing_has_a_rate_of_zero() {
    assert_eq!(Period::fixed(Span::ZERO), Err(LimitError::ZeroPeriod));
    assert_eq!(Rate::per_second(0), Err(LimitError::ZeroAmount));
    let rate = Rate::per_second(10).unwrap();
    assert_eq!(rate.token_bucket(0), Err(LimitError::ZeroBurst));
    for algorithm in Algorithm::ALL {
        let limit = Limit::metered(rate, algorithm, None).unwrap();
        assert!(limit.capacity() > Some(0), "{limit}");
    }
    // Nothing but `unlimited` is without a capacity, and nothing but `block` has one of 0.
    assert_eq!((Limit::Block.capacity(), Limit::Unlimited.capacity()), (Some(0), None));
}
