//! Where the body of an answer ends, and which of the bytes that come are its own: RFC 9112 §6 and §7.1.
//!
//! **Invariant:** no I/O. The same bytes give the same body however they are cut.

use std::mem;

use bytes::{Buf, Bytes};
use hyper::StatusCode;
use hyper::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};

use super::broken::Broken;

/// 16 KiB between the data of two chunks, or behind the last: sizes, extensions and trailers, which nobody here reads.
const MAX_BETWEEN_BYTES: usize = 16 << 10;

/// How a body is framed, and how far it has been read.
#[derive(Debug)]
pub(super) enum Framing {
    /// So many bytes are still to come.
    Length(u64),
    Chunks(Chunks),
    /// Whatever comes until the server closes.
    UntilClose,
}

/// A body in chunks.
#[derive(Debug)]
pub(super) struct Chunks {
    at: At,
    /// The chunk's size, and then how much of it is still to come.
    left: u64,
    /// How many bytes have come since the last data.
    between: usize,
}

/// What the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// The first digit of a size.
    Start,
    /// One more, or what may follow a size.
    Size,
    /// White space behind a size.
    Blank,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// The beginning of a trailer, or of the body's last line, which is empty.
    Line,
    Trailer,
    TrailerLf,
    EndLf,
    End,
}

/// What comes next of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Piece(Bytes),
    /// Nothing that has come yet: all of it was used up.
    More,
    /// Nothing: this was all.
    End,
}

impl Framing {
    /// How the body of an answer with this head is framed.
    ///
    /// # Errors
    /// When the head does not say where the body ends.
    pub(super) fn from_status(status: StatusCode, is_old: bool, headers: &HeaderMap) -> Result<Self, Broken> {
        if matches!(status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            return Ok(Self::Length(0));
        }
        if let Some(codings) = headers.get_all(TRANSFER_ENCODING).iter().next_back() {
            if is_old {
                return Err(Broken::Encoding);
            }
            let last = codings.to_str().ok().and_then(|codings| codings.rsplit(',').next());
            return Ok(match last.is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked")) {
                true => Self::Chunks(Chunks { at: At::Start, left: 0, between: 0 }),
                false => Self::UntilClose,
            });
        }
        let mut length = None;
        for lengths in headers.get_all(CONTENT_LENGTH) {
            for said in lengths.to_str().map_err(|_| Broken::Length)?.split(',') {
                let digits = Some(said.trim()).filter(|said| said.bytes().all(|byte| byte.is_ascii_digit()));
                let said = digits.and_then(|digits| digits.parse().ok()).ok_or(Broken::Length)?;
                if length.replace(said).is_some_and(|other| other != said) {
                    return Err(Broken::Length);
                }
            }
        }
        Ok(length.map_or(Self::UntilClose, Self::Length))
    }

    /// What comes next, taken from the beginning of `bytes`, which are shared and not copied.
    ///
    /// # Errors
    /// When they are not framed as promised. What follows cannot be read then.
    pub(super) fn next(&mut self, bytes: &mut Bytes) -> Result<Step, Broken> {
        Ok(match self {
            Self::Length(0) => Step::End,
            Self::Length(left) => piece(bytes, left),
            Self::Chunks(chunks) => chunks.next(bytes)?,
            Self::UntilClose if bytes.is_empty() => Step::More,
            Self::UntilClose => Step::Piece(mem::take(bytes)),
        })
    }

    /// Whether the body ends where the connection does.
    pub(super) fn is_until_close(&self) -> bool {
        matches!(self, Self::UntilClose)
    }
}

/// As many `bytes` as there are, at most those that are `left`.
fn piece(bytes: &mut Bytes, left: &mut u64) -> Step {
    if bytes.is_empty() {
        return Step::More;
    }
    let length = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
    *left -= length as u64;
    Step::Piece(bytes.split_to(length))
}

