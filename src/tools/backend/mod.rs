//! The one client of REST backends. The caller's token goes verbatim to `[backend]`, to those named backends whose
//! `credentials` are the caller's, and to the issuer that exchanges it for one of theirs, and nowhere else; no redirect
//! is followed. Whatever comes back that is not JSON of bounded size is an error the model can read.

mod access;
mod answer;
mod asking;
mod config;
mod error;
mod frames;
mod issued;
mod machine;
pub mod probe;
mod request;
mod secrets;
mod service;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, ETAG};
use reqwest::{Response, StatusCode, Url};
use serde_json::Value;

pub use self::access::Access;
use self::access::Presented;
pub(super) use self::answer::redirected_to;
use self::answer::{Other, broken, done, good, has_type, read_at_most};
pub use self::answer::{Parts, Read};
pub use self::config::{Credentials, NamedBackend, ServiceConfig, ServiceMode};
pub use self::error::{BackendError, NoToken};
pub use self::frames::Framing;
use self::frames::{Frame, Splitter};
pub use self::machine::{MachineToken, MachineTokens};
pub use self::request::{Request, Verb};
pub use self::secrets::{LEAST_SECRET_BYTES, Secrets};
use crate::agent::ports::tools::Reporter;
use crate::bounded::client::{self, Reach};
use crate::bounded::intake::Intake;
use crate::bounded::json::{self, JsonError, NodeBudget, Wanted};
use crate::bounded::memory::Kind;
use crate::chat::caller::Caller;
use crate::chat::file::NewFile;
use crate::observe::trace_context::TRACEPARENT;
use crate::observe::{ambient, spans};

/// The longest part of a path: far above any id or name, far below what servers accept as a request line.
const MAX_SEGMENT_BYTES: usize = 1024;

/// What stands for an answer without a body.
const NOTHING: &str = "null";

/// By this a backend finds a request of ours in its own log.
const REQUEST_ID: &str = "x-request-id";

/// Some programs of Windows write it before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reaches one backend.
#[derive(Debug, Clone)]
pub struct Backend {
    http: reqwest::Client,
    base: Url,
    access: Access,
    max_answer_bytes: usize,
    intake: Intake,
}

/// The head of a good answer, whose body is still to come.
pub struct Answered {
    response: Response,
    secrets: Secrets,
}

impl Answered {
    /// Whether it says that it is a picture.
    pub fn is_picture(&self) -> bool {
        media_type(&self.response).is_some()
    }
}

/// The media type of an answer that says that it is a picture.
fn media_type(response: &Response) -> Option<&str> {
    let value = response.headers().get(CONTENT_TYPE)?.to_str().ok()?.split(';').next()?.trim();
    value.get(..6).filter(|kind| kind.eq_ignore_ascii_case("image/")).map(|_| value)
}

/// All backends.
#[derive(Debug, Clone)]
pub struct Backends {
    /// `[backend]`.
    pub main: Arc<Backend>,
    /// `[backends.NAME]`.
    pub named: BTreeMap<String, Arc<Backend>>,
    /// Those that directives reach without their caller, with a service's own credentials; `None`: `[backend]`.
    pub services: BTreeMap<Option<String>, Arc<Backend>>,
}

/// A backend that the settings do not have.
#[derive(Debug, thiserror::Error)]
#[error("there is no backend {0:?}")]
pub struct UnknownBackend(String);

impl Backends {
    /// The backend of that name; `[backend]` where there is no name.
    ///
    /// # Errors
    /// When the settings have none of that name.
    pub fn get(&self, name: Option<&str>) -> Result<&Arc<Backend>, UnknownBackend> {
        match name {
            None => Ok(&self.main),
            Some(name) => self.named.get(name).ok_or_else(|| UnknownBackend(name.to_owned())),
        }
    }

    /// The same backend with a service's own credentials, where it has some.
    pub fn service(&self, name: Option<&str>) -> Option<&Arc<Backend>> {
        self.services.get(&name.map(str::to_owned))
    }
}

