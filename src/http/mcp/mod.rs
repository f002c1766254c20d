//! The Model Context Protocol (`docs/protocol/mcp.md`): its one route, on which messages of all kinds come, and the document that
//! tells clients who gives them tokens.
//!
//! **Invariant:** nothing is kept of a client between two messages, so that any replica answers the next one. What is being
//! answered can be called off where it is.

mod call;
mod made;
mod open;
mod resource;
mod tasks;
mod tools;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::call::Prepared;
use self::open::Name;
use self::resource::Client;
use super::Services;
use super::body::Taken;
use super::problem::Problem;
use super::request_id::RequestId;
use super::serve::{self, Offered, carry_out};
use crate::chat::caller::Caller;
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
    /// One that calls off the request of that name, or nothing.
    Notification(Option<Name>),
    Refused(Option<Id>, Era, RpcError),
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
    Call(call::Call),
    Task(tasks::Asked),
}

/// The answer to a message.
async fn answer(call: serve::Call) -> Result<Response, Problem> {
    let (services, caller) = (call.services.clone(), call.caller.clone());
    let heard = match services.intake.work(call.body.len(), move || read(call)).await {
        Read::Request(heard) => *heard,
        Read::Refused(id, era, error) => return Ok(refused(id.as_ref(), era, &error)),
        Read::Notification(called_off) => {
            if let Some(name) = called_off
                && let Some(run) = services.mcp.open.run_of(&name)
            {
                services.runs.cancel(&caller.owner, run).await?;
            }
            return Ok(StatusCode::ACCEPTED.into_response());
        }
    };
    let Heard { id, client, asks, request, request_id, headers, body } = heard;
    let era = client.era;
    let asker = (&services, &caller);
    let done = match asks {
        Asks::Known(json) => Ok(Done::Answer(json)),
        Asks::Task(asked) => {
            let answered = tasks::answer((&services, &caller, &request_id), asked, (&id, &client), &headers).await;
            answered.map(Done::Answer)
        }
        Asks::Call(call) => {
            call::prepare(asker, call, (id.clone(), client), &headers).await.map(|prepared| match prepared {
                Prepared::Begins(asked, telling) => Done::Begins(asked, telling),
                Prepared::Refused(json) => Done::Answer(json),
            })
        }
    };
    match done {
        Ok(Done::Answer(json)) => Ok(whole(json)),
        Ok(Done::Begins(asked, telling)) => {
            let begun = match request {
                Ok(request) => carry_out((services, caller), *asked, request, (None, Some(body))).await,
                Err(problem) => Err(problem),
            };
            match begun {
                Ok(response) => Ok(response),
                // The model of the client reads what it may do better; the rest is for the client itself.
                Err(problem) => match problem.of_what_was_asked() {
                    Some(words) => Ok(whole(telling.refused(words))),
                    None => Err(problem.answering(&id)),
                },
            }
        }
        Err(Told::Rpc(error)) => Ok(refused(Some(&id), era, &error)),
        Err(Told::Problem(problem)) => Err(problem.answering(&id)),
    }
}

/// Reads a message, with all that is in it: off the workers where it is large.
fn read(call: serve::Call) -> Read {
    let serve::Call { services, caller, request_id, path, headers, body, .. } = call;
    let (id, client, asks) = match mcp::read(&body, &headers) {
        Err(Refused { id, era, error }) => return Read::Refused(id, era, error),
        Ok(Incoming::Notification(called_off)) => {
            return Read::Notification(called_off.map(|id| Name::new(&caller.owner, &id, &headers)));
        }
        Ok(Incoming::Request(request)) => match asks((&services, &caller), path.as_deref(), &request) {
            Ok(asks) => (request.id, request.client, asks),
            Err(error) => return Read::Refused(Some(request.id), request.client.era, error),
        },
    };
    let request = serve::request(request_id.clone(), &headers, mcp::MARK, &body);
    Read::Request(Box::new(Heard { id, client, asks, request, request_id, headers, body }))
}

/// What a request comes to.
enum Done {
    /// This answer.
    Answer(Vec<u8>),
    /// A run, told so.
    Begins(Box<Asked>, Box<mcp::Telling>),
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

fn asks((services, caller): Asker<'_>, only: Option<&str>, request: &Request<'_>) -> Result<Asks, RpcError> {
    let (id, client) = (&request.id, &request.client);
    Ok(match (request.method.as_str(), client.era) {
        ("initialize", _) => Asks::Known(mcp::result(id, &InitializeBody::to(&version_of(request)?))),
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
