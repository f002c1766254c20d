//! Results as they are written.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::message::{Era, TASKS, spoken};
use super::outline::Id;
use crate::chat::approval::Approval;
use crate::chat::run::RunState;
use crate::chat::tool::ToolDef;

/// How long a client may take what is listed for true: a minute, in milliseconds.
const FRESH_MS: u64 = 60_000;

/// How long a client waits before it looks at a task again, in milliseconds.
const POLL_MS: u64 = 1000;

/// 8 KiB of arguments are shown to whoever is asked; what has more is looked at where there is room for it.
const SHOWN_BYTES: usize = 8 * 1024;

/// The answer to the request `id`.
pub fn result(id: &Id, result: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Body<'a, R> {
        jsonrpc: &'static str,
        id: &'a Id,
        result: &'a R,
    }
    // Texts, numbers and JSON always serialise.
    serde_json::to_vec(&Body { jsonrpc: "2.0", id, result }).unwrap_or_default()
}

/// This server.
#[derive(Debug, Serialize)]
pub struct ServerBody {
    name: &'static str,
    title: &'static str,
    version: &'static str,
}

impl ServerBody {
    /// It.
    pub const THIS: Self = Self { name: "switchboard", title: "Switchboard", version: env!("CARGO_PKG_VERSION") };
}

/// What a result says besides, in the era in which it says so.
#[derive(Debug, Serialize)]
pub(super) struct MetaBody {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server: ServerBody,
}

/// What every result of the modern era has.
#[derive(Debug, Serialize)]
pub(super) struct Frame {
    #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<MetaBody>,
}

impl Frame {
    fn of(kind: &'static str, era: Era) -> Self {
        match era {
            Era::Legacy => Self { kind: None, meta: None },
            Era::Modern => Self { kind: Some(kind), meta: Some(MetaBody { server: ServerBody::THIS }) },
        }
    }
}

/// How long it is true, and for whom.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TtlBody {
    ttl_ms: u64,
    cache_scope: &'static str,
}

impl TtlBody {
    const USUAL: Self = Self { ttl_ms: FRESH_MS, cache_scope: "private" };
}

/// What is said to an `initialize`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeBody {
    protocol_version: &'static str,
    capabilities: Value,
    server_info: ServerBody,
}

impl InitializeBody {
    /// To a client that speaks `version`: that, or the newest that has an `initialize`.
    pub fn to(version: &str) -> Self {
        let known = super::LEGACY.into_iter().find(|known| *known == version);
        Self {
            protocol_version: known.unwrap_or(super::LEGACY[0]),
            capabilities: json!({"tools": {}}),
            server_info: ServerBody::THIS,
        }
    }
}

/// What is said to a `server/discover`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverBody {
    supported_versions: Vec<&'static str>,
    capabilities: Value,
    #[serde(flatten)]
    ttl: TtlBody,
    #[serde(flatten)]
    frame: Frame,
}

impl Default for DiscoverBody {
    fn default() -> Self {
        Self {
            supported_versions: spoken(),
            capabilities: json!({"tools": {}, "extensions": {TASKS: {}}}),
            ttl: TtlBody::USUAL,
            frame: Frame::of("complete", Era::Modern),
        }
    }
}

/// An empty result.
pub fn complete(era: Era) -> impl Serialize {
    Frame::of("complete", era)
}

/// A tool as it is listed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolBody<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a str>,
    /// Its effect.
    pub description: Cow<'a, str>,
    /// The schema of its arguments.
    pub input_schema: Cow<'a, Value>,
    /// The schema of its structured result, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What its calls do.
    pub annotations: AnnotationsBody,
}

/// What calls of a tool do.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AnnotationsBody {
    /// Nothing that another call would not.
    pub read_only_hint: bool,
    /// Maybe something that cannot be taken back.
    pub destructive_hint: bool,
    /// Something in the world.
    pub open_world_hint: bool,
}

/// The tools.
#[derive(Debug, Serialize)]
pub struct ToolListBody<'a> {
    tools: Vec<ToolBody<'a>>,
    #[serde(flatten)]
    ttl: TtlBody,
    #[serde(flatten)]
    frame: Frame,
}

impl<'a> ToolListBody<'a> {
    /// These.
    pub fn of(tools: Vec<ToolBody<'a>>, era: Era) -> Self {
        Self { tools, ttl: TtlBody::USUAL, frame: Frame::of("complete", era) }
    }
}

/// The schema of what a profile is asked.
pub fn ask_input_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "message": {"type": "string", "description": "The question or task, in words. It has to say all that is needed."},
            "conversation_id": {
                "type": "string",
                "description": "Goes on with an earlier conversation: the conversation_id of an earlier result. Left out, a new one begins.",
            },
            "answer_schema": {
                "type": "object",
                "description": "A JSON Schema. The answer is JSON that fits it, and the result has it as data.",
            },
        },
        "required": ["message"],
        "additionalProperties": false,
    })
}

/// The schema of what it answers.
pub fn ask_output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "answer": {"type": "string"},
            "conversation_id": {"type": "string", "description": "Goes on with this conversation in another call."},
            "run_id": {"type": "string"},
            "state": {"type": "string", "enum": RunState::ALL.map(RunState::name)},
            "data": {"type": "object", "description": "The answer, where it is a JSON object."},
        },
        "required": ["answer", "conversation_id", "run_id", "state"],
    })
}

