//! The alert routes: my inbox, the whole house's for administrators, one alert, and what its reader does with it. Clients
//! read alerts in camelCase, with the names of the rule and the recipients filled in.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::caller::{Admin, AnyUser};
use super::error::{ApiError, Code};
use super::extract::{Body, Params, PathOf};
use super::page::Paging;
use super::records::alerts::{Acknowledgment, Alert, Recipient, RecipientType, Severity, Status};
use super::records::all::Records;
use super::records::fields::FieldErrors;
use super::records::people::People;
use super::records::rules::rule::Rule;
use super::records::stamp::Stamp;
use super::state::Demo;
use crate::chat::caller::Caller;

const MAX_NOTES: usize = 1000;

/// `GET /v1/workflow/alerts/mine`: a page of the alerts for the caller or one of their roles, in any status.
pub async fn mine(
    State(demo): State<Arc<Demo>>,
    AnyUser(caller): AnyUser,
    params: Params,
) -> Result<Response, ApiError> {
    page(&demo, &params, |alert| alert.is_for(&caller, &demo.people))
}

/// `GET /v1/workflow/alerts`: a page of everybody's, for administrators.
pub async fn all(State(demo): State<Arc<Demo>>, _: Admin, params: Params) -> Result<Response, ApiError> {
    page(&demo, &params, |_| true)
}

fn page(demo: &Demo, params: &Params, is_visible: impl Fn(&Alert) -> bool) -> Result<Response, ApiError> {
    let paging = Paging::parse(params, &["createdDate", "updatedDate", "severity", "status", "title"])?;
    let statuses: Vec<Status> = params.parse_list("status")?;
    let severities: Vec<Severity> = params.parse_list("severity")?;
    let alert_type = params.text("alertType");
    let entity_name = params.text("sourceEntityName");
    let entity: Option<Uuid> = params.parse("sourceEntityId")?;
    let rule: Option<Uuid> = params.parse("sourceRuleId")?;
    let after: Option<Stamp> = params.parse("createdAfter")?;
    let before: Option<Stamp> = params.parse("createdBefore")?;

    let records = demo.records();
    let found = records.alerts.iter().filter(|alert| {
        is_visible(alert)
            && (statuses.is_empty() || statuses.contains(&alert.status))
            && (severities.is_empty() || severities.contains(&alert.severity))
            && alert_type.is_none_or(|kind| alert.alert_type == kind)
            && entity_name.is_none_or(|name| alert.source_entity_name.as_deref() == Some(name))
            && entity.is_none_or(|id| alert.source_entity_id == Some(id))
            && rule.is_none_or(|id| alert.source_rule_id == Some(id))
            && after.is_none_or(|after| alert.created_date > after)
            && before.is_none_or(|before| alert.created_date < before)
    });
    let page = paging.cut(
        found.collect(),
        |a, b, field| match field {
            "updatedDate" => a.updated_date.cmp(&b.updated_date),
            "severity" => a.severity.cmp(&b.severity),
            "status" => a.status.cmp(&b.status),
            "title" => a.title.cmp(&b.title),
            _ => a.created_date.cmp(&b.created_date),
        },
        |alert| AlertView::new(alert, &records.rules, &demo.people),
    );
    Ok(Json(page).into_response())
}

/// `GET /v1/workflow/alerts/{id}`: for its recipients only, administrators included.
pub async fn one(
    State(demo): State<Arc<Demo>>,
    AnyUser(caller): AnyUser,
    PathOf(id): PathOf<Uuid>,
) -> Result<Response, ApiError> {
    change(&demo, &caller, id, |_| Ok(()))
}

/// What a reader may add.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Notes {
    notes: Option<String>,
}

/// `POST /v1/workflow/alerts/{id}/acknowledge`: an active alert becomes acknowledged; answers the alert.
pub async fn acknowledge(
    State(demo): State<Arc<Demo>>,
    AnyUser(caller): AnyUser,
    PathOf(id): PathOf<Uuid>,
    Body(body): Body<Notes>,
) -> Result<Response, ApiError> {
    let notes = body.notes.unwrap_or_default();
    let mut errors = FieldErrors::default();
    errors.check_length("notes", &notes, 0..=MAX_NOTES);
    errors.finish()?;
    change(&demo, &caller, id, |alert| {
        match alert.status {
            Status::Active => alert.status = Status::Acknowledged,
            Status::Acknowledged | Status::Dismissed | Status::Resolved => return Err(too_late("active")),
        }
        alert.updated_date = demo.now();
        alert.acknowledgments.push(Acknowledgment {
            id: Uuid::new_v4(),
            acknowledged_by: caller.owner.user.clone(),
            acknowledged_date: alert.updated_date,
            notes,
        });
        Ok(())
    })
}

/// `POST /v1/workflow/alerts/{id}/dismiss`: an active or acknowledged alert becomes dismissed; answers the alert.
pub async fn dismiss(
    State(demo): State<Arc<Demo>>,
    AnyUser(caller): AnyUser,
    PathOf(id): PathOf<Uuid>,
) -> Result<Response, ApiError> {
    change(&demo, &caller, id, |alert| {
        match alert.status {
            Status::Active | Status::Acknowledged => alert.status = Status::Dismissed,
            Status::Dismissed | Status::Resolved => return Err(too_late("active or acknowledged")),
        }
        alert.updated_date = demo.now();
        Ok(())
    })
}

/// Answers the caller's alert as `change` leaves it. One that does not exist is refused like one for somebody else.
fn change(
    demo: &Demo,
    caller: &Caller,
    id: Uuid,
    change: impl FnOnce(&mut Alert) -> Result<(), ApiError>,
) -> Result<Response, ApiError> {
    let mut records = demo.records();
    let Records { rules, alerts, .. } = &mut *records;
    let alert = alerts.iter_mut().find(|alert| alert.id == id && alert.is_for(caller, &demo.people));
    let alert = alert.ok_or_else(|| ApiError::new(Code::PermissionDenied, "there is no such alert for you"))?;
    change(alert)?;
    Ok(Json(AlertView::new(alert, rules, &demo.people)).into_response())
}

fn too_late(needed: &str) -> ApiError {
    ApiError::new(Code::FailedPrecondition, format!("the alert is not {needed}"))
}

/// An alert with names.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AlertView<'a> {
    #[serde(flatten)]
    alert: &'a Alert,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_rule_name: Option<&'a str>,
    recipients: Vec<RecipientView<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RecipientView<'a> {
    recipient_type: RecipientType,
    recipient_id: Uuid,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'a str>,
}

impl<'a> AlertView<'a> {
    /// The alert as `rules` and `people` name things now.
    fn new(alert: &'a Alert, rules: &'a [Rule], people: &'a People) -> Self {
        let source = alert.source_rule_id.and_then(|id| rules.iter().find(|rule| rule.id == id));
        Self {
            alert,
            source_rule_name: source.map(|rule| rule.name.as_str()),
            recipients: alert.recipients.iter().map(|recipient| RecipientView::new(recipient, people)).collect(),
        }
    }
}

impl<'a> RecipientView<'a> {
    fn new(recipient: &Recipient, people: &'a People) -> Self {
        let Recipient { recipient_type, recipient_id } = *recipient;
        let (name, email) = match recipient_type {
            RecipientType::User => {
                let user = people.user(recipient_id);
                (user.map(|user| user.full_name()), user.map(|user| user.email.as_str()))
            }
            RecipientType::Role => (people.role(recipient_id).map(|role| role.name.clone()), None),
        };
        Self { recipient_type, recipient_id, name: name.unwrap_or_default(), email }
    }
}
