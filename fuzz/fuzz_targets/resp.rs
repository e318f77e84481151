//! What a client of Redis sends.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| sekisho_fuzz::resp(bytes));
