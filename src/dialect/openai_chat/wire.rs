//! OpenAI's protocol among all others: its route, and how its requests are answered.

use bytes::Bytes;
use http::HeaderMap;
use utoipa::OpenApi;

use super::{Answer, Key, OpenAiChat, Read, Telling, encoder, request};
use crate::chat::approval::DecisionRule;
use crate::chat::ids::ConversationId;
use crate::dialect::asked::{Asked, BranchPoint, ConversationRef, Question, Shape, What};
use crate::dialect::given::{Ask, RunInput};
use crate::dialect::repeats::Repeats;
use crate::dialect::reply::{Document, Position, Refusal, Reply};
use crate::dialect::told::Unawaited;
use crate::dialect::{DecodeError, Dialect, Encoder, Request, RunIds, Settings, instructions};

/// The longest part of a model's id that is sent back, in characters.
const MODEL_CHARS: usize = 100;

#[derive(OpenApi)]
#[openapi(
    paths(chat),
    tags((name = "OpenAI", description = "Chat Completions; a profile is a model. An error's body is `{\"error\"}`.",
        external_docs(url = "https://platform.openai.com/docs/api-reference/chat", description = "The protocol")))
)]
struct Api;

#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    operation_id = "chatCompletions",
    tag = "OpenAI",
    summary = "Answer a conversation",
    description = "Starts a run and answers with its stream, or with the whole of it.",
    params(
        ("X-Conversation-Id" = Option<String>, Header, description = "The conversation to continue or begin; else `metadata.conversation_id`."),
        ("Prefer" = Option<String>, Header, description = "`handling=strict` refuses a request that asks for something that is not done here; else `X-Switchboard-Ignored` names it."),
    ),
    request_body = super::RequestBody<'static>,
    responses(
        (status = 200, description = "With `stream`, chunks in nameless frames and `[DONE]` at the end; else the completion.", content((String = "text/event-stream"), (super::Completion<'static> = "application/json"))),
        (status = 400, description = "`malformed_json`, `invalid_request`, `body_unreadable`, `no_such_call`, `context_too_long`: what is wrong."),
        (status = 404, description = "`model_not_found`, `not_found`: there is no such model."),
        (status = 429, description = "`provider_rate_limited`, `provider_quota_exceeded`: the model service has too much to do."),
        (status = 500, description = "`internal`, and whatever bound the run met."),
        (status = 502, description = "The model service failed."),
        (status = 504, description = "`run_timeout`, `provider_timeout`: it took too long."),
    ),
)]
#[expect(dead_code, reason = "has the description")]
fn chat() {}

impl From<&Settings> for OpenAiChat {
    fn from(settings: &Settings) -> Self {
        Self(settings.into())
    }
}

impl Dialect for OpenAiChat {
    fn repeats(&self, headers: &HeaderMap) -> Repeats {
        Repeats::of_openai(headers)
    }

    fn is_retold(&self) -> bool {
        true
    }

    fn api(&self) -> utoipa::openapi::OpenApi {
        Api::openapi()
    }

    fn decode(&self, request: &Request<'_>) -> Result<Asked, DecodeError> {
        let believes = |model: &str| request.believes(model);
        let results = Unawaited { all: request.unawaited, believes: &believes };
        let Read { results, input, model, is_keyed, stream, include_usage, instructions, mut ignored } =
            request::read(&self.0, request.body, key(request.headers)?, results)?;
        let choices = request.assistants.choices(&model).ok_or_else(|| no_such_model(&model))?;
        let RunInput { ask, screen, conversation, parent, earlier, unlisted, mut options } = input;
        options.instructions =
            instructions::taken(&instructions, Some(choices), ("messages", self.0.max_message_bytes))?;
        ignored.add_if(!instructions.is_empty() && options.instructions.is_none(), "system");
        let wish = &options.model;
        ignored.add_if(wish.temperature.is_some() && !choices.temperature, "temperature");
        ignored.add_if(wish.effort.is_some() && !choices.effort, "reasoning_effort");
        ignored.add_if(wish.max_tokens.is_some() && !choices.max_tokens, "max_tokens");
        ignored.settle(request.headers)?;
        choices.bound(&mut options.model);
        let in_form = options.answer_format.is_some();
        options.background = match request.headers.contains_key("idempotency-key") {
            // Its client will ask for it again when the connection is lost.
            true => Some(true),
            // No reader could come back to it where it has no name.
            false => (!is_keyed).then_some(false),
        };
        let named = conversation.as_ref().map(ConversationId::as_str).unwrap_or_default();
        let mark = format!("openai-chat {named}");
        let branch = parent.map_or(BranchPoint::Newest, BranchPoint::At);
        let question = Question { ask, screen, branch, earlier, unlisted };
        let what = match results.is_empty() {
            true => What::Answer(question),
            false => {
                let first = Question { unlisted, ..Question::new(Ask::Results(results), question.screen.clone()) };
                What::Both(Box::new(first), Box::new(question))
            }
        };
        Ok(Asked {
            what,
            rule: DecisionRule::Any,
            conversation: ConversationRef::Id(conversation),
            options,
            mark,
            shape: if stream { Shape::Stream } else { Shape::Document },
            reply: Box::new(Telling {
                model,
                is_keyed,
                include_usage,
                ignored,
                in_form,
                public_url: request.public_url.clone(),
            }),
        })
    }
}

/// No such model, or not for the caller.
pub fn no_such_model(model: &str) -> DecodeError {
    DecodeError::NoSuchModel(model.chars().take(MODEL_CHARS).collect())
}

impl Reply for Telling {
    fn headers(&self, _of: &RunIds) -> Vec<(&'static str, String)> {
        self.ignored.header().into_iter().collect()
    }

    fn encoder(&mut self, of: RunIds, _at: Position) -> Box<dyn Encoder> {
        Box::new(encoder::ChunkEncoder::new(&of, self.clone()))
    }

    fn document(&mut self, of: RunIds) -> Option<Box<dyn Document>> {
        Some(Box::new(Answer::new(&of, self.clone())))
    }

    fn broken_off(&mut self, refusal: &Refusal<'_>) -> Bytes {
        encoder::broken_off(&refusal.message)
    }
}

/// The prefixes of Open WebUI's ids that are no chats of one user: a chat that is not kept has the id of a connection,
/// and a channel belongs to many.
const NO_CHATS: [&str; 2] = ["local:", "channel:"];

/// The conversation that the headers name.
///
/// # Errors
/// When that is no id, or there are two.
fn key(headers: &HeaderMap) -> Result<Key, DecodeError> {
    let named = |name: &'static str| {
        let mut values = headers.get_all(name).iter().filter(|value| !value.is_empty());
        let (Some(value), next) = (values.next(), values.next()) else { return Ok(None) };
        let id = value.to_str().ok().filter(|_| next.is_none()).map(ConversationId::parse);
        match id {
            Some(Ok(id)) => Ok(Some(id)),
            Some(Err(error)) => Err(DecodeError::Request(format!("{name} {error}"))),
            None => Err(DecodeError::Request(format!("{name} must be given once, as printable ASCII"))),
        }
    };
    if let Some(id) = named("x-conversation-id")? {
        return Ok(Key::Conversation(id));
    }
    let chat = named("x-openwebui-chat-id")?;
    let chat = chat.filter(|id| !NO_CHATS.iter().any(|begin| id.as_str().starts_with(begin)));
    let Some(chat) = chat else { return Ok(Key::None) };
    // Where its connection says for what each request is, that counts, and nothing has to be guessed of the text.
    Ok(match headers.get("x-openwebui-task") {
        None => Key::Chat(chat),
        Some(task) if task.is_empty() => Key::Conversation(chat),
        Some(_) => Key::None,
    })
}
