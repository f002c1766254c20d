//! What clients of OpenAI's Responses ask besides (`docs/protocol/responses.md`): a response again, as an object or as its
//! stream, its end, its deletion, its input; and conversations.

mod conversations;
pub(super) mod items;
mod stored;
pub(super) mod told;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::items::{Items, ItemsPart, ItemsQuery, Part};
use super::Services;
use super::auth::Authenticated;
use super::body::Taken;
use super::problem::Problem;
use super::serve::stream;
use crate::chat::caller::Owner;
use crate::chat::ids::RunId;
use crate::chat::run::RunRecord;
use crate::dialect::DecodeError;
use crate::dialect::FieldError;
use crate::dialect::responses::{self, Responses, Telling};
use crate::runs::AttachError;

/// These routes.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(get, delete))
        .routes(routes!(cancel))
        .routes(routes!(input_items))
        .routes(routes!(input_tokens))
        .merge(conversations::routes())
}

/// A path's response, as far as the path tells.
type ResponsePath = Result<Path<String>, PathRejection>;

/// How a response is read.
#[derive(Deserialize)]
struct Reading {
    stream: Option<String>,
    starting_after: Option<String>,
}

/// 200 with the response as it stands, or with its stream from the first event on, or from behind one; 404 for another's
/// and for one that is not stored.
#[utoipa::path(
    get,
    path = "/v1/responses/{response_id}",
    operation_id = "getResponse",
    tag = "Responses",
    summary = "Read a response",
    description = "As it stands; with `stream=true` its events, the same bytes as the first time.",
    params(
        ("response_id" = String, Path, description = "The response."),
        ("stream" = Option<String>, Query, description = "`true`: as a stream.", pattern = "^(true|false)?$"),
        ("starting_after" = Option<String>, Query, description = "The number of the last event that was read.", pattern = "^[0-9]{0,19}$"),
    ),
    responses(
        (status = 200, description = "The response.", content((responses::ResponseBody<'static> = "application/json"), (String = "text/event-stream"))),
        (status = 400, description = "`invalid_request`, `cursor_invalid`: a parameter that is none."),
        (status = 404, description = "`not_found`: there is no such response, or it is another's."),
        (status = 410, description = "`cursor_evicted`: its events are not kept any more."),
        (status = 429, description = "`too_many_readers`: as many read this run as may."),
        (status = 503, description = "`events_unavailable`: not now."),
    ),
)]
async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    response: ResponsePath,
    query: Result<Query<Reading>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(Reading { stream: is_stream, starting_after }) =
        query.map_err(|_| Problem::bad_request("each parameter may be given once"))?;
    let is_stream = match is_stream.as_deref() {
        Some("true") => true,
        None | Some("" | "false") => false,
        Some(_) => return Err(field("stream", "must be true or false")),
    };
    let from = match starting_after.as_deref().filter(|text| !text.is_empty()) {
        None => 0,
        Some(text) => number(text).ok_or_else(|| Problem::cursor_invalid("starting_after must be a number from 0"))?,
    };
    let record = find(&services, &caller.owner, response).await?;
    if !is_stream {
        return stored::object(&services, &caller.owner, &record).await;
    }
    let telling = Telling::again(record.context_type.clone(), from, services.dialects.public_url.clone());
    match services.runs.attach(&caller.owner, record.id, None).await {
        Ok(attached) => Ok(stream(&services, attached, None, None, Box::new(telling))),
        Err(AttachError::Evicted) if from == 0 && !record.state.is_live() => {
            stored::replay(&services, &caller.owner, &record, telling).await
        }
        Err(error) => Err(error.into()),
    }
}

/// 200 with the response as it is after that; one that has ended stays as it is.
#[utoipa::path(
    post,
    path = "/v1/responses/{response_id}/cancel",
    operation_id = "cancelResponse",
    tag = "Responses",
    summary = "Cancel a response",
    description = "Idempotent; one that has ended stays as it is.",
    params(
        ("response_id" = String, Path, description = "The response."),
    ),
    responses(
        (status = 200, description = "The response as it is then.", body = responses::ResponseBody<'static>),
        (status = 404, description = "`not_found`: there is no such response, or it is another's."),
    ),
)]
async fn cancel(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    response: ResponsePath,
) -> Result<Response, Problem> {
    let run = id(response)?;
    let record = services.runs.cancel(&caller.owner, run).await?.ok_or_else(no_such_response)?;
    stored::object(&services, &caller.owner, &record).await
}