impl Backend {
    /// A client for the API root `base`, to which requests present what `access` says. `timeout` bounds a whole call;
    /// `max_answer_bytes` its answer, which `intake` reads.
    ///
    /// # Errors
    /// When the TLS setup fails.
    pub fn new(
        base: Url,
        access: Access,
        timeout: Option<Duration>,
        max_answer_bytes: usize,
        intake: Intake,
    ) -> Result<Self, reqwest::Error> {
        let mut builder = client::builder(Reach::Private)
            .retry(reqwest::retry::never())
            // A proxy named in the environment would see the caller's token.
            .no_proxy()
            .default_headers(access.headers())
            .connect_timeout(Duration::from_secs(10));
        if let Some(timeout) = timeout {
            builder = builder.timeout(timeout);
        }
        Ok(Self { http: builder.build()?, base, access, max_answer_bytes, intake })
    }

    /// What takes in its answers, and what else is large.
    pub fn intake(&self) -> &Intake {
        &self.intake
    }

    /// Whether its requests have the caller's own token, so that what it refuses is refused to them.
    pub fn is_sent_the_callers_token(&self) -> bool {
        self.access.is_of_caller()
    }

    /// The backend's JSON answer; `Value::Null` for one without a body. Its memory is reserved while it is read.
    ///
    /// # Errors
    /// See [`BackendError`].
    pub async fn call(&self, caller: &Caller, request: Request<'_>) -> Result<Value, BackendError> {
        self.read(caller, request, Wanted::All, |answer, _| Ok(answer)).await
    }

    /// The same with the answer's `ETag`, where it is one that a later request can be compared with (RFC 9110, 8.8.1).
    ///
    /// # Errors
    /// See [`BackendError`].
    pub async fn call_tagged(
        &self,
        caller: &Caller,
        request: Request<'_>,
    ) -> Result<(Value, Option<String>), BackendError> {
        let (response, secrets) = self.send(caller, &request, "application/json").await?;
        let etag =
            response.headers().get(ETAG).and_then(|etag| etag.to_str().ok()).filter(|etag| etag.starts_with('"'));
        let etag = etag.map(str::to_owned);
        Ok((self.whole(secrets, response, Wanted::All, |answer, _| Ok(answer)).await?, etag))
    }

