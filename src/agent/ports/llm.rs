//! The language model's port: one call is one turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use tokio::time::Instant;

use crate::chat::answer_format::AnswerFormat;
use crate::chat::failure::{FailureCode, OF_PROVIDER};
use crate::chat::file::{FileKind, FileRef};
use crate::chat::ids::FileId;
use crate::chat::message::{Message, ModelOrigin};
use crate::chat::model::ModelChoice;
use crate::chat::stream::StreamEvent;
use crate::chat::tool::ToolDef;

/// The message to a model that has used all its turns, in the user's role.
pub const LAST_REQUEST: &str = "[You have used all the tool calls that one answer may take. Answer now with what you have found, \
                                without calling tools, and say what is still missing.]";

/// A language model behind some vendor's API, or several of which one answers.
#[async_trait]
pub trait LlmProvider: Send + Sync {
    /// Begins one turn. The stream's last item is `StreamEvent::Finished` or an error; an end without either is
    /// turned into [`ProviderErrorKind::Truncated`] by the provider. Dropping the stream closes the connection.
    ///
    /// # Errors
    /// Whatever went wrong before the first token of the answer; an error inside the stream is final for the turn.
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError>;

    /// What a model can be given of files: nothing but texts, where nothing is known of it.
    fn takes(&self, _model: &ModelOrigin) -> Takes {
        Takes::default()
    }
}

/// The request of one turn to the model. Borrowed: the history is serialised from where it is, never copied.
#[derive(Debug, Clone, Copy)]
pub struct ChatRequest<'a> {
    /// The system prompt.
    pub system: &'a SystemPrompt,
    /// The conversation so far; the last entry is the user's message or tool results.
    pub messages: &'a [Message],
    /// The files that they name.
    pub files: SentFiles<'a>,
    /// The offered tools, always in the same order.
    pub tools: &'a [Arc<ToolDef>],
    /// Whether the model may call them; where not, the tools are there only for vendors that refuse a history with
    /// calls of tools that it does not list.
    pub may_call: bool,
    /// Whether it has to call one. A vendor that cannot force it is asked for it in words.
    pub must_call: MustCall<'a>,
    /// The form of its answer, once it calls no more tools; never beside a call that it has to make. A vendor that cannot
    /// hold a model to it is asked for it in words: whoever gets the answer checks it.
    pub format: Option<&'a AnswerFormat>,
    /// The models that may answer, and their options. A provider of one model ignores the names.
    pub model: &'a ModelChoice,
    /// When the run ends whatever happens: nothing is begun that would have to wait until then.
    pub deadline: Option<Instant>,
}

/// The bytes of files, and what the model can be given of them. By default there are none.
#[derive(Debug, Clone, Copy, Default)]
pub struct SentFiles<'a> {
    /// Those whose bytes are sent. Others are older than may be sent.
    pub bytes: Option<&'a HashMap<FileId, Loaded>>,
    /// What the model takes; set by whoever knows the model.
    pub takes: Takes,
}

/// A file that is new enough to be sent.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Its bytes, or why the model is not shown it.
    pub bytes: Result<Bytes, &'static str>,
    /// How many of its family, pictures or PDF documents, are sent with it and those that are newer: one for each mention.
    pub rank: usize,
}

impl<'a> SentFiles<'a> {
    /// Why the model is not shown `file`, where that is so.
    pub fn left_out(&self, file: &FileRef) -> Option<&'static str> {
        self.shown(file).err()
    }

    /// The bytes of `file`.
    ///
    /// # Errors
    /// Why the model is not shown it.
    pub fn shown(&self, file: &FileRef) -> Result<&'a Bytes, &'static str> {
        let Takes { images, pdf, image_bytes, image_side, images_max, pdf_bytes, pdfs_max } = self.takes;
        let FileRef { id, kind, bytes, side, .. } = file;
        let is_pdf = *kind == FileKind::Pdf;
        match self.bytes.and_then(|loaded| loaded.get(id)) {
            _ if kind.is_image() && images.is_empty() => Err("this model takes no images"),
            _ if kind.is_image() && !images.contains(kind) => Err("this model takes no images of this kind"),
            _ if is_pdf && !pdf => Err("this model takes no PDF documents"),
            _ if is_pdf && *bytes > pdf_bytes => Err("it is too large for this model"),
            _ if *bytes > image_bytes && kind.is_image() => Err("it is too large for this model"),
            _ if *side > image_side => Err("it has too many pixels for this model"),
            _ if !file.is_sent() => Err("it is too long to be read"),
            None => Err("only the newest files are sent, as far as they fit"),
            Some(Loaded { bytes: Err(why), .. }) => Err(why),
            Some(Loaded { rank, .. }) if kind.is_image() && *rank > images_max => {
                Err("this model takes fewer images at once")
            }
            Some(Loaded { rank, .. }) if is_pdf && *rank > pdfs_max => {
                Err("this model takes fewer PDF documents at once")
            }
            Some(Loaded { bytes: Ok(bytes), .. }) => Ok(bytes),
        }
    }
}

