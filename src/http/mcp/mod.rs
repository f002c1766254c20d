//! The Model Context Protocol (`docs/protocol/mcp.md`): its one route, on which messages of all kinds come, and the document that
//! tells clients who gives them tokens.
//!
//! **Invariant:** nothing is kept of a client between two messages, so that any replica answers the next one. The name that it
//! gets with an `initialize` is found nowhere here: what is being answered can be called off by it, where it is.

mod call;
mod made;
mod open;
mod resource;
mod tasks;
mod tools;

use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::body::{Body, HttpBody as _};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use self::open::{Name, SESSION};
use self::resource::Client;
use super::Services;
use super::body::Taken;
use super::problem::Problem;
use super::request_id::RequestId;
use super::serve::{self, Offered, carry_out};
use crate::chat::caller::Caller;
use crate::chat::ids::RunId;
use crate::dialect::asked::{Asked, Assistants};
use crate::dialect::mcp::{self, DiscoverBody, Era, Id, Incoming, InitializeBody, Refused, Request, RpcError};
use crate::runs;

pub use resource::ProtectedResource;

/// These routes.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(post))
        .routes(routes!(post_to))
        .routes(routes!(resource::of_server))
        .routes(routes!(resource::of_all))
        .routes(routes!(resource::of_one))
}

/// A message of JSON-RPC.
#[derive(ToSchema)]
#[schema(as = McpMessage)]
#[expect(dead_code, reason = "describes bodies")]
pub(super) struct MessageBody {
    /// `2.0`.
    #[schema(example = "2.0")]
    jsonrpc: String,
    /// A text or a whole number; none of a notification.
    #[schema(required = false)]
    id: Option<Value>,
    #[schema(example = "tools/list")]
    method: String,
    #[schema(required = false)]
    params: Option<Value>,
}

/// An answer of JSON-RPC: a result or an error.
#[derive(ToSchema)]
#[schema(as = McpAnswer)]
#[expect(dead_code, reason = "describes bodies")]
pub(super) struct AnswerBody {
    /// `2.0`.
    #[schema(example = "2.0")]
    jsonrpc: String,
    /// The request's; null where that could not be read.
    id: Option<Value>,
    #[schema(required = false)]
    result: Option<Value>,
    #[schema(required = false)]
    error: Option<Value>,
}

/// 200 with a result, or with a stream that ends with it.
#[utoipa::path(
    post,
    path = "/mcp",
    operation_id = "mcp",
    tag = "MCP",
    summary = "Send a message",
    description = "`server/discover`, `initialize`, `ping`, `tools/list`, `tools/call`, `tasks/get`, `tasks/update`, `tasks/cancel`, and notifications. The tools are all that the caller may use.",
    request_body = MessageBody,
    responses(
        (status = 200, description = "A result or an error of JSON-RPC; of a call that is told as it goes, notices of its progress and then its result.", content((AnswerBody = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "A notification was taken."),
        (status = 400, description = "`malformed_json`, `json_too_deep`: what is wrong with the message; by JSON-RPC -32700, -32600, -32602, -32020, -32021 or -32022."),
        (status = 403, description = "`forbidden`, `tenant_required`: a page of that origin may not send this; the token names no tenant."),
        (status = 404, description = "-32601: there is no such method."),
    ),
)]
async fn post(
    State(services): State<Services>,
    Extension(request_id): Extension<RequestId>,
    Client(caller): Client,
    uri: Uri,
    headers: HeaderMap,
    body: Taken,
) -> Result<Response, Problem> {
    answer(serve::Call { services, caller, request_id, path: None, uri, headers, body }).await
}

