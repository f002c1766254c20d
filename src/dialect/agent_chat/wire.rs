//! The native protocol among all others: its route, and how its requests are answered.

use http::HeaderMap;
use utoipa::OpenApi;

use super::{AgentChat, AgentChatEncoder, Framing};
use crate::chat::approval::DecisionRule;
use crate::dialect::accept::{Wanted, wanted};
use crate::dialect::asked::{Asked, BranchPoint, ConversationRef, Question, Shape, What};
use crate::dialect::given::RunInput;
use crate::dialect::reply::{Numbered, Position, Reply, StreamOptions};
use crate::dialect::{DecodeError, Dialect, Encoder, Request, RunIds, Settings};

#[derive(OpenApi)]
#[openapi(paths(chat), tags((name = "Agent Chat", description = "The native protocol: a chat turn in, events out.")))]
struct Api;

#[utoipa::path(
    post,
    path = "/v1/agent/chat",
    operation_id = "startRun",
    tag = "Agent Chat",
    summary = "Take one chat turn",
    description = "Starts a run and streams it. Everything that is refused is refused before the stream begins; after that, an `error` event tells. With `Accept: application/x-ndjson` each event is a line of JSON: `{\"id\"?, \"event\", \"data\"}`.",
    request_body = super::RequestBody<'static>,
    responses(
        (status = 200, description = "The run's events, or with `Accept: application/json` its whole answer when it has ended.", content((String = "text/event-stream"), (ref("#/components/schemas/Answer") = "application/json"))),
        (status = 202, description = "With `Accept: application/json`, of a run in the background: the run, or as much as is known of it.", body = ref("#/components/schemas/AcceptedRun")),
    ),
)]
#[expect(dead_code, reason = "has the description")]
fn chat() {}

impl From<&Settings> for AgentChat {
    fn from(settings: &Settings) -> Self {
        Self { max_message_bytes: settings.message_bytes, max_context_bytes: settings.context_bytes }
    }
}

impl Dialect for AgentChat {
    fn api(&self) -> utoipa::openapi::OpenApi {
        Api::openapi()
    }

    fn is_meant(&self, headers: &HeaderMap) -> bool {
        wanted(headers) != Wanted::Lines
    }

    fn decode(&self, request: &Request<'_>) -> Result<Asked, DecodeError> {
        let RunInput { ask, screen, conversation, parent, earlier, unlisted, options } = self.parse(request.body)?;
        let branch = parent.map_or(BranchPoint::Newest, BranchPoint::At);
        Ok(Asked {
            what: What::Answer(Question { ask, screen, branch, earlier, unlisted }),
            rule: DecisionRule::Any,
            conversation: ConversationRef::Id(conversation),
            options,
            mark: "chat".to_owned(),
            shape: Native::shape(request.headers),
            reply: Box::new(Native::to(request.headers)),
        })
    }
}

/// How requests of the native protocol are answered.
#[derive(Debug, Clone, Copy)]
pub struct Native {
    framing: Framing,
    numbered: Numbered,
}

impl Native {
    /// As the headers of a request want its answer.
    pub fn to(headers: &HeaderMap) -> Self {
        let framing = match wanted(headers) {
            Wanted::Lines => Framing::Line,
            Wanted::Events | Wanted::Json => Framing::Event,
        };
        Self { framing, numbered: Numbered::Background }
    }

    /// As the headers of whoever reads a run want its events.
    pub fn read(headers: &HeaderMap) -> Self {
        Self { numbered: Numbered::Always, ..Self::to(headers) }
    }

    /// As what the headers want their answer.
    pub fn shape(headers: &HeaderMap) -> Shape {
        match wanted(headers) {
            Wanted::Json => Shape::Record,
            Wanted::Events | Wanted::Lines => Shape::Stream,
        }
    }
}

impl Reply for Native {
    fn options(&self) -> StreamOptions {
        let media_type = match self.framing {
            Framing::Event => "text/event-stream",
            Framing::Line => "application/x-ndjson",
        };
        StreamOptions { media_type, numbered: self.numbered, silence: None }
    }

    fn encoder(&mut self, of: RunIds, _at: Position) -> Box<dyn Encoder> {
        Box::new(AgentChatEncoder { framing: self.framing, request_id: of.request })
    }
}
