//! What a fault of the servers costs, on real ones: each test makes one fault under requests and leaves a row of numbers in
//! the table of `docs/outages.md`. Without a server these tests fail.
#![expect(clippy::unwrap_used, reason = "a test may end early")]
#![expect(clippy::print_stdout, reason = "what was measured stands beside a failure")]

mod cases;
mod client;
mod clock;
mod crowds;
mod failover;
mod gone;
mod heals;
mod load;
mod memory;
mod refusals;
mod scene;
mod scripts;
mod support;
mod switch;
mod table;
mod wires;

use std::time::Duration;

/// Makes a test of each fault, in the table's order.
macro_rules! faults {
    ($($test:ident: $fault:literal => $row:expr;)*) => {
        /// The places of the rows.
        #[expect(non_camel_case_types, reason = "they are named as the tests are")]
        enum Place { $($test,)* Rows }

        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $test() {
                let place = (Place::$test as usize, Place::Rows as usize);
                table::record(place, $fault, Box::pin($row)).await;
            }
        )*

        #[test]
        fn the_page_has_every_row() {
            let page = include_str!("../../../../docs/outages.md");
            for fault in [$($fault),*] {
                assert!(page.contains(&format!("| {fault} |")), "docs/outages.md: {fault}");
            }
        }
    };
}

faults! {
    killed: "the server dies and comes back empty" => gone::killed();
    b47_restarted_under_load: "the same under load" => gone::restarted();
    b47_flushed_under_load: "the script is forgotten" => scripts::flushed();
    b51_frozen: "the server stands still" => gone::frozen();
    sentinels: "failover by Sentinel" => failover::sentinels();
    cluster: "failover in a cluster" => failover::cluster();
    full_memory: "the memory is full" => memory::full();
    b41_clock_set_back_8_h: "the clock is set back far" =>
        clock::set_back(Duration::from_hours(8), "8 h");
    b41_clock_set_back_1_s: "the clock is set back a little" =>
        clock::set_back(Duration::from_secs(1), "1 s");
    dropped_calls: "callers go away" => client::dropped_calls();
    dropped_runtime: "a client dies" => client::dropped_runtime();
    late: "the wire is slow" => wires::late();
    too_late: "the wire is too slow" => wires::too_late();
    stalled: "the wire stands still" => wires::stalled();
    half_open: "the wire loses replies" => wires::half_open();
    cut: "the wire is cut" => wires::cut();
    refused: "the wire is gone" => wires::refused();
    b48_read_only: "`READONLY`, for a while" => refusals::read_only();
    b48_demoted: "`READONLY`, for good" => refusals::demoted();
    b48_loading: "`LOADING`" => refusals::loading();
    no_replicas: "`NOREPLICAS`" => refusals::no_replicas();
    no_snapshot: "`MISCONF`" => refusals::no_snapshot();
    busy: "`BUSY`" => refusals::busy();
    no_password: "`NOAUTH`" => refusals::password(None, "NOAUTH");
    wrong_password: "`WRONGPASS`" => refusals::password(Some("ours"), "WRONGPASS");
    b54_a_thousand_callers: "a thousand callers" => crowds::thousand();
    b54_too_many_wait: "too many callers" => crowds::too_many(true);
    b54_too_many_wait_for_a_dial: "too many callers before the first answer" =>
        crowds::too_many(false);
    b45_no_expiry: "keys without expiry" => heals::no_expiry();
    b45_random_cuts: "cuts at random" => heals::random_cuts();
}
