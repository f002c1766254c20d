//! A model's answer from its bytes: bytes → frames → the vendor's fold → stream events. Only this file keeps the
//! rules that all vendors share: an end without the terminal marker is an error, a body has a size limit, and
//! nothing is read after the end.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use eventsource_stream::EventStreamError;
use futures::{Stream, StreamExt};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Sleep, sleep};

use super::failure;
use super::http::{self, Opened};
use crate::agent::ports::llm::{EventStream, ProviderError, ProviderErrorKind};
use crate::bounded::json::parse;
use crate::chat::message::ModelOrigin;
use crate::chat::stream::StreamEvent;

/// 64 MiB for one answer: a bound against a broken server, not against a long answer.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// 10,000 pieces in one answer: texts, thoughts, calls, opaque data. Each costs far more memory than bytes, here and in
/// every later request; the longest real answers have a few hundred.
const MAX_PIECES: usize = 10_000;

/// 5 s for what may follow a whole answer: some gateways leave the connection open and say no more (bifrost#6784).
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Cuts a body into frames. Pure: the same frames whatever the pieces.
pub(crate) trait Frames: Send + 'static {
    /// Takes the next bytes and hands over the frames they complete.
    ///
    /// # Errors
    /// When the bytes are not what the framing promises, or are over a cap.
    fn push(&mut self, bytes: &[u8], hand_over: &mut impl FnMut(&str)) -> Result<(), Unreadable>;

    /// What the end of the body completes.
    ///
    /// # Errors
    /// As [`Self::push`].
    fn finish(self) -> Result<Ending, Unreadable>;
}

/// What the end of a body leaves over.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// Frames that only the end has completed.
    pub(crate) frames: Vec<String>,
    /// Text that looks like JSON but was no frame.
    pub(crate) tail: String,
}

/// A vendor's events folded into ours. Pure: no clock, no network.
pub(crate) trait Fold: Send + 'static {
    /// Folds one frame and adds what it says.
    ///
    /// # Errors
    /// When the frame reports an error, or cannot be read.
    fn push(&mut self, frame: &str, events: &mut Vec<StreamEvent>) -> Result<Flow, ProviderError>;

    /// The body has ended, with `tail` left over: adds the last event where the end is the vendor's terminal marker.
    ///
    /// # Errors
    /// When the answer is not complete, or `tail` reports an error.
    fn finish(&mut self, tail: &str, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError>;
}

/// Whether more is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// There may be more.
    More,
    /// The answer is whole, and only counts or an error may follow.
    Ending,
    /// The terminal marker was there: the connection is given back, whatever the server does with it.
    Done,
}

/// Why bytes are not the promised stream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("an event or line is longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error("the answer is longer than {limit} bytes")]
    AnswerTooLong { limit: usize },
    #[error("the answer has more than {limit} pieces")]
    TooManyPieces { limit: usize },
    #[error("a frame of the answer {what}")]
    Frame { what: &'static str },
    #[error("the answer is not an event stream: it does not begin with a frame")]
    NoFrames,
    #[error("a line is not valid utf-8")]
    NotUtf8 { source: std::string::FromUtf8Error },
    #[error("the answer is not an event stream")]
    NotSse { source: Box<EventStreamError<std::convert::Infallible>> },
}

impl From<Unreadable> for ProviderError {
    fn from(unreadable: Unreadable) -> Self {
        malformed(unreadable)
    }
}

/// `json` as a vendor's event.
pub(crate) fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, ProviderError> {
    parse(json).map_err(malformed)
}

/// The error of an answer that is not what the vendor promises.
pub(crate) fn malformed(detail: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Malformed, detail)
}

/// Checks the rest of a body when an answer has ended well: an error in it counts, whether it can be read or not.
pub(crate) fn check_tail(tail: &str) -> Result<(), ProviderError> {
    // An error may come in several lines, or several of them in a line each.
    match failure::error_in(tail).or_else(|| tail.lines().find_map(failure::error_in)) {
        Some(error) => Err(error),
        None if tail.is_empty() => Ok(()),
        None => Err(malformed("the stream ended with json that is no event")),
    }
}

