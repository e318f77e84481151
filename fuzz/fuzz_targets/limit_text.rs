//! The text form of a limit.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| sekisho_fuzz::limit_text(text));
