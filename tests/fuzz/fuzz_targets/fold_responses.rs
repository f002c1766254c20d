//! Any bytes as an answer on the vendor's other wire.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| switchboard_fuzz::fold(switchboard_fuzz::responses(), input));
