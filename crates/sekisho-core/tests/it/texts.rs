//! A limit's text, both ways.

use sekisho_core::{Limit, LimitError, Span};

#[test]
fn canonical_text_parses_to_the_same_limit_and_prints_unchanged() {
    for (text, canonical) in [
        ("60/min", "60/min token-bucket"),
        ("60/60s burst 60 gcra", "60/min token-bucket"),
        ("60/m leaky-bucket", "60/min token-bucket"),
        ("100/30s burst 20", "100/30s burst 20 token-bucket"),
        ("1000/day sliding-window", "1000/day sliding-window"),
        ("10/s burst 5 leaky-queue", "10/s burst 5 leaky-queue"),
        ("10/sec leaky-queue", "10/s leaky-queue"),
        ("7/168h sliding-log", "7/week sliding-log"),
        ("1000/h sliding-log resolution 10ms", "1000/h sliding-log resolution 10ms"),
        ("1000/h sliding-log resolution 60000ms", "1000/h sliding-log resolution 1min"),
        ("7/7ns sliding-log resolution 7ns", "7/7ns sliding-log resolution 7ns"),
        ("7/s sliding-log resolution 1ns", "7/s sliding-log"),
        ("5/1500ms anchored-window", "5/1500ms anchored-window"),
        ("3000000000/s", "3000000000/s token-bucket"),
        ("1/365d", "1/365day token-bucket"),
        ("5/calendar-day zone Asia/Tokyo", "5/calendar-day zone Asia/Tokyo fixed-window"),
        ("5/calendar-month zone UTC fixed-window", "5/calendar-month fixed-window"),
        ("block", "block"),
        (" unlimited ", "unlimited"),
    ] {
        let limit: Limit = text.parse().unwrap();
        assert_eq!(limit.to_string(), canonical, "{text}");
        assert_eq!(canonical.parse(), Ok(limit), "{canonical}");
    }
}

#[test]
fn ids_have_the_period_in_seconds_and_no_amount() {
    for (text, id) in [
        ("60/min", "60s-token-bucket"),
        ("1/day sliding-log", "86400s-sliding-log"),
        ("1/day sliding-log resolution 1s", "86400s-sliding-log"),
        ("1/1500ms", "1500ms-token-bucket"),
        ("1/5ns", "5ns-token-bucket"),
        ("9/calendar-day zone Asia/Tokyo", "calendar-day-fixed-window"),
    ] {
        let limit: Limit = text.parse().unwrap();
        assert_eq!(limit.as_metered().unwrap().id().to_string(), id, "{text}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    use sekisho_core::Algorithm::{SlidingLog, TokenBucket};
    for (text, error) in [
        ("", LimitError::Shape),
        ("60", LimitError::Shape),
        ("-1/min", LimitError::Amount),
        ("1.5/min", LimitError::Amount),
        ("+1/min", LimitError::Amount),
        ("18446744073709551616/min", LimitError::Amount),
        ("0/min", LimitError::ZeroAmount),
        ("60/fortnight", LimitError::Period),
        ("60/", LimitError::Period),
        ("60/0s", LimitError::ZeroPeriod),
        ("60/3651day", LimitError::LongPeriod),
        ("60/99999999999999999999s", LimitError::LongPeriod),
        ("60/min burst", LimitError::Burst),
        ("60/min burst x", LimitError::Burst),
        ("60/min burst 0", LimitError::ZeroBurst),
        ("60/min burst 5 sliding-log", LimitError::BurstWithoutUse(SlidingLog)),
        ("1/3650day burst 11", LimitError::LongWait),
        ("60/calendar-day token-bucket", LimitError::CalendarAlgorithm(TokenBucket)),
        ("60/min zone Asia/Tokyo", LimitError::ZoneWithoutCalendar),
        ("60/calendar-day zone", LimitError::Zone),
        ("60/min sliding", LimitError::Word),
        ("60/min token-bucket burst 5", LimitError::Word),
        ("block 5", LimitError::Word),
        ("60/min sliding-log resolution", LimitError::Resolution),
        ("60/min sliding-log resolution ms", LimitError::Resolution),
        ("60/min sliding-log resolution 10", LimitError::Resolution),
        ("60/min sliding-log resolution calendar-day", LimitError::Resolution),
        ("60/min sliding-log resolution 0ms", LimitError::ZeroResolution),
        ("60/min sliding-log resolution 60001ms", LimitError::LongResolution),
        ("60/min sliding-log resolution 3651day", LimitError::LongResolution),
        ("60/min sliding-log resolution 1s resolution 1s", LimitError::Word),
        ("60/min resolution 1s sliding-log", LimitError::Word),
        ("60/min sliding-log resolution 1s sliding-log", LimitError::Word),
        ("60/min resolution 1s", LimitError::ResolutionWithoutUse),
        ("60/min sliding-window resolution 1ns", LimitError::ResolutionWithoutUse),
        ("block resolution 1s", LimitError::Word),
    ] {
        assert_eq!(text.parse::<Limit>(), Err(error), "{text}");
    }
    assert!("1/3650day burst 10".parse::<Limit>().is_ok());
    for alone in [Limit::Block, Limit::Unlimited] {
        let error = alone.with_resolution(Span::from_secs(1)).unwrap_err();
        assert_eq!(error, LimitError::ResolutionWithoutUse);
        assert!(error.to_string().contains("write `sliding-log` before it"), "{error}");
    }
}