impl Chunks {
    fn next(&mut self, bytes: &mut Bytes) -> Result<Step, Broken> {
        let mut read = 0;
        while !matches!(self.at, At::Data | At::End) {
            let Some(byte) = bytes.get(read) else { break };
            read += 1;
            self.at = self.after(*byte)?;
            self.between += 1;
            if self.between > MAX_BETWEEN_BYTES {
                return Err(Broken::FramingTooLong { limit: MAX_BETWEEN_BYTES });
            }
        }
        bytes.advance(read);
        Ok(match self.at {
            At::Data => {
                let piece = piece(bytes, &mut self.left);
                if self.left == 0 {
                    (self.at, self.between) = (At::DataCr, 0);
                }
                piece
            }
            At::End => Step::End,
            _ => Step::More,
        })
    }

    /// What follows `byte`, which is none of the body's own.
    fn after(&mut self, byte: u8) -> Result<At, Broken> {
        Ok(match (self.at, byte) {
            (At::Start | At::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).map(u64::from);
                let size = self.left.checked_mul(16).zip(digit).map(|(size, digit)| size | digit);
                self.left = size.ok_or(Broken::Chunk)?;
                At::Size
            }
            (At::Size | At::Blank, b' ' | b'\t') => At::Blank,
            (At::Size | At::Blank, b';') => At::Extension,
            (At::Size | At::Blank | At::Extension, b'\r') => At::SizeLf,
            (At::SizeLf, b'\n') if self.left == 0 => At::Line,
            (At::SizeLf, b'\n') => At::Data,
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Start,
            (At::Line, b'\r') => At::EndLf,
            (At::Trailer, b'\r') => At::TrailerLf,
            (At::TrailerLf, b'\n') => At::Line,
            (At::EndLf, b'\n') => At::End,
            // A line ends in CR LF; who thinks otherwise may mean another body.
            (At::Extension | At::Line | At::Trailer, b'\n') => return Err(Broken::Chunk),
            (At::Extension, _) => At::Extension,
            (At::Line | At::Trailer, _) => At::Trailer,
            _ => return Err(Broken::Chunk),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunks() -> Framing {
        Framing::Chunks(Chunks { at: At::Start, left: 0, between: 0 })
    }

    /// The body in `pieces`, what is left over, and how it ended: `None` where it has not.
    fn read<'a>(
        mut framing: Framing,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<u8>, Vec<u8>, Option<Result<(), String>>) {
        let (mut body, mut left, mut end) = (Vec::new(), Vec::new(), None);
        for piece in pieces {
            let mut bytes = Bytes::copy_from_slice(piece);
            while end.is_none() {
                match framing.next(&mut bytes) {
                    Ok(Step::Piece(piece)) => {
                        assert!(!piece.is_empty());
                        body.extend_from_slice(&piece);
                    }
                    Ok(Step::More) => {
                        assert!(bytes.is_empty());
                        break;
                    }
                    Ok(Step::End) => end = Some(Ok(())),
                    Err(error) => end = Some(Err(error.to_string())),
                }
            }
            if end == Some(Ok(())) {
                left.extend_from_slice(&bytes);
            }
        }
        (body, left, end)
    }

    /// `bytes`, cut after each of `sizes` in turn.
    fn cut<'a>(mut bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
        let mut pieces = Vec::new();
        for size in sizes.iter().cycle() {
            let (piece, rest) = bytes.split_at(*size.min(&bytes.len()));
            pieces.push(piece);
            bytes = rest;
            if bytes.is_empty() {
                return pieces;
            }
        }
        pieces
    }