/// The JSON text of a call's arguments: servers write them as a string of JSON or as the JSON itself.
pub(crate) fn arguments_text(raw: &RawValue) -> Result<String, ProviderError> {
    if raw.get().starts_with('"') {
        return read(raw.get());
    }
    Ok(raw.get().to_owned())
}

/// The error of an answer that ended too early.
pub(crate) fn truncated() -> ProviderError {
    ProviderError::new(ProviderErrorKind::Truncated, "the stream ended without its terminal marker")
}

/// The answer of `origin` that has begun as `opened`.
pub(crate) fn stream(origin: &Arc<ModelOrigin>, opened: Opened, reader: (impl Frames, impl Fold)) -> EventStream {
    let Opened { body, media_type, request_id, secrets } = opened;
    let events = events(body, media_type, reader);
    let events = events.map(move |event| event.map_err(|error| failure::cleaned(error, &secrets)));
    EventStream { origin: Arc::clone(origin), request_id, events: events.boxed() }
}

/// The events in `bytes`; `media_type` is that of the answer where it differs from `Accept`. Ends after the first error
/// or the terminal marker.
pub(crate) fn events<B, R, F>(
    bytes: B,
    media_type: Option<String>,
    (frames, fold): (R, F),
) -> impl Stream<Item = Result<StreamEvent, ProviderError>> + Send
where
    B: Stream<Item = Result<Bytes, ProviderError>> + Send + Unpin + 'static,
    R: Frames,
    F: Fold,
{
    Answer {
        source: Some((bytes, frames)),
        reading: Reading { fold, has_frames: false, pieces: Pieces::default(), events: Vec::new() },
        media_type,
        read_bytes: 0,
        is_ending: false,
        last_words: None,
        ready: VecDeque::new(),
    }
}

/// An answer while it comes.
struct Answer<B, R, F> {
    /// `None` once the answer has ended, well or badly.
    source: Option<(B, R)>,
    reading: Reading<F>,
    media_type: Option<String>,
    read_bytes: usize,
    /// Whether the answer is whole.
    is_ending: bool,
    /// Rings when that is its end. Only made when there is something to wait for.
    last_words: Option<Pin<Box<Sleep>>>,
    /// Events that are read but not yet taken; at most those of one piece of the body.
    ready: VecDeque<Result<StreamEvent, ProviderError>>,
}

/// The vendor's fold, and what it has read so far.
struct Reading<F> {
    fold: F,
    has_frames: bool,
    pieces: Pieces,
    /// Buffer for the events of one piece of the body; empty between two.
    events: Vec<StreamEvent>,
}

/// Nothing of it but the source, which may be moved, is ever pinned.
impl<B, R, F> Unpin for Answer<B, R, F> {}

impl<B, R, F> Stream for Answer<B, R, F>
where
    B: Stream<Item = Result<Bytes, ProviderError>> + Unpin,
    R: Frames,
    F: Fold,
{
    type Item = Result<StreamEvent, ProviderError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let answer = self.get_mut();
        loop {
            if let Some(item) = answer.ready.pop_front() {
                return Poll::Ready(Some(item));
            }
            let Some((source, _)) = &mut answer.source else { return Poll::Ready(None) };
            match source.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(bytes))) => answer.take_bytes(&bytes),
                Poll::Ready(Some(Err(error))) if !answer.is_ending => {
                    answer.source = None;
                    answer.ready.push_back(Err(error));
                }
                Poll::Ready(Some(Err(_)) | None) => answer.end(),
                Poll::Pending if !answer.is_ending => return Poll::Pending,
                Poll::Pending => {
                    let alarm = answer.last_words.get_or_insert_with(|| Box::pin(sleep(LAST_WORDS)));
                    ready!(alarm.as_mut().poll(cx));
                    answer.end();
                }
            }
        }
    }
}

