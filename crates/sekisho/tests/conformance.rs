//! The library and the core, held to the cases of the conformance suite.
#![expect(clippy::unwrap_used, reason = "a test may end early")]

use std::collections::BTreeSet;

use sekisho::{Memory, MemoryOptions};
use sekisho_testkit::conformance::{
    Failure, Need, Report, ThisThread, block_on, cases, run_all, run_file, run_parallel, run_text,
    run_trace_on_core, run_trace_on_model, traces,
};

/// Names the test functions that cases ask for, and brings their modules in.
macro_rules! functions {
    ($($module:ident: $($function:ident)*;)*) => {
        mod conformance {
            $(pub(crate) mod $module;)*
        }

        const FUNCTIONS: &[(&str, fn())] = &[
            $($((
                concat!(stringify!($module), "::", stringify!($function)),
                conformance::$module::$function,
            ),)*)*
        ];
    };
}

functions! {
    clocks:
        a_clock_set_back_costs_at_most_one_wait
        a_clock_that_stood_still_is_honest
        a_sleeper_gets_the_capacity_and_no_more
        the_machines_clock_never_goes_back
        nobody_is_judged_at_a_time_before_the_last_decisions;
    flood:
        a_full_store_does_as_it_is_told
        a_million_keys_stay_under_the_cap
        an_exhausted_key_stays_exhausted
        bytes_have_a_cap_too;
    keys:
        any_bytes_are_a_key_of_their_own
        any_bytes_may_stand_in_a_header
        policy_and_limit_are_part_of_the_key_and_numbers_are_not;
    numbers:
        a_small_charge_is_kept
        nothing_has_a_rate_of_zero;
    snapshot:
        each_process_counts_for_itself
        numbers_do_not_move_with_the_clock
        sums_agree_with_the_store;
    waiting:
        a_year_is_a_wait_like_any_other
        nobody_waits_for_what_never_comes;
}

const EVERYTHING: [Need; 4] = [Need::Nanoseconds, Need::KeepAll, Need::Zones, Need::ManyCalls];

fn all_good(results: impl IntoIterator<Item = Result<(), Failure>>) {
    let failures: Vec<String> =
        results.into_iter().filter_map(Result::err).map(|failure| failure.to_string()).collect();
    assert!(failures.is_empty(), "{} failed\n  {}", failures.len(), failures.join("\n  "));
}

fn good(report: &Report) {
    assert!(report.is_good(), "{report}");
    assert!(!report.passed.is_empty(), "{report}");
}

#[test]
fn traces_on_the_memory_store() {
    let store = Memory::new(MemoryOptions { keep_all: true, ..Default::default() });
    let report = block_on(run_all(&store, "kept-", &EVERYTHING));
    good(&report);
    assert_eq!(report.skipped, []);
}

#[test]
fn traces_on_a_memory_store_that_drops_what_is_stale() {
    let store = Memory::default();
    let can = [Need::Nanoseconds, Need::Zones];
    good(&block_on(run_all(&store, "dropped-", &can)));
}

#[test]
fn traces_on_the_core() {
    all_good(traces().iter().map(run_trace_on_core));
}

#[test]
fn traces_on_the_model() {
    let results: Vec<_> = traces().iter().filter_map(run_trace_on_model).collect();
    assert!(results.len() > 80, "{} traces are known to the model", results.len());
    all_good(results);
}

#[test]
fn texts() {
    let cases = cases();
    all_good(cases.iter().flat_map(|case| case.text.iter().map(|text| run_text(&case.id, text))));
}

#[test]
fn files() {
    let cases = cases();
    all_good(cases.iter().flat_map(|case| case.file.iter().map(|file| run_file(&case.id, file))));
}

#[test]
fn parallels() {
    let store = Memory::default();
    for case in cases() {
        let run = |parallel| run_parallel(&store, (&case.id, parallel), "", &ThisThread);
        all_good(case.parallel.iter().map(run));
    }
}

#[test]
fn functions_are_those_that_cases_ask_for() {
    let cases = cases();
    let asked = cases.iter().flat_map(|case| case.rust.iter().map(|rust| rust.test.as_str()));
    let there: BTreeSet<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
    assert_eq!(asked.collect::<BTreeSet<_>>(), there);
}
