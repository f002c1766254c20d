//! What was said in a dialog, and what its tools have said.

use std::collections::HashMap;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::{desk, dialog, no_such_dialog, unread};
use crate::agent::ports::calls::ABOUT_THE_CONVERSATION;
use crate::agent::ports::chats::ChatRun;
use crate::agent::ports::checkpoints::{CheckpointKind, session_name};
use crate::chat::caller::Owner;
use crate::chat::day::rfc3339 as time;
use crate::chat::fate::CallFate;
use crate::chat::ids::ConversationId;
use crate::chat::message::{AssistantMessage, Message};
use crate::chat::tool::{ToolCall, ToolInput, ToolResult};
use crate::dialect::smithy::history::{Extent, HistoryRun, Page, Told, cut, page};
use crate::dialect::{DecodeError, Mistake};
use crate::http::Services;
use crate::http::auth::Authenticated;
use crate::http::extents::RunExtent;
use crate::http::problem::Problem;

/// Messages of a page, AgentSmithy protocol.
const LIMIT: usize = 20;
const MOST: usize = 200;

/// Characters of a result that its summary shows.
const SUMMARY_CHARS: usize = 100;

/// A part of a history.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Part {
    /// Messages, from 1; more than 200 count as 200. Default 20.
    limit: Option<i64>,
    /// Those before the message of this number.
    before: Option<i64>,
}

/// A page of a history, oldest first.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyHistory)]
pub(super) struct HistoryBody {
    dialog_id: String,
    /// As they were streamed, without starts and ends, the pieces of a segment joined.
    #[schema(value_type = Vec<Object>)]
    events: Vec<Value>,
    total_events: usize,
    has_more: bool,
    /// The number of its first message.
    first_idx: usize,
    /// The number of its last message.
    last_idx: usize,
}

/// A result of a tool in a list.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyResultHead)]
pub(super) struct ResultHead {
    tool_call_id: String,
    tool_name: String,
    timestamp: String,
    size_bytes: usize,
    summary: String,
    error: Option<String>,
}

/// A result of a tool.
#[derive(Serialize, ToSchema)]
#[schema(as = SmithyResult)]
pub(super) struct ResultBody {
    tool_call_id: String,
    tool_name: String,
    #[schema(value_type = Object)]
    args: Value,
    result: Value,
    timestamp: String,
    metadata: ResultMeta,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SmithyResultMeta)]
struct ResultMeta {
    size_bytes: usize,
    summary: String,
}

