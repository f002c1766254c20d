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
    fn push(&mut self, mut bytes: &[u8], hand_over: &mut impl FnMut(&str)) -> Result<(), Unreadable> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.grow(&bytes[..end])?;
            if let Some(frame) = self.end_line()? {
                hand_over(&frame);
            }
            bytes = &bytes[end + 1..];
        }
        self.grow(bytes)
    }

    fn finish(mut self) -> Result<Ending, Unreadable> {
        Ok(Ending { frames: self.end_line()?.into_iter().collect(), tail: String::new() })
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

    fn end_line(&mut self) -> Result<Option<String>, Unreadable> {
        let line = std::mem::take(&mut self.line);
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        String::from_utf8(line).map(Some).map_err(|source| Unreadable::NotUtf8 { source })
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
                reader.push(piece, &mut |frame| frames.push(frame.to_owned())).unwrap();
            }
            frames.extend(reader.finish().unwrap().frames);
            assert_eq!(frames, ["{\"a\":\"é\u{2028}\"}\r", "{\"b\":1}", "{\"c\""]);
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_are_an_error() {
        assert!(matches!(Ndjson::default().push(b"\xff\n", &mut |_| {}), Err(Unreadable::NotUtf8 { .. })));
    }

    #[test]
    fn a_line_at_its_cap_is_read_and_one_byte_more_is_an_error() {
        for (bytes, is_read) in [(MAX_LINE_BYTES, true), (MAX_LINE_BYTES + 1, false)] {
            let mut reader = Ndjson::default();
            let mut frames = Vec::new();
            let body = vec![b'x'; bytes];
            let mut keep = |frame: &str| frames.push(frame.to_owned());
            let read = body.chunks(65_536).chain([b"\n".as_slice()]).try_for_each(|p| reader.push(p, &mut keep));
            match read {
                Ok(()) => assert!(is_read && frames[0].len() == bytes),
                Err(error) => assert!(!is_read && matches!(error, Unreadable::TooLong { .. }), "{error}"),
            }
        }
    }
}
