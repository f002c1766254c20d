//! A form with a file in it (`multipart/form-data`, RFC 7578), read as it comes: its fields before the file, the file piece by piece,
//! its fields behind the file.
//!
//! **Invariant:** of a file no more than a piece is in memory here, and nothing else in a form is long.

use std::error::Error;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use multer::{Constraints, Field, Multipart, SizeLimit};

use super::{Face, wrong};
use crate::agent::ports::files::{FileError, Terms};
use crate::chat::file::Purpose;
use crate::http::body;
use crate::http::problem::Problem;

/// The field of the file.
const FILE: &str = "file";

/// The longest value of another field, in bytes.
const FIELD_BYTES: u64 = 256;

/// So many bytes of a form may come without a piece of its file among them: its fields, and what is between them.
const REST_BYTES: usize = 1 << 20;

/// How long a file may be kept at least, and by either protocol at most, in seconds.
const LEAST_S: i64 = 3600;
const MOST_S: i64 = 2_592_000;
const MOST_S_OF_MESSAGES: i64 = 7_776_000;

/// A form that is being read.
pub(super) struct Form {
    parts: Multipart<'static>,
    /// The bytes that have come since the last piece of the file.
    heard: Arc<AtomicUsize>,
    fields: Fields,
}

/// The file of a form, before its bytes are read.
pub(super) struct FormFile {
    form: Form,
    field: Field<'static>,
}

/// What a form says of its file. It is known when all of the form has been read.
#[derive(Default)]
pub(super) struct Said {
    pub(super) terms: OnceLock<Terms>,
    /// Why the form is not taken.
    pub(super) wrong: OnceLock<Problem>,
}

impl Form {
    /// The form in a body.
    ///
    /// # Errors
    /// When it is not said to be one.
    pub(super) fn new(face: Face, headers: &HeaderMap, body: Body) -> Result<Self, Problem> {
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let boundary = multer::parse_boundary(content_type)
            .map_err(|_| Problem::bad_request("Content-Type must be multipart/form-data, with a boundary"))?;
        let heard = Arc::<AtomicUsize>::default();
        let pieces = Pieces { body: body.into_data_stream(), heard: heard.clone(), has_given: false };
        let limits = SizeLimit::new().per_field(FIELD_BYTES).for_field(FILE, u64::MAX);
        let parts = Multipart::with_constraints(pieces, boundary, Constraints::new().size_limit(limits));
        Ok(Self { parts, heard, fields: Fields::new(face) })
    }

    /// Reads up to the file.
    ///
    /// # Errors
    /// When there is none, or something before it is wrong.
    pub(super) async fn file(mut self) -> Result<FormFile, Problem> {
        while let Some(field) = self.next().await? {
            if field.name() == Some(FILE) {
                return Ok(FormFile { form: self, field });
            }
            self.fields.read(field).await?;
        }
        Err(wrong(FILE, "is required"))
    }

    /// Reads what stands behind the file.
    async fn rest(mut self) -> Result<Terms, Problem> {
        while let Some(field) = self.next().await? {
            if field.name() == Some(FILE) {
                return Err(wrong(FILE, "may be given once"));
            }
            self.fields.read(field).await?;
        }
        self.fields.terms()
    }

    async fn next(&mut self) -> Result<Option<Field<'static>>, Problem> {
        self.parts.next_field().await.map_err(broken)
    }
}

impl FormFile {
    /// What its sender calls it, if anything. Browsers write a quotation mark in a name so.
    pub(super) fn name(&self) -> Option<String> {
        self.field.file_name().map(|name| name.replace("%22", "\""))
    }

    /// Its media type as its sender says.
    pub(super) fn media_type(&self) -> Option<String> {
        self.field.content_type().map(ToString::to_string)
    }

    /// Its bytes. Behind them the rest of the form is read, and noted in `said`.
    pub(super) fn content(self, said: &Said) -> BoxStream<'_, Result<Bytes, FileError>> {
        stream::try_unfold(Some(self), move |file| async move {
            let Some(Self { form, mut field }) = file else { return Ok(None) };
            let refused = |problem| {
                // It is set once: the stream ends with it.
                let _ = said.wrong.set(problem);
                FileError::Broken("the form is not taken".into())
            };
            match field.chunk().await {
                Ok(Some(piece)) => {
                    form.heard.store(0, Ordering::Relaxed);
                    Ok(Some((piece, Some(Self { form, field }))))
                }
                Ok(None) => {
                    // The form goes on when nobody reads this part of it any more.
                    drop(field);
                    let terms = form.rest().await.map_err(refused)?;
                    let _ = said.terms.set(terms);
                    Ok(None)
                }
                Err(error) => Err(refused(broken(error))),
            }
        })
        .boxed()
    }
}

/// The fields beside the file, as far as they have come.
struct Fields {
    face: Face,
    known: &'static [&'static str],
    seen: Vec<&'static str>,
    purpose: Option<Purpose>,
    seconds: Option<i64>,
}

const PURPOSE: &str = "purpose";
const ANCHOR: &str = "expires_after[anchor]";
const SECONDS: &str = "expires_after[seconds]";
const SECONDS_OF_MESSAGES: &str = "expires_in_seconds";