/// What was deleted.
#[derive(Serialize, ToSchema)]
#[schema(as = OpenAiDeleted)]
struct DeletedBody {
    id: String,
    object: &'static str,
    deleted: bool,
}

/// 200 when the response is gone with its conversation; 400 where that has others.
#[utoipa::path(
    delete,
    path = "/v1/responses/{response_id}",
    operation_id = "deleteResponse",
    tag = "Responses",
    summary = "Delete a response",
    description = "With its conversation, of which it must be the only one: one of several goes with `DELETE /v1/conversations/{conversation}`.",
    params(
        ("response_id" = String, Path, description = "The response."),
    ),
    responses(
        (status = 200, description = "It is gone.", body = DeletedBody),
        (status = 400, description = "`invalid_request`: its conversation has other responses."),
        (status = 404, description = "`not_found`: there is no such response, or it is another's."),
    ),
)]
async fn delete(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    response: ResponsePath,
) -> Result<Json<DeletedBody>, Problem> {
    let record = find(&services, &caller.owner, response).await?;
    if !items::is_only_run(&services, &caller.owner, &record).await? {
        let conversation = responses::conversation_id(&record.conversation);
        return Err(Problem::bad_request(format!(
            "other responses go on from this one: delete their conversation, {conversation}"
        )));
    }
    conversations::remove(&services, &caller.owner, &record.conversation).await?;
    Ok(Json(DeletedBody { id: responses::response_id(record.id, true), object: "response", deleted: true }))
}

/// 200 with what a response answers.
#[utoipa::path(
    get,
    path = "/v1/responses/{response_id}/input_items",
    operation_id = "listResponseInput",
    tag = "Responses",
    summary = "Read what a response answers",
    description = "The user's message; none where it goes on with something else.",
    params(
        ("response_id" = String, Path, description = "The response."),
        Part,
    ),
    responses(
        (status = 200, description = "The items.", body = Items),
        (status = 400, description = "`invalid_request`: a parameter that is none."),
        (status = 404, description = "`not_found`: there is no such response, or it is another's."),
    ),
)]
async fn input_items(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    response: ResponsePath,
    query: ItemsQuery,
) -> Result<Response, Problem> {
    let part = ItemsPart::read(query)?;
    let record = find(&services, &caller.owner, response).await?;
    let messages = items::of_run(&services, &caller.owner, &record).await?;
    part.of(items::questions(&messages))
}

/// An estimate.
#[derive(Serialize, ToSchema)]
#[schema(as = ResponseInputTokens)]
struct TokensBody {
    object: &'static str,
    input_tokens: usize,
}

/// 200 with about how many tokens a request has.
#[utoipa::path(
    post,
    path = "/v1/responses/input_tokens",
    operation_id = "countResponseInput",
    tag = "Responses",
    summary = "Estimate a request's tokens",
    description = "One for four bytes of what the client sends. What the profile and the conversation add is not counted.",
    request_body = responses::Body<'static>,
    responses(
        (status = 200, description = "The estimate.", body = TokensBody),
        (status = 400, description = "`malformed_json`, `invalid_request`: what is wrong."),
    ),
)]
async fn input_tokens(
    State(services): State<Services>,
    Authenticated(_): Authenticated,
    body: Taken,
) -> Result<Json<TokensBody>, Problem> {
    let input_tokens = services.intake.work(body.len(), move || Responses::estimate(&body)).await?;
    Ok(Json(TokensBody { object: "response.input_tokens", input_tokens }))
}

/// The caller's run of that response.
async fn find(services: &Services, owner: &Owner, response: ResponsePath) -> Result<RunRecord, Problem> {
    services.runs.find(owner, id(response)?).await?.ok_or_else(no_such_response)
}

fn id(response: ResponsePath) -> Result<RunId, Problem> {
    response.ok().and_then(|Path(id)| responses::run_of(&id)).ok_or_else(no_such_response)
}

fn no_such_response() -> Problem {
    Problem::not_found("there is no such response")
}

/// A mistake of one parameter.
fn field(field: &'static str, reason: &str) -> Problem {
    DecodeError::Fields(vec![FieldError { field, reason: reason.to_owned() }]).into()
}

/// The number behind that one.
fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().and_then(|after: u64| after.checked_add(1))
}
