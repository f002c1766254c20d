//! Any bytes as an answer of the vendor; and the same bytes as a script, written as frames whose checksums are right.
#![no_main]

use switchboard::llm::Vendor;
use switchboard_fuzz::frames::written;
use switchboard_fuzz::{parts, said};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((cut, script)) = parts(input) else { return };
    said(Vendor::Bedrock, cut, script);
    said(Vendor::Bedrock, cut, &written(script));
});