/// The files that a model can be given beside texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Takes {
    /// Pictures of these kinds.
    pub images: &'static [FileKind],
    /// PDF documents.
    pub pdf: bool,
    /// The largest picture, in bytes.
    pub image_bytes: u64,
    /// The longest side of a picture, in pixels.
    pub image_side: u32,
    /// The most pictures of a request.
    pub images_max: usize,
    /// The largest PDF document, in bytes.
    pub pdf_bytes: u64,
    /// The most PDF documents of a request.
    pub pdfs_max: usize,
}

impl Takes {
    /// The same by the names that settings have for it.
    pub fn names(&self) -> Vec<&'static str> {
        let all = [("text", true), ("image", !self.images.is_empty()), ("pdf", self.pdf)];
        all.into_iter().filter(|(_, takes)| *takes).map(|(name, _)| name).collect()
    }
}

/// Whether a model has to call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MustCall<'a> {
    /// It decides.
    #[default]
    No,
    /// Any.
    Any,
    /// This one.
    This(&'a str),
}

/// The system prompt, cut where what stays the same ends: everything before a cut can be cached by a vendor.
#[derive(Debug, Clone)]
pub struct SystemPrompt {
    /// Role and guidance: the same for every run of a profile.
    pub instructions: Arc<str>,
    /// What the client tells the model, fenced: the same for every run of one client; empty when there is nothing.
    pub client: String,
    /// This request's screen state; empty when there is none.
    pub context: String,
}

impl SystemPrompt {
    /// Its parts in this order.
    pub fn parts(&self) -> [&str; 3] {
        [&*self.instructions, &self.client, &self.context]
    }

    /// How long they are together, in bytes.
    pub fn bytes(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// All parts as one text, a blank line between them.
    pub fn text(&self) -> String {
        let parts: Vec<&str> = self.parts().into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }
}

/// A model's answer while it comes.
pub struct EventStream {
    /// The model that answers: replay data in the answer belongs to this origin.
    pub origin: Arc<ModelOrigin>,
    /// The vendor's id of this request, for its support; where it sends one.
    pub request_id: Option<String>,
    /// The answer.
    pub events: BoxStream<'static, Result<StreamEvent, ProviderError>>,
}

/// A model call that failed. `Display` is for the user; the vendor's words are in `source()` and go to the log.
#[derive(Debug, thiserror::Error)]
#[error("{OF_PROVIDER}{}", kind.words())]
pub struct ProviderError {
    /// The kind of failure.
    pub kind: ProviderErrorKind,
    /// Whether the same request may succeed later: as the kind says, unless the vendor says otherwise.
    pub retryable: bool,
    /// The model that was called; `None` only where none was.
    pub origin: Option<Arc<ModelOrigin>>,
    /// The vendor's id of the request; where it sends one.
    pub request_id: Option<String>,
    /// The vendor's words or the transport's error.
    #[source]
    pub detail: Box<dyn std::error::Error + Send + Sync>,
}

impl ProviderError {
    /// An error of `kind`; `detail` is for the log only.
    pub fn new(kind: ProviderErrorKind, detail: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { kind, retryable: kind.is_retryable(), origin: None, request_id: None, detail: detail.into() }
    }
}

/// Failures of a model call by what can be done about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderErrorKind {
    /// The key is wrong or may not do this (401, 403): the operator must act.
    Unauthorized,
    /// The model or the address does not exist (404).
    ModelNotFound,
    /// Quota or credit is spent (402, 429 without end): waiting a little does not help.
    QuotaExceeded,
    /// Too many requests (429): later it works.
    RateLimited {
        /// How long the vendor asks to wait.
        retry_after: Option<Duration>,
    },
    /// The vendor has trouble (5xx, 529, refused connection): later it works.
    Unavailable {
        /// How long the vendor asks to wait.
        retry_after: Option<Duration>,
    },
    /// The conversation does not fit the model (400 with the vendor's code, 413).
    ContextTooLong,
    /// The vendor's safety filter refused the request.
    ContentFiltered,
    /// The vendor refused the request as wrong (other 4xx): our fault or the configuration's.
    Rejected,
    /// Nothing came for too long.
    TimedOut,
    /// The answer broke off before its terminal marker.
    Truncated,
    /// The answer is not what the vendor's API promises, or is over a cap.
    Malformed,
    /// The model produced something unusable that another try may not (e.g. a malformed call).
    ModelFault,
    /// The model paused for tools of its vendor, which this server had not offered.
    Paused,
}

