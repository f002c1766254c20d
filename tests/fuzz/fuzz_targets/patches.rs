//! See `targets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| switchboard_fuzz::targets::run("patches", input));
