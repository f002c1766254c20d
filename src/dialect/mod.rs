//! Wire protocols, pure: a request becomes an [`Asked`], [`AgentEvent`]s become frames. One file or folder per
//! protocol.
//!
//! **Invariant:** no I/O, no async, no status codes. Only files of this folder know event names.

pub mod accept;
pub mod ag_ui;
pub mod agent_chat;
pub mod agent_stream;
pub mod ai_sdk;
mod answer_format;
pub mod asked;
pub mod bodies;
mod call_ids;
pub mod chat_message;
pub mod chat_stream;
mod client_tools;
mod directive;
mod failures;
mod frame;
mod given;
mod ignored;
mod instructions;
mod json;
pub mod mcp;
pub mod messages;
pub mod ndjson;
pub mod openai_chat;
mod operation;
mod plans;
pub mod repeats;
pub mod reply;
pub mod responses;
mod sentences;
pub mod shown;
pub mod smithy;
mod state;
pub mod told;
mod waiting;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::BytesMut;
use http::HeaderMap;
use serde::de::DeserializeOwned;
use utoipa::openapi::OpenApi;

use self::asked::{Asked, Assistants};
pub use self::given::file_id;
use self::repeats::Repeats;
use crate::chat::event::AgentEvent;
use crate::chat::ids::{ConversationId, RunId};

/// One wire protocol: what its requests ask for, and how they are answered. Which there are: the table in `http/wires.rs`.
pub trait Dialect: Send + Sync {
    /// Its routes that begin runs, with their description. All of them are `POST`.
    fn api(&self) -> OpenApi;

    /// Whether a request that has come on one of its routes is its own, where another protocol has the same route.
    fn is_meant(&self, _headers: &HeaderMap) -> bool {
        true
    }

    /// The decoded request.
    ///
    /// # Errors
    /// The request's mistakes, in words for its sender.
    fn decode(&self, request: &Request<'_>) -> Result<Asked, DecodeError>;

    /// Whether a request may repeat another one, where it has no key that says so.
    fn repeats(&self, _headers: &HeaderMap) -> Repeats {
        Repeats::Never
    }

    /// Whether its requests tell the whole conversation, so that results of calls that nobody here waits for are read as told, or,
    /// before a message, are passed over.
    fn is_retold(&self) -> bool {
        false
    }

    /// What of a body is alike in a request and in one that repeats it.
    fn repeated<'a>(&self, _headers: &HeaderMap, body: &'a [u8]) -> Cow<'a, [u8]> {
        Cow::Borrowed(body)
    }
}

/// What the settings say of requests, for all protocols. Of a bound, 0 means that there is none.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The longest message of a user, in bytes.
    pub message_bytes: usize,
    /// The largest state of a screen, and the largest result of a client's own tool, in bytes.
    pub context_bytes: usize,
    /// How much of a conversation a model is sent, in bytes.
    pub history_bytes: usize,
    /// The version of AI SDK clients that send none.
    pub ai_sdk_version: ai_sdk::Version,
    /// What becomes of inputs of AG-UI that leave an interrupt open.
    pub open_interrupts: ag_ui::OpenInterrupts,
    /// Where people reach the server, without a slash at the end; empty where that is not known.
    pub public_url: Arc<str>,
    /// The `context_type` of whoever answers clients that keep no conversation; empty where nobody does.
    pub chat_message: Arc<str>,
    /// The `context_type` of whoever answers editors, empty where nobody does, and the role that their users need.
    pub smithy: (Arc<str>, Arc<str>),
    /// The time, in milliseconds since the Unix epoch.
    pub now_ms: fn() -> i64,
}

/// A request, as far as protocols read one.
pub struct Request<'a> {
    /// The part of the path that the route leaves open; `None` where there is none, or it is no text.
    pub path: Option<&'a str>,
    /// The part of the URL behind the question mark.
    pub query: &'a str,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The body.
    pub body: &'a [u8],
    /// Whether nobody here waits for the results in it, see [`Dialect::is_retold`].
    pub unawaited: bool,
    /// The profiles that its caller may ask.
    pub assistants: &'a dyn Assistants,
    /// The roles of its caller.
    pub roles: &'a [String],
    /// Where people reach the server, without a slash at the end; empty where that is not known.
    pub public_url: &'a Arc<str>,
}

