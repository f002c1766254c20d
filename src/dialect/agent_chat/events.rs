//! The data of each event of the native protocol, and the list of them that the API's description is made of.

use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::chat::origin::CallOrigin;
use crate::dialect::bodies::{NoticeBody, PayloadBody, PlaceChangeBody, SuggestionsBody, SummaryBody};
use crate::dialect::directive::DirectiveBody;
use crate::dialect::operation::OperationBody;
use crate::dialect::state::{ClarificationBody, ContextUsageBody, RecapBody};

/// A model call begins.
#[derive(Serialize, ToSchema)]
pub(super) struct MessageStart {
    /// Counted from 0.
    pub(super) turn: u32,
}

/// How the data of a piece of text begins, in front of the text: a `ContentChunk`.
pub(super) const CHUNK: &str = "{\"chunk\":";

/// A piece of text.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what is written as a frame of text")]
struct ContentChunk {
    /// The pieces of an answer, joined, are its text.
    chunk: String,
}

/// The model named a tool.
#[derive(Serialize, ToSchema)]
pub(super) struct ToolCallStart<'a> {
    /// The call.
    pub(super) tool_use_id: &'a str,
    /// The tool.
    pub(super) name: &'a str,
    /// Who makes it, where that is a step of a plan or a sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Value>)]
    pub(super) origin: Option<CallOrigin>,
}

/// How far a tool has come.
#[derive(Serialize, ToSchema)]
pub(super) struct ToolCallProgress<'a> {
    /// The call.
    pub(super) tool_use_id: &'a str,
    /// The tool.
    pub(super) name: &'a str,
    /// What it is at, for programs.
    pub(super) stage: &'a str,
    /// The same for people.
    pub(super) message: &'a str,
    /// How much is done, where the tool knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1, nullable = false)]
    pub(super) fraction: Option<f64>,
    /// Who makes it, where that is a step of a plan or a sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Value>)]
    pub(super) origin: Option<CallOrigin>,
}

/// A tool has run. Its result goes to the model alone.
#[derive(Serialize, ToSchema)]
pub(super) struct ToolCallResult<'a> {
    /// The call.
    pub(super) tool_use_id: &'a str,
    /// The tool.
    pub(super) name: &'a str,
    /// Whether the model reads an error.
    pub(super) is_error: bool,
    /// `unknown` where nobody knows whether the call took effect; left out otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) state: Option<&'a str>,
    /// Who makes it, where that is a step of a plan or a sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Value>)]
    pub(super) origin: Option<CallOrigin>,
}

/// The run ended early.
#[derive(Serialize, ToSchema)]
#[schema(as = RunError)]
pub(super) struct Error<'a> {
    /// What went wrong, for people; may change at any time.
    pub(super) message: &'a str,
    /// The same for programs: `docs/ERRORS.md` lists them.
    #[schema(example = "provider_timeout")]
    pub(super) code: &'a str,
    /// Whether the same request may succeed later.
    pub(super) retryable: bool,
    /// The HTTP request that began the run.
    pub(super) request_id: &'a str,
}

/// The answer is complete.
#[derive(Serialize, ToSchema)]
pub(super) struct MessageComplete {}

/// A rule that waits for its user to accept it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what a tool makes")]
struct WorkflowPreview {
    /// What changes, in words.
    description: String,
    /// As validated: names resolved, edges made.
    workflow: Value,
    /// Whether it replaces a rule.
    is_update: bool,
    /// The rule that it replaces.
    #[schema(nullable = false)]
    workflow_id: Option<String>,
    /// What is decided.
    preview_id: String,
}

/// A table configuration that waits for its user to accept it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what a tool makes")]
struct TableConfigPreview {
    /// What changes, in words.
    description: String,
    /// As validated.
    config: Value,
    /// Whether it replaces a configuration.
    is_update: bool,
    /// The configuration that it replaces.
    #[schema(nullable = false)]
    config_id: Option<String>,
    /// Its name.
    #[schema(nullable = false)]
    name: Option<String>,
    /// What is decided.
    preview_id: String,
}

/// A call that waits for a person.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what the loop makes")]
struct ApprovalRequest {
    /// What is decided.
    approval_id: String,
    /// The tool.
    tool: String,
    /// What it is called with when somebody approves.
    #[schema(value_type = Object)]
    arguments: Value,
    /// Of the tool as it is now, and of the arguments: a decision may name it, and is refused when another call waits.
    digest: String,
    /// `user` for the run's own user, `role` for somebody with `role`.
    #[schema(pattern = "^(user|role)$")]
    needs: String,
    /// The role.
    #[schema(nullable = false)]
    role: Option<String>,
    /// Only true: it has to be somebody else than the run's own user, whatever their roles.
    #[schema(nullable = false)]
    not_requester: Option<bool>,
    /// Milliseconds since 1970.
    expires_at_ms: i64,
    /// The call, in the run that asked.
    #[schema(nullable = false)]
    tool_use_id: Option<String>,
}

/// The state of the workspace's files that was kept before a message.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what the loop makes")]
struct CheckpointKept {
    /// What it is restored by.
    checkpoint_id: String,
    /// `session_1`, `session_2`, …
    session: String,
}

