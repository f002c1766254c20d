//! What can be wrong with an answer, or with the connection it comes on.

use std::io;

/// 400 KiB for the head of an answer, with those that only say that one will come: no server is known to need so much, and
/// hyper, which reads for reqwest, draws its line there too.
pub(super) const MAX_HEAD_BYTES: usize = 400 << 10;

/// Why an answer cannot be read, or no further.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("the connection broke")]
    Io(#[from] io::Error),
    #[error("the connection ended before the answer did")]
    Ended,
    #[error("the answer's head is not http")]
    NotHttp(#[from] httparse::Error),
    #[error("the answer's head has a status or a header that http does not know")]
    Head(#[from] hyper::http::Error),
    #[error("the answer's head has more than {MAX_HEAD_BYTES} bytes")]
    HeadTooLong,
    #[error("the answer's content-length is not one number")]
    Length,
    #[error("the answer has a transfer-encoding, which http/1.0 does not know")]
    Encoding,
    #[error("a chunk of the answer is not framed as http wants it")]
    Chunk,
    #[error("more than {limit} bytes stand between two chunks of the answer, or behind the last")]
    FramingTooLong { limit: usize },
}