    #[test]
    fn a_chunk_is_framed_as_the_rfc_has_it_or_refused() {
        let long = |size: usize| format!("2;{}\r\nok\r\n0\r\n\r\n", "x".repeat(size));
        let (whole, refused) = (Some(Ok(())), Some(Err(Broken::Chunk.to_string())));
        let limit = MAX_BETWEEN_BYTES;
        let too_long = Some(Err(Broken::FramingTooLong { limit }.to_string()));
        let table = [
            ("2\r\nok\r\n0\r\n\r\n".to_owned(), "ok", &whole, "a chunk"),
            ("1\r\no\r\n01\r\nk\r\n00\r\n\r\n".to_owned(), "ok", &whole, "two, with zeros in front"),
            (
                "A\r\n0123456789\r\na \t;x=\"y\"\r\n0123456789\r\n0\r\n\r\n".to_owned(),
                "01234567890123456789",
                &whole,
                "an extension",
            ),
            ("2\r\nok\r\n0\r\nx: 1\r\ny: 2\r\n\r\n".to_owned(), "ok", &whole, "trailers"),
            (long(limit - 10), "ok", &whole, "a long extension"),
            (long(limit), "", &too_long, "one without measure"),
            (format!("{}2\r\nok", "0".repeat(limit)), "", &too_long, "zeros without measure"),
            (format!("0\r\n{}", "x: 1\r\n".repeat(limit)), "", &too_long, "trailers without measure"),
            ("0x2\r\nok".to_owned(), "", &refused, "a prefix"),
            ("+2\r\nok".to_owned(), "", &refused, "a plus"),
            ("-2\r\nok".to_owned(), "", &refused, "a minus"),
            (" 2\r\nok".to_owned(), "", &refused, "a blank in front"),
            ("2 2\r\nok".to_owned(), "", &refused, "two sizes"),
            ("\r\n".to_owned(), "", &refused, "no size"),
            (";x\r\n".to_owned(), "", &refused, "only an extension"),
            ("2\nok\n".to_owned(), "", &refused, "lines without cr"),
            ("2;x\nok\n".to_owned(), "", &refused, "an extension without cr"),
            ("2\r\nok\n".to_owned(), "ok", &refused, "a chunk's end without cr"),
            ("2\r\nokay\r\n".to_owned(), "ok", &refused, "a chunk that is longer than its size"),
            ("10000000000000000\r\n".to_owned(), "", &refused, "a size beyond 64 bits"),
            ("ffffffffffffffff\r\nok".to_owned(), "ok", &None, "the largest size"),
            ("0\r\nx: 1\n\r\n".to_owned(), "", &refused, "a trailer without cr"),
            ("2\r\nok\r\n0\r\n".to_owned(), "ok", &None, "the last line is missing"),
        ];
        for (bytes, body, end, why) in table {
            let expected = (body.as_bytes().to_vec(), Vec::new(), end.clone());
            assert_eq!(read(chunks(), [bytes.as_bytes()]), expected, "{why}");
            assert_eq!(read(chunks(), bytes.as_bytes().chunks(1)), expected, "{why}, byte for byte");
        }
    }

    #[test]
    fn what_follows_a_body_is_left_over() {
        for (framing, bytes) in [(chunks(), "2\r\nok\r\n0\r\n\r\nmore"), (Framing::Length(2), "okmore")] {
            assert_eq!(read(framing, [bytes.as_bytes()]), (b"ok".to_vec(), b"more".to_vec(), Some(Ok(()))));
        }
    }

    proptest! {
        #[test]
        fn whatever_is_written_in_chunks_is_read_however_it_is_cut(
            data in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
            sizes in prop::collection::vec(1..50_usize, 1..6),
        ) {
            let mut bytes = Vec::new();
            for chunk in &data {
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            prop_assert_eq!(read(chunks(), cut(&bytes, &sizes)), (data.concat(), Vec::new(), Some(Ok(()))));
        }

        #[test]
        fn any_bytes_are_read_the_same_however_they_are_cut(
            bytes in prop::collection::vec(prop::sample::select(b"012aF;x \t\r\n".as_slice()), 0..60),
            noise in prop::collection::vec(any::<u8>(), 0..20),
            sizes in prop::collection::vec(1..9_usize, 1..6),
            length in 0..100_u64,
        ) {
            let bytes = [bytes, noise].concat();
            for framing in [chunks, || Framing::UntilClose] {
                prop_assert_eq!(read(framing(), cut(&bytes, &sizes)), read(framing(), [bytes.as_slice()]));
            }
            let of_length = |pieces| read(Framing::Length(length), pieces);
            prop_assert_eq!(of_length(cut(&bytes, &sizes)), of_length(vec![bytes.as_slice()]));
        }
    }
}
