//! Where a request's head ends, and what follows it. Heads are passed on to hyper when they are whole, one at a time: a half
//! one is then kept in a buffer of its own size, and one in which a line ends otherwise than the standard has it is known
//! before it is parsed.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Stands for a body of unknown length.
const UNKNOWN: u64 = u64::MAX;

/// The part of a connection's bytes that is read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inbound {
    /// A head.
    Head,
    /// A head is passed on; the service will tell what follows it.
    HeadSent,
    /// So many bytes of a body.
    Body(u64),
    /// Whatever comes: no head follows that would be answered.
    Rest,
}

/// The heads that the service got, and the length of the last one's body.
#[derive(Default)]
pub(super) struct HeadsAnswered {
    count: AtomicUsize,
    body: AtomicU64,
}

impl HeadsAnswered {
    /// One more head has come, and a body of this length follows it; `None` where only the body itself can say.
    pub(super) fn head(&self, body: Option<u64>) {
        self.body.store(body.unwrap_or(UNKNOWN), Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// How many heads have come.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// What follows the head with this number, once that is known.
    pub(super) fn behind(&self, head: usize) -> Option<Inbound> {
        (self.count() == head).then(|| match self.body.load(Ordering::Relaxed) {
            UNKNOWN => Inbound::Rest,
            bytes => Inbound::Body(bytes),
        })
    }
}

/// The result of a scan of a head; positions count its bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Not its end.
    Nothing,
    /// The first byte behind it.
    End(usize),
    /// A byte that no head may have, so that there is no need to wait for its end.
    Improper(usize),
}

/// Looks for the end of a head, piece by piece.
#[derive(Debug, Default)]
pub(super) struct Scan {
    after_return: bool,
    /// Whether the line at hand has anything on it.
    has_text: bool,
    /// Whether any line had: empty ones before a head are none of its own (RFC 9112, section 2.2).
    has_begun: bool,
}

impl Scan {
    /// Looks at the next piece. After an end it begins anew.
    pub(super) fn look(&mut self, piece: &[u8]) -> Found {
        for (at, byte) in piece.iter().enumerate() {
            match byte {
                // Two readers may take such a line end for different things (RFC 9112, section 2.2).
                b'\n' if !self.after_return => return Found::Improper(at),
                b'\n' if self.has_begun && !self.has_text => {
                    *self = Self::default();
                    return Found::End(at + 1);
                }
                b'\n' => (self.after_return, self.has_text) = (false, false),
                b'\r' if !self.after_return => self.after_return = true,
                b'\t' | b' '..=b'~' | 0x80.. if !self.after_return => (self.has_text, self.has_begun) = (true, true),
                _ => return Found::Improper(at),
            }
        }
        Found::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::{Found, Scan};

    #[test]
    fn a_head_ends_with_an_empty_line_and_every_line_as_the_standard_has_it() {
        let rows: [(&[u8], Found, &str); 11] = [
            (b"GET / HTTP/1.1\r\nA: b\r\n\r\nmore", Found::End(24), "a head, and what is behind it"),
            (b"GET / HTTP/1.1\r\nA: b\r\n", Found::Nothing, "a last line that is missing"),
            (b"\r\n\r\nGET /\r\n\r\n", Found::End(13), "empty lines before it"),
            (b"GET / HTTP/1.1\nA: b\r\n\r\n", Found::Improper(14), "a bare line feed behind the first line"),
            (b"GET / HTTP/1.1\r\nA: b\n\r\n", Found::Improper(20), "behind a header"),
            (b"GET / HTTP/1.1\r\nA: b\r\n\n", Found::Improper(22), "instead of the last line"),
            (b"\nGET / HTTP/1.1\r\n", Found::Improper(0), "before everything"),
            (b"GET /\rA\r\n\r\n", Found::Improper(6), "a bare carriage return"),
            (b"GET /\r\r\n\r\n", Found::Improper(6), "two of them"),
            (b"\x16\x03\x01", Found::Improper(0), "a TLS handshake"),
            ("GET / HTTP/1.1\r\nA: \tä\r\n\r\n".as_bytes(), Found::End(26), "a tab, and letters of other kinds"),
        ];
        for (bytes, expected, reason) in rows {
            assert_eq!(Scan::default().look(bytes), expected, "{reason}");
        }
    }

    #[test]
    fn pieces_make_no_difference() {
        let head = b"\r\nGET / HTTP/1.1\r\nA: b\r\n\r\n";
        for cut in 0..head.len() {
            let (mut scan, (first, rest)) = (Scan::default(), head.split_at(cut));
            assert_eq!(scan.look(first), Found::Nothing, "{cut}");
            assert_eq!(scan.look(rest), Found::End(rest.len()), "{cut}");
        }
    }
}