    /// What `made` makes of the backend's answer, of which only what is `wanted` becomes values. Both are done off the
    /// runtime's workers where the answer is large, and `budget` is what is left for whatever is made.
    ///
    /// # Errors
    /// See [`BackendError`]; those of `made`.
    pub async fn read<T: Send + 'static>(
        &self,
        caller: &Caller,
        request: Request<'_>,
        wanted: Wanted,
        made: impl FnOnce(Value, &mut NodeBudget) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let (response, secrets) = self.send(caller, &request, "application/json").await?;
        self.whole(secrets, response, wanted, made).await
    }

    /// The head of the backend's good answer, which is JSON or a picture.
    ///
    /// # Errors
    /// See [`BackendError`].
    pub async fn ask(&self, caller: &Caller, request: Request<'_>) -> Result<Answered, BackendError> {
        let (response, secrets) = self.send(caller, &request, "application/json, image/*;q=0.5").await?;
        Ok(Answered { response, secrets })
    }

    /// The same answer as JSON text without blanks; its status for one without a body. No value is made of it.
    ///
    /// # Errors
    /// See [`BackendError`].
    pub async fn text(&self, Answered { response, secrets }: Answered) -> Result<String, BackendError> {
        // To some questions the status is the answer.
        let empty = format!(r#"{{"status":{},"ok":true}}"#, response.status().as_u16());
        let read = |text: String, budget: &mut NodeBudget| Ok(json::mended(&text, budget, json::compact)?);
        self.taken(secrets, response, empty, read, |text, _| Ok(text)).await
    }

    /// As [`Self::read`], of an answer whose head is there.
    ///
    /// # Errors
    /// See [`BackendError`]; those of `made`.
    pub async fn rest<T: Send + 'static>(
        &self,
        Answered { response, secrets }: Answered,
        parts: Parts,
        made: impl FnOnce(Read, &mut NodeBudget) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let done = done(&response, &secrets);
        let read = move |text, budget: &mut NodeBudget| Ok(Read { done, ..Read::new(text, &parts, budget)? });
        self.taken(secrets, response, NOTHING.to_owned(), read, made).await
    }

    /// The same answer as the bytes of a picture, of at most `max_bytes`.
    ///
    /// # Errors
    /// See [`BackendError`].
    pub async fn picture(&self, answered: Answered, max_bytes: usize) -> Result<NewFile, BackendError> {
        let media_type = media_type(&answered.response).map(str::to_owned);
        let max_bytes = max_bytes.min(self.max_answer_bytes);
        let mut held = self.intake.memory().reserve(Kind::File, 0).map_err(JsonError::from)?;
        match read_at_most(answered.response, max_bytes, Some(&mut held)).await? {
            (data, true) => Ok(NewFile { name: None, media_type, data: data.into() }),
            (_, false) => Err(BackendError::TooLarge { max_bytes }),
        }
    }

    /// As [`Self::read`], of an answer that comes in frames: `progress` reports each as it comes. An answer that says
    /// that it is plain JSON is read as one.
    ///
    /// # Errors
    /// See [`BackendError`]; those of `made`.
    pub async fn follow<T: Send + 'static>(
        &self,
        caller: &Caller,
        request: Request<'_>,
        (framing, progress): (Framing, Reporter<'_>),
        parts: Parts,
        made: impl FnOnce(Read, &mut NodeBudget) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let (response, secrets) = self.send(caller, &request, framing.accept()).await?;
        if has_type(&response, "application/json") {
            return self.rest(Answered { response, secrets }, parts, made).await;
        }
        let made =
            |(value, bytes)| made(Read { value, text: None, done: None }, &mut NodeBudget::for_bytes(bytes, None));
        let mut splitter = Splitter::new(framing);
        let (mut read, mut frames) = (0, Vec::new());
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(broken)?;
            read += chunk.len();
            if read > self.max_answer_bytes {
                return Err(BackendError::TooLarge { max_bytes: self.max_answer_bytes });
            }
            splitter.push(&chunk, &mut frames)?;
            if let Some(result) = tell(&secrets, frames.drain(..), progress)? {
                return made(result);
            }
        }
        let result = tell(&secrets, splitter.finish()?.into_iter(), progress)?;
        made(result.ok_or(BackendError::Frames("ended without a result"))?)
    }

    /// The head of a good answer, and the secrets that its body may repeat. A token of an issuer's that the backend takes
    /// no more is replaced once: whoever answers 401 has done nothing. Boxed, as all tools wait for it: what it is made of
    /// is looked at once, when this is compiled, and not in each of them.
    fn send<'a>(
        &'a self,
        caller: &'a Caller,
        request: &'a Request<'_>,
        accept: &'a str,
    ) -> BoxFuture<'a, Result<(Response, Secrets), BackendError>> {
        async move {
            let mut presented = self.access.presented(caller).await?;
            let mut response = self.sent(&presented, request, accept).await?;
            if response.status() == StatusCode::UNAUTHORIZED
                && let Some(anew) = self.access.presented_anew(caller, &presented).await?
            {
                presented = anew;
                response = self.sent(&presented, request, accept).await?;
            }
            let secrets = self.access.secrets(&presented);
            Ok((good(response, request, &secrets).await?, secrets))
        }
        .boxed()
    }

    /// The head of any answer.
    async fn sent(
        &self,
        presented: &Presented<'_>,
        request: &Request<'_>,
        accept: &str,
    ) -> Result<Response, BackendError> {
        let url = self.url(request)?;
        let mut builder = self.http.request(request.verb.method(), url);
        builder = builder.header(ACCEPT, request.accept.unwrap_or(accept));
        for (name, value) in &request.headers {
            builder = builder.header(*name, *value);
        }
        builder = Access::present(presented, builder);
        let is_said = |name: &str| request.headers.iter().any(|(said, _)| said.eq_ignore_ascii_case(name));
        // So that the backend's own log and traces can be found from ours, and the other way round.
        if let Some(id) = ambient::request_id().filter(|_| !is_said(REQUEST_ID)) {
            builder = builder.header(REQUEST_ID, id);
        }
        if let Some(parent) = spans::current_parent().filter(|_| !is_said(TRACEPARENT)) {
            builder = builder.header(TRACEPARENT, parent.to_string());
        }
        if let Some(key) = request.idempotency_key {
            builder = builder.header("idempotency-key", key);
        }
        if let Some(body) = request.body {
            builder = builder.header(CONTENT_TYPE, request.content_type).body(body.to_string());
        }
        if let Some(timeout) = request.timeout {
            builder = builder.timeout(timeout);
        }
        builder.send().await.map_err(|error| match error.is_timeout() {
            true => BackendError::TimedOut(error.without_url()),
            false => BackendError::Unreachable(error.without_url()),
        })
    }

    /// What `made` makes of the values of a good answer.
    async fn whole<T: Send + 'static>(
        &self,
        secrets: Secrets,
        response: Response,
        wanted: Wanted,
        made: impl FnOnce(Value, &mut NodeBudget) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let read = move |text: String, budget: &mut NodeBudget| {
            Ok(json::mended(&text, budget, |text, budget| json::read(text, &wanted, budget))?)
        };
        self.taken(secrets, response, NOTHING.to_owned(), read, made).await
    }

    /// What `made` makes of what is `read` of the text of a good answer, which lets go of the text; `empty` is that of one
    /// without a body. A backend that repeats the request's secrets must not get them to the model and into the transcript.
    fn taken<'a, R: 'static, T: Send + 'static>(
        &'a self,
        secrets: Secrets,
        response: Response,
        empty: String,
        read: impl FnOnce(String, &mut NodeBudget) -> Result<R, BackendError> + Send + 'static,
        made: impl FnOnce(R, &mut NodeBudget) -> Result<T, BackendError> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, BackendError>> {
        async move {
            let mut held = self.intake.memory().reserve(Kind::Json, 0).map_err(JsonError::from)?;
            let other = Other::of(&response);
            let (bytes, whole) = read_at_most(response, self.max_answer_bytes, Some(&mut held)).await?;
            if !whole {
                return Err(BackendError::TooLarge { max_bytes: self.max_answer_bytes });
            }
            let size = bytes.len();
            let unread = move |error| Other::instead(other, error);
            let work = move || {
                let text = String::from_utf8(bytes.into()).map_err(|error| JsonError::from(error.utf8_error()).into());
                let mut text = text.map_err(unread)?;
                if text.starts_with(BYTE_ORDER_MARK) {
                    text.drain(..BYTE_ORDER_MARK.len_utf8());
                }
                if text.bytes().all(|byte| byte.is_ascii_whitespace()) {
                    text = empty;
                } else if let Cow::Owned(removed) = secrets.removed(&text) {
                    text = removed;
                }
                let mut budget = NodeBudget::for_bytes(size, Some(held));
                let of_it = read(text, &mut budget).map_err(unread)?;
                made(of_it, &mut budget)
            };
            self.intake.work(size, work).await
        }
        .boxed()
    }

    fn url(&self, request: &Request<'_>) -> Result<Url, BackendError> {
        let mut url = self.base.clone();
        {
            let Ok(mut path) = url.path_segments_mut() else {
                return Err(BackendError::BadSegment(self.base.to_string()));
            };
            path.pop_if_empty();
            let last = request.segments.len().saturating_sub(1);
            for (at, segment) in request.segments.iter().enumerate() {
                // The URL standard resolves dot segments even when they are percent-encoded, so they cannot be sent.
                // It also drops tabs and line ends before it looks for dots, so that `.\t.` would be one.
                // An empty one at the end is a slash there.
                let is_usable = (!segment.is_empty() || at == last)
                    && segment.len() <= MAX_SEGMENT_BYTES
                    && !segment.contains(['\t', '\n', '\r']);
                if !is_usable || matches!(*segment, "." | "..") {
                    return Err(BackendError::BadSegment(segment.chars().take(60).collect()));
                }
                path.push(segment);
            }
        }
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
            // A `+` of a value is %2B there, and one for a blank is known to forms alone.
            let query = url.query().unwrap_or_default().replace('+', "%20");
            url.set_query(Some(&query));
        }
        Ok(url)
    }
}

/// Reports `frames` to `progress`; the result, where one of them has it, and its bytes.
fn tell(
    secrets: &Secrets,
    frames: impl Iterator<Item = Vec<u8>>,
    progress: Reporter<'_>,
) -> Result<Option<(Value, usize)>, BackendError> {
    for frame in frames {
        let text = secrets.removed(json::utf8(&frame)?);
        let mut budget = NodeBudget::for_bytes(text.len(), None);
        let frame_json = json::mended(&text, &mut budget, |text, budget| json::read(text, &Wanted::All, budget))?;
        match frames::read(frame_json)? {
            Frame::Progress(update) => progress.report(update),
            Frame::Result(result) => return Ok(Some((result, frame.len()))),
            Frame::Failed(words) => return Err(BackendError::Failed(words)),
        }
    }
    Ok(None)
}
