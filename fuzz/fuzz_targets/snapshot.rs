//! The file that a memory store's state survives a restart in.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| sekisho_fuzz::snapshot(bytes));
