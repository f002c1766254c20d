//! `/v1/agent/signals`: facts of a tenant. Look at them, write some with a role, have them delivered again. Nothing changes
//! or deletes one.

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Services;
use super::audit::{note_read, note_read_of, note_retried};
use super::auth::Authenticated;
use super::body::Taken;
use super::code::Code;
use super::directives::{ActorBody, SubjectBody};
use super::pages::{Cursored, limit, own_or_tenant};
use super::problem::Problem;
use crate::agent::ports::signals::{EmitError, Replay, Replayed, SignalFilter};
use crate::agent::ports::store_error::StoreError;
use crate::bounded::json::{self, Tree};
use crate::chat::caller::Caller;
use crate::chat::day::{ms_of, rfc3339 as time};
use crate::chat::ids::SignalId;
use crate::chat::signal::{FactName, NamePattern, Signal, SignalFact, SignalSource, Subject};

/// Signals of a page where the request does not say, and at most.
const LIMITS: (u32, u32) = (50, 500);

/// The largest signal of a client, in bytes.
const MOST_BYTES: usize = 64 << 10;

/// The longest key or id, in bytes.
const KEY_BYTES: usize = 512;

/// How many one replay may mean by name, between two times, and of the newest.
const BY_NAME: (u32, u32) = (500, 10_000);
const BETWEEN: (u32, u32) = (5000, 50_000);
const RECENT: (u32, u32) = (100, 5000);

/// A fact; what is not there is null.
#[derive(Serialize, ToSchema)]
#[schema(as = Signal)]
pub(super) struct SignalBody {
    id: String,
    /// Rises within a tenant in the order of commit.
    seq: i64,
    name: String,
    payload: Map<String, Value>,
    metadata: Map<String, Value>,
    occurred_at: String,
    inserted_at: String,
    correlation_id: Option<String>,
    causation_id: Option<String>,
    actor: Option<ActorBody>,
    subject: Option<SubjectBody>,
    /// `directives`, `api` or `runs`.
    source: &'static str,
    dedupe_key: Option<String>,
}

impl SignalBody {
    /// The body of a signal.
    pub(super) fn from_signal(signal: Signal) -> Self {
        let Signal { id, seq, inserted_at_ms, fact } = signal;
        Self {
            id: id.to_string(),
            seq,
            name: fact.name,
            payload: fact.payload,
            metadata: fact.metadata,
            occurred_at: time(fact.occurred_at_ms.unwrap_or(inserted_at_ms)),
            inserted_at: time(inserted_at_ms),
            correlation_id: fact.correlation,
            causation_id: fact.causation,
            actor: fact.actor.map(ActorBody::user),
            subject: fact.subject.map(SubjectBody::from_subject),
            source: fact.source.name(),
            dedupe_key: fact.dedupe_key,
        }
    }
}

/// Some signals.
#[derive(Serialize, ToSchema)]
#[schema(as = SignalList)]
pub(super) struct ListBody {
    items: Vec<SignalBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A signal that was written, or was there.
#[derive(Serialize, ToSchema)]
#[schema(as = SignalEmitted)]
pub(super) struct EmittedBody {
    signal: SignalBody,
    created: bool,
}

/// A fact that a client tells.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SignalRequest)]
pub(super) struct RequestBody {
    name: String,
    #[schema(value_type = Option<Object>)]
    payload: Option<Tree>,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Tree>,
    /// RFC 3339; else now.
    occurred_at: Option<String>,
    /// Of those with the same key only the first is kept.
    dedupe_key: Option<String>,
    correlation_id: Option<String>,
    causation_id: Option<String>,
    subject: Option<SubjectRequest>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SubjectRequest)]
struct SubjectRequest {
    r#type: String,
    id: String,
}

