//! The body of a request: JSON in pieces. A file stands in it as it is and becomes base64 while it is sent, so that a request takes
//! the memory of its files once, and no text is copied because it grows.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use aws_lc_rs::digest::{Context as Digest, SHA256};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use serde::Serialize;

/// 64 KiB of text are one piece.
const TEXT: usize = 64 << 10;

/// 12 KiB of a file become 16 KiB of text. A multiple of three: only the last piece may have padding (RFC 4648, section 4).
const FILE: usize = 12 << 10;

thread_local! {
    /// What [`embed`] was given since the body that this thread writes was last written to; `None` where it writes none.
    static EMBEDDED: RefCell<Option<Vec<Bytes>>> = const { RefCell::new(None) };
}

/// Has `file` stand in base64 where the body is now that this thread writes; `false` where it writes none. A value that is
/// serialized cannot reach the writer behind its serializer, so this goes beside it.
pub(crate) fn embed(file: &Bytes) -> bool {
    EMBEDDED.with_borrow_mut(|embedded| match embedded {
        Some(files) => {
            files.push(file.clone());
            true
        }
        None => false,
    })
}

/// A body with all that is in it.
#[derive(Debug, Clone)]
pub(super) struct JsonBody {
    pieces: VecDeque<Piece>,
    /// How long it is, in bytes.
    len: usize,
}

#[derive(Debug, Clone)]
enum Piece {
    Text(Bytes),
    File(Bytes),
}

impl JsonBody {
    /// `value` as JSON.
    ///
    /// # Errors
    /// As `serde_json` has them.
    pub(super) fn new(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        let mut writer = Writer::open();
        serde_json::to_writer(&mut writer, value)?;
        writer.cut();
        Ok(Self { len: writer.pieces.iter().map(Piece::len).sum(), pieces: std::mem::take(&mut writer.pieces) })
    }

    /// Its SHA-256.
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut digest = Digest::new(&SHA256);
        let mut body = self.clone();
        while let Some(bytes) = body.next() {
            digest.update(&bytes);
        }
        digest.finish().as_ref().try_into().unwrap_or_default()
    }

    fn next(&mut self) -> Option<Bytes> {
        let bytes = match self.pieces.front_mut()? {
            Piece::File(file) if file.len() > FILE => encoded(&file.split_to(FILE)),
            Piece::File(file) => {
                let last = encoded(file);
                self.pieces.pop_front();
                last
            }
            Piece::Text(text) => {
                let text = std::mem::take(text);
                self.pieces.pop_front();
                text
            }
        };
        self.len = self.len.saturating_sub(bytes.len());
        Some(bytes)
    }
}

fn encoded(file: &Bytes) -> Bytes {
    STANDARD.encode(file).into()
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            // What is longer than a number of bytes can be is not in memory.
            Self::File(file) => base64::encoded_len(file.len(), true).unwrap_or(usize::MAX),
        }
    }
}

impl HttpBody for JsonBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.get_mut().next().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.len).unwrap_or(u64::MAX))
    }
}

impl From<JsonBody> for reqwest::Body {
    fn from(mut body: JsonBody) -> Self {
        match body.pieces.make_contiguous() {
            [Piece::Text(text)] => std::mem::take(text).into(),
            _ => Self::wrap(body),
        }
    }
}

/// Takes text, and the files that stand in it. There is one in a thread.
struct Writer {
    pieces: VecDeque<Piece>,
    text: Vec<u8>,
}

impl Writer {
    fn open() -> Self {
        EMBEDDED.set(Some(Vec::new()));
        Self { pieces: VecDeque::new(), text: Vec::new() }
    }

    /// Ends the piece that is written, and has the files follow it that stand behind it.
    fn cut(&mut self) {
        if !self.text.is_empty() {
            self.pieces.push_back(Piece::Text(std::mem::take(&mut self.text).into()));
        }
        EMBEDDED.with_borrow_mut(|embedded| {
            let files = embedded.iter_mut().flat_map(|files| files.drain(..));
            self.pieces.extend(files.filter(|file| !file.is_empty()).map(Piece::File));
        });
    }
}

impl io::Write for Writer {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let is_behind_file = EMBEDDED.with_borrow(|embedded| embedded.as_ref().is_some_and(|files| !files.is_empty()));
        if is_behind_file || self.text.len().saturating_add(text.len()) > TEXT {
            self.cut();
        }
        self.text.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        EMBEDDED.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serializer;

    struct File(Bytes);

    impl Serialize for File {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }

    impl std::fmt::Display for File {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("data:,")?;
            assert!(embed(&self.0));
            f.write_str("\u{201c}end")
        }
    }

    fn sent(mut body: JsonBody) -> Vec<Bytes> {
        std::iter::from_fn(|| body.next()).collect()
    }

    #[test]
    fn a_body_is_the_same_whichever_way_it_is_written_and_of_the_length_that_it_says() {
        let long = "\"é\n".repeat(100_000);
        for len in [0, 1, 2, 3, FILE - 1, FILE, FILE + 1, 5 * FILE + 2] {
            let bytes = Bytes::from(vec![b'\x7f'; len]);
            let body = (&long, File(bytes.clone()), "x", File(bytes.clone()), File(bytes.clone()));
            let body = JsonBody::new(&body).unwrap();
            let file = format!("data:,{}\u{201c}end", STANDARD.encode(&bytes));
            let expected = serde_json::to_vec(&(&long, &file, "x", &file, &file)).unwrap();
            assert_eq!(body.len, expected.len());
            let digest = aws_lc_rs::digest::digest(&SHA256, &expected);
            assert_eq!(body.digest(), digest.as_ref());
            let pieces = sent(body);
            assert!(pieces.iter().all(|piece| piece.len() <= TEXT), "no piece is larger than one");
            assert_eq!(pieces.concat(), expected);
        }
        assert!(!embed(&Bytes::from_static(b"a")), "nobody writes");
    }

    #[test]
    fn a_file_is_not_copied() {
        let bytes = Bytes::from(vec![1; 100]);
        assert!(EMBEDDED.with_borrow(Option::is_none));
        let body = JsonBody::new(&File(bytes.clone())).unwrap();
        let is_shared =
            body.pieces.iter().any(|piece| matches!(piece, Piece::File(file) if file.as_ptr() == bytes.as_ptr()));
        assert!(is_shared, "{body:?}");
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing_behind() {
        struct Broken;
        impl Serialize for Broken {
            fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                assert!(embed(&Bytes::from_static(b"a")));
                Err(serde::ser::Error::custom("broken"))
            }
        }
        assert!(JsonBody::new(&Broken).is_err());
        let body = JsonBody::new(&"text").unwrap();
        assert_eq!(sent(body).concat(), b"\"text\"");
    }
}
