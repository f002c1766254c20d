//! `/v1/agent/deliveries`: what subscribers have been told, or not yet; for operators.

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Services;
use super::audit::{note_read, note_retried};
use super::auth::Authenticated;
use super::code::Code;
use super::pages::{Cursored, limit};
use super::problem::Problem;
use crate::agent::ports::pages::Cursor;
use crate::agent::ports::signals::{Delivery, DeliveryFilter, DeliveryStatus};
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::Caller;
use crate::chat::day::rfc3339 as time;
use crate::chat::ids::{DeliveryId, SignalId};

/// Deliveries of a page where the request does not say, and at most.
const LIMITS: (u32, u32) = (50, 500);

/// A delivery; what is not there is null.
#[derive(Serialize, ToSchema)]
#[schema(as = Delivery)]
pub(super) struct DeliveryBody {
    id: String,
    signal_id: String,
    signal_name: String,
    subscriber: String,
    /// `pending`, `delivered` or `dead`.
    status: &'static str,
    attempts: u32,
    next_attempt_at: Option<String>,
    /// The status of the last answer.
    last_status: Option<u16>,
    last_error: Option<String>,
    delivered_at: Option<String>,
}

/// Some deliveries, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = DeliveryList)]
pub(super) struct ListBody {
    items: Vec<DeliveryBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Which deliveries.
#[derive(Deserialize)]
pub(super) struct Which {
    status: Option<String>,
    subscriber: Option<String>,
    signal_id: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

impl DeliveryBody {
    fn from_delivery(delivery: Delivery) -> Self {
        Self {
            id: delivery.id.to_string(),
            signal_id: delivery.signal.to_string(),
            signal_name: delivery.name,
            subscriber: delivery.subscriber,
            status: delivery.status.name(),
            attempts: delivery.attempts,
            next_attempt_at: delivery.next_attempt_at_ms.map(time),
            last_status: delivery.last_status,
            last_error: delivery.last_error,
            delivered_at: delivery.delivered_at_ms.map(time),
        }
    }
}

/// 200 with deliveries, newest first.
#[utoipa::path(
    get,
    path = "/v1/agent/deliveries",
    operation_id = "listDeliveries",
    tag = "Signals",
    summary = "List deliveries",
    description = "What the subscribers of the tenant's signals have been told, newest first; for operators.",
    params(
        ("status" = Option<String>, Query, description = "In this status.", pattern = "^(pending|delivered|dead)?$"),
        ("subscriber" = Option<String>, Query, description = "To this one."),
        ("signal_id" = Option<String>, Query, description = "Of this signal."),
        ("limit" = Option<String>, Query, description = "How many, 1 to 500; else 50.", pattern = "^([1-9][0-9]?|[1-4][0-9]{2}|500)?$"),
        ("cursor" = Option<String>, Query, description = "What the last page named as `next_cursor`."),
    ),
    responses(
        (status = 200, description = "Deliveries.", body = ListBody),
        (status = 400, description = "`invalid_request`, `cursor_invalid`: a parameter that says nothing."),
        (status = 403, description = "`role_required`: this is for operators."),
    ),
)]
pub(super) async fn list(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<ListBody>, Problem> {
    check_operator(&services, &caller)?;
    let Query(which) = which.map_err(|_| Problem::bad_request("each parameter must be given once at most"))?;
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let status = match given(which.status) {
        None => None,
        Some(name) => {
            let unknown = || Problem::bad_request(format!("status: {name:?} is none of deliveries"));
            Some(DeliveryStatus::parse(&name).ok_or_else(unknown)?)
        }
    };
    let signal = match given(which.signal_id) {
        None => None,
        Some(id) => Some(SignalId::parse(&id).map_err(|_| Problem::bad_request("signal_id must be a UUID"))?),
    };
    let filter = DeliveryFilter {
        status,
        subscriber: given(which.subscriber),
        signal,
        limit: limit(which.limit.as_deref(), LIMITS)?,
        after: Cursor::parsed(which.cursor.as_deref())?,
    };
    note_read(&services, &caller, "", "/v1/agent/deliveries".to_owned()).await?;
    let page = services.deliveries.deliveries(&caller.owner, &filter).await.map_err(failed)?;
    let last = page.items.last().filter(|_| page.has_more);
    let next_cursor = last.map(|last| Cursor { at_ms: last.created_at_ms, id: last.id.to_string() }.written());
    Ok(Json(ListBody { items: page.items.into_iter().map(DeliveryBody::from_delivery).collect(), next_cursor }))
}

/// 202 when a dead one is tried again.
#[utoipa::path(
    post,
    path = "/v1/agent/deliveries/{delivery_id}/retry",
    operation_id = "retryDelivery",
    tag = "Signals",
    summary = "Deliver a dead one again",
    description = "With all its attempts anew; for operators.",
    params(("delivery_id" = String, Path, description = "The delivery.")),
    responses(
        (status = 202, description = "It waits for its turn."),
        (status = 403, description = "`role_required`: this is for operators."),
        (status = 404, description = "`not_found`: there is none of the tenant's."),
        (status = 409, description = "`not_dead`: it is not given up."),
    ),
)]
pub(super) async fn retry(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    check_operator(&services, &caller)?;
    let none = || Problem::not_found("there is no such delivery");
    let Path(id) = id.map_err(|_| none())?;
    let id = DeliveryId::parse(&id).map_err(|_| none())?;
    note_retried(&services, &caller, id.to_string()).await?;
    match services.deliveries.retry_delivery(&caller.owner, id).await.map_err(failed)? {
        None => Err(none()),
        Some(false) => Err(Problem::conflict(Code::NotDead, "this delivery is not given up")),
        Some(true) => {
            services.bell.ring();
            Ok(StatusCode::ACCEPTED)
        }
    }
}

/// Refuses whoever is no operator.
pub(super) fn check_operator(services: &Services, caller: &Caller) -> Result<(), Problem> {
    match services.directive_roles.access(caller).operates {
        true => Ok(()),
        false => Err(Problem::role_required("this is for those with a role of directives.operator_roles")),
    }
}

fn failed(error: StoreError) -> Problem {
    Problem::store_failed("delivery not read or changed", error)
}
