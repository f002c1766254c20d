//! This protocol among all others: its route, and how its requests are answered.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use utoipa::OpenApi;

use super::encoder::{self, ResponseEncoder};
use super::request::{self, Read};
use super::{About, Answer, Responses};
use crate::dialect::asked::{Asked, Shape};
use crate::dialect::openai_chat::no_such_model;
use crate::dialect::repeats::Repeats;
use crate::dialect::reply::{Document, Position, Refusal, RefusalReason, RefusalResponse, Reply};
use crate::dialect::{DecodeError, Dialect, Encoder, FieldError, Request, RunIds, Settings, instructions};

#[derive(OpenApi)]
#[openapi(
    paths(create),
    tags((name = "Responses", description = "Responses; a profile is a model, and a run a response. An error's body is `{\"error\"}`.",
        external_docs(url = "https://platform.openai.com/docs/api-reference/responses", description = "The protocol")))
)]
struct Api;

#[utoipa::path(
    post,
    path = "/v1/responses",
    operation_id = "createResponse",
    tag = "Responses",
    summary = "Answer",
    description = "Starts a run and answers with its stream, with the whole of it, or, in the background, at once.",
    request_body = super::Body<'static>,
    responses(
        (status = 200, description = "With `stream`, named events that are numbered from 0 on; else the response.", content((String = "text/event-stream"), (super::ResponseBody<'static> = "application/json"))),
        (status = 400, description = "`malformed_json`, `invalid_request`, `body_unreadable`, `no_such_call`, `previous_response_not_found`, `context_too_long`: what is wrong."),
        (status = 404, description = "`model_not_found`, `not_found`: there is no such model, conversation or approval."),
        (status = 429, description = "`provider_rate_limited`, `provider_quota_exceeded`: the model service has too much to do."),
        (status = 500, description = "`internal`, and whatever bound the run met."),
        (status = 502, description = "The model service failed."),
        (status = 504, description = "`run_timeout`, `provider_timeout`: it took too long."),
    ),
)]
#[expect(dead_code, reason = "has the description")]
fn create() {}

impl From<&Settings> for Responses {
    fn from(settings: &Settings) -> Self {
        Self { limits: settings.into(), public_url: settings.public_url.clone() }
    }
}

impl Dialect for Responses {
    fn api(&self) -> utoipa::openapi::OpenApi {
        Api::openapi()
    }

    fn decode(&self, request: &Request<'_>) -> Result<Asked, DecodeError> {
        let Read { model, instructions, what, rule, conversation, mut options, is_stream, is_stored, is_background } =
            request::read(&self.limits, request.body)?;
        let choices = request.assistants.choices(&model).ok_or_else(|| no_such_model(&model))?;
        options.instructions =
            instructions::taken(&instructions, Some(choices), ("instructions", self.limits.max_message_bytes))?;
        choices.bound(&mut options.model);
        let in_form = options.answer_format.is_some();
        options.background = match request.headers.contains_key("idempotency-key") {
            // Its client will ask for it again when the connection is lost.
            true => Some(true),
            false if is_background => Some(true),
            // No reader could come back to one that has no name.
            false => (!is_stored).then_some(false),
        };
        Ok(Asked {
            what,
            rule,
            conversation,
            options,
            mark: "responses".to_owned(),
            shape: match (is_stream, is_background) {
                (true, _) => Shape::Stream,
                (false, true) => Shape::Record,
                (false, false) => Shape::Document,
            },
            reply: Box::new(Telling { model, is_stored, in_form, from: 0, public_url: self.public_url.clone() }),
        })
    }

    fn repeats(&self, headers: &HeaderMap) -> Repeats {
        Repeats::of_openai(headers)
    }
}

/// How a run is sent to the client that asks for it.
#[derive(Debug, Clone)]
pub struct Telling {
    model: String,
    is_stored: bool,
    /// Whether the request asks for a form.
    in_form: bool,
    from: u64,
    public_url: Arc<str>,
}

impl Telling {
    /// Of a response by that model which is read again, from the event with the number `from` on, of a server at that address.
    pub fn again(model: String, from: u64, public_url: Arc<str>) -> Self {
        Self { model, is_stored: true, in_form: false, from, public_url }
    }

    fn about(&self, of: &RunIds) -> About {
        About::new(of, &*self.model, self.is_stored, self.public_url.clone()).in_form(self.in_form)
    }
}

impl Reply for Telling {
    fn encoder(&mut self, of: RunIds, _at: Position) -> Box<dyn Encoder> {
        Box::new(ResponseEncoder::new(self.about(&of), &of, self.from))
    }

    fn document(&mut self, of: RunIds) -> Option<Box<dyn Document>> {
        Some(Box::new(Answer::new(self.about(&of), &of)))
    }

    fn begun(&mut self, of: &RunIds) -> Option<Vec<u8>> {
        // Texts and numbers always serialise.
        Some(serde_json::to_vec(&self.about(of).queued()).unwrap_or_default())
    }

    /// A response is one run: of several that one request asks for, the last.
    fn shows_last_only(&self) -> bool {
        true
    }

    fn refused(&mut self, refusal: &Refusal<'_>) -> RefusalResponse {
        match refusal.why {
            RefusalReason::NoSuchRun | RefusalReason::NoSuchMessage => {
                RefusalResponse::Mistake(DecodeError::NoSuchResponse)
            }
            RefusalReason::AlreadyDecided | RefusalReason::NothingLeft | RefusalReason::Expired => {
                let reason = format!("has a decision that cannot be taken: {}", refusal.message);
                RefusalResponse::Mistake(DecodeError::Fields(vec![FieldError { field: "input", reason }]))
            }
            _ => RefusalResponse::AsUsual,
        }
    }

    fn broken_off(&mut self, refusal: &Refusal<'_>) -> Bytes {
        encoder::broken_off(&refusal.message)
    }
}
