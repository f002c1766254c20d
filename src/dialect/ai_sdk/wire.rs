//! The AI SDK's protocol among all others: its route, and how its requests are answered.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use utoipa::OpenApi;

use super::request::{self, Read};
use super::{AiSdk, Answer, Own, Query, Spent, Version, encoder};
use crate::chat::approval::DecisionRule;
use crate::chat::event::AgentEvent;
use crate::chat::input::Screen;
use crate::dialect::asked::{Asked, Assistants, ConversationRef, Question, Shape, What};
use crate::dialect::given::Ask;
use crate::dialect::reply::{Position, Refusal, RefusalReason, RefusalResponse, Reply};
use crate::dialect::{DecodeError, Dialect, Encoder, FieldError, Request, RunIds, Settings, instructions};

/// The header by which clients know a stream of this protocol.
const IS_UI_MESSAGES: (&str, &str) = ("x-vercel-ai-ui-message-stream", "v1");

/// The error when a later decision cannot be taken: the answer to the earlier ones has begun.
const NOT_TAKEN: &str = "The next decision was not taken; please reload the conversation";

#[derive(OpenApi)]
#[openapi(
    paths(chat),
    tags((name = "AI SDK", description = "The routes of `useChat`.",
        external_docs(url = "https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol", description = "The protocol")))
)]
struct Api;

#[utoipa::path(
    post,
    path = "/v1/ai-sdk/chat",
    operation_id = "aiSdkChat",
    tag = "AI SDK",
    summary = "Answer a chat of useChat",
    description = "Starts a run, or decides calls that wait, and streams what comes of it.",
    params(
        ("sdk" = Option<String>, Query, description = "The client's major version: 5, 6 or 7."),
        ("context_type" = Option<String>, Query, description = "Which profile answers."),
        ("profile" = Option<String>, Query, description = "The same, in shorter words."),
    ),
    request_body = super::RequestBody<'static>,
    responses(
        (status = 200, description = "A UI message stream: nameless frames of JSON chunks, `[DONE]` at the end.", content((String = "text/event-stream"))),
        (status = 409, description = "`conversation_busy`, `no_such_call`, `already_decided`, `digest_mismatch`: the chat has a run; nothing waits for these results; decided already."),
        (status = 410, description = "`approval_expired`, `cursor_evicted`: too late."),
    ),
)]
#[expect(dead_code, reason = "has the description")]
fn chat() {}

impl From<&Settings> for AiSdk {
    fn from(settings: &Settings) -> Self {
        let Settings { message_bytes, context_bytes, ai_sdk_version, .. } = *settings;
        Self { version: ai_sdk_version, max_message_bytes: message_bytes, max_context_bytes: context_bytes }
    }
}

impl Dialect for AiSdk {
    fn api(&self) -> utoipa::openapi::OpenApi {
        Api::openapi()
    }

    fn is_retold(&self) -> bool {
        true
    }

    fn decode(&self, request: &Request<'_>) -> Result<Asked, DecodeError> {
        let query: Query = request.query()?;
        let Read { what, conversation, context_type, version, continues, mut options } =
            request::read(self, &query, request.body, request.unawaited)?;
        let named = context_type.clone().or_else(|| the_only(request.assistants).ok());
        let choices = named.and_then(|profile| request.assistants.choices(&profile));
        if let Some(said) = instructions::of_body(request.body, choices, self.max_message_bytes)? {
            options.instructions = Some(said);
        }
        // The profile may be named outside of the body.
        let mark = context_type.as_deref().map_or_else(|| "ai-sdk".to_owned(), |profile| format!("ai-sdk {profile}"));
        let what = match what {
            super::What::Decide(decisions) => What::Decide(decisions, None),
            super::What::Answer { results, ask, from: branch } => {
                let screen = Screen::Type(context_type.map_or_else(|| the_only(request.assistants), Ok)?);
                let question = |ask: Ask| Question::new(ask, screen.clone());
                let asked = Question { branch, ..question(ask) };
                match results.is_empty() {
                    true => What::Answer(asked),
                    false => What::Both(Box::new(question(Ask::Results(results))), Box::new(asked)),
                }
            }
        };
        let own = Own::These(options.client_tools.iter().map(|tool| tool.name.clone()).collect());
        Ok(Asked {
            what,
            rule: DecisionRule::Conversation,
            conversation: ConversationRef::Id(Some(conversation)),
            options,
            mark,
            shape: Shape::Stream,
            reply: Box::new(UiMessages::new(version, continues, own)),
        })
    }
}

