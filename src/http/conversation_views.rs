//! What conversations look like in JSON bodies: serde counterparts of the port's views, which have none by law.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::{Object, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::approvals::ApprovalBody;
use super::versions::{Tree, VersionsBody};
use super::views::{FeedbackBody, RunBody, UsedBody};
use crate::agent::ports::conversations::{
    ArtifactExport, CallView, ConversationHead, ConversationView, MessageExport, MessageView, Paged, PayloadExport,
    Role, RunExport, TrailItem,
};
use crate::chat::approval::Standing;
use crate::chat::artifact::{CallArtifact, HelperOf};
use crate::chat::day::rfc3339 as time;
use crate::chat::file::FileRef;
use crate::chat::ids::{FileId, RunId};
use crate::chat::origin::CallOrigin;
use crate::dialect::bodies::{NoticeBody, PlaceBody};

/// A part of the list of conversations.
#[derive(Serialize, ToSchema)]
#[schema(as = ConversationList)]
pub(super) struct ListBody {
    items: Vec<HeadBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl ListBody {
    pub(super) fn from_page(page: Paged<ConversationHead>) -> Self {
        Self { items: page.items.into_iter().map(HeadBody::from_head).collect(), next_cursor: page.next }
    }
}

/// A conversation in a list.
#[derive(Serialize, ToSchema)]
#[schema(as = ConversationHead)]
pub(super) struct HeadBody {
    id: String,
    title: String,
    context_type: String,
    created_at: String,
    updated_at: String,
    message_count: u64,
    /// Where it is; not every conversation has a place.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<PlaceBody>,
    /// Whether lists have it first.
    pinned: bool,
    /// Whether only the list of archived ones has it.
    archived: bool,
}

impl HeadBody {
    pub(super) fn from_head(head: ConversationHead) -> Self {
        Self {
            id: head.id.to_string(),
            title: head.title,
            context_type: head.context_type,
            created_at: time(head.created_at_ms),
            updated_at: time(head.updated_at_ms),
            message_count: head.message_count,
            place: head.place.as_ref().map(PlaceBody::from_place),
            pinned: head.pinned,
            archived: head.archived,
        }
    }
}

/// A conversation with its messages.
#[derive(Serialize, ToSchema)]
#[schema(as = Conversation)]
pub(super) struct ConversationBody {
    #[serde(flatten)]
    head: HeadBody,
    /// The run that still answers, to be read by whoever comes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    live_run_id: Option<String>,
    /// Of the branch, oldest first: the newest ones, or those before the cursor.
    messages: Vec<MessageBody>,
    /// The runs of these messages, oldest first, also those that brought none.
    runs: Vec<RunBody>,
    /// Where the messages before these are; absent when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    /// What its user thinks of the answers among them, in the order of their runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    feedback: Vec<FeedbackBody>,
    /// What all of its runs have used.
    usage: UsedBody,
}

impl ConversationBody {
    pub(super) fn from_view(view: ConversationView, live: Option<RunId>, tree: &Tree) -> Self {
        let with_versions = |message: MessageView| {
            let asking = matches!(message.role, Role::User).then_some(message.id.run);
            let (versions, answers) =
                (asking.and_then(|run| tree.questions(run)), asking.and_then(|run| tree.answers(run)));
            MessageBody { versions, answers, ..MessageBody::from_message(message) }
        };
        Self {
            head: HeadBody::from_head(view.head),
            live_run_id: live.map(|run| run.to_string()),
            messages: view.messages.into_iter().map(with_versions).collect(),
            runs: view.runs.iter().map(RunBody::from_run).collect(),
            next_cursor: view.earlier,
            feedback: view.feedback.into_iter().map(FeedbackBody::from_kept).collect(),
            usage: UsedBody::from_used(view.used),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Message)]
struct MessageBody {
    id: String,
    role: &'static str,
    text: String,
    /// The files that belong to it; they may be gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<MessageFileBody>,
    /// What the server told beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<NoticeBody>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallBody>,
    created_at: String,
    /// Of a message that was edited: all its texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    versions: Option<VersionsBody>,
    /// Of a message that was answered more than once: all its answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<VersionsBody>,
}

impl MessageBody {
    fn from_message(message: MessageView) -> Self {
        Self {
            id: message.id.to_string(),
            role: role(message.role),
            text: message.text,
            files: message.files.into_iter().map(MessageFileBody::of).collect(),
            notices: message.notices.iter().map(NoticeBody::of).collect(),
            tool_calls: message.calls.into_iter().map(CallBody::from_call).collect(),
            created_at: time(message.created_at_ms),
            versions: None,
            answers: None,
        }
    }
}

/// A file of a message.
#[derive(Serialize, ToSchema)]
#[schema(as = MessageFile)]
struct MessageFileBody {
    id: String,
    name: String,
    media_type: &'static str,
    bytes: u64,
    /// Where its bytes are.
    url: String,
}

impl MessageFileBody {
    fn of(FileRef { id, kind, name, bytes, .. }: FileRef) -> Self {
        let url = format!("/v1/agent/files/{id}/content");
        Self { id: id.to_string(), name, media_type: kind.media_type(), bytes, url }
    }
}

/// The name of a role.
pub(super) fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = ToolCall)]
struct CallBody {
    id: String,
    name: String,
    state: &'static str,
    /// Of one that needs an approval: `pending`, `granted`, `approved`, `rejected` or `expired`.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<&'static str>,
    /// What it has made for the screen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<ArtifactBody>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = KeptArtifact)]
struct ArtifactBody {
    /// As the stream's events are called.
    kind: String,
    /// As its kind says.
    payload: serde_json::Value,
    #[serde(flatten)]
    helper: HelperBody,
}

/// The helper that has made the call of an artifact; both are absent where the model that answers has.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = ArtifactHelper)]
struct HelperBody {
    /// Its plan, step and sub-agent: `plan_id`, `step`, `agent_id`, each of them `null` where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    origin: Option<CallOrigin>,
    /// The call of the model that answers, which it works for.
    #[serde(skip_serializing_if = "Option::is_none")]
    for_tool_call_id: Option<String>,
}

impl HelperBody {
    fn of(helper: Option<HelperOf>) -> Self {
        helper.map_or_else(Self::default, |HelperOf { call, origin }| Self {
            origin: Some(origin),
            for_tool_call_id: Some(call.to_string()),
        })
    }
}

impl CallBody {
    fn from_call(call: CallView) -> Self {
        let artifact = |CallArtifact { artifact, helper, .. }| ArtifactBody {
            kind: artifact.kind.into_owned(),
            payload: artifact.payload,
            helper: HelperBody::of(helper),
        };
        let artifacts = call.artifacts.into_iter().map(artifact).collect();
        let approval = call.approval.map(Standing::name);
        Self { id: call.id, name: call.name, state: call.fate.name(), approval, artifacts }
    }
}

/// All of a conversation.
#[derive(ToSchema)]
#[schema(as = ConversationExport)]
#[expect(dead_code, reason = "it is written part by part, and never whole")]
pub(super) struct ExportBody {
    conversation: HeadBody,
    runs: Vec<RunExportBody>,
    payloads: Vec<PayloadExportBody>,
    artifacts: Vec<ArtifactExportBody>,
    approvals: Vec<ApprovalBody>,
    trail: Vec<TrailItemBody>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ExportedRun)]
