//! A message that is sent to a server over HTTP, and its answer. The library's own client makes values of a document of 16 MiB
//! at once; here it is looked at before that, as each event of a stream is.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Client, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::SseStream;

use super::look::{EVENT_BYTES, Failed, Headers, looked_at, secrets, told};
use crate::bounded::intake::Intake;
use crate::bounded::json;
use crate::tools::backend::{BackendError, Secrets, redirected_to};

/// 64 KiB of what a server says of a refusal are read.
const REFUSAL_BYTES: usize = 64 << 10;

/// 256 bytes of what a server says beside the protocol are told on.
const SHOWN_BYTES: usize = 256;

/// A message, and what it goes with.
#[derive(Clone, Copy)]
pub(super) struct Outgoing<'a> {
    pub(super) uri: &'a str,
    pub(super) message: &'a ClientJsonRpcMessage,
    pub(super) session: Option<&'a Arc<str>>,
    pub(super) token: Option<&'a str>,
    pub(super) headers: &'a Headers,
}

/// A message that was not taken, in words for a model and for operators. The library's own errors have a status or words.
#[derive(Debug, thiserror::Error)]
#[error("{words}")]
pub(super) struct Refusal {
    words: String,
    /// Whether it was not even begun with.
    pub(super) proves_nothing_was_done: bool,
}

impl Refusal {
    /// A message that has not left.
    pub(super) fn unsent(words: String) -> Self {
        Self { words, proves_nothing_was_done: true }
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self::Io(io::Error::other(refusal))
    }
}

/// Why a message has no answer.
pub(super) struct NotPosted {
    /// Whether its token was refused. Not every server says so in a header too.
    pub(super) is_unauthorized: bool,
    pub(super) failed: Failed,
}

/// Sends it.
///
/// # Errors
/// When there is no answer, or none of the protocol.
pub(super) async fn post(
    http: &Client,
    intake: &Intake,
    outgoing: Outgoing<'_>,
) -> Result<StreamableHttpPostResponse, NotPosted> {
    let failed = |failed| NotPosted { is_unauthorized: false, failed };
    let response = sent(http, outgoing).await.map_err(|error| failed(error.into()))?;
    let is_unauthorized = response.status() == StatusCode::UNAUTHORIZED;
    answer(response, intake, outgoing).await.map_err(|failed| NotPosted { is_unauthorized, failed })
}

async fn sent(http: &Client, outgoing: Outgoing<'_>) -> Result<Response, reqwest::Error> {
    let Outgoing { uri, message, session, token, headers } = outgoing;
    let mut request = http.post(uri).header(ACCEPT, format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}"));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if let Some(session) = session {
        request = request.header(HEADER_SESSION_ID, &**session);
    }
    request.json(message).send().await
}

