//! Any bytes as an answer of the vendor.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| switchboard_fuzz::fold(switchboard::llm::Vendor::Vertex, input));
