//! The request bodies of `POST /api/agent/stream` and `POST /api/agent/prewarm`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{AgentStream, state};
use crate::bounded::json::{parse, value};
use crate::chat::input::{OnBusy, RunOptions, Screen};
use crate::chat::place::{PlaceUpdate, Update};
use crate::chat::screen::ScreenState;
use crate::dialect::given::{Ask, ClientMessage};
use crate::dialect::{DecodeError, FieldError, json as fields};

/// The context of a session that names none.
const GLOBAL: &str = "global";

/// Earlier messages that count, the newest.
const EARLIER: usize = 50;

/// 200 characters of a name are shown.
const NAME_CHARS: usize = 200;

/// What a focus may be on.
const FOCUS_TYPES: [&str; 8] = ["project-wide", "task", "goal", "plan", "document", "milestone", "risk", "requirement"];

/// The focus on all of a project.
const PROJECT_WIDE: &str = "project-wide";

/// The rest of the body of a request to answer; unknown keys are ignored.
#[derive(Deserialize, ToSchema)]
#[schema(as = AgentStreamMessage)]
struct Body<'a> {
    /// Sent to the model as it is; not blank.
    #[serde(borrow)]
    #[schema(value_type = String)]
    message: Option<&'a RawValue>,
    #[serde(borrow, rename = "lastTurnContext", alias = "last_turn_context")]
    #[schema(value_type = Option<Object>)]
    recap: Option<&'a RawValue>,
    #[serde(borrow, rename = "ontologyEntityType", alias = "ontology_entity_type")]
    #[schema(value_type = Option<String>)]
    entity_type: Option<&'a RawValue>,
    #[serde(borrow)]
    #[schema(value_type = Option<i64>)]
    stream_run_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "voiceNoteGroupId", alias = "voice_note_group_id")]
    #[schema(value_type = Option<String>)]
    voice_note_group: Option<&'a RawValue>,
    /// Counts only without a session.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<Object>>)]
    conversation_history: Option<&'a RawValue>,
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Read {
    pub(super) ask: Ask,
    /// The session's id as the client sent it.
    pub(super) session: Option<String>,
    pub(super) screen: Screen,
    pub(super) earlier: Vec<ClientMessage>,
    pub(super) options: RunOptions,
}

/// A message of the client's own history.
#[derive(Deserialize)]
pub(super) struct Earlier {
    #[serde(default)]
    pub(super) role: Value,
    #[serde(default)]
    pub(super) content: Value,
}

pub(super) fn read(limits: &AgentStream, body: &[u8]) -> Result<Read, DecodeError> {
    let text = fields::object(body)?;
    let body: Body<'_> = parse(text).map_err(|error| DecodeError::NotJson(error.to_string()))?;
    for (field, raw) in [("lastTurnContext", body.recap), ("conversation_history", body.conversation_history)] {
        let max_bytes = limits.max_context_bytes;
        if raw.is_some_and(|raw| max_bytes != 0 && raw.get().len() > max_bytes) {
            return Err(DecodeError::TooLarge { field, max_bytes });
        }
    }
    let mut errors = Vec::new();
    let message = fields::required_text(body.message, "message", &mut errors);
    let at = WhereRequest::read(text, &mut errors)?;
    let (Some(message), true) = (message, errors.is_empty()) else { return Err(DecodeError::Fields(errors)) };
    if limits.max_message_bytes != 0 && message.len() > limits.max_message_bytes {
        return Err(DecodeError::TooLarge { field: "message", max_bytes: limits.max_message_bytes });
    }
    let WhereRequest { session, screen, place } = at;
    let earlier = match (&session, body.conversation_history) {
        (None, Some(raw)) => earlier(raw),
        (Some(_), _) | (None, None) => Vec::new(),
    };
    let options = RunOptions {
        context: context(&body),
        place,
        recap: body.recap.and_then(state::read),
        on_busy: Some(OnBusy::Interrupt),
        details: true,
        in_session: true,
        ..RunOptions::default()
    };
    Ok(Read { ask: Ask::message(message), session, screen, earlier, options })
}

/// Where a request says that its user is.
#[derive(Debug, Clone, PartialEq)]
pub struct WhereRequest {
    /// The session's id as the client sent it.
    pub session: Option<String>,
    /// The kind of screen.
    pub screen: Screen,
    /// What that is about, and what of it its user looks at.
    pub place: PlaceUpdate,
}