/// Which signals are delivered again: one of `ids`, `name`, `from` with `to`, `recent`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReplayRequest)]
pub(super) struct ReplayRequest {
    ids: Option<Vec<String>>,
    /// A name, `prefix.*` or `*`.
    name: Option<String>,
    /// RFC 3339.
    from: Option<String>,
    to: Option<String>,
    limit: Option<u32>,
    /// The newest so many.
    recent: Option<u32>,
    /// To this one alone.
    subscriber: Option<String>,
}

/// What a replay comes to.
#[derive(Serialize, ToSchema)]
#[schema(as = Replayed)]
pub(super) struct ReplayedBody {
    /// Signals that were meant.
    matched: u64,
    /// Deliveries that wait now.
    queued: u64,
}

/// Which signals.
#[derive(Deserialize)]
pub(super) struct Which {
    name: Option<String>,
    subject_type: Option<String>,
    subject_id: Option<String>,
    correlation_id: Option<String>,
    causation_id: Option<String>,
    of: Option<String>,
    order: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// 200 with signals.
#[utoipa::path(
    get,
    path = "/v1/agent/signals",
    operation_id = "listSignals",
    tag = "Signals",
    summary = "List signals",
    description = "Those whose actor is the caller; `of=tenant` all of the tenant, for readers.",
    params(
        ("name" = Option<String>, Query, description = "A name, or `prefix.*`."),
        ("subject_type" = Option<String>, Query, description = "About a thing of this kind."),
        ("subject_id" = Option<String>, Query, description = "About the thing of this id."),
        ("correlation_id" = Option<String>, Query, description = "That belong to this."),
        ("causation_id" = Option<String>, Query, description = "That this caused."),
        ("of" = Option<String>, Query, description = "`own` or `tenant`; else `own`.", pattern = "^(own|tenant)?$"),
        ("order" = Option<String>, Query, description = "`asc`: oldest first; else newest first.", pattern = "^(asc|desc)?$"),
        ("limit" = Option<String>, Query, description = "How many, 1 to 500; else 50.", pattern = "^([1-9][0-9]?|[1-4][0-9]{2}|500)?$"),
        ("cursor" = Option<String>, Query, description = "What the last page named as `next_cursor`."),
    ),
    responses(
        (status = 200, description = "Signals.", body = ListBody),
        (status = 400, description = "`invalid_request`, `cursor_invalid`: a parameter that says nothing."),
        (status = 403, description = "`role_required`: `of=tenant` is for readers."),
    ),
)]
pub(super) async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<ListBody>, Problem> {
    let Query(which) = which.map_err(|_| Problem::bad_request("each parameter must be given once at most"))?;
    let name = match which.name.as_deref() {
        None | Some("") => None,
        Some(text) => Some(NamePattern::parse(text).map_err(|error| Problem::bad_request(format!("name: {error}")))?),
    };
    let ascending = match which.order.as_deref() {
        None | Some("" | "desc") => false,
        Some("asc") => true,
        Some(_) => return Err(Problem::bad_request("order must be asc or desc")),
    };
    let filter = SignalFilter {
        name,
        subject_kind: which.subject_type,
        subject_id: which.subject_id,
        correlation: which.correlation_id,
        causation: which.causation_id,
        of_tenant: own_or_tenant(which.of.as_deref(), services.directive_roles.access(&caller))?,
        ascending,
        limit: limit(which.limit.as_deref(), LIMITS)?,
        after: i64::parsed(which.cursor.as_deref())?,
    };
    if filter.of_tenant {
        note_read(&services, &caller, "", "/v1/agent/signals?of=tenant".to_owned()).await?;
    }
    let page = services.signals.signals(&caller, &filter).await.map_err(failed)?;
    let next_cursor = page.items.last().filter(|_| page.has_more).map(|last| last.seq.written());
    Ok(Json(ListBody { items: page.items.into_iter().map(SignalBody::from_signal).collect(), next_cursor }))
}