/// 200 with a page of a dialog's history.
#[utoipa::path(
    get,
    path = "/api/dialogs/{dialog_id}/history",
    operation_id = "smithyHistory",
    tag = "Smithy",
    summary = "Read a dialog's history",
    description = "What its streams have told, in their order. Numbers count the messages of both sides.",
    params(("dialog_id" = String, Path, description = "The caller's own dialog."), Part),
    responses(
        (status = 200, description = "The page.", body = HistoryBody),
        (status = 404, description = "`not_found`: there is no such dialog, it is another's, or there is no workspace."),
        (status = 422, description = "`invalid_request`: a number that is wrong."),
    ),
)]
pub(in crate::http) async fn history(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Json<HistoryBody>, Problem> {
    let wrong = |name| DecodeError::Mistakes(vec![Mistake::new(["query", name], "int_parsing", "must be a number")]);
    let Query(Part { limit, before }) = part.map_err(|_| wrong("limit"))?;
    let limit = usize::try_from(limit.unwrap_or(LIMIT as i64)).ok().filter(|limit| *limit > 0);
    let limit = limit.ok_or_else(|| wrong("limit"))?.min(MOST);
    let before = before.map(|before| usize::try_from(before).map_err(|_| wrong("before"))).transpose()?;
    let (id, _) = dialog(&services, &caller, id).await?;
    let desk = desk(&services, &caller)?;
    let kept = desk.changes.checkpoints((&caller.owner, &id)).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "checkpoints not read for a history");
        Vec::new()
    });
    let before_messages = kept.iter().filter(|checkpoint| checkpoint.kind == CheckpointKind::Message);
    let checkpoints: HashMap<_, _> =
        before_messages.filter_map(|checkpoint| Some((checkpoint.run?, checkpoint))).collect();
    let profiles = services.runs.profiles_for(&caller);
    let tells_reasoning = profiles.iter().any(|known| known.context_type == desk.profile && known.shows_thinking);
    let told = |run: &ChatRun| {
        let waits = |(_, result): &(&ToolCall, &ToolResult)| result.fate == CallFate::AwaitsApproval;
        let run = HistoryRun {
            number: run.run_seq,
            said: said(run),
            checkpoint: checkpoints.get(&run.id).map(|kept| (kept.id.as_str(), session_name(kept.session))),
            answers: answers(run).collect(),
            made: &run.artifacts,
            waiting: made(run).filter(waits).map(|(call, _)| call.name.as_str()).collect(),
        };
        Told::of(&run, tells_reasoning)
    };
    let mut parts = Parts::of(&services, &caller.owner, &id);
    // Of older parts than the newest one only the extent is kept: who scrolls up reads them once more.
    let mut newest: Option<Vec<Told>> = None;
    let dialog = (caller.owner.clone(), id.clone(), tells_reasoning);
    let (mut extents, mut live, mut is_long): (Vec<RunExtent>, _, _) = (Vec::new(), 0, false);
    while let Some(runs) = parts.next().await? {
        let part: Vec<Told> = runs.iter().map(told).collect();
        extents.splice(0..0, runs.iter().map(|run| run.id).zip(part.iter().map(Told::extent)));
        is_long = newest.is_some();
        if newest.is_none() {
            live = runs.iter().position(|run| run.state.is_live()).map_or(0, |first| runs.len() - first);
            newest = Some(part);
        }
        if let Some((first, _)) = extents.first()
            && let Some(before) = desk.extents.before(&dialog, *first)
        {
            is_long = true;
            extents.splice(0..0, before);
            break;
        }
    }
    if is_long {
        desk.extents.keep(dialog, extents[..extents.len() - live].to_vec());
    }
    let extents: Vec<Extent> = extents.into_iter().map(|(_, extent)| extent).collect();
    let cut = cut(&extents, limit, before);
    let mut needed = newest.unwrap_or_default();
    if let Some((first, last)) = cut.runs
        && needed.first().is_none_or(|told| told.extent().run > first)
    {
        needed.clear();
        let mut parts = Parts { before: last.checked_add(1), ..Parts::of(&services, &caller.owner, &id) };
        while let Some(runs) = parts.next().await? {
            needed.splice(0..0, runs.iter().filter(|run| run.run_seq >= first).map(told));
            if parts.before.is_some_and(|before| before <= first) {
                break;
            }
        }
    }
    let Page { events, total, has_more, first, last } = page(cut, &extents, &needed);
    let dialog_id = id.to_string();
    Ok(Json(HistoryBody { dialog_id, events, total_events: total, has_more, first_idx: first, last_idx: last }))
}

/// 200 with the results of a dialog's tools.
#[utoipa::path(
    get,
    path = "/api/dialogs/{dialog_id}/tool-results",
    operation_id = "smithyResults",
    tag = "Smithy",
    summary = "List what a dialog's tools have said",
    description = "Oldest first.",
    params(("dialog_id" = String, Path, description = "The caller's own dialog.")),
    responses(
        (status = 200, description = "The results.", body = Vec<ResultHead>),
        (status = 404, description = "`not_found`: there is no such dialog, it is another's, or there is no workspace."),
    ),
)]
pub(in crate::http) async fn results(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Vec<ResultHead>>, Problem> {
    let (id, _) = dialog(&services, &caller, id).await?;
    let mut parts = Parts::of(&services, &caller.owner, &id);
    let mut heads = Vec::new();
    while let Some(runs) = parts.next().await? {
        let part = runs.iter().flat_map(|run| made(run).map(move |(call, result)| head(run, call, result)));
        heads.splice(0..0, part);
    }
    Ok(Json(heads))
}

/// 200 with one of them.
#[utoipa::path(
    get,
    path = "/api/dialogs/{dialog_id}/tool-results/{tool_call_id}",
    operation_id = "smithyResult",
    tag = "Smithy",
    summary = "Read what a tool has said",
    description = "Of an id that repeats, the newest one.",
    params(
        ("dialog_id" = String, Path, description = "The caller's own dialog."),
        ("tool_call_id" = String, Path, description = "The call."),
    ),
    responses(
        (status = 200, description = "The result.", body = ResultBody),
        (status = 404, description = "`not_found`: there is no such dialog or call, it is another's, or there is no workspace."),
    ),
)]
pub(in crate::http) async fn result(
    State(services): State<Services>,
    Authenticated(caller): Authenticated,
    ids: Result<Path<(String, String)>, PathRejection>,
) -> Result<Json<ResultBody>, Problem> {
    let Path((id, wanted)) = ids.map_err(|_| no_such_dialog())?;
    let (id, _) = dialog(&services, &caller, Ok(Path(id))).await?;
    let mut parts = Parts::of(&services, &caller.owner, &id);
    while let Some(runs) = parts.next().await? {
        let all = runs.iter().flat_map(|run| made(run).map(move |(call, result)| (run, call, result)));
        let newest = all.filter(|(_, call, _)| call.id.as_str() == wanted || call.id.given() == wanted).last();
        if let Some((run, call, result)) = newest {
            return Ok(Json(whole(run, call, result)));
        }
    }
    Err(Problem::not_found("there is no such call"))
}