/// The same with the tools of one profile.
#[utoipa::path(
    post,
    path = "/mcp/{profile}",
    operation_id = "mcpOfProfile",
    tag = "MCP",
    summary = "Send a message about one profile",
    description = "As `POST /mcp`, with the tools of one profile alone.",
    params(
        ("profile" = String, Path, description = "A profile's `context_type`."),
    ),
    request_body = MessageBody,
    responses(
        (status = 200, description = "A result or an error of JSON-RPC; of a call that is told as it goes, notices of its progress and then its result.", content((AnswerBody = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "A notification was taken."),
        (status = 400, description = "`malformed_json`, `json_too_deep`: what is wrong with the message; by JSON-RPC -32700, -32600, -32602, -32020, -32021 or -32022."),
        (status = 403, description = "`forbidden`, `tenant_required`: a page of that origin may not send this; the token names no tenant."),
        (status = 404, description = "`not_found`: there is no such profile for the caller; by JSON-RPC -32601, there is no such method."),
    ),
)]
async fn post_to(
    State(services): State<Services>,
    Extension(request_id): Extension<RequestId>,
    Client(caller): Client,
    profile: Result<Path<String>, PathRejection>,
    uri: Uri,
    headers: HeaderMap,
    body: Taken,
) -> Result<Response, Problem> {
    let no_profile = || Problem::not_found("there is no such profile");
    let Path(profile) = profile.map_err(|_| no_profile())?;
    if !(Offered { runs: &services.runs, caller: &caller }).offered().contains(&profile.as_str()) {
        return Err(no_profile());
    }
    answer(serve::Call { services, caller, request_id, path: Some(profile), uri, headers, body }).await
}

/// A message as it was read.
enum Read {
    /// One that wants no result. The request that it calls off, where it does that.
    Notification(Option<Name>),
    Request(Box<Heard>),
}

/// A request as it was read.
struct Heard {
    id: Id,
    client: mcp::Client,
    asks: Asks,
    /// As a run needs it, where the request asks for one.
    request: Result<runs::Request, Problem>,
    request_id: RequestId,
    headers: HeaderMap,
    body: Taken,
}

/// What a request asks for.
enum Asks {
    /// What is known already.
    Known(Vec<u8>),
    /// A name for its client, beside what is known.
    Name(Vec<u8>),
    Call(call::Call),
    Task(tasks::Asked),
}

/// What a call comes to.
enum Done {
    /// This answer.
    Answer(Vec<u8>),
    /// A run, told so, unless it is called off.
    Begins(Box<(Asked, mcp::Telling, CancellationToken)>),
}

/// Why a request comes to nothing.
enum Told {
    Rpc(RpcError),
    Problem(Box<Problem>),
}

impl From<RpcError> for Told {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

impl<E: Into<Problem>> From<E> for Told {
    fn from(error: E) -> Self {
        Self::Problem(Box::new(error.into()))
    }
}

/// The answer to a message.
async fn answer(call: serve::Call) -> Result<Response, Problem> {
    let (services, caller) = (call.services.clone(), call.caller.clone());
    let heard = match services.intake.work(call.body.len(), move || read(call)).await {
        Ok(Read::Request(heard)) => heard,
        Ok(Read::Notification(called_off)) => {
            if let Some(run) = called_off.and_then(|name| services.mcp.open.call_off(name)) {
                services.runs.cancel(&caller.owner, run).await?;
            }
            return Ok(StatusCode::ACCEPTED.into_response());
        }
        Err(Refused { id, era, error }) => return Ok(refused(id.as_ref(), era, &error)),
    };
    let (id, era) = (heard.id.clone(), heard.client.era);
    match carried_out(services, caller, *heard).await {
        Ok(response) => Ok(response),
        Err(Told::Rpc(error)) => Ok(refused(Some(&id), era, &error)),
        Err(Told::Problem(problem)) => Err(problem.answering(&id)),
    }
}

/// Reads a message, with all that is in it: off the workers where it is large.
fn read(call: serve::Call) -> Result<Read, Refused> {
    let serve::Call { services, caller, request_id, path, headers, body, .. } = call;
    let (id, client, asks) = match mcp::read(&body, &headers)? {
        Incoming::Notification(called_off) => {
            return Ok(Read::Notification(called_off.and_then(|id| Name::new(&caller.owner, &id, &headers))));
        }
        Incoming::Request(request) => match asks((&services, &caller), path.as_deref(), &request) {
            Ok(asks) => (request.id, request.client, asks),
            Err(error) => return Err(Refused { id: Some(request.id), era: request.client.era, error }),
        },
    };
    let request = serve::request(request_id.clone(), &headers, mcp::MARK, &body);
    Ok(Read::Request(Box::new(Heard { id, client, asks, request, request_id, headers, body })))
}

/// The answer to a request.
async fn carried_out(services: Services, caller: Caller, heard: Heard) -> Result<Response, Told> {
    let Heard { id, client, asks, request, request_id, headers, body } = heard;
    let done = match asks {
        Asks::Known(json) => Done::Answer(json),
        Asks::Name(json) => return Ok(([(SESSION, Uuid::new_v4().to_string())], whole(json)).into_response()),
        Asks::Task(asked) => {
            Done::Answer(tasks::answer((&services, &caller, &request_id), asked, (&id, &client), &headers).await?)
        }
        Asks::Call(call) => call::prepare((&services, &caller), call, (id, client), &headers).await?,
    };
    let (asked, telling, off) = match done {
        Done::Answer(json) => return Ok(whole(json)),
        Done::Begins(begins) => *begins,
    };
    let begins = async { carry_out((services, caller), asked, request?, (None, Some(body))).await };
    let begun = tokio::select! {
        biased;
        () = off.cancelled() => None,
        // Who has called it off while it began found no run to cancel: letting go of the answer ends it.
        begun = begins => Some(begun).filter(|_| !off.is_cancelled()),
    };
    match begun {
        None => Ok(whole(telling.refused("the call was called off"))),
        Some(Ok(response)) => Ok(ended_by(off, telling.open.unwrap_or_default(), response)),
        // The model of the client reads what it may do better; the rest is for the client itself.
        Some(Err(problem)) => match problem.of_what_was_asked() {
            Some(words) => Ok(whole(telling.refused(words))),
            None => Err(problem.into()),
        },
    }
}

/// The same answer, which ends when its call is called off while it has no run yet: others go on before that.
fn ended_by(off: CancellationToken, run: Arc<OnceLock<RunId>>, response: Response) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let is_off = async move {
        off.cancelled().await;
        if run.get().is_some() {
            std::future::pending::<()>().await;
        }
    };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(is_off)))
}