/// The fields that say where.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = AgentPrewarmRequest)]
pub struct WhereBody<'a> {
    /// The session; without one a new one begins, or one that waits for its first message there is meant.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    session_id: Option<&'a RawValue>,
    /// Where the user is; without one the session stays where it is.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, example = "global")]
    context_type: Option<&'a RawValue>,
    /// What that is about.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    entity_id: Option<&'a RawValue>,
    /// `{focusType, focusEntityId, focusEntityName, projectId, projectName}`; `null` clears it.
    #[serde(borrow, default, rename = "projectFocus", alias = "project_focus", deserialize_with = "fields::present")]
    #[schema(value_type = Option<Object>)]
    focus: Option<&'a RawValue>,
}

/// The body of a request to answer.
#[derive(ToSchema)]
#[schema(as = AgentStreamRequest)]
#[expect(dead_code, reason = "its two halves are read one after the other")]
pub(super) struct StreamBody<'a> {
    #[serde(flatten)]
    place: WhereBody<'a>,
    #[serde(flatten)]
    rest: Body<'a>,
}

impl WhereRequest {
    /// What the body of a request to load data ahead says.
    ///
    /// # Errors
    /// The body's mistakes, in words for its sender.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let text = match body.trim_ascii().is_empty() {
            true => "{}",
            false => fields::object(body)?,
        };
        let mut errors = Vec::new();
        let at = Self::read(text, &mut errors)?;
        if errors.is_empty() { Ok(at) } else { Err(DecodeError::Fields(errors)) }
    }

    fn read(text: &str, errors: &mut Vec<FieldError>) -> Result<Self, DecodeError> {
        let fields: WhereBody<'_> = parse(text).map_err(|error| DecodeError::NotJson(error.to_string()))?;
        let WhereBody { session_id: session, context_type, entity_id: entity, focus: raw } = fields;
        let mut word = |raw, field| fields::optional::<String>(raw, field, "text or null", errors);
        let session = word(session, "session_id");
        let context_type = word(context_type, "context_type").filter(|name| !name.trim().is_empty());
        let entity = word(entity, "entity_id").filter(|id| !id.trim().is_empty());
        let focus = focus(raw, errors);
        let of_focus = || match &focus {
            Update::Set(focus) => focus.text("projectId"),
            Update::Keep | Update::Clear => None,
        };
        // A place in a project is about that project, whatever of it its user looks at.
        let in_project = context_type.as_deref().is_some_and(is_in_project);
        let entity = entity.or_else(|| in_project.then(of_focus).flatten());
        let screen = match (context_type, &session) {
            (Some(name), _) => Screen::Type(name),
            (None, Some(_)) => Screen::OfConversation,
            (None, None) => Screen::Type(GLOBAL.to_owned()),
        };
        let place = PlaceUpdate { entity: entity.map_or(Update::Keep, |id| Update::Set(cut(&id))), focus };
        Ok(Self { session, screen, place })
    }
}

/// Whether a kind of screen is about a project.
pub fn is_in_project(context_type: &str) -> bool {
    context_type.starts_with("project")
}

/// The focus in the one form in which it is kept and compared; one without a project is none.
fn focus(raw: Option<&RawValue>, errors: &mut Vec<FieldError>) -> Update<ScreenState> {
    let Some(raw) = raw else { return Update::Keep };
    let focus = match value(raw.get()) {
        Ok(Value::Null) => return Update::Clear,
        Ok(Value::Object(focus)) => focus,
        Ok(_) | Err(_) => {
            let reason = "must be an object or null".to_owned();
            errors.push(FieldError { field: "projectFocus", reason });
            return Update::Keep;
        }
    };
    let text = |name: &str| focus.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(cut);
    let Some(project) = text("projectId") else { return Update::Clear };
    let kind = text("focusType").filter(|kind| FOCUS_TYPES.contains(&kind.as_str()));
    let entity =
        kind.as_ref().filter(|kind| *kind != PROJECT_WIDE).map(|_| (text("focusEntityId"), text("focusEntityName")));
    let (id, name) = entity.unwrap_or_default();
    let normal = json!({
        "focusType": kind.unwrap_or_else(|| PROJECT_WIDE.to_owned()),
        "focusEntityId": id,
        "focusEntityName": name,
        "projectId": project,
        "projectName": text("projectName").unwrap_or_else(|| "Project".to_owned()),
    });
    ScreenState::parse(&normal.to_string()).map_or(Update::Clear, Update::Set)
}