impl Request<'_> {
    /// Whether the profile of that name believes what its clients tell of their own tools.
    fn believes(&self, profile: &str) -> bool {
        self.assistants.choices(profile).is_some_and(|choices| choices.instructions)
    }

    /// The parameters of the URL.
    ///
    /// # Errors
    /// When one is given twice, or is no text.
    pub fn query<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        let once = |_| DecodeError::Request("each parameter may be given once".to_owned());
        serde_urlencoded::from_str(self.query).map_err(once)
    }
}

/// The ids of a run, for protocols that send them.
#[derive(Debug, Clone)]
pub struct RunIds {
    /// The run.
    pub run: RunId,
    /// Its conversation.
    pub conversation: ConversationId,
    /// The conversation's number, in protocols that number them; `None` too where it could not be given one.
    pub number: Option<i64>,
    /// The HTTP request that began it.
    pub request: String,
}

/// Turns one run's events into frames. Whatever brackets a protocol needs around segments is the encoder's state.
pub trait Encoder: Send {
    /// Appends what a stream begins with, before there is any event.
    fn opened(&mut self, out: &mut BytesMut);

    /// Appends the frames of `event`, possibly none, to `out`. Where the stream can be continued later, `id` is the
    /// event's number, which the last of the frames carries.
    fn encode(&mut self, id: Option<u64>, event: &AgentEvent, out: &mut BytesMut);

    /// Appends the frames that tell a reader that events are missing here, after which its stream ends.
    fn lost(&mut self, out: &mut BytesMut);

    /// Appends a frame that clients ignore, to keep the connection open while nothing flows.
    fn keep_alive(&mut self, out: &mut BytesMut);

    /// Appends what tells a reader that this server is about to stop; with `come_back_ms`, that its stream ends here
    /// and goes on elsewhere after so many milliseconds.
    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut);
}

/// A request that cannot be carried out, whatever the state of things.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The requested assistant is not there.
    #[error("there is no such agent")]
    NoSuchAssistant,
    /// The requested assistant is for others.
    #[error("this screen's assistant is not for this user")]
    NotForYou,
    /// The requested model is not there, or is for others.
    #[error("the model {0:?} does not exist, or you have no access to it")]
    NoSuchModel(String),
    /// The response to go on from is not there, or is another's.
    #[error("there is no such response to go on from")]
    NoSuchResponse,
    /// Something that no field has.
    #[error("{0}")]
    Request(String),
    /// The body has mistakes, all of them listed, in protocols that tell where each is.
    #[error("the body has mistakes")]
    Mistakes(Vec<Mistake>),
    /// Not JSON, not UTF-8, or nested too deeply.
    #[error("the body is not usable JSON: {0}")]
    NotJson(String),
    /// JSON with wrong fields, all of them named.
    #[error("the body has invalid fields")]
    Fields(Vec<FieldError>),
    /// A field is larger than its limit.
    #[error("{field} is larger than {max_bytes} bytes")]
    TooLarge {
        /// The field.
        field: &'static str,
        /// Its limit.
        max_bytes: usize,
    },
}

/// A mistake, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where: `body`, `query` or `path`, then the fields from the outermost on.
    pub at: Vec<&'static str>,
    /// What is wrong.
    pub message: String,
    /// Which kind of mistake it is.
    pub kind: &'static str,
}

impl Mistake {
    /// A mistake at `at`.
    pub fn new(at: impl Into<Vec<&'static str>>, kind: &'static str, message: impl Into<String>) -> Self {
        Self { at: at.into(), message: message.into(), kind }
    }
}

/// The mistake of one field of a request body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field's name.
    pub field: &'static str,
    /// What it must be.
    pub reason: String,
}