fn whole(run: &ChatRun, call: &ToolCall, result: &ToolResult) -> ResultBody {
    let ResultHead { tool_call_id, tool_name, timestamp, size_bytes, summary, .. } = head(run, call, result);
    let args = match &call.input {
        ToolInput::Object(args) => Value::Object(args.clone()),
        ToolInput::Invalid(_) => json!({}),
    };
    let result = value(&result.content);
    ResultBody { tool_call_id, tool_name, args, result, timestamp, metadata: ResultMeta { size_bytes, summary } }
}

/// The runs of a dialog in parts of bounded size, the newest part first.
struct Parts<'a> {
    services: &'a Services,
    owner: &'a Owner,
    id: &'a ConversationId,
    /// The number of the run that the last part began with.
    before: Option<i64>,
}

impl<'a> Parts<'a> {
    fn of(services: &'a Services, owner: &'a Owner, id: &'a ConversationId) -> Self {
        Self { services, owner, id, before: None }
    }

    /// The next part, whose runs are in their order; `None` where there is none.
    async fn next(&mut self) -> Result<Option<Vec<ChatRun>>, Problem> {
        let found = self.services.sessions.session_runs(self.owner, self.id, self.before).await.map_err(unread)?;
        let (_, runs) = found.ok_or_else(no_such_dialog)?;
        let Some(first) = runs.first() else { return Ok(None) };
        self.before = Some(first.run_seq);
        Ok(Some(runs))
    }
}

fn said(run: &ChatRun) -> Option<&str> {
    match run.messages.first() {
        Some(Message::User(user)) if !run.by_server => Some(&user.text),
        Some(_) | None => None,
    }
}

fn answers(run: &ChatRun) -> impl Iterator<Item = &AssistantMessage> {
    run.messages.iter().filter_map(|message| match message {
        Message::Assistant(answer) => Some(answer),
        Message::User(_) | Message::ToolResults(_) => None,
    })
}

/// The calls of a run with their results, but for those about the dialog itself.
fn made(run: &ChatRun) -> impl Iterator<Item = (&ToolCall, &ToolResult)> {
    let all = run.messages.windows(2).flat_map(|pair| match pair {
        [Message::Assistant(answer), Message::ToolResults(results)] => answer.calls().zip(results).collect(),
        _ => Vec::new(),
    });
    all.filter(|(call, _)| !ABOUT_THE_CONVERSATION.contains(&call.name.as_str()))
}

fn head(run: &ChatRun, call: &ToolCall, result: &ToolResult) -> ResultHead {
    let error = result.fate.is_error().then(|| match value(&result.content) {
        Value::Object(fields) => fields.get("error").and_then(Value::as_str).unwrap_or_default().to_owned(),
        other => other.to_string(),
    });
    ResultHead {
        tool_call_id: call.id.to_string(),
        tool_name: call.name.clone(),
        timestamp: time(run.started_at_ms),
        size_bytes: result.content.len(),
        summary: result.content.chars().take(SUMMARY_CHARS).collect(),
        error,
    }
}

/// What a tool has said: as JSON where it is some.
fn value(content: &str) -> Value {
    crate::bounded::json::value(content).unwrap_or_else(|_| Value::from(content))
}
