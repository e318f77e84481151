//! The address of a shared store.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| sekisho_fuzz::store_address(text));