pub(super) struct RunExportBody {
    #[serde(flatten)]
    run: RunBody,
    context_type: String,
    /// `null` at the beginning.
    parent_message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    context: Option<Box<RawValue>>,
    /// What its user thinks of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<FeedbackBody>,
    messages: Vec<MessageExportBody>,
}

impl RunExportBody {
    /// The run, and no message yet.
    pub(super) fn from_export(export: RunExport) -> Self {
        Self {
            run: RunBody::from_run(&export.run),
            context_type: export.run.context_type,
            parent_message_id: export.parent.map(|parent| parent.to_string()),
            context: export.context,
            feedback: export.feedback.map(FeedbackBody::from_kept),
            messages: Vec::new(),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = ExportedPayload)]
pub(super) struct PayloadExportBody {
    run_id: String,
    payload_id: String,
    r#type: String,
    /// As its kind says.
    #[schema(value_type = Value)]
    data: Box<RawValue>,
    summary: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ExportedArtifact)]
pub(super) struct ArtifactExportBody {
    run_id: String,
    /// The call that made it.
    tool_call_id: String,
    kind: String,
    /// As its kind says.
    #[schema(value_type = Value)]
    payload: Box<RawValue>,
    #[serde(flatten)]
    helper: HelperBody,
}

impl ArtifactExportBody {
    pub(super) fn from_export(export: ArtifactExport) -> Self {
        let ArtifactExport { run, call, helper, kind, body } = export;
        let helper = HelperBody::of(helper);
        Self { run_id: run.to_string(), tool_call_id: call, kind, payload: body, helper }
    }
}

