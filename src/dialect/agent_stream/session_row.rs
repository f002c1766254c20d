//! Sessions and calls as this protocol shows them, in streams and in the answers of its other routes.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::request::is_in_project;
use super::state;
use crate::chat::day::rfc3339;
use crate::chat::place::Place;
use crate::chat::session::Session;
use crate::chat::tool::ToolInput;

/// The title of a session that was given none.
const TITLE: &str = "Agent Session";

/// A session. Every key is always there.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentSession)]
pub struct SessionRow<'a> {
    id: &'a str,
    user_id: &'a str,
    context_type: &'a str,
    entity_id: Option<&'a str>,
    /// Always `active`.
    status: &'static str,
    title: &'a str,
    auto_title: Option<&'a str>,
    summary: Option<&'a str>,
    chat_topics: Option<Vec<&'a str>>,
    chat_type: Option<&'a str>,
    agent_metadata: Metadata<'a>,
    #[schema(value_type = Option<Object>)]
    preferences: Option<&'a RawValue>,
    auto_accept_operations: bool,
    /// Messages of the user, and answers.
    message_count: u64,
    tool_call_count: u64,
    total_tokens_used: u64,
    compressed_at: Option<String>,
    archived_at: Option<&'a str>,
    last_message_at: Option<String>,
    last_classified_at: Option<String>,
    created_at: String,
    updated_at: String,
}

/// What is known of a session besides.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentSessionMetadata)]
struct Metadata<'a> {
    #[schema(value_type = Option<Object>)]
    focus: Option<&'a RawValue>,
    /// How much of its budget it took in its newest turn.
    #[serde(rename = "lastContextUsage", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, nullable = false)]
    context_usage: Option<Value>,
    /// What was said and asked before a project is made.
    #[serde(rename = "projectClarification", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, nullable = false)]
    clarification: Option<Value>,
    /// What is at hand of its place; only where data is loaded ahead.
    #[serde(rename = "locationContextCache", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    location: Option<CacheRow>,
    /// What is at hand of the things that belong to its focus; only there.
    #[serde(rename = "linkedEntitiesCache", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    linked: Option<CacheRow>,
}

/// Data that is at hand: never what it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgentSessionCache)]
pub struct CacheRow {
    /// What it is of.
    cache_key: String,
    /// Since when it is at hand, in milliseconds since the Unix epoch.
    loaded_at: i64,
}

impl CacheRow {
    /// What is at hand of `place`.
    pub fn location(place: &Place, loaded_at: i64) -> Self {
        let of_focus = || project_of(place).filter(|_| is_in_project(&place.context_type));
        let entity = entity_id(place).map(str::to_owned).or_else(of_focus).unwrap_or_else(|| "global".to_owned());
        Self { cache_key: format!("location:{}:{entity}", place.context_type), loaded_at }
    }

    /// What is at hand of the things that belong to the focus of `place`.
    pub fn linked(place: &Place, loaded_at: i64) -> Self {
        let text = |name: &str| place.focus.as_ref().and_then(|focus| focus.text(name)).unwrap_or_default();
        let project = project_of(place).unwrap_or_default();
        let cache_key = format!("linked:{project}:{}:{}", text("focusType"), text("focusEntityId"));
        Self { cache_key, loaded_at }
    }
}

impl<'a> SessionRow<'a> {
    /// The row with what is at hand of its place.
    pub fn holding(mut self, location: Option<CacheRow>, linked: Option<CacheRow>) -> Self {
        self.agent_metadata.location = location;
        self.agent_metadata.linked = linked;
        self
    }

    /// The row of `session`.
    pub fn from_session(session: &'a Session) -> Self {
        let (place, labels) = (session.place.as_ref(), session.labels.as_ref());
        Self {
            id: session.id.as_str(),
            user_id: &session.user,
            context_type: &session.context_type,
            entity_id: place.and_then(entity_id),
            status: "active",
            title: session.title.as_deref().unwrap_or(TITLE),
            auto_title: labels.map(|labels| labels.title.as_str()),
            summary: labels.and_then(|labels| labels.summary.as_deref()),
            chat_topics: labels.map(|labels| labels.topics.iter().map(String::as_str).collect()),
            chat_type: None,
            agent_metadata: Metadata {
                focus: place.and_then(focus),
                context_usage: session.context_usage.as_ref().map(state::usage),
                clarification: session
                    .clarification
                    .as_ref()
                    .filter(|known| known.rounds > 0)
                    .map(state::clarification),
                location: None,
                linked: None,
            },
            preferences: None,
            auto_accept_operations: false,
            message_count: session.message_count,
            tool_call_count: session.tool_calls,
            total_tokens_used: session.tokens,
            compressed_at: session.summarised_at_ms.map(rfc3339),
            archived_at: None,
            last_message_at: session.last_message_at_ms.map(rfc3339),
            last_classified_at: labels.map(|labels| rfc3339(labels.at_ms)),
            created_at: rfc3339(session.created_at_ms),
            updated_at: rfc3339(session.updated_at_ms),
        }
    }
}

/// The project of a place: what its user looks at says so first.
pub fn project_of(place: &Place) -> Option<String> {
    let of_focus = place.focus.as_ref().and_then(|focus| focus.text("projectId"));
    of_focus.or_else(|| entity_id(place).map(str::to_owned))
}

fn entity_id(place: &Place) -> Option<&str> {
    place.entity.as_ref().map(|entity| entity.id.as_str())
}

/// The focus of a place.
pub(super) fn focus(place: &Place) -> Option<&RawValue> {
    place.focus.as_ref().map(|focus| focus.raw())
}

/// A call of a tool.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentToolCall)]
pub struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentToolCallFunction)]
struct Function<'a> {
    name: &'a str,
    /// JSON text.
    arguments: String,
}

/// A call as its clients know calls. Arguments that are no JSON are an object that says so.
pub fn call<'a>(id: &'a str, name: &'a str, input: &ToolInput) -> Call<'a> {
    let arguments = match input {
        ToolInput::Object(fields) => serde_json::to_string(fields),
        ToolInput::Invalid(text) => serde_json::to_string(&serde_json::json!({ "invalid": text })),
    };
    Call { id, r#type: "function", function: Function { name, arguments: arguments.unwrap_or_default() } }
}
