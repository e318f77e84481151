//! The body of a check request.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| sekisho_fuzz::check_body(bytes));
