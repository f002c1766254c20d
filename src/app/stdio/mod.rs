//! The Model Context Protocol on standard input and output, for desktops that start their servers as programs: each line is a
//! message, which is carried to `/mcp` of a server on this machine, and what that answers is written line by line.
//!
//! **Invariant:** nothing but messages is ever written there; the log is on standard error.

mod lines;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use eventsource_stream::Eventsource;
use futures::StreamExt;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use self::lines::Line;
use crate::bounded::client::{Reach, builder};
use crate::bounded::json::parse;
use crate::chat::causes::Causes;
use crate::http::auth::DevTokens;

/// Requests that are in work when there is no more input get 30 seconds: then whoever has started this program waits for its end.
const LAST_ANSWERS: Duration = Duration::from_secs(30);

/// Then what is answered has 5 seconds to be read.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// A few answers wait to be written; who writes more of them waits.
const UNWRITTEN: usize = 16;

/// The number of an error of the server's, and of a message that is none.
const INTERNAL: i32 = -32603;
const INVALID: i32 = -32600;

/// Whose messages are carried.
pub enum Bearer {
    /// The user of this token, until it ends.
    Given(SecretString),
    /// The development user: each message has a token that begins with it.
    Own(DevTokens),
}

/// Carries messages to one server.
struct Carrier {
    http: reqwest::Client,
    url: String,
    bearer: Bearer,
    output: mpsc::Sender<Vec<u8>>,
}

/// Why a message was not answered.
#[derive(Debug, thiserror::Error)]
enum CarryError {
    #[error("no token can be made")]
    Token(#[source] crate::http::auth::AuthSetupError),
    #[error("the server cannot be reached, or broke off")]
    Http(#[from] reqwest::Error),
    #[error("the answer is no stream of events")]
    NoEvents,
}

/// What has to be known of a message to carry it.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    name: Option<String>,
    #[serde(rename = "taskId")]
    task: Option<String>,
    uri: Option<String>,
    #[serde(borrow, rename = "requestId")]
    request: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
}

/// Carries what comes on `input` to the server at `address`, as the user of `bearer`, until there is no more and what was asked is
/// answered. A request that is called off (`notifications/cancelled`) is dropped, by which its run ends.
pub async fn carry(
    address: SocketAddr,
    bearer: Bearer,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) {
    let http = match builder(Reach::Private).no_proxy().build() {
        Ok(http) => http,
        Err(error) => return tracing::error!(error = %Causes(&error), "no messages can be carried"),
    };
    // A request may be dropped at any time, and a line is written as a whole or not at all.
    let (lines, unwritten) = mpsc::channel(UNWRITTEN);
    let carrier = Carrier { http, url: format!("http://{address}/mcp"), bearer, output: lines };
    let read = async {
        read(Arc::new(carrier), BufReader::new(input)).await;
        sleep(LAST_WRITES).await;
    };
    // Where nobody reads what is written, that is no reason to stay.
    tokio::select! {
        () = write(unwritten, output) => {}
        () = read => tracing::warn!("the last answers were not read"),
    }
}

/// Carries the messages on `input`.
async fn read(carrier: Arc<Carrier>, mut input: BufReader<impl AsyncRead + Unpin>) {
    let (mut carried, mut open) = (JoinSet::new(), HashMap::<String, AbortHandle>::new());
    loop {
        while carried.try_join_next().is_some() {}
        open.retain(|_, request| !request.is_finished());
        let line = match lines::next(&mut input).await {
            Ok(Some(Line::Whole(line))) => line,
            Ok(Some(Line::TooLong(id))) => {
                carrier.refuse(id.as_deref().unwrap_or("null"), INVALID, "the message is longer than 4 MiB").await;
                continue;
            }
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "no more messages can be read");
                break;
            }
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        let (id, called_off) = ids(&line);
        if let Some(request) = called_off.and_then(|id| open.remove(&id)) {
            request.abort();
        }
        let task = carried.spawn(carrier.clone().message(line));
        if let Some(id) = id {
            open.insert(id, task);
        }
    }
    let all = async { while carried.join_next().await.is_some() {} };
    if timeout(LAST_ANSWERS, all).await.is_err() {
        open.retain(|_, request| !request.is_finished());
        carried.abort_all();
        let refused = async {
            for id in open.into_keys() {
                carrier.refuse(&id, INTERNAL, "the answer took too long, and nobody asks any more").await;
            }
        };
        let _ = timeout(LAST_WRITES, refused).await;
        carried.shutdown().await;
    }
}

/// Writes messages, each as one line.
async fn write(mut unwritten: mpsc::Receiver<Vec<u8>>, mut output: impl AsyncWrite + Unpin) {
    while let Some(mut line) = unwritten.recv().await {
        line.retain(|byte| !matches!(byte, b'\n' | b'\r'));
        line.push(b'\n');
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            tracing::warn!("nobody reads the answers any more");
        }
    }
}

