//! `GET /v1/agent/timeline`: what was requested and what happened, of one thing or of all that belongs together.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Services;
use super::audit::note_read;
use super::auth::Authenticated;
use super::directives::{ActorBody, SubjectBody};
use super::pages::{limit, own_or_tenant};
use super::problem::Problem;
use crate::agent::ports::directives::DirectiveFilter;
use crate::agent::ports::signals::SignalFilter;
use crate::agent::ports::store_error::StoreError;
use crate::chat::day::rfc3339 as time;
use crate::chat::directive::Directive;
use crate::chat::signal::Signal;

/// Events where the request does not say, and at most.
const LIMITS: (u32, u32) = (200, 500);

/// Directives and signals, oldest first.
#[derive(Serialize, ToSchema)]
#[schema(as = Timeline)]
pub(super) struct TimelineBody {
    events: Vec<EventBody>,
}

/// A directive, as it is now and at the time of its request, or a signal; what is not there is null.
#[derive(Serialize, ToSchema)]
#[schema(as = TimelineEvent)]
struct EventBody {
    /// `directive` or `signal`.
    kind: &'static str,
    id: String,
    name: String,
    /// Of a directive.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    occurred_at: String,
    actor: Option<ActorBody>,
    subject: Option<SubjectBody>,
    correlation_id: Option<String>,
    payload: Map<String, Value>,
    metadata: Map<String, Value>,
}

/// Whose timeline.
#[derive(Deserialize)]
pub(super) struct Which {
    subject_type: Option<String>,
    subject_id: Option<String>,
    correlation_id: Option<String>,
    of: Option<String>,
    limit: Option<String>,
}

/// 200 with directives and signals, oldest first.
#[utoipa::path(
    get,
    path = "/v1/agent/timeline",
    operation_id = "getTimeline",
    tag = "Signals",
    summary = "Read a timeline",
    description = "Directives, at the time of their request, and signals about one thing (`subject_type` and `subject_id`), or that belong together (`correlation_id`). The caller's own; `of=tenant` all of the tenant, for readers. The oldest first.",
    params(
        ("subject_type" = Option<String>, Query, description = "About a thing of this kind, together with `subject_id`."),
        ("subject_id" = Option<String>, Query, description = "About the thing of this id."),
        ("correlation_id" = Option<String>, Query, description = "That belong to this."),
        ("of" = Option<String>, Query, description = "`own` or `tenant`; else `own`.", pattern = "^(own|tenant)?$"),
        ("limit" = Option<String>, Query, description = "How many, 1 to 500; else 200.", pattern = "^([1-9][0-9]?|[1-4][0-9]{2}|500)?$"),
    ),
    responses(
        (status = 200, description = "The timeline.", body = TimelineBody),
        (status = 400, description = "`invalid_request`: a parameter that says nothing."),
        (status = 403, description = "`role_required`: `of=tenant` is for readers."),
        (status = 422, description = "`invalid_request`: neither a thing nor a correlation is named."),
    ),
)]
pub(super) async fn get(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<TimelineBody>, Problem> {
    let Query(which) = which.map_err(|_| Problem::bad_request("each parameter must be given once at most"))?;
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let (subject_kind, subject_id) = (given(which.subject_type), given(which.subject_id));
    let correlation = given(which.correlation_id);
    if subject_kind.is_some() != subject_id.is_some() || (subject_kind.is_none() && correlation.is_none()) {
        return Err(Problem::unprocessable("subject_type and subject_id together, or correlation_id, must be given"));
    }
    let of_tenant = own_or_tenant(which.of.as_deref(), services.directive_roles.access(&caller))?;
    let limit = limit(which.limit.as_deref(), LIMITS)?;
    if of_tenant {
        note_read(&services, &caller, "", "/v1/agent/timeline?of=tenant".to_owned()).await?;
    }
    let directives = DirectiveFilter {
        subject_kind: subject_kind.clone(),
        subject_id: subject_id.clone(),
        correlation: correlation.clone(),
        of_tenant,
        ascending: true,
        limit,
        ..DirectiveFilter::default()
    };
    let signals = SignalFilter {
        subject_kind,
        subject_id,
        correlation,
        of_tenant,
        ascending: true,
        limit,
        ..SignalFilter::default()
    };
    let (directives, signals) = tokio::try_join!(
        services.directive_records.directives(&caller, &directives),
        services.signals.signals(&caller, &signals),
    )
    .map_err(|error: StoreError| Problem::store_failed("timeline not read", error))?;
    // Both come in their own order: directives stand before the signals of their time, which stay in the order of commit.
    let mut events: Vec<(i64, EventBody)> = directives.items.into_iter().map(of_directive).collect();
    events.extend(signals.items.into_iter().map(of_signal));
    events.sort_by_key(|(at_ms, _)| *at_ms);
    let events = events.into_iter().take(limit as usize).map(|(_, event)| event).collect();
    Ok(Json(TimelineBody { events }))
}

fn of_directive(directive: Directive) -> (i64, EventBody) {
    let event = EventBody {
        kind: "directive",
        id: directive.id.to_string(),
        name: directive.name.as_str().to_owned(),
        status: Some(directive.status.name()),
        occurred_at: time(directive.created_at_ms),
        actor: Some(ActorBody::user(directive.owner.user)),
        subject: directive.subject.map(SubjectBody::from_subject),
        correlation_id: Some(directive.correlation),
        payload: directive.payload,
        metadata: Map::new(),
    };
    (directive.created_at_ms, event)
}

fn of_signal(signal: Signal) -> (i64, EventBody) {
    let Signal { id, seq: _, inserted_at_ms, fact } = signal;
    let at_ms = fact.occurred_at_ms.unwrap_or(inserted_at_ms);
    let event = EventBody {
        kind: "signal",
        id: id.to_string(),
        name: fact.name,
        status: None,
        occurred_at: time(at_ms),
        actor: fact.actor.map(ActorBody::user),
        subject: fact.subject.map(SubjectBody::from_subject),
        correlation_id: fact.correlation,
        payload: fact.payload,
        metadata: fact.metadata,
    };
    (at_ms, event)
}