impl Fields {
    fn new(face: Face) -> Self {
        let known: &[&str] = match face {
            Face::OpenAi => &[PURPOSE, ANCHOR, SECONDS],
            Face::Messages => &[SECONDS_OF_MESSAGES],
        };
        Self { face, known, seen: Vec::new(), purpose: None, seconds: None }
    }

    async fn read(&mut self, field: Field<'static>) -> Result<(), Problem> {
        let known = self.known.iter().copied().find(|known| field.name() == Some(*known));
        let Some(name) = known else {
            let known = self.known.join(", ");
            return Err(Problem::bad_request(format!("the form has another field than {FILE}, {known}")));
        };
        if self.seen.contains(&name) {
            return Err(wrong(name, "may be given once"));
        }
        self.seen.push(name);
        let text = field.text().await.map_err(broken)?;
        match name {
            PURPOSE => {
                let purpose = Purpose::named(&text);
                let none = || wrong(PURPOSE, "must be user_data, vision or assistants: files are for messages here");
                self.purpose = Some(purpose.ok_or_else(none)?);
            }
            ANCHOR if text == "created_at" => {}
            ANCHOR => return Err(wrong(ANCHOR, "must be created_at")),
            SECONDS_OF_MESSAGES => self.seconds = Some(seconds(name, &text, MOST_S_OF_MESSAGES)?),
            _ => self.seconds = Some(seconds(name, &text, MOST_S)?),
        }
        Ok(())
    }

    /// All that they say.
    fn terms(&self) -> Result<Terms, Problem> {
        let required = |name: &'static str| match self.seen.contains(&name) {
            true => Ok(()),
            false => Err(wrong(name, "is required")),
        };
        if self.face == Face::OpenAi {
            required(PURPOSE)?;
            if self.seen.contains(&ANCHOR) || self.seen.contains(&SECONDS) {
                required(ANCHOR)?;
                required(SECONDS)?;
            }
        }
        Ok(Terms { purpose: self.purpose, kept_ms: self.seconds.map(|seconds| seconds * 1000) })
    }
}

fn seconds(name: &'static str, text: &str, most: i64) -> Result<i64, Problem> {
    let seconds = text.trim().parse().ok().filter(|seconds| (LEAST_S..=most).contains(seconds));
    seconds.ok_or_else(|| wrong(name, &format!("must be a whole number of seconds from {LEAST_S} to {most}")))
}

/// Why a form could not be read.
fn broken(error: multer::Error) -> Problem {
    match error {
        multer::Error::StreamReadFailed(cause) if cause.is::<TooLong>() => Problem::bad_request(cause.to_string()),
        multer::Error::StreamReadFailed(cause) => body::unread(&*cause),
        error => Problem::bad_request(format!("the form cannot be read: {error}")),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("what the form has besides its file is too long")]
struct TooLong;

/// A body for the reader of forms, which takes in all that is there each time it looks: it sees one piece at a time, and not
/// more of them than a form without a file has.
struct Pieces {
    body: BodyDataStream,
    heard: Arc<AtomicUsize>,
    /// Whether it has seen a piece this time.
    has_given: bool,
}

impl Stream for Pieces {
    type Item = Result<Bytes, Box<dyn Error + Send + Sync>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.has_given) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.heard.load(Ordering::Relaxed) > REST_BYTES {
            return Poll::Ready(Some(Err(TooLong.into())));
        }
        let piece = match ready!(self.body.poll_next_unpin(cx)) {
            Some(Ok(piece)) => piece,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        self.has_given = true;
        self.heard.fetch_add(piece.len(), Ordering::Relaxed);
        Poll::Ready(Some(Ok(piece)))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::iter::{once, repeat_n};

    use axum::http::HeaderValue;
    use futures::TryStreamExt;

    use super::*;

    const PIECE: usize = 64 << 10;

    fn form(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Form {
        let body = Body::from_stream(stream::iter(pieces.map(Ok::<_, Infallible>)));
        let form = HeaderValue::from_static("multipart/form-data; boundary=edge");
        Form::new(Face::Messages, &HeaderMap::from_iter([(header::CONTENT_TYPE, form)]), body).unwrap()
    }

    #[tokio::test]
    async fn of_a_file_that_is_there_at_once_one_piece_is_read_at_a_time() {
        let head = "--edge\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n";
        let file = repeat_n(Bytes::from(vec![b'x'; PIECE]), 100);
        let pieces = once(Bytes::from(head)).chain(file).chain(once(Bytes::from("\r\n--edge--\r\n")));
        let said = Said::default();
        let file = form(pieces).file().await.unwrap();
        let read: Vec<usize> = file.content(&said).map_ok(|piece| piece.len()).try_collect().await.unwrap();
        assert_eq!((read.iter().sum::<usize>(), said.terms.get()), (100 * PIECE, Some(&Terms::default())));
        assert!(read.iter().all(|length| *length <= PIECE), "{read:?}");
    }

    #[tokio::test]
    async fn a_form_that_never_comes_to_its_file_is_not_read_to_its_end() {
        let read = Arc::<AtomicUsize>::default();
        let count = read.clone();
        let pieces = repeat_n(Bytes::from(vec![b'x'; PIECE]), 1000);
        let pieces = pieces.inspect(move |piece| {
            count.fetch_add(piece.len(), Ordering::Relaxed);
        });
        assert!(form(pieces).file().await.is_err());
        assert!(read.load(Ordering::Relaxed) <= REST_BYTES + PIECE);
    }
}
