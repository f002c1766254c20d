//! This protocol among all others: its route, and how its requests are answered.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use utoipa::OpenApi;

use super::Messages;
use super::answer::Answer;
use super::blocks::Shows;
use super::encoder::MessageEncoder;
use super::message::About;
use super::request::{self, Read};
use crate::chat::approval::DecisionRule;
use crate::dialect::asked::{Asked, ConversationRef, Shape, What};
use crate::dialect::ignored::Ignored;
use crate::dialect::openai_chat::no_such_model;
use crate::dialect::repeats::Repeats;
use crate::dialect::reply::{Document, Position, Reply};
use crate::dialect::told::Unawaited;
use crate::dialect::{DecodeError, Dialect, Encoder, Request, RunIds, Settings, instructions};

/// The header with which a client names what it goes on with: in one, no request is made twice.
const SESSION: &str = "x-claude-code-session-id";

/// The longest name of one that counts, in bytes.
const SESSION_BYTES: usize = 128;

#[derive(OpenApi)]
#[openapi(
    paths(create),
    tags((name = "Messages", description = "Messages; a profile is a model. An error's body is `{\"type\": \"error\", \"error\", \"request_id\"}`.",
        external_docs(url = "https://platform.claude.com/docs/en/api/messages", description = "The protocol")))
)]
struct Api;

#[utoipa::path(
    post,
    path = "/v1/messages",
    operation_id = "createMessage",
    tag = "Messages",
    summary = "Answer a conversation",
    description = "Starts a run and answers with its stream, or with the whole of it.",
    params(
        ("X-Api-Key" = Option<String>, Header, description = "A token, where there is no `Authorization`."),
        ("X-Claude-Code-Session-Id" = Option<String>, Header, description = "What the client goes on with: in one, the same messages within two minutes are one request."),
        ("Prefer" = Option<String>, Header, description = "`handling=strict` refuses a request that asks for something that is not done here; else `X-Switchboard-Ignored` names it."),
    ),
    request_body = super::Body<'static>,
    responses(
        (status = 200, description = "With `stream`, named events; else the message.", content((String = "text/event-stream"), (super::MessageBody<'static> = "application/json"))),
        (status = 400, description = "`malformed_json`, `invalid_request`, `body_unreadable`, `no_such_call`, `context_too_long`: what is wrong."),
        (status = 404, description = "`not_found`: there is no such model."),
        (status = 429, description = "`provider_rate_limited`, `provider_quota_exceeded`: the model service has too much to do."),
        (status = 500, description = "`internal`, and whatever bound the run met."),
        (status = 502, description = "The model service failed."),
        (status = 504, description = "`run_timeout`, `provider_timeout`: it took too long."),
    ),
)]
#[expect(dead_code, reason = "has the description")]
fn create() {}

impl From<&Settings> for Messages {
    fn from(settings: &Settings) -> Self {
        Self(settings.into())
    }
}

impl Dialect for Messages {
    fn api(&self) -> utoipa::openapi::OpenApi {
        Api::openapi()
    }

    fn decode(&self, request: &Request<'_>) -> Result<Asked, DecodeError> {
        let believes = |model: &str| request.believes(model);
        let results = Unawaited { all: request.unawaited, believes: &believes };
        let Read { model, instructions, question, conversation, mut options, is_stream, wants_thinking, mut ignored } =
            request::read(&self.0, request.body, results)?;
        let choices = request.assistants.choices(&model).ok_or_else(|| no_such_model(&model))?;
        options.instructions = instructions::taken(&instructions, Some(choices), ("system", self.0.max_message_bytes))?;
        let wish = &options.model;
        ignored.add_if(!instructions.is_empty() && options.instructions.is_none(), "system");
        ignored.add_if(wish.temperature.is_some() && !choices.temperature, "temperature");
        ignored.add_if(wish.effort.is_some() && !choices.effort, "thinking");
        ignored.add_if(wish.max_tokens.is_some() && !choices.max_tokens, "max_tokens");
        ignored.settle(request.headers)?;
        choices.bound(&mut options.model);
        let in_form = options.answer_format.is_some();
        // No reader could come back to one that has no name; with a key, its client asks for it again when the connection is lost.
        options.background = Some(request.headers.contains_key("idempotency-key"));
        Ok(Asked {
            what: What::Answer(question),
            rule: DecisionRule::Any,
            conversation: ConversationRef::Id(conversation),
            options,
            mark: format!("messages {}", session(request.headers).unwrap_or_default()),
            shape: if is_stream { Shape::Stream } else { Shape::Document },
            reply: Box::new(Telling {
                model,
                wants_thinking,
                ignored,
                in_form,
                public_url: request.public_url.clone(),
            }),
        })
    }

    fn repeats(&self, headers: &HeaderMap) -> Repeats {
        match session(headers) {
            Some(_) => Repeats::Maybe,
            None => Repeats::of_openai(headers),
        }
    }

    fn is_retold(&self) -> bool {
        true
    }

    /// Whoever asks again within a session may do so in the other shape, and with other bounds.
    fn repeated<'a>(&self, headers: &HeaderMap, body: &'a [u8]) -> Cow<'a, [u8]> {
        match session(headers) {
            Some(_) => request::repeated(body),
            None => Cow::Borrowed(body),
        }
    }
}

/// What the client goes on with, where it says so.
fn session(headers: &HeaderMap) -> Option<&str> {
    let named = headers.get(SESSION)?.to_str().ok()?;
    Some(named).filter(|named| (1..=SESSION_BYTES).contains(&named.len()))
}

/// How a run is sent to the client that asks for it.
#[derive(Debug, Clone)]
struct Telling {
    model: String,
    wants_thinking: bool,
    ignored: Ignored,
    in_form: bool,
    public_url: Arc<str>,
}

impl Telling {
    fn about(&self, of: &RunIds) -> About {
        About::new(of.run, &self.model)
    }

    fn shows(&self) -> Shows {
        Shows { thinking: self.wants_thinking, in_form: self.in_form, public_url: self.public_url.clone() }
    }
}

impl Reply for Telling {
    fn headers(&self, _of: &RunIds) -> Vec<(&'static str, String)> {
        self.ignored.header().into_iter().collect()
    }

    fn encoder(&mut self, of: RunIds, _at: Position) -> Box<dyn Encoder> {
        Box::new(MessageEncoder::new(&of, self.about(&of), self.shows()))
    }

    fn document(&mut self, of: RunIds) -> Option<Box<dyn Document>> {
        Some(Box::new(Answer::new(&of, self.about(&of), self.shows())))
    }
}