/// A file of the workspace that a tool has changed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what a tool makes")]
struct FileEdit {
    /// The file's absolute path.
    file: String,
    /// The change as a unified diff; not there where one side is no text, or too large.
    #[schema(nullable = false)]
    diff: Option<String>,
    /// Lines that are new.
    #[schema(nullable = false)]
    added: Option<usize>,
    /// Lines that are gone.
    #[schema(nullable = false)]
    removed: Option<usize>,
}

/// A file that a tool has made, kept for its user.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what a tool makes")]
struct FileMade {
    id: String,
    name: String,
    /// What is inside, `image/png` for instance.
    media_type: String,
    /// Its size.
    bytes: u64,
    /// Where its bytes are, for its user's token.
    url: String,
}

/// One event, for the API's description.
#[derive(Debug, Clone, Copy)]
pub struct Described {
    /// Its name on the wire.
    pub event: &'static str,
    /// When it is sent, in words.
    pub when: &'static str,
    /// The name of its data's schema.
    pub data: &'static str,
}

/// The description of all events.
pub const ABOUT: &str = "One event. The last one, and only that, is `message_complete` or `error`. Ignore events whose names you do not know.";

/// Every event of the protocol, in the order of its document.
pub const EVENTS: [Described; 24] = [
    described(
        "place_changed",
        "The conversation is somewhere else: by its request, first, or by a tool.",
        "PlaceChange",
    ),
    described(
        "context_usage",
        "How much of its budget the conversation takes; only where the profile has one.",
        "ContextUsage",
    ),
    described(
        "checkpoint",
        "The files of the workspace were kept, before anything touches them; only of profiles that work on files.",
        "CheckpointKept",
    ),
    described(
        "summary",
        "Not all that was said before fits the model: a summary stands for the rest, and is waited for where there is none yet; a pair, before the first turn.",
        "SummaryPhase",
    ),
    described("message_start", "A model call begins.", "MessageStart"),
    described(
        "clarification",
        "The answer are questions, whose text follows; only where the profile asks first.",
        "Clarification",
    ),
    described(
        "notice",
        "The model that answers is not shown some of the message's files; before its text, each file once in a run.",
        "Notice",
    ),
    described("content_chunk", "A piece of the answer.", "ContentChunk"),
    described("thinking_chunk", "A piece of the model's reasoning; only where the profile shows it.", "ContentChunk"),
    described("tool_call_start", "The model named a tool. Its arguments are never sent.", "ToolCallStart"),
    described("tool_call_progress", "A tool tells how far it has come.", "ToolCallProgress"),
    described("tool_call_result", "The tool has run. Its result goes to the model alone.", "ToolCallResult"),
    described(
        "operation",
        "A call does something to a thing that its user knows: as it begins, and when it has its result; only where its tool's file says so.",
        "Operation",
    ),
    described(
        "directive",
        "A directive that a call has requested, and each state that it is in while that call is made.",
        "DirectiveNotice",
    ),
    described("workflow_preview", "A rule waits for its user to accept it.", "WorkflowPreview"),
    described("table_config_preview", "A table configuration waits for its user to accept it.", "TableConfigPreview"),
    described("file_edit", "A tool has changed a file of the workspace; behind its call's result.", "FileEdit"),
    described("file", "A tool has made a file, which is kept; behind its call's result.", "FileMade"),
    described("approval_request", "A call waits for a person; right before the end of the run.", "ApprovalRequest"),
    described("payload", "Structured data that a tool returned, or that the model wrote.", "Payload"),
    described("suggestions", "What the model suggests to say or do next; once, after all text.", "Suggestions"),
    described(
        "recap",
        "What the turn was about, right before its end, or what a move by a tool led to; only where the profile wants it.",
        "Recap",
    ),
    described("error", "The run ended early. Nothing follows.", "RunError"),
    described("message_complete", "The answer is complete. Nothing follows.", "MessageComplete"),
];

const fn described(event: &'static str, when: &'static str, data: &'static str) -> Described {
    Described { event, when, data }
}

/// The schemas of all events' data, by their names.
pub fn schemas() -> Vec<(String, RefOr<Schema>)> {
    let mut all = Vec::new();
    add::<PlaceChangeBody>(&mut all);
    add::<ContextUsageBody>(&mut all);
    add::<CheckpointKept>(&mut all);
    add::<SummaryBody>(&mut all);
    add::<MessageStart>(&mut all);
    add::<ClarificationBody>(&mut all);
    add::<NoticeBody>(&mut all);
    add::<ContentChunk>(&mut all);
    add::<ToolCallStart<'_>>(&mut all);
    add::<ToolCallProgress<'_>>(&mut all);
    add::<ToolCallResult<'_>>(&mut all);
    add::<OperationBody<'_>>(&mut all);
    add::<DirectiveBody<'_>>(&mut all);
    add::<WorkflowPreview>(&mut all);
    add::<TableConfigPreview>(&mut all);
    add::<FileEdit>(&mut all);
    add::<FileMade>(&mut all);
    add::<ApprovalRequest>(&mut all);
    add::<PayloadBody<'_>>(&mut all);
    add::<SuggestionsBody>(&mut all);
    add::<RecapBody>(&mut all);
    add::<Error<'_>>(&mut all);
    add::<MessageComplete>(&mut all);
    all
}

/// The schema of `T`, and those that it refers to.
fn add<T: ToSchema + PartialSchema>(all: &mut Vec<(String, RefOr<Schema>)>) {
    all.push((T::name().into_owned(), T::schema()));
    T::schemas(all);
}