async fn answer(
    response: Response,
    intake: &Intake,
    Outgoing { message, session, token, headers, .. }: Outgoing<'_>,
) -> Result<StreamableHttpPostResponse, Failed> {
    let (status, challenge) = (response.status(), text_of(&response, &WWW_AUTHENTICATE));
    match (status, challenge) {
        (StatusCode::UNAUTHORIZED, Some(challenge)) => {
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
        }
        (StatusCode::FORBIDDEN, Some(challenge)) => {
            return Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)));
        }
        (StatusCode::ACCEPTED | StatusCode::NO_CONTENT, _) => return Ok(StreamableHttpPostResponse::Accepted),
        (StatusCode::NOT_FOUND, _) if session.is_some() => return Err(StreamableHttpError::SessionExpired),
        _ => {}
    }
    let secrets = secrets(token, headers);
    let request = match message {
        ClientJsonRpcMessage::Request(request) => Some(&request.id),
        _ => None,
    };
    // Servers answer notifications with whatever their frameworks send.
    if status.is_success() && request.is_none() {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    let has_session = session.is_some();
    let session = response.headers().get(HEADER_SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
    let kind = text_of(&response, &CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    let is_json = kind.starts_with(JSON_MIME_TYPE);
    if !status.is_success() {
        let refused = refusal(response, is_json, Sent { request, has_session }, &secrets).await;
        return refused.map(|error| StreamableHttpPostResponse::Json(addressed(error, message), session));
    }
    if kind.starts_with(EVENT_STREAM_MIME_TYPE) {
        let events = SseStream::from_bytes_stream(bounded(response.bytes_stream())).boxed();
        return Ok(StreamableHttpPostResponse::Sse(
            looked_at(events, request.cloned(), secrets, intake.clone()),
            session,
        ));
    }
    if !is_json {
        return Err(StreamableHttpError::UnexpectedContentType(Some(kind).filter(|kind| !kind.is_empty())));
    }
    let body = whole(response, EVENT_BYTES).await?;
    match message_of(body, secrets, intake).await {
        Ok(answer) => Ok(StreamableHttpPostResponse::Json(addressed(answer, message), session)),
        Err(words) => Err(StreamableHttpError::UnexpectedServerResponse(words.into())),
    }
}

/// `answer` as that to `message`: an error in its body is about that, whatever id it has. Who has not read a request does not know
/// its id.
fn addressed(mut answer: ServerJsonRpcMessage, message: &ClientJsonRpcMessage) -> ServerJsonRpcMessage {
    if let (ServerJsonRpcMessage::Error(error), ClientJsonRpcMessage::Request(request)) = (&mut answer, message) {
        error.id = Some(request.id.clone());
    }
    answer
}

/// The message that a document is; the words for why it is none.
async fn message_of(body: Vec<u8>, secrets: Secrets, intake: &Intake) -> Result<ServerJsonRpcMessage, String> {
    let bytes = body.len();
    let read = move || {
        let text = std::str::from_utf8(&body).map_err(|error| error.to_string())?;
        let text = told(text, &secrets);
        json::parse(&text).map_err(|error| format!("{error}: {}", shown(&text)))
    };
    intake.work(bytes, read).await
}

/// A message that was refused.
struct Sent<'a> {
    /// Its id, if it wants an answer.
    request: Option<&'a RequestId>,
    has_session: bool,
}

/// What a server says of a session that it does not know, in lower case: several do with 400 instead of 404 (python-sdk#1004,
/// mcp-go#689).
const LOST_SESSION: [&str; 6] =
    ["session id", "session-id", "session not found", "session has expired", "invalid session", "unknown session"];

/// What a server says of a refusal, where it is an error of the protocol.
async fn refusal(
    response: Response,
    is_json: bool,
    sent: Sent<'_>,
    secrets: &Secrets,
) -> Result<ServerJsonRpcMessage, Failed> {
    let target = redirected_to(&response);
    let status = response.status();
    let is_later = response.headers().contains_key(RETRY_AFTER);
    let is_busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let body = match is_json && status != StatusCode::TOO_MANY_REQUESTS || !is_busy {
        true => whole(response, REFUSAL_BYTES).await.unwrap_or_default(),
        false => Vec::new(),
    };
    let is_of_caller = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let body = String::from_utf8_lossy(&body);
    let body = secrets.removed(&body);
    let told = json::parse(&body).ok().filter(|_| is_json && !is_of_caller);
    // What names the request has read it, and may have begun with it.
    let is_answer = matches!(&told, Some(ServerJsonRpcMessage::Error(error)) if error.id.is_some() && error.id.as_ref() == sent.request);
    let is_lost = || {
        let words = body.to_ascii_lowercase();
        LOST_SESSION.iter().any(|lost| words.contains(lost))
    };
    if sent.has_session && status == StatusCode::BAD_REQUEST && !is_answer && is_lost() {
        return Err(StreamableHttpError::SessionExpired);
    }
    match told {
        Some(error @ ServerJsonRpcMessage::Error(_)) => Ok(error),
        _ => {
            // A server that cannot accept a message says so by an error status (MCP 2025-06-18, Transports, Sending Messages).
            let proves_nothing_was_done = BackendError::says_not_done(status, is_later, &[]);
            let words =
                target.map_or_else(|| format!("HTTP {status}: {}", shown(&body)), |to| format!("HTTP {status}: {to}"));
            Err(Refusal { words, proves_nothing_was_done }.into())
        }
    }
}

/// The body of an answer, of so many bytes at most.
async fn whole(response: Response, most: usize) -> Result<Vec<u8>, Failed> {
    let too_large = || StreamableHttpError::ResponseBodyTooLarge { max_size: most };
    if response.content_length().is_some_and(|length| length > most as u64) {
        return Err(too_large());
    }
    let (mut body, mut pieces) = (Vec::new(), response.bytes_stream());
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        if body.len() + piece.len() > most {
            return Err(too_large());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// An event of more than [`EVENT_BYTES`].
#[derive(Debug, thiserror::Error)]
enum Cut {
    #[error("an event has more than {EVENT_BYTES} bytes")]
    TooLarge,
    #[error(transparent)]
    Broken(#[from] reqwest::Error),
}

/// The bytes of events, up to one that is too large.
fn bounded(
    bytes: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, Cut>> {
    let start = (bytes.boxed(), Some(EventSize::default()));
    stream::unfold(start, async |(mut bytes, size)| {
        let mut size = size?;
        let piece = match bytes.next().await? {
            Ok(piece) if size.take(&piece) > EVENT_BYTES => Err(Cut::TooLarge),
            piece => piece.map_err(Cut::from),
        };
        let size = piece.is_ok().then_some(size);
        Some((piece, (bytes, size)))
    })
}

/// The size of the event that is under way.
#[derive(Debug, Default)]
struct EventSize {
    bytes: usize,
    is_in_line: bool,
}

impl EventSize {
    /// Takes the next bytes: the size of the largest event that is in them, or ends behind them.
    fn take(&mut self, piece: &[u8]) -> usize {
        let mut largest = 0;
        for byte in piece {
            match byte {
                b'\r' => {}
                b'\n' if self.is_in_line => self.is_in_line = false,
                b'\n' => self.bytes = 0,
                _ => (self.is_in_line, self.bytes) = (true, self.bytes + 1),
            }
            largest = largest.max(self.bytes);
        }
        largest
    }
}

fn text_of(response: &Response, name: &HeaderName) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// The beginning of a text.
fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::EventSize;

    #[test]
    fn an_event_ends_with_an_empty_line() {
        let mut size = EventSize::default();
        assert_eq!(size.take(b"data: 1\r\ndata"), 11, "line ends do not count");
        assert_eq!(size.take(b": 23\n\r\n"), 15);
        assert_eq!(size.take(b"id: 1"), 5, "the next one");
        assert_eq!(size.take(b"\n\n: ping\n\n"), 6);
    }
}