fn cut(text: impl AsRef<str>) -> String {
    text.as_ref().chars().filter(|letter| !letter.is_control()).take(NAME_CHARS).collect()
}

/// What else a request says, as prompts and the views of its run see it.
fn context(body: &Body<'_>) -> Option<ScreenState> {
    let kind = body.entity_type.filter(|raw| {
        let kind: Option<String> = parse(raw.get()).ok();
        kind.is_some_and(|kind| kind != PROJECT_WIDE && FOCUS_TYPES.contains(&kind.as_str()))
    });
    let run = body.stream_run_id.and_then(|raw| match value(raw.get()).ok()? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    });
    let run = run.and_then(|number| serde_json::value::to_raw_value(&number).ok());
    let note = body.voice_note_group.filter(|raw| fields::given(Some(raw)).is_some() && raw.get().starts_with('"'));
    let found = [("ontology_entity_type", kind), ("stream_run_id", run.as_deref()), ("voice_note_group_id", note)];
    ScreenState::of_fields(found.into_iter().filter_map(|(name, raw)| Some((name, raw?))))
}

/// The newest messages of the client's own history; anything else in it is left out.
fn earlier(raw: &RawValue) -> Vec<ClientMessage> {
    let entries: Vec<&RawValue> = parse(raw.get()).unwrap_or_default();
    let mut messages: Vec<ClientMessage> = entries
        .into_iter()
        .filter_map(|entry| {
            let Earlier { role, content } = parse(entry.get()).ok()?;
            let text = content.as_str().filter(|text| !text.trim().is_empty())?.to_owned();
            match role.as_str()? {
                "user" => Some(ClientMessage::User(text, Vec::new())),
                "assistant" => Some(ClientMessage::Assistant(text)),
                _ => None,
            }
        })
        .collect();
    messages.split_off(messages.len().saturating_sub(EARLIER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<Read, DecodeError> {
        super::read(&AgentStream { max_message_bytes: 100, max_context_bytes: 1000 }, body.to_string().as_bytes())
    }

    #[test]
    fn a_focus_has_one_form() {
        let normal = |kind: &str, id: Option<&str>, name: &str| {
            let focus = json!({"focusType": kind, "focusEntityId": id, "focusEntityName": id.map(|_| "T"), "projectId": "p", "projectName": name});
            Update::Set(ScreenState::parse(&focus.to_string()).unwrap())
        };
        let rows = [
            (json!({}), Update::Keep, "it is not said"),
            (json!({"projectFocus": null}), Update::Clear, "null"),
            (json!({"project_focus": {}}), Update::Clear, "no project"),
            (json!({"projectFocus": {"projectId": "p"}}), normal("project-wide", None, "Project"), "a project"),
            (
                json!({"projectFocus": {"projectId": "p", "projectName": "G", "focusType": "task", "focusEntityId": "t", "focusEntityName": "T"}}),
                normal("task", Some("t"), "G"),
                "a task of it",
            ),
            (
                json!({"projectFocus": {"projectId": "p", "focusType": "moon", "focusEntityId": "t"}}),
                normal("project-wide", None, "Project"),
                "an unknown kind",
            ),
        ];
        for (mut body, focus, reason) in rows {
            body["message"] = json!("Hi");
            assert_eq!(read(body).unwrap().options.place.focus, focus, "{reason}");
        }
    }

    #[test]
    fn mistakes_are_named_and_whims_are_not_mistakes() {
        let rows = [
            (json!({}), "message"),
            (json!({"message": "  "}), "message"),
            (json!({"message": 7}), "message"),
            (
                json!({"message": "a", "session_id": 7, "context_type": [], "entity_id": {}}),
                "session_id context_type entity_id",
            ),
            (json!({"message": "a", "projectFocus": "x"}), "projectFocus"),
        ];
        for (body, expected) in rows {
            let Err(DecodeError::Fields(errors)) = read(body.clone()) else { panic!("{body}") };
            let found: Vec<&str> = errors.iter().map(|error| error.field).collect();
            assert_eq!(found.join(" "), expected, "{body}");
        }
        let odd = json!({
            "message": "a", "session_id": null, "entity_id": null, "lastTurnContext": "x", "stream_run_id": "7",
            "ontologyEntityType": "moon", "conversation_history": 7, "more": true,
        });
        let read = read(odd).unwrap();
        assert_eq!(read.options.context.unwrap().as_str(), r#"{"stream_run_id":7}"#);
        assert_eq!((read.screen, read.earlier), (Screen::Type("global".to_owned()), Vec::new()));
    }
}