/// A schema without the marks that would have clients repeat arguments in headers: those of other servers are not ours to check.
pub fn without_header_marks(schema: &Value) -> Cow<'_, Value> {
    fn has_mark(value: &Value) -> bool {
        match value {
            Value::Object(fields) => fields.iter().any(|(name, value)| name == MARK || has_mark(value)),
            Value::Array(items) => items.iter().any(has_mark),
            _ => false,
        }
    }
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.shift_remove(MARK);
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    if !has_mark(schema) {
        return Cow::Borrowed(schema);
    }
    let mut stripped = schema.clone();
    strip(&mut stripped);
    Cow::Owned(stripped)
}

const MARK: &str = "x-mcp-header";

/// A call's result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallBody<'a> {
    pub(super) content: Vec<ContentBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) structured_content: Option<StructuredBody<'a>>,
    pub(super) is_error: bool,
    #[serde(flatten)]
    pub(super) frame: Frame,
}

/// A part of a result.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum ContentBody<'a> {
    Text {
        text: Cow<'a, str>,
    },
    /// A file that is kept: its bytes are given to whom the result is for.
    ResourceLink {
        uri: String,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
}

impl<'a> ContentBody<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// What a program reads of a result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum StructuredBody<'a> {
    Answer {
        answer: &'a str,
        conversation_id: &'a str,
        run_id: String,
        state: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Box<RawValue>>,
    },
    Json(Box<RawValue>),
}

impl<'a> CallBody<'a> {
    pub(super) fn of(
        content: Vec<ContentBody<'a>>,
        structured: Option<StructuredBody<'a>>,
        is_error: bool,
        era: Era,
    ) -> Self {
        Self { content, structured_content: structured, is_error, frame: Frame::of("complete", era) }
    }
}

/// A call that goes on when its client has asked its user.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InputRequiredBody {
    input_requests: BTreeMap<String, Value>,
    request_state: String,
    #[serde(flatten)]
    frame: Frame,
}

impl InputRequiredBody {
    pub(super) fn of(input_requests: BTreeMap<String, Value>, request_state: String) -> Self {
        Self { input_requests, request_state, frame: Frame::of("input_required", Era::Modern) }
    }
}

/// A call that waits, as far as whoever is asked about it has to see it.
pub(super) struct Waiting<'a> {
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) digest: &'a str,
}

/// The form by which its client asks about it; `None` where there is too much to show.
pub(super) fn form(waiting: &Waiting<'_>) -> Option<Value> {
    // Values always serialise.
    let arguments = serde_json::to_string_pretty(waiting.arguments).unwrap_or_default();
    if arguments.len() > SHOWN_BYTES {
        return None;
    }
    let message = format!(
        "The assistant wants to call {}. It is called only if you approve, and with these arguments:\n{arguments}\n(digest {})",
        waiting.tool, waiting.digest
    );
    Some(json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": message,
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "decision": {"type": "string", "title": "Decision", "enum": ["approve", "reject"]},
                    "comment": {"type": "string", "title": "Comment", "description": "Why; the assistant reads it."},
                },
                "required": ["decision"],
            },
        },
    }))
}

/// The forms for calls that wait, by their approvals; `None` where there is none, or one of them cannot be asked about.
pub fn elicited<'a>(approvals: impl IntoIterator<Item = &'a Approval>) -> Option<BTreeMap<String, Value>> {
    let forms = approvals.into_iter().map(|approval| {
        if approval.consent.wire_fields().1.is_some() {
            return None;
        }
        let Approval { tool, arguments, digest, .. } = approval;
        Some((approval.id.to_string(), form(&Waiting { tool, arguments, digest })?))
    });
    let forms: Option<BTreeMap<_, _>> = forms.collect();
    forms.filter(|forms| !forms.is_empty())
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the protocol's names")]
pub enum TaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

/// A task.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskBody {
    task_id: String,
    status: TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<String>,
    created_at: String,
    last_updated_at: String,
    /// None: as long as its conversation is there.
    ttl_ms: Option<u64>,
    poll_interval_ms: u64,
    #[serde(flatten)]
    outcome: Option<TaskOutcome>,
    #[serde(flatten)]
    frame: Frame,
}

/// What a task has come to.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum TaskOutcome {
    /// Its client has to ask this.
    InputRequests(BTreeMap<String, Value>),
    /// A call's result.
    Result(Box<RawValue>),
    /// An error.
    Error(Value),
}

impl TaskBody {
    /// The task that a run is, which was begun and changed at these times.
    pub(super) fn begun(run: String, at: String) -> Self {
        let frame = Frame::of("task", Era::Modern);
        Self { frame, ..Self::of(run, (TaskStatus::Working, None), (at.clone(), at), None) }
    }

    /// The task as it stands.
    pub fn of(
        run: String,
        (status, status_message): (TaskStatus, Option<String>),
        (created_at, last_updated_at): (String, String),
        outcome: Option<TaskOutcome>,
    ) -> Self {
        Self {
            task_id: run,
            status,
            status_message,
            created_at,
            last_updated_at,
            ttl_ms: None,
            poll_interval_ms: POLL_MS,
            outcome,
            frame: Frame::of("complete", Era::Modern),
        }
    }
}

impl<'a> ToolBody<'a> {
    /// A tool of a profile.
    pub fn of_def(def: &'a ToolDef, only_reads: bool) -> Self {
        Self {
            name: Cow::Borrowed(&def.name),
            title: None,
            description: Cow::Borrowed(&def.description),
            input_schema: without_header_marks(&def.input_schema),
            output_schema: None,
            annotations: AnnotationsBody {
                read_only_hint: only_reads,
                destructive_hint: !only_reads,
                open_world_hint: true,
            },
        }
    }
}
