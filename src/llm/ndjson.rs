//! Newline-delimited JSON out of bytes: a frame is one line. Only LF ends a line; everything else is the JSON's affair.

use super::answer::{Ending, Frames, Unreadable};

/// 16 MiB for one line: whole tool arguments may come in one.
const MAX_LINE_BYTES: usize = 16 << 20;

/// Reads lines piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Ndjson {
    /// The line that is still coming.
    line: Vec<u8>,
}

impl Frames for Ndjson {
    fn push(&mut self, mut bytes: &[u8], frames: &mut Vec<String>) -> Result<(), Unreadable> {
        while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            self.grow(&bytes[..end])?;
            self.end_line(frames)?;
            bytes = &bytes[end + 1..];
        }
        self.grow(bytes)
    }

    fn finish(mut self) -> Result<Ending, Unreadable> {
        let mut frames = Vec::new();
        self.end_line(&mut frames)?;
        Ok(Ending { frames, tail: String::new() })
    }
}

impl Ndjson {
    fn grow(&mut self, bytes: &[u8]) -> Result<(), Unreadable> {
        if self.line.len() + bytes.len() > MAX_LINE_BYTES {
            return Err(Unreadable::TooLong { limit: MAX_LINE_BYTES });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, frames: &mut Vec<String>) -> Result<(), Unreadable> {
        let line = std::mem::take(&mut self.line);
        if !line.trim_ascii().is_empty() {
            frames.push(String::from_utf8(line).map_err(|source| Unreadable::NotUtf8 { source })?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_the_same_however_the_bytes_are_cut() {
        let body = "{\"a\":\"é\u{2028}\"}\r\n\n  \n{\"b\":1}\n{\"c\"";
        for size in [1, 2, 3, 100] {
            let mut reader = Ndjson::default();
            let mut frames = Vec::new();
            for piece in body.as_bytes().chunks(size) {
                reader.push(piece, &mut frames).unwrap();
            }
            frames.extend(reader.finish().unwrap().frames);
            assert_eq!(frames, ["{\"a\":\"é\u{2028}\"}\r", "{\"b\":1}", "{\"c\""]);
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_and_lines_over_the_cap_are_errors() {
        let mut frames = Vec::new();
        assert!(matches!(Ndjson::default().push(b"\xff\n", &mut frames), Err(Unreadable::NotUtf8 { .. })));
        let line = vec![b'x'; MAX_LINE_BYTES + 1];
        assert!(matches!(Ndjson::default().push(&line, &mut frames), Err(Unreadable::TooLong { .. })));
    }
}
