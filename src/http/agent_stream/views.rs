//! Sessions and their messages in JSON bodies.

use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::agent::ports::chats::ChatRun;
use crate::agent::ports::plans::PlanRecord;
use crate::bounded::json as bounded;
use crate::chat::day::rfc3339;
use crate::chat::message::{Author, Message};
use crate::chat::run::RunState;
use crate::chat::session::Session;
use crate::chat::tool::ToolResult;
use crate::dialect::agent_stream::{CacheRow, SessionRow, call};

/// Messages of a session that are shown, the newest.
const SHOWN: usize = 400;

/// Four characters are about a token.
const TOKEN_CHARS: usize = 4;

/// A good answer.
#[derive(Serialize, ToSchema)]
pub(super) struct Data<T> {
    /// Always true.
    success: bool,
    data: T,
}

impl<T> Data<T> {
    pub(super) fn new(data: T) -> Self {
        Self { success: true, data }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = AgentSessionDeleted)]
pub(super) struct Deleted {
    pub(super) deleted: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentSessionClosed)]
pub(super) struct Closed {
    /// Whether it was noted where its user was.
    pub(super) updated: bool,
    pub(super) classification_queued: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentSessionQueued)]
pub(super) struct Queued {
    /// Always true.
    pub(super) queued: bool,
    /// For logs; there is nothing to be read under it.
    pub(super) job_id: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AgentSessions)]
pub(super) struct ListData<'a> {
    sessions: Vec<SessionRow<'a>>,
}

impl<'a> ListData<'a> {
    pub(super) fn from_sessions(sessions: &'a [Session]) -> Self {
        Self { sessions: sessions.iter().map(SessionRow::from_session).collect() }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = AgentSessionOnly)]
pub(super) struct SessionData<'a> {
    session: SessionRow<'a>,
}

impl<'a> SessionData<'a> {
    pub(super) fn from_session(session: &'a Session) -> Self {
        Self { session: SessionRow::from_session(session) }
    }
}

/// A session with its messages in it.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentSessionWhole)]
pub(super) struct OneData<'a> {
    session: WholeSession<'a>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AgentSessionWithMessages)]
struct WholeSession<'a> {
    #[serde(flatten)]
    row: SessionRow<'a>,
    messages: Vec<MessageRow>,
}

impl<'a> OneData<'a> {
    pub(super) fn from_session(session: &'a Session, runs: &[ChatRun], plans: &[PlanRecord]) -> Self {
        let (messages, _) = newest(rows(session, runs, plans));
        Self { session: WholeSession { row: SessionRow::from_session(session), messages } }
    }
}

/// What an agent says next.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentSays)]
pub(super) struct AgentSays {
    pub(super) message: String,
}

/// What is at hand of a place.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = AgentPrewarmed)]
pub(super) enum PrewarmData<'a> {
    Done(Box<PrewarmRow<'a>>),
    Skipped(PrewarmSkipped),
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentPrewarmDone)]
pub(super) struct PrewarmRow<'a> {
    /// Whether something was loaded just now.
    warmed: bool,
    session: SessionRow<'a>,
    /// Whether the session was made for that.
    created: bool,
    /// `missing_entity` in a project's context that says of no project.
    location_skipped_reason: Option<&'static str>,
}

/// Nothing was loaded, and no session made.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentPrewarmSkipped)]
pub(super) struct PrewarmSkipped {
    /// Always false.
    warmed: bool,
    /// Always `missing_entity`.
    reason: &'static str,
}

/// What was loaded ahead.
pub(super) struct Prewarmed {
    pub(super) warmed: bool,
    pub(super) created: bool,
    pub(super) lacks_entity: bool,
    pub(super) location: Option<CacheRow>,
    pub(super) linked: Option<CacheRow>,
}

const MISSING_ENTITY: &str = "missing_entity";

impl<'a> PrewarmData<'a> {
    pub(super) fn missing_entity() -> Self {
        Self::Skipped(PrewarmSkipped { warmed: false, reason: MISSING_ENTITY })
    }

    pub(super) fn from_session(session: &'a Session, what: Prewarmed) -> Self {
        let Prewarmed { warmed, created, lacks_entity, location, linked } = what;
        Self::Done(Box::new(PrewarmRow {
            warmed,
            session: SessionRow::from_session(session).holding(location, linked),
            created,
            location_skipped_reason: lacks_entity.then_some(MISSING_ENTITY),
        }))
    }
}