/// 200 with a signal.
#[utoipa::path(
    get,
    path = "/v1/agent/signals/{signal_id}",
    operation_id = "getSignal",
    tag = "Signals",
    summary = "Read a signal",
    description = "One whose actor is the caller, or any of their tenant for readers.",
    params(("signal_id" = String, Path, description = "The signal.")),
    responses(
        (status = 200, description = "The signal.", body = SignalBody),
        (status = 404, description = "`not_found`: there is none that the caller can see."),
    ),
)]
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<SignalBody>, Problem> {
    let none = || Problem::not_found("there is no such signal");
    let Path(id) = id.map_err(|_| none())?;
    let id = SignalId::parse(&id).map_err(|_| none())?;
    let reads = services.directive_roles.access(&caller).reads;
    let found = services.signals.signal(&caller, id, reads).await.map_err(failed)?;
    let signal = found.ok_or_else(none)?;
    let actor = signal.fact.actor.as_deref().unwrap_or_default();
    note_read_of(&services, &caller, actor, format!("/v1/agent/signals/{id}")).await?;
    Ok(Json(SignalBody::from_signal(signal)))
}

/// 201 with a new signal, 200 with the one of the same key.
#[utoipa::path(
    post,
    path = "/v1/agent/signals",
    operation_id = "emitSignal",
    tag = "Signals",
    summary = "Write a signal",
    description = "A fact, by a role of `signals.emit_roles`; its actor is the caller. A known key queues nothing again.",
    request_body = RequestBody,
    responses(
        (status = 201, description = "It is kept.", body = EmittedBody),
        (status = 200, description = "One with this key is there.", body = EmittedBody),
        (status = 403, description = "`role_required`: this is for others."),
        (status = 413, description = "`field_too_large`: it is larger than 64 KiB."),
        (status = 422, description = "`invalid_request`, `secret_in_payload`."),
    ),
)]
pub(super) async fn emit(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    body: Taken,
) -> Result<Response, Problem> {
    if !services.emit_roles.iter().any(|role| caller.has_role(role)) {
        return Err(Problem::role_required("writing signals is for those with a role of signals.emit_roles"));
    }
    if body.len() > MOST_BYTES {
        return Err(Problem::field_too_large("payload", format!("a signal may have {MOST_BYTES} bytes")));
    }
    let request: RequestBody = json::parse_bytes(&body)
        .map_err(|error| Problem::unprocessable(format!("the body must be {{\"name\", \"payload\"?, …}}: {error}")))?;
    let fact = fact(request, &caller)?;
    let (signal, created) = services.signals.emit(&caller.owner, fact).await.map_err(|error| match error {
        EmitError::Secret(_) => Problem::unprocessable_as(Code::SecretInPayload, error.to_string()),
        EmitError::Store(error) => failed(error),
    })?;
    services.bell.ring();
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(EmittedBody { signal: SignalBody::from_signal(signal), created })).into_response())
}

