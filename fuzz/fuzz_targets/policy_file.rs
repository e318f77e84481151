//! A policy file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| sekisho_fuzz::policy_file(text));