/// The one assistant that the caller may use, where there is just one.
fn the_only(assistants: &dyn Assistants) -> Result<String, DecodeError> {
    match assistants.offered().as_slice() {
        [only] => Ok((*only).to_owned()),
        several => {
            let reason = format!("is required, in the URL or as a key of the body: one of {}", several.join(", "));
            Err(DecodeError::Fields(vec![FieldError { field: "context_type", reason }]))
        }
    }
}

/// A UI message stream. The runs of several decisions are one message in it.
pub struct UiMessages {
    version: Version,
    continues: Option<String>,
    client_tools: Own,
    progress: Arc<Mutex<Progress>>,
}

/// The progress of the runs in a stream.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// Whether the newest of them has ended well.
    has_ended_well: bool,
    /// The use of all of them.
    spent: Spent,
}

impl UiMessages {
    /// A stream for a client of that version that runs these tools itself. `continues` is the message of the client that goes
    /// on with it; `None` begins a new one.
    pub fn new(version: Version, continues: Option<String>, client_tools: Own) -> Self {
        Self { version, continues, client_tools, progress: Arc::default() }
    }
}

impl Reply for UiMessages {
    fn headers(&self, of: &RunIds) -> Vec<(&'static str, String)> {
        let (name, value) = IS_UI_MESSAGES;
        // By its id it is come back to.
        vec![(name, value.to_owned()), ("x-resumable-stream-id", of.conversation.to_string())]
    }

    fn encoder(&mut self, of: RunIds, at: Position) -> Box<dyn Encoder> {
        let spent = {
            let mut progress = lock(&self.progress);
            progress.has_ended_well = false;
            progress.spent
        };
        let (version, continues, client_tools) = (self.version, self.continues.clone(), self.client_tools.clone());
        let more_follows = !at.is_last;
        let encoder =
            Box::new(encoder::AiSdkEncoder::new(Answer { of, version, continues, client_tools, more_follows, spent }));
        match at {
            Position::ALONE => encoder,
            Position { .. } => Box::new(Watching { encoder, progress: self.progress.clone() }),
        }
    }

    fn goes_on(&self) -> bool {
        lock(&self.progress).has_ended_well
    }

    fn refused(&mut self, refusal: &Refusal<'_>) -> RefusalResponse {
        let (field, reason) = match refusal.why {
            RefusalReason::NotOnBranch(_) => ("messageId", "names no message of the conversation's newest branch"),
            RefusalReason::NoSuchMessage => ("messageId", "names no message of this conversation"),
            RefusalReason::NothingToRepeat => ("trigger", "asks for another answer, and there is no question yet"),
            RefusalReason::Waiting(_)
            | RefusalReason::NothingLeft
            | RefusalReason::Kept
            | RefusalReason::Forbidden
            | RefusalReason::NoSuchAssistant
            | RefusalReason::NoSuchApproval
            | RefusalReason::NoSuchConversation
            | RefusalReason::DataDenied
            | RefusalReason::DataUnavailable
            | RefusalReason::OtherCall
            | RefusalReason::AlreadyDecided
            | RefusalReason::Expired
            | RefusalReason::RoleRequired
            | RefusalReason::OwnRequest
            | RefusalReason::NoSuchRun
            | RefusalReason::Other => return RefusalResponse::AsUsual,
        };
        RefusalResponse::Mistake(DecodeError::Fields(vec![FieldError { field, reason: reason.to_owned() }]))
    }

    fn finished(&mut self) -> Bytes {
        encoder::finished()
    }

    fn broken_off(&mut self, refusal: &Refusal<'_>) -> Bytes {
        encoder::broken_off(NOT_TAKEN, refusal.request)
    }
}

/// No holder panics, and it is whole at any time.
fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An encoder whose events update the progress.
struct Watching {
    encoder: Box<dyn Encoder>,
    progress: Arc<Mutex<Progress>>,
}

impl Encoder for Watching {
    fn opened(&mut self, out: &mut BytesMut) {
        self.encoder.opened(out);
    }

    fn encode(&mut self, id: Option<u64>, event: &AgentEvent, out: &mut BytesMut) {
        self.encoder.encode(id, event, out);
        if let AgentEvent::TurnEnded { cost: Some(cost), .. } = event {
            *lock(&self.progress).spent.cost.get_or_insert_default() += *cost;
        }
        if let AgentEvent::Finished { usage } | AgentEvent::AwaitingApproval { usage } = event {
            let mut progress = lock(&self.progress);
            progress.spent.usage += *usage;
            progress.has_ended_well = true;
        }
    }

    fn lost(&mut self, out: &mut BytesMut) {
        self.encoder.lost(out);
    }

    fn keep_alive(&mut self, out: &mut BytesMut) {
        self.encoder.keep_alive(out);
    }

    fn draining(&mut self, come_back_ms: Option<u32>, out: &mut BytesMut) {
        self.encoder.draining(come_back_ms, out);
    }
}
