//! What a client writes into the headers of its own address.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| sekisho_fuzz::who_is_asking(bytes));
