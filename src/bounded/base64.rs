//! Base64 as others write it: in lines, without the signs at the end, or in the alphabet of addresses.

use ::base64::Engine;
use ::base64::alphabet::STANDARD;
use ::base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const TOLERANT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The bytes; `None` where it is no base64.
pub fn decoded(text: &str) -> Option<Vec<u8>> {
    let is_plain = |byte: u8| !byte.is_ascii_whitespace() && !matches!(byte, b'-' | b'_');
    if text.bytes().all(is_plain) {
        return TOLERANT.decode(text).ok();
    }
    let plain = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).map(|byte| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    });
    TOLERANT.decode(plain.collect::<Vec<u8>>()).ok()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn base64_is_read_however_it_is_written() {
        let bytes = || Some(vec![0xfb, 0xff, 0xfe, 1]);
        let rows = [
            ("+//+AQ==", bytes(), "as RFC 4648 has it"),
            ("+//+AQ", bytes(), "without padding"),
            ("-__-AQ==", bytes(), "in the alphabet of addresses"),
            (" +//+\r\nAQ==\n", bytes(), "in lines"),
            ("", Some(Vec::new()), "of nothing"),
            ("+//+A", None, "cut off"),
            ("+//*AQ==", None, "another sign"),
        ];
        for (text, expected, reason) in rows {
            assert_eq!(decoded(text), expected, "{reason}");
        }
    }
}