impl<B, R, F> Answer<B, R, F>
where
    B: Stream<Item = Result<Bytes, ProviderError>> + Unpin,
    R: Frames,
    F: Fold,
{
    /// Reads one piece of the body; gives the source up where this was the end.
    fn take_bytes(&mut self, bytes: &Bytes) {
        let Some((_, reader)) = &mut self.source else { return };
        self.read_bytes += bytes.len();
        if self.read_bytes > MAX_ANSWER_BYTES {
            self.source = None;
            self.ready.push_back(Err(Unreadable::AnswerTooLong { limit: MAX_ANSWER_BYTES }.into()));
            return;
        }
        let mut folded = Ok(Flow::More);
        let read = reader.push(bytes, &mut |frame| {
            if let Ok(Flow::More | Flow::Ending) = folded {
                folded = self.reading.fold_frame(frame);
            }
        });
        self.ready.extend(self.reading.events.drain(..).map(Ok));
        // Frames before the unreadable bytes are complete, so what they say still counts.
        match (folded, read) {
            (Ok(flow @ (Flow::More | Flow::Ending)), Ok(())) => {
                self.is_ending |= flow == Flow::Ending;
                return;
            }
            (Ok(Flow::Done), _) => {}
            (Err(error), _) => self.ready.push_back(Err(error)),
            (Ok(Flow::More | Flow::Ending), Err(unreadable)) => self.ready.push_back(Err(unreadable.into())),
        }
        self.source = None;
    }

    /// Reads what the end of the body completes.
    fn end(&mut self) {
        let Some((_, reader)) = self.source.take() else { return };
        let error = match reader.finish() {
            Err(unreadable) => Some(cut_short(unreadable.into())),
            Ok(ending) => match self.reading.fold_ending(&ending) {
                Ok(()) => None,
                Err(error) if self.reading.has_frames => Some(cut_short(error)),
                Err(error) => Some(self.no_stream(error, &ending.tail)),
            },
        };
        self.ready.extend(self.reading.events.drain(..).map(Ok));
        self.ready.extend(error.map(Err));
    }

    /// The error of a body without one frame: it is something else, whatever `error` its end would be.
    fn no_stream(&self, error: ProviderError, tail: &str) -> ProviderError {
        if let Some(error) = failure::error_instead(tail) {
            return error;
        }
        match self.media_type.as_deref() {
            Some(media_type) => http::not_a_stream(media_type),
            None if !tail.is_empty() => http::not_a_stream("json"),
            None => error,
        }
    }
}

impl<F: Fold> Reading<F> {
    fn fold_frame(&mut self, frame: &str) -> Result<Flow, ProviderError> {
        self.has_frames = true;
        let known = self.events.len();
        let folded = self.fold.push(frame, &mut self.events);
        let pieces = &mut self.pieces;
        let over = self.events.iter().skip(known).position(|event| pieces.count(event) > MAX_PIECES);
        if let Some(over) = over {
            self.events.truncate(known + over);
            return Err(Unreadable::TooManyPieces { limit: MAX_PIECES }.into());
        }
        folded
    }

    fn fold_ending(&mut self, ending: &Ending) -> Result<(), ProviderError> {
        for frame in &ending.frames {
            if self.fold_frame(frame)? == Flow::Done {
                return Ok(());
            }
        }
        self.fold.finish(&ending.tail, &mut self.events)
    }
}

/// The error at the end of a body, which may have come in the middle of what cannot be read: of an event, of a character.
fn cut_short(error: ProviderError) -> ProviderError {
    let kind = if error.kind == ProviderErrorKind::Malformed { ProviderErrorKind::Truncated } else { error.kind };
    ProviderError { kind, ..error }
}

/// How many pieces an answer has had, as a turn joins its events.
#[derive(Debug, Default)]
struct Pieces {
    count: usize,
    newest: Option<Newest>,
}

/// The piece that an event may go on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Newest {
    Text,
    Thinking,
    /// None can go on with a call or with opaque data.
    Whole,
}

impl Pieces {
    /// The number of pieces, the one that `event` may begin included.
    fn count(&mut self, event: &StreamEvent) -> usize {
        let newest = match event {
            StreamEvent::Text(text) if !text.is_empty() => Newest::Text,
            StreamEvent::Thinking(text) if !text.is_empty() => Newest::Thinking,
            StreamEvent::ToolCallStarted { .. } | StreamEvent::Replay { .. } => Newest::Whole,
            StreamEvent::Text(_)
            | StreamEvent::Thinking(_)
            | StreamEvent::ToolCallInput { .. }
            | StreamEvent::Used(_)
            | StreamEvent::Finished { .. } => return self.count,
        };
        if newest == Newest::Whole || self.newest != Some(newest) {
            self.count += 1;
        }
        self.newest = Some(newest);
        self.count
    }
}
