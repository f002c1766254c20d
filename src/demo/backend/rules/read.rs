//! Reading rules: the paged list with its filters, and one rule with its parts.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use uuid::Uuid;

use super::view::{ActionView, EdgeView, RuleView, SavedView};
use crate::demo::backend::caller::AnyUser;
use crate::demo::backend::error::ApiError;
use crate::demo::backend::etag::{etag, tagged};
use crate::demo::backend::extract::{Params, PathOf};
use crate::demo::backend::page::Paging;
use crate::demo::backend::records::rules::rule::Rule;
use crate::demo::backend::state::Demo;

/// What is said of a rule that is not there.
pub fn missing() -> ApiError {
    ApiError::not_found("rule not found")
}

/// `GET /v1/workflow/rules`: a page of all rules, inactive ones included unless `is_active` says otherwise. `name` finds
/// any part of a name, in any case.
pub async fn list(State(demo): State<Arc<Demo>>, _: AnyUser, params: Params) -> Result<Response, ApiError> {
    let paging = Paging::parse(&params, &["created_date", "updated_date", "name", "id", "is_active"])?;
    let id: Option<Uuid> = params.parse("id")?;
    let name = params.text("name").map(str::to_lowercase);
    let is_active: Option<bool> = params.parse("is_active")?;
    let entity: Option<Uuid> = params.parse("entity_id")?;
    let kind: Option<Uuid> = params.parse("entity_type_id")?;
    let trigger: Option<Uuid> = params.parse("trigger_type_id")?;
    let author = params.text("created_by");

    let kind_of = |rule: &Rule| demo.reference.entity(rule.entity_id).map(|entity| entity.entity_type_id);
    let records = demo.records();
    let found = records.rules.iter().filter(|rule| {
        id.is_none_or(|id| rule.id == id)
            && name.as_ref().is_none_or(|name| rule.name.to_lowercase().contains(name))
            && is_active.is_none_or(|is_active| rule.is_active == is_active)
            && entity.is_none_or(|entity| rule.entity_id == entity)
            && kind.is_none_or(|kind| kind_of(rule) == Some(kind))
            && trigger.is_none_or(|trigger| rule.trigger_type_id == trigger)
            && author.is_none_or(|author| rule.created_by == author)
    });
    let page = paging.cut(
        found.collect(),
        |a, b, field| match field {
            "updated_date" => a.updated.cmp(&b.updated),
            "name" => a.name.cmp(&b.name),
            "id" => a.id.cmp(&b.id),
            "is_active" => a.is_active.cmp(&b.is_active),
            _ => a.created.cmp(&b.created),
        },
        |rule| RuleView::brief(rule, &demo.reference),
    );
    Ok(Json(page).into_response())
}

/// `GET /v1/workflow/rules/{id}`: the rule with its actions; its `ETag` is that of the whole rule, edges included.
pub async fn one(State(demo): State<Arc<Demo>>, _: AnyUser, PathOf(id): PathOf<Uuid>) -> Result<Response, ApiError> {
    let records = demo.records();
    let rule = records.rule(id).ok_or_else(missing)?;
    Ok(tagged(etag(&SavedView::new(rule)), &RuleView::whole(rule, &demo.reference)))
}

/// `GET /v1/workflow/rules/{id}/actions`: a bare array.
pub async fn actions(
    State(demo): State<Arc<Demo>>,
    _: AnyUser,
    PathOf(id): PathOf<Uuid>,
) -> Result<Response, ApiError> {
    let records = demo.records();
    Ok(Json(ActionView::all(records.rule(id).ok_or_else(missing)?)).into_response())
}

/// `GET /v1/workflow/rules/{id}/edges`: a bare array.
pub async fn edges(State(demo): State<Arc<Demo>>, _: AnyUser, PathOf(id): PathOf<Uuid>) -> Result<Response, ApiError> {
    let records = demo.records();
    Ok(Json(EdgeView::all(records.rule(id).ok_or_else(missing)?)).into_response())
}
