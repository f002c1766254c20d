//! Saving rules whole: create, update and duplicate, each a pure step to a [`Rule`] that one assignment commits.
//!
//! A dry run takes the same path up to the commit and answers what it found, so that a preview is what a save would do.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use uuid::Uuid;

use super::read::missing;
use super::view::{ActionView, EdgeView, SavedView};
use crate::demo::backend::caller::AnyUser;
use crate::demo::backend::error::{ApiError, Code};
use crate::demo::backend::etag::{IfMatch, etag, whole};
use crate::demo::backend::extract::{Body, Params, PathOf};
use crate::demo::backend::records::all::{MAX_RECORDS, Records};
use crate::demo::backend::records::rules::build::{Author, build};
use crate::demo::backend::records::rules::input::{RuleInput, SaveBody};
use crate::demo::backend::records::rules::rule::Rule;
use crate::demo::backend::records::rules::validate::{self, Link};
use crate::demo::backend::state::Demo;

/// One mebibyte with everything that updates have deactivated, so that repeated updates cannot fill the memory.
const MAX_RULE_BYTES: usize = 1024 * 1024;

/// The answer to a dry run.
#[derive(Debug, Serialize)]
struct DryRun {
    valid: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
    action_count: usize,
    edge_count: usize,
}

/// `POST /v1/workflow/rules/full[?dry_run=true]`: for administrators, a dry run for anybody. Ids of actions are only used to
/// resolve the edges; every part of the new rule gets its own.
pub async fn create(
    State(demo): State<Arc<Demo>>,
    user: AnyUser,
    params: Params,
    Body(body): Body<SaveBody>,
) -> Result<Response, ApiError> {
    let dry_run = permit(&user, &params)?;
    let input = body.check(&demo.action_types)?;
    let checked = validate::check(&input, &demo.action_types);
    if dry_run {
        return Ok(report(&input, checked));
    }
    let links = checked.map_err(refuse)?;
    let rule = build(input, &links, None, Author { user: user.id(), at: demo.now() });
    require_references(&demo, &rule)?;
    add(&mut demo.records(), rule)
}

/// `PUT /v1/workflow/rules/{id}/full[?dry_run=true]`: replaces the rule, of the version that `If-Match`
/// names, if it is there. Actions are matched by id, those without one are new, those left out are deactivated; all edges
/// are made anew.
pub async fn update(
    State(demo): State<Arc<Demo>>,
    user: AnyUser,
    PathOf(id): PathOf<Uuid>,
    params: Params,
    version: IfMatch,
    Body(body): Body<SaveBody>,
) -> Result<Response, ApiError> {
    let dry_run = permit(&user, &params)?;
    let input = body.check(&demo.action_types)?;
    let mut records = demo.records();
    let old = records.rule(id).ok_or_else(missing)?;
    version.require(&etag(&SavedView::new(old)))?;
    if old.is_default {
        let way_out = format!("change a copy, made by POST /v1/workflow/rules/{id}/duplicate");
        let message = format!("this rule came with the product and cannot be changed; {way_out}");
        return Err(ApiError::new(Code::PermissionDenied, message));
    }
    let own: HashSet<Uuid> = old.actions.iter().map(|action| action.id).collect();
    if let Some(foreign) = input.actions.iter().filter_map(|action| action.id).find(|id| !own.contains(id)) {
        return Err(ApiError::invalid(format!("action {foreign} does not belong to this rule")));
    }
    let checked = validate::check(&input, &demo.action_types);
    if dry_run {
        return Ok(report(&input, checked));
    }
    let links = checked.map_err(refuse)?;
    let rule = build(input, &links, Some(old), Author { user: user.id(), at: demo.now() });
    require_references(&demo, &rule)?;
    let answer = saved(&rule)?;
    if let Some(place) = records.rules.iter_mut().find(|rule| rule.id == id) {
        *place = rule;
    }
    Ok(answer)
}

/// `POST /v1/workflow/rules/{id}/duplicate`: an inactive copy named `<name>-DUPLICATE`, for administrators.
pub async fn duplicate(
    State(demo): State<Arc<Demo>>,
    user: AnyUser,
    PathOf(id): PathOf<Uuid>,
) -> Result<Response, ApiError> {
    user.require_admin()?;
    let mut records = demo.records();
    let mut copy = records.rule(id).ok_or_else(missing)?.clone();
    copy.id = Uuid::new_v4();
    copy.name.push_str("-DUPLICATE");
    copy.is_active = false;
    copy.is_default = false;
    copy.created_by = user.id().to_owned();
    copy.updated_by = user.id().to_owned();
    copy.created = demo.now();
    copy.updated = copy.created;
    let mut renamed = HashMap::new();
    for action in &mut copy.actions {
        let new = Uuid::new_v4();
        renamed.insert(std::mem::replace(&mut action.id, new), new);
    }
    let new_id = |old: Uuid| renamed.get(&old).copied().unwrap_or(old);
    for edge in &mut copy.edges {
        edge.id = Uuid::new_v4();
        edge.source = edge.source.map(new_id);
        edge.target = new_id(edge.target);
        edge.created = copy.created;
    }
    add(&mut records, copy)
}

/// Whether this is a dry run; a real save needs an administrator.
fn permit(user: &AnyUser, params: &Params) -> Result<bool, ApiError> {
    let dry_run = params.parse("dry_run")?.unwrap_or(false);
    if !dry_run {
        user.require_admin()?;
    }
    Ok(dry_run)
}

fn report(input: &RuleInput, checked: Result<Vec<Link>, Vec<String>>) -> Response {
    let errors = checked.err().unwrap_or_default();
    let counts = (input.actions.len(), input.edges.len());
    Json(DryRun { valid: errors.is_empty(), errors, action_count: counts.0, edge_count: counts.1 }).into_response()
}

fn refuse(errors: Vec<String>) -> ApiError {
    ApiError::invalid(errors.join("; "))
}

fn require_references(demo: &Demo, rule: &Rule) -> Result<(), ApiError> {
    if demo.reference.entity(rule.entity_id).is_none() {
        return Err(ApiError::not_found("entity not found"));
    }
    if demo.reference.trigger(rule.trigger_type_id).is_none() {
        return Err(ApiError::not_found("trigger type not found"));
    }
    Ok(())
}

/// The answer to a save, when the rule has not become too large.
fn saved(rule: &Rule) -> Result<Response, ApiError> {
    let parts = (&rule.trigger_conditions, &rule.canvas_layout, ActionView::all(rule), EdgeView::all(rule));
    let bytes = serde_json::to_vec(&parts).map_or(usize::MAX, |bytes| bytes.len());
    if bytes > MAX_RULE_BYTES {
        return Err(ApiError::new(Code::Aborted, "the rule, deactivated actions included, has become too large"));
    }
    Ok(whole(&SavedView::new(rule)))
}

fn add(records: &mut Records, rule: Rule) -> Result<Response, ApiError> {
    if records.rules.len() >= MAX_RECORDS {
        return Err(ApiError::new(Code::Aborted, format!("there are already {MAX_RECORDS} rules")));
    }
    let answer = saved(&rule)?;
    records.rules.push(rule);
    Ok(answer)
}
