//! The body of an answer, up to a bound: of what comes over the wire, and of what that decompresses to.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures::StreamExt;
use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;

use crate::bounded::memory::{Exhausted, Reservation};

/// 1 MB: pages are longer only where they are no reading matter.
pub(super) const MOST_BYTES: usize = 1_000_000;

/// The beginning of a body, or all of it.
#[derive(Debug)]
pub(super) struct Body {
    /// Its bytes, without compression.
    pub(super) bytes: Vec<u8>,
    /// Whether there are no more.
    pub(super) is_whole: bool,
}

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The connection broke, or the time is over.
    #[error("the answer broke off")]
    BrokeOff(#[source] reqwest::Error),
    /// It is not compressed as it says.
    #[error("the answer cannot be decompressed")]
    Compression(#[source] io::Error),
    /// It is compressed in a way that was not asked for.
    #[error("the answer is compressed in a way that was not asked for")]
    UnknownCompression,
    /// No memory is left for it.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

/// The first [`MOST_BYTES`] of the body, which are reserved in `held` as they come. The rest is not read.
///
/// # Errors
/// See [`BodyError`].
pub(super) async fn read(response: Response, held: &mut Reservation) -> Result<Body, BodyError> {
    let mut reader = Reader::of(&response)?;
    let mut chunks = response.bytes_stream();
    let mut received = 0;
    while let Some(chunk) = chunks.next().await {
        let chunk: Bytes = chunk.map_err(|error| BodyError::BrokeOff(error.without_url()))?;
        // Compressed data may say nothing for ever, so that both sides are counted.
        let taken = &chunk[..chunk.len().min(MOST_BYTES - received)];
        received += taken.len();
        let before = reader.sink().bytes.len();
        let goes_on = reader.take(taken)?;
        held.grow(reader.sink().bytes.len() - before)?;
        if !goes_on || taken.len() < chunk.len() {
            return Ok(Body { bytes: std::mem::take(&mut reader.sink().bytes), is_whole: false });
        }
    }
    reader.finish()
}

/// Takes what comes over the wire.
enum Reader {
    Plain(Sink),
    Gzip(Box<MultiGzDecoder<Sink>>),
}

impl Reader {
    fn of(response: &Response) -> Result<Self, BodyError> {
        let mut encodings = response.headers().get_all(CONTENT_ENCODING).iter();
        let sink = Sink { bytes: Vec::new() };
        match (encodings.next().map(|name| name.as_bytes().trim_ascii().to_ascii_lowercase()), encodings.next()) {
            (None, _) => Ok(Self::Plain(sink)),
            (Some(name), None) => match name.as_slice() {
                b"" | b"identity" => Ok(Self::Plain(sink)),
                b"gzip" | b"x-gzip" => Ok(Self::Gzip(Box::new(MultiGzDecoder::new(sink)))),
                _ => Err(BodyError::UnknownCompression),
            },
            (Some(_), Some(_)) => Err(BodyError::UnknownCompression),
        }
    }

    fn sink(&mut self) -> &mut Sink {
        match self {
            Self::Plain(sink) => sink,
            Self::Gzip(decoder) => decoder.get_mut(),
        }
    }

    /// Whether there is room for more.
    fn take(&mut self, chunk: &[u8]) -> Result<bool, BodyError> {
        let written = match self {
            Self::Plain(sink) => sink.write_all(chunk),
            Self::Gzip(decoder) => decoder.write_all(chunk),
        };
        match written {
            Ok(()) => Ok(true),
            Err(_) if self.sink().is_full() => Ok(false),
            Err(error) => Err(BodyError::Compression(error)),
        }
    }

    fn finish(mut self) -> Result<Body, BodyError> {
        let finished = match &mut self {
            Self::Plain(_) => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
        };
        let is_whole = match finished {
            Ok(()) => true,
            Err(_) if self.sink().is_full() => false,
            Err(error) => return Err(BodyError::Compression(error)),
        };
        Ok(Body { bytes: std::mem::take(&mut self.sink().bytes), is_whole })
    }
}

/// Holds [`MOST_BYTES`], and refuses what comes then: a decoder stops with it, in the middle of its input.
struct Sink {
    bytes: Vec<u8>,
}

impl Sink {
    fn is_full(&self) -> bool {
        self.bytes.len() == MOST_BYTES
    }
}

impl Write for Sink {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        let taken = more.len().min(MOST_BYTES - self.bytes.len());
        if taken == 0 && !more.is_empty() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(&more[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
