//! The Model Context Protocol on standard input and output, for desktops that start their servers as programs: each line is a
//! message, which is carried to `/mcp` of a server on this machine, and what that answers is written line by line.
//!
//! **Invariant:** nothing but messages is ever written there; the log is on standard error.

mod files;

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
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::bounded::client::{Reach, builder};
use crate::bounded::lines::{self, Line};
use crate::chat::causes::Causes;
use crate::dialect::mcp::{Id, Outline};
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

/// The id in the answer to what has none that can be read.
const NOBODY: &str = "null";

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
    /// Where that is, without a path.
    base: String,
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

/// A message, and what has to be known of it to carry it.
struct Message {
    line: Vec<u8>,
    wants: Wants,
    /// The headers that repeat what it says.
    headers: Vec<(&'static str, String)>,
    /// The request that it calls off.
    called_off: Option<Id>,
}

/// What its sender waits for.
enum Wants {
    /// An answer to this request.
    Answer(Id),
    /// Nothing: it is a notification, or an answer.
    Nothing,
    /// To hear what is wrong with it.
    Reason,
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
    let carrier = Carrier { http, base: format!("http://{address}"), bearer, output: lines };
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
                carrier.refuse(id.as_deref().unwrap_or(NOBODY), INVALID, "the message is longer than 4 MiB").await;
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
        let message = Message::read(line);
        if let Some(request) = message.called_off.as_ref().and_then(|id| open.remove(id.as_str())) {
            request.abort();
        }
        let id = message.id().map(|id| id.as_str().to_owned());
        let task = carried.spawn(carrier.clone().message(message));
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

impl Message {
    /// The message on a line, whatever that is: what is wrong with it says the server.
    fn read(line: Vec<u8>) -> Self {
        let nothing_known = |line| Self { line, wants: Wants::Reason, headers: Vec::new(), called_off: None };
        let Some(outline) = outline(&line) else { return nothing_known(line) };
        let method = outline.method();
        let wants = match (outline.id(), &method) {
            (Some(Some(id)), Some(_)) => Wants::Answer(id),
            (None, Some(_)) => Wants::Nothing,
            _ if outline.is_answer() => Wants::Nothing,
            _ => Wants::Reason,
        };
        let (Some(method), Some(params)) = (method, outline.params()) else {
            return Self { wants, ..nothing_known(line) };
        };
        let called_off = params.called_off(&method);
        let named = params.named(&method);
        let headers = match params.version() {
            None => Vec::new(),
            Some(version) => {
                let all = [("mcp-protocol-version", Some(version)), ("mcp-method", Some(method)), ("mcp-name", named)];
                all.into_iter().filter_map(|(name, value)| Some((name, fit(value?)))).collect()
            }
        };
        Self { line, wants, headers, called_off }
    }

    /// The request that it is.
    fn id(&self) -> Option<&Id> {
        match &self.wants {
            Wants::Answer(id) => Some(id),
            Wants::Nothing | Wants::Reason => None,
        }
    }
}

fn outline(text: &[u8]) -> Option<Outline<'_>> {
    let text = std::str::from_utf8(text).ok()?;
    // A list would pass for the fields in their order.
    Outline::read(text).ok().filter(|_| text.trim_start().starts_with('{'))
}

/// A value as a header can carry it.
fn fit(value: String) -> String {
    let is_fit = value.bytes().all(|b| b.is_ascii_graphic() || b == b' ') && value.trim().len() == value.len();
    if is_fit { value } else { format!("=?base64?{}?=", BASE64_STANDARD.encode(value)) }
}

impl Carrier {
    /// Carries a message, and writes what comes back. A request is answered, whatever happens.
    async fn message(self: Arc<Self>, message: Message) {
        let Message { line, wants, headers, called_off: _ } = message;
        let answered = match self.try_message(line, &wants, headers).await {
            Ok(answered) => answered,
            Err(error) => {
                tracing::warn!(error = %Causes(&error), "a message was not answered");
                false
            }
        };
        let id = match &wants {
            Wants::Answer(id) => id.as_str(),
            Wants::Reason => NOBODY,
            Wants::Nothing => return,
        };
        if !answered {
            self.refuse(id, INTERNAL, "the server did not answer").await;
        }
    }

    /// Whether what the message wants was written.
    async fn try_message(
        &self,
        line: Vec<u8>,
        wants: &Wants,
        headers: Vec<(&'static str, String)>,
    ) -> Result<bool, CarryError> {
        let mut request = self.http.post(format!("{}/mcp", self.base));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.header(AUTHORIZATION, self.authorization()?).header(CONTENT_TYPE, "application/json");
        let answer = request.header(ACCEPT, "application/json, text/event-stream").body(line).send().await?;
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            let body = answer.bytes().await?;
            match wants {
                Wants::Answer(id) => self.answer(id, &body).await,
                Wants::Reason if body.is_empty() => return Ok(false),
                Wants::Reason => self.write(body.into()).await,
                Wants::Nothing => {}
            }
            return Ok(true);
        }
        let mut events = answer.bytes_stream().eventsource();
        while let Some(event) = events.next().await {
            match (event, wants) {
                (Ok(event), Wants::Answer(id)) => {
                    let data = event.data.into_bytes();
                    if outline(&data).is_some_and(|outline| outline.answers(id)) {
                        self.write(self.with_files(data).await).await;
                        return Ok(true);
                    }
                    self.write(data).await;
                }
                // Only requests are answered by streams.
                (Ok(_), Wants::Nothing | Wants::Reason) => return Ok(false),
                (Err(eventsource_stream::EventStreamError::Transport(error)), _) => return Err(error.into()),
                (Err(_), _) => return Err(CarryError::NoEvents),
            }
        }
        Ok(false)
    }

    /// Whose messages these are.
    fn authorization(&self) -> Result<String, CarryError> {
        Ok(match &self.bearer {
            Bearer::Given(token) => format!("Bearer {}", token.expose_secret()),
            Bearer::Own(tokens) => format!("Bearer {}", tokens.token().map_err(CarryError::Token)?.token),
        })
    }

    /// Writes what the server says to the request `id`. What was refused before the message was read does not name it.
    async fn answer(&self, id: &Id, body: &[u8]) {
        let outline = outline(body);
        let error = outline.as_ref().and_then(Outline::error);
        match error {
            _ if outline.as_ref().is_some_and(|outline| outline.answers(id)) => {
                self.write(self.with_files(body.to_vec()).await).await;
            }
            Some(error) => {
                let (id, error) = (id.as_str(), error.get());
                self.write(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes()).await;
            }
            None => self.refuse(id.as_str(), INTERNAL, "the server gave no answer that can be read").await,
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