/// The fact that a client tells.
fn fact(request: RequestBody, caller: &Caller) -> Result<SignalFact, Problem> {
    let wrong = |what: &str, why: &str| Problem::unprocessable(format!("{what}: {why}"));
    let name = FactName::parse(&request.name).map_err(|error| wrong("name", &error.to_string()))?;
    let occurred_at_ms = match request.occurred_at {
        None => None,
        Some(text) => Some(ms_of(&text).ok_or_else(|| wrong("occurred_at", "must be a time by RFC 3339"))?),
    };
    let object = |what: &str, tree: Option<Tree>| match tree {
        None | Some(Tree(Value::Null)) => Ok(Map::new()),
        Some(Tree(Value::Object(fields))) => Ok(fields),
        Some(_) => Err(wrong(what, "must be an object")),
    };
    let short = |what: &str, text: Option<String>| match text {
        Some(text) if text.is_empty() || text.len() > KEY_BYTES => {
            Err(wrong(what, &format!("must be 1 to {KEY_BYTES} bytes")))
        }
        text => Ok(text),
    };
    let subject = match request.subject {
        None => None,
        Some(SubjectRequest { r#type, id }) => {
            let (kind, id) = (short("subject.type", Some(r#type))?, short("subject.id", Some(id))?);
            kind.zip(id).map(|(kind, id)| Subject { kind, id })
        }
    };
    Ok(SignalFact {
        name: name.as_str().to_owned(),
        payload: object("payload", request.payload)?,
        metadata: object("metadata", request.metadata)?,
        occurred_at_ms,
        correlation: short("correlation_id", request.correlation_id)?,
        causation: short("causation_id", request.causation_id)?,
        actor: Some(caller.owner.user.clone()),
        subject,
        source: SignalSource::Api,
        dedupe_key: short("dedupe_key", request.dedupe_key)?,
    })
}

/// 202 with how many are delivered again.
#[utoipa::path(
    post,
    path = "/v1/agent/signals/replay",
    operation_id = "replaySignals",
    tag = "Signals",
    summary = "Deliver signals again",
    description = "To every subscriber that hears of them, or to one; for operators. No signals are made by it.",
    request_body = ReplayRequest,
    responses(
        (status = 202, description = "They are queued.", body = ReplayedBody),
        (status = 403, description = "`role_required`: this is for operators."),
        (status = 422, description = "`invalid_request`: none or two ways to say which, an unknown subscriber, an empty range."),
    ),
)]
pub(super) async fn replay(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    body: Taken,
) -> Result<Response, Problem> {
    super::deliveries::check_operator(&services, &caller)?;
    let request: ReplayRequest = json::parse_bytes(&body)
        .map_err(|error| Problem::unprocessable(format!("the body must say which signals: {error}")))?;
    let subscriber = request.subscriber.clone();
    if let Some(name) = subscriber.as_ref().filter(|name| !services.subscribers.contains(name)) {
        return Err(Problem::unprocessable(format!("subscriber: there is no {name:?}")));
    }
    let which = which(request)?;
    note_retried(&services, &caller, "/v1/agent/signals/replay".to_owned()).await?;
    let replayed = services.signals.replay(&caller.owner, &which, subscriber.as_deref()).await.map_err(failed)?;
    services.bell.ring();
    let Replayed { matched, queued } = replayed;
    Ok((StatusCode::ACCEPTED, Json(ReplayedBody { matched, queued })).into_response())
}

/// Which signals a request means.
fn which(request: ReplayRequest) -> Result<Replay, Problem> {
    let wrong = |words: &str| Problem::unprocessable(words.to_owned());
    let most = |count: Option<u32>, (default, most): (u32, u32)| match count.unwrap_or(default) {
        count if (1..=most).contains(&count) => Ok(count),
        _ => Err(Problem::unprocessable(format!("limit: must be 1 to {most}"))),
    };
    let at = |text: &str| ms_of(text).ok_or_else(|| wrong("from and to must be times by RFC 3339"));
    match (request.ids, request.name, (request.from, request.to), request.recent) {
        (Some(ids), None, (None, None), None) if !ids.is_empty() && ids.len() <= LIMITS.1 as usize => {
            let ids = ids.iter().map(|id| SignalId::parse(id)).collect::<Result<_, _>>();
            Ok(Replay::Ids(ids.map_err(|_| wrong("ids: each must be a UUID"))?))
        }
        (None, Some(name), (None, None), None) => {
            let name = NamePattern::parse(&name).map_err(|error| Problem::unprocessable(format!("name: {error}")))?;
            Ok(Replay::Name(name, most(request.limit, BY_NAME)?))
        }
        (None, None, (Some(from), Some(to)), None) => {
            let (from, to) = (at(&from)?, at(&to)?);
            match from < to {
                true => Ok(Replay::Between(from, to, most(request.limit, BETWEEN)?)),
                false => Err(wrong("from must be before to")),
            }
        }
        (None, None, (None, None), Some(recent)) => Ok(Replay::Recent(most(Some(recent), RECENT)?)),
        (_, _, (_, _), _) => Err(wrong("one of ids (1 to 500), name, from with to, and recent must be there")),
    }
}

fn failed(error: StoreError) -> Problem {
    Problem::store_failed("signal not read or written", error)
}