fn asks((services, caller): Asker<'_>, only: Option<&str>, request: &Request<'_>) -> Result<Asks, RpcError> {
    let (id, client) = (&request.id, &request.client);
    Ok(match (request.method.as_str(), client.era) {
        ("initialize", Era::Legacy) => Asks::Name(mcp::result(id, &InitializeBody::to(&version_of(request)?))),
        ("ping", Era::Legacy) => Asks::Known(mcp::result(id, &mcp::complete(Era::Legacy))),
        ("server/discover", Era::Modern) => Asks::Known(mcp::result(id, &DiscoverBody::default())),
        ("tools/list", era) => {
            no_cursor(request)?;
            Asks::Known(tools::list(services, caller, only, (id, era)))
        }
        ("tools/call", _) => Asks::Call(call::read((services, caller), only, request.params)?),
        ("tasks/get" | "tasks/update" | "tasks/cancel", Era::Modern) if !client.tasks => {
            return Err(RpcError::NeedsTasks);
        }
        (method @ ("tasks/get" | "tasks/update" | "tasks/cancel"), Era::Modern) => {
            Asks::Task(tasks::Asked::read(method, request.params)?)
        }
        (method, _) => return Err(RpcError::NoSuchMethod(method.chars().take(100).collect())),
    })
}

/// The revision that an `initialize` asks for.
fn version_of(request: &Request<'_>) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "protocolVersion")]
        version: String,
    }
    let params = request.params.and_then(|raw| crate::bounded::json::parse::<Params>(raw.get()).ok());
    let params = params.ok_or_else(|| RpcError::Params("params.protocolVersion must be a revision".to_owned()))?;
    Ok(params.version)
}

/// All tools are in one part.
fn no_cursor(request: &Request<'_>) -> Result<(), RpcError> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        cursor: Option<&'a serde_json::value::RawValue>,
    }
    let params = request.params.and_then(|raw| crate::bounded::json::parse::<Params<'_>>(raw.get()).ok());
    match params.and_then(|params| params.cursor) {
        None => Ok(()),
        Some(_) => Err(RpcError::Params("params.cursor is not one that this list gave".to_owned())),
    }
}

fn whole(json: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], json).into_response()
}

/// The answer with an error of the protocol.
fn refused(id: Option<&Id>, era: Era, error: &RpcError) -> Response {
    let status = match (error, era) {
        (RpcError::NoSuchMethod(_), Era::Modern) => StatusCode::NOT_FOUND,
        // Clients with an `initialize` take another status for an error of the connection.
        (RpcError::NoSuchMethod(_), Era::Legacy) | (RpcError::Params(_), _) => StatusCode::OK,
        _ => StatusCode::BAD_REQUEST,
    };
    (status, whole(mcp::error(id, error))).into_response()
}

/// Who calls, of which protocol.
type Asker<'a> = (&'a Services, &'a Caller);