/// The id of a message, and that of the request that it calls off.
fn ids(line: &[u8]) -> (Option<String>, Option<String>) {
    let Some(head) = std::str::from_utf8(line).ok().and_then(|text| parse::<Head<'_>>(text).ok()) else {
        return (None, None);
    };
    let params: Option<Params<'_>> = head.params.and_then(|raw| parse(raw.get()).ok());
    let is_farewell = head.method.as_deref() == Some("notifications/cancelled");
    let called_off = params.and_then(|params| params.request).filter(|_| is_farewell);
    // An id without a method is that of an answer.
    let id = head.id.filter(|_| head.method.is_some());
    (id.map(|id| id.get().to_owned()), called_off.map(|id| id.get().to_owned()))
}

/// The headers that repeat what a message says.
fn headers(line: &[u8]) -> Vec<(&'static str, String)> {
    let Some(head) = std::str::from_utf8(line).ok().and_then(|text| parse::<Head<'_>>(text).ok()) else {
        return Vec::new();
    };
    let params: Params<'_> = head.params.and_then(|raw| parse(raw.get()).ok()).unwrap_or_default();
    let meta: Meta = params.meta.and_then(|raw| parse(raw.get()).ok()).unwrap_or_default();
    let Some((version, method)) = meta.version.zip(head.method) else { return Vec::new() };
    let named = params.name.or(params.task).or(params.uri);
    let all = [("mcp-protocol-version", Some(version)), ("mcp-method", Some(method)), ("mcp-name", named)];
    all.into_iter().filter_map(|(name, value)| Some((name, fit(value?)))).collect()
}

/// A value as a header can carry it.
fn fit(value: String) -> String {
    let is_fit = value.bytes().all(|b| b.is_ascii_graphic() || b == b' ') && value.trim().len() == value.len();
    if is_fit { value } else { format!("=?base64?{}?=", BASE64_STANDARD.encode(value)) }
}

/// What has to be known of an answer.
#[derive(Default, Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl<'a> Answer<'a> {
    fn read(text: &'a [u8]) -> Self {
        std::str::from_utf8(text).ok().and_then(|text| parse(text).ok()).unwrap_or_default()
    }

    /// Whether it answers the request `id`.
    fn answers(&self, id: &str) -> bool {
        self.id.is_some_and(|own| own.get() == id) && (self.result.is_some() || self.error.is_some())
    }
}

/// Whether a message is one that nobody answers.
fn is_notification(line: &[u8]) -> bool {
    let head = std::str::from_utf8(line).ok().and_then(|text| parse::<Head<'_>>(text).ok());
    head.is_some_and(|head| head.id.is_none() && head.method.is_some())
}

impl Carrier {
    /// Carries a message, and writes what comes back. A request is answered, whatever happens.
    async fn message(self: Arc<Self>, line: Vec<u8>) {
        let (id, _) = ids(&line);
        let is_notification = is_notification(&line);
        let answered = match self.try_message(line, (id.as_deref(), is_notification)).await {
            Ok(answered) => answered,
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "a message was not answered");
                false
            }
        };
        if let Some(id) = id.filter(|_| !answered) {
            self.refuse(&id, INTERNAL, "the server did not answer").await;
        }
    }

    /// Whether the request `id` was answered.
    async fn try_message(
        &self,
        line: Vec<u8>,
        (id, is_notification): (Option<&str>, bool),
    ) -> Result<bool, CarryError> {
        let mut request = self.http.post(&self.url);
        for (name, value) in headers(&line) {
            request = request.header(name, value);
        }
        let bearer = match &self.bearer {
            Bearer::Given(token) => format!("Bearer {}", token.expose_secret()),
            Bearer::Own(tokens) => format!("Bearer {}", tokens.token().map_err(CarryError::Token)?.token),
        };
        let request = request.header(AUTHORIZATION, bearer).header(CONTENT_TYPE, "application/json");
        let answer = request.header(ACCEPT, "application/json, text/event-stream").body(line).send().await?;
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            let body = answer.bytes().await?;
            match id {
                Some(id) => self.answer(id, &body).await,
                None if !is_notification && !body.is_empty() => self.write(body.into()).await,
                None => {}
            }
            return Ok(true);
        }
        let mut events = answer.bytes_stream().eventsource();
        let mut answered = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    let data = event.data.into_bytes();
                    answered = id.is_some_and(|id| Answer::read(&data).answers(id));
                    self.write(data).await;
                    if answered {
                        break;
                    }
                }
                Err(eventsource_stream::EventStreamError::Transport(error)) => return Err(error.into()),
                Err(_) => return Err(CarryError::NoEvents),
            }
        }
        Ok(answered)
    }

    /// Writes what the server says to the request `id`. What was refused before the message was read does not name it.
    async fn answer(&self, id: &str, body: &[u8]) {
        let answer = Answer::read(body);
        match answer.error.filter(|error| error.get().starts_with('{')) {
            _ if answer.answers(id) => self.write(body.to_vec()).await,
            Some(error) => {
                let error = error.get();
                self.write(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes()).await;
            }
            None => self.refuse(id, INTERNAL, "the server gave no answer that can be read").await,
        }
    }

    /// Answers the request `id` with an error; its words need no quoting.
    async fn refuse(&self, id: &str, code: i32, words: &str) {
        let error = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{words}"}}}}"#);
        self.write(error.into_bytes()).await;
    }

    async fn write(&self, message: Vec<u8>) {
        // Whoever writes goes on to the end.
        let _ = self.output.send(message).await;
    }
}