/// Several sessions, or one.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = AgentSessionsOrOne)]
pub(super) enum ReadData<'a> {
    Several(ListData<'a>),
    One(Box<OneData<'a>>),
}

/// A session beside what its user and the model said.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentSessionView)]
pub(super) struct ViewData<'a> {
    session: SessionRow<'a>,
    messages: Vec<ShortRow>,
    #[schema(value_type = Vec<Object>)]
    voice_note_groups: [u8; 0],
    #[schema(value_type = Vec<Object>)]
    voice_notes: [u8; 0],
    /// Whether there are more.
    truncated: bool,
}

impl<'a> ViewData<'a> {
    pub(super) fn from_session(session: &'a Session, runs: &[ChatRun], plans: &[PlanRecord]) -> Self {
        let said = rows(session, runs, plans).into_iter().filter(|row| matches!(row.role, "user" | "assistant"));
        let (messages, truncated) = newest(said.map(ShortRow::from_row).collect());
        let session = SessionRow::from_session(session);
        Self { session, messages, voice_note_groups: [], voice_notes: [], truncated }
    }
}

/// A message. Every key is always there.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = AgentMessage)]
struct MessageRow {
    id: String,
    session_id: String,
    user_id: String,
    /// `user`, `assistant`, `system` or `tool`.
    role: &'static str,
    content: String,
    #[schema(value_type = Option<Vec<Object>>)]
    tool_calls: Option<Value>,
    tool_call_id: Option<String>,
    tool_name: Option<String>,
    tool_result: Option<Value>,
    message_type: &'static str,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    error_message: Option<String>,
    error_code: Option<String>,
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    operation_ids: Option<Vec<String>>,
    created_at: String,
}

/// The same where calls and their results are left out.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentMessageShort)]
struct ShortRow {
    id: String,
    session_id: String,
    user_id: String,
    role: &'static str,
    content: String,
    #[schema(value_type = Option<Vec<Object>>)]
    tool_calls: Option<Value>,
    tool_call_id: Option<String>,
    created_at: String,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
}

impl ShortRow {
    fn from_row(row: MessageRow) -> Self {
        let MessageRow {
            id, session_id, user_id, role, content, tool_calls, tool_call_id, created_at, metadata, ..
        } = row;
        Self { id, session_id, user_id, role, content, tool_calls, tool_call_id, created_at, metadata }
    }
}

/// The newest rows, oldest first, and whether there were more.
fn newest<T>(mut rows: Vec<T>) -> (Vec<T>, bool) {
    let more = rows.len().saturating_sub(SHOWN);
    (rows.split_off(more), more > 0)
}

/// The messages of a session: of each run its user's, what the server noted, one answer, and the results of its calls.
fn rows(session: &Session, runs: &[ChatRun], plans: &[PlanRecord]) -> Vec<MessageRow> {
    runs.iter().flat_map(|run| of_run(session, run, plans)).collect()
}

/// Who has made the calls of a run that its planner has not made.
fn sources(run: &ChatRun, plans: &[PlanRecord]) -> Vec<Value> {
    let of_plan = |record: &PlanRecord| {
        let (plan, id) = (&record.plan, record.plan.id.to_string());
        let steps = plan.steps.iter().flat_map(|step| {
            (1..).zip(&step.tools).take(step.calls as usize).map(|(place, tool)| {
                json!({"tool_call_id": step.call_id(plan.id, place).as_str(), "tool_name": tool, "source": "plan_step",
                    "planId": id, "stepNumber": step.number})
            })
        });
        let work = record.executions.iter().flat_map(|work| {
            work.calls.iter().map(|call| {
                json!({"tool_call_id": call.id, "tool_name": call.tool, "source": "executor", "planId": id,
                    "stepNumber": work.step.map(|(_, step)| step), "executorId": work.id.to_string()})
            })
        });
        steps.chain(work).collect::<Vec<Value>>()
    };
    plans.iter().rev().filter(|record| record.run == run.id).flat_map(of_plan).collect()
}