impl ProviderErrorKind {
    /// The code of a run that ends with it.
    pub fn code(self) -> FailureCode {
        match self {
            Self::Unauthorized => FailureCode::ProviderUnauthorized,
            Self::ModelNotFound => FailureCode::ModelNotFound,
            Self::QuotaExceeded => FailureCode::ProviderQuotaExceeded,
            Self::RateLimited { .. } => FailureCode::ProviderRateLimited,
            Self::Unavailable { .. } => FailureCode::ProviderUnavailable,
            Self::ContextTooLong => FailureCode::ContextTooLong,
            Self::ContentFiltered => FailureCode::ContentFiltered,
            Self::Rejected => FailureCode::ProviderRejected,
            Self::TimedOut => FailureCode::ProviderTimeout,
            Self::Truncated => FailureCode::ProviderTruncated,
            Self::Malformed => FailureCode::ProviderMalformed,
            Self::ModelFault => FailureCode::ModelFault,
            Self::Paused => FailureCode::ModelPaused,
        }
    }

    /// How long the vendor asks to wait, where it does.
    pub fn retry_after(self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after } | Self::Unavailable { retry_after } => retry_after,
            Self::Unauthorized
            | Self::ModelNotFound
            | Self::QuotaExceeded
            | Self::ContextTooLong
            | Self::ContentFiltered
            | Self::Rejected
            | Self::TimedOut
            | Self::Truncated
            | Self::Malformed
            | Self::ModelFault
            | Self::Paused => None,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Unavailable { .. }
            | Self::TimedOut
            | Self::Truncated
            | Self::Malformed
            | Self::ModelFault => true,
            Self::Unauthorized
            | Self::ModelNotFound
            | Self::QuotaExceeded
            | Self::ContextTooLong
            | Self::ContentFiltered
            | Self::Rejected
            | Self::Paused => false,
        }
    }

    /// What it is, for the user.
    pub fn words(self) -> &'static str {
        match self {
            Self::Unauthorized => "the model service refused this server's credentials; please tell its operator",
            Self::ModelNotFound => "the configured model was not found; please tell the server's operator",
            Self::QuotaExceeded => "the model service's quota is used up; please tell the server's operator",
            Self::RateLimited { .. } => {
                "the model service is receiving too many requests; please try again in a moment"
            }
            Self::Unavailable { .. } => "the model service is unavailable; please try again in a moment",
            Self::ContextTooLong => "this conversation is too long for the model; please start a new one",
            Self::ContentFiltered => "the model service declined this request on safety grounds",
            Self::Rejected => "the model service rejected the request; please tell the server's operator",
            Self::TimedOut => "the model did not answer in time; please try again",
            Self::Truncated => "the answer broke off before it was complete; please try again",
            Self::Malformed => "the model service sent an answer that could not be read; please try again",
            Self::ModelFault => "the model produced an unusable answer; please try again",
            Self::Paused => "the model stopped to use tools that this server does not have",
        }
    }
}