impl PayloadExportBody {
    pub(super) fn from_export(export: PayloadExport) -> Self {
        let PayloadExport { run, id, kind, summary, data } = export;
        Self { run_id: run.to_string(), payload_id: id.to_string(), r#type: kind, data, summary }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = ExportedMessage)]
pub(super) struct MessageExportBody {
    id: String,
    kind: String,
    created_at: String,
    #[schema(value_type = Value)]
    body: Box<RawValue>,
    /// The files that it names. What is in them is not part of an export: it is at their `url`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileExportBody>,
}

/// A file of a message.
#[derive(Serialize, ToSchema)]
#[schema(as = ExportedFile)]
struct FileExportBody {
    #[serde(flatten)]
    file: MessageFileBody,
    /// Whether its bytes are still there.
    is_kept: bool,
}

impl MessageExportBody {
    /// The message, of whose files these are `kept`.
    pub(super) fn from_message(message: MessageExport, kept: &HashSet<FileId>) -> Self {
        let files = message
            .files
            .into_iter()
            .map(|file| FileExportBody { is_kept: kept.contains(&file.id), file: MessageFileBody::of(file) });
        Self {
            id: message.id.to_string(),
            kind: message.kind,
            created_at: time(message.created_at_ms),
            body: message.body,
            files: files.collect(),
        }
    }
}

/// A part of a trail.
#[derive(Serialize, ToSchema)]
#[schema(as = Trail)]
pub(super) struct TrailBody {
    items: Vec<TrailItemBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl TrailBody {
    pub(super) fn from_page(page: Paged<TrailItem>) -> Self {
        Self { items: page.items.into_iter().map(TrailItemBody).collect(), next_cursor: page.next }
    }
}

/// An entry: when, what and in which run, and whatever else was kept of it beside that.
pub(super) struct TrailItemBody(pub(super) TrailItem);

impl Serialize for TrailItemBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(item) = self;
        let Fields(fields) = serde_json::from_str(item.body.get()).map_err(serde::ser::Error::custom)?;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at", &time(item.at_ms))?;
        map.serialize_entry("kind", &item.kind)?;
        map.serialize_entry("run_id", &item.run.map(|run| run.to_string()))?;
        for (name, value) in fields.iter().filter(|(name, _)| !matches!(name.as_str(), "at" | "kind" | "run_id")) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl PartialSchema for TrailItemBody {
    fn schema() -> RefOr<Schema> {
        let text = || Object::with_type(Type::String);
        let run = Object::builder().schema_type(SchemaType::Array(vec![Type::String, Type::Null]));
        let fields = Object::builder().property("at", text()).property("kind", text()).property("run_id", run);
        let fields = fields.required("at").required("kind").required("run_id");
        fields.description(Some("What happened; its kind says which other fields there are.")).build().into()
    }
}

impl ToSchema for TrailItemBody {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("TrailItem")
    }
}

/// The fields of a JSON object in their order, each as it was written, however deep.
struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Each)
    }
}