fn of_run(session: &Session, run: &ChatRun, plans: &[PlanRecord]) -> Vec<MessageRow> {
    let (mut seq, mut rows) = (0, Vec::new());
    let began = rfc3339(run.started_at_ms);
    let ended = run.finished_at_ms.map_or_else(|| began.clone(), rfc3339);
    let mut row = |role, created_at: &str| {
        seq += 1;
        MessageRow {
            id: format!("{}.{}", run.id, seq - 1),
            session_id: session.id.to_string(),
            user_id: session.user.clone(),
            role,
            created_at: created_at.to_owned(),
            ..MessageRow::default()
        }
    };
    let is_cut_off = matches!(run.state, RunState::Cancelled | RunState::Interrupted);
    let mut messages = run.messages.iter();
    if let Some(Message::User(user)) = messages.next()
        && !run.by_server
    {
        let group = run.context.as_ref().and_then(|context| context.text("voice_note_group_id"));
        let metadata = group.map(|group| json!({ "voice_note_group_id": group }));
        rows.push(MessageRow {
            content: user.text.clone(),
            message_type: "user_message",
            metadata,
            ..row("user", &began)
        });
    }
    let (mut text, mut calls, mut results): (String, Vec<Value>, Vec<&ToolResult>) = Default::default();
    for message in messages {
        match message {
            Message::User(user) if user.author == Author::Move => {
                // Behind the first line is what the model does there.
                let line = user.text.lines().next().unwrap_or_default();
                let content = line.trim_matches(['[', ']']).to_owned();
                rows.push(MessageRow { content, message_type: "context_shift", ..row("system", &ended) });
            }
            Message::User(_) => {}
            Message::Assistant(answer) => {
                answer.texts().for_each(|piece| text.push_str(piece));
                let made = answer.calls().map(|made| json!(call(made.id.as_str(), &made.name, &made.input)));
                calls.extend(made);
            }
            Message::ToolResults(of_turn) => results.extend(of_turn),
        }
    }
    if !text.is_empty() || !calls.is_empty() {
        let number = run
            .context
            .as_ref()
            .map(|context| context.fields())
            .and_then(|fields| fields.get("stream_run_id").cloned());
        let mut metadata = Map::new();
        if is_cut_off {
            let reason = match run.state {
                RunState::Cancelled if run.is_superseded => "superseded",
                RunState::Cancelled => "user_cancelled",
                _ => "shutdown",
            };
            metadata.insert("interrupted".to_owned(), json!(true));
            metadata.insert("interrupted_reason".to_owned(), json!(reason));
            metadata.insert("stream_run_id".to_owned(), json!(number));
            let tokens = text.chars().count().div_ceil(TOKEN_CHARS);
            metadata.insert("partial_tokens".to_owned(), json!(tokens));
        }
        let sources = sources(run, plans);
        if !sources.is_empty() {
            metadata.insert("tool_call_sources".to_owned(), Value::Array(sources));
        }
        let (prompt, completion) = (run.usage.input_tokens, run.usage.output_tokens);
        rows.push(MessageRow {
            content: text,
            tool_calls: (!calls.is_empty()).then_some(Value::Array(calls)),
            message_type: if is_cut_off { "assistant_interrupted" } else { "assistant_message" },
            metadata: (!metadata.is_empty()).then_some(Value::Object(metadata)),
            error_message: run.error.as_ref().map(|error| error.message.clone()),
            error_code: run.error.as_ref().map(|error| error.code.name().to_owned()),
            prompt_tokens: Some(prompt),
            completion_tokens: Some(completion),
            total_tokens: Some(prompt.saturating_add(completion)),
            ..row("assistant", &ended)
        });
    }
    for result in results {
        let read = bounded::value(&result.content).unwrap_or_else(|_| Value::from(result.content.as_str()));
        let words = read.get("error").and_then(Value::as_str).unwrap_or(&result.content).to_owned();
        let error = result.fate.is_error().then_some(words);
        rows.push(MessageRow {
            content: read.to_string(),
            tool_call_id: Some(result.id.to_string()),
            tool_name: Some(result.name.clone()),
            tool_result: Some(read),
            message_type: if is_cut_off { "tool_partial" } else { "tool_result" },
            error_code: error.is_some().then(|| result.fate.name().to_owned()),
            error_message: error,
            ..row("tool", &ended)
        });
    }
    rows
}
