//! What requests say of a conversation's place.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::bounded::json::parse;
use crate::chat::place::{PlaceUpdate, Update};
use crate::chat::screen::ScreenState;
use crate::dialect::{DecodeError, FieldError, json};

/// The longest id of an entity, in characters.
const ENTITY_CHARS: usize = 200;

/// The largest focus, in bytes of JSON.
const FOCUS_BYTES: usize = 4096;

/// The longest title, in characters.
const TITLE_CHARS: usize = 200;

/// What a request says of the conversation's place. What is left out stays, as far as it fits; `null` clears it.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = PlaceFields)]
pub struct PlaceFields<'a> {
    /// What the screen is about: its id in the application, 1 to 200 characters.
    #[serde(borrow, default, deserialize_with = "json::present")]
    #[schema(value_type = Option<String>, max_length = 200)]
    entity_id: Option<&'a RawValue>,
    /// What of that the user looks at, up to 4 KiB: templates of prompts and tools have it.
    #[serde(borrow, default, deserialize_with = "json::present")]
    #[schema(value_type = Option<Object>)]
    focus: Option<&'a RawValue>,
}

/// What data is loaded ahead for. An empty body is one without a field.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = PrewarmRequest)]
pub struct PrewarmBody<'a> {
    /// The screen state that the next message will bring.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    context: Option<&'a RawValue>,
}

impl PrewarmBody<'_> {
    /// The screen state of a body.
    ///
    /// # Errors
    /// The body's mistakes, in words for its sender.
    pub fn context(body: &[u8]) -> Result<Option<ScreenState>, DecodeError> {
        if body.trim_ascii().is_empty() {
            return Ok(None);
        }
        let fields: PrewarmBody<'_> =
            parse(json::object(body)?).map_err(|error| DecodeError::NotJson(error.to_string()))?;
        let mut errors = Vec::new();
        let context = json::screen(fields.context, "context", &mut errors);
        if errors.is_empty() { Ok(context) } else { Err(DecodeError::Fields(errors)) }
    }
}

/// What is opened, or changed of a conversation.
#[derive(Deserialize, ToSchema)]
#[schema(as = ConversationChanges)]
struct PlaceBody<'a> {
    /// 1 to 200 characters, none of them a control character.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 200)]
    title: Option<&'a RawValue>,
    /// Which profile answers.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    context_type: Option<&'a RawValue>,
    /// Whether lists have it first.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    pinned: Option<&'a RawValue>,
    /// Whether only the list of archived ones has it.
    #[serde(borrow)]
    #[schema(value_type = Option<bool>)]
    archived: Option<&'a RawValue>,
}

/// The body of a request that opens a conversation or changes one.
#[derive(ToSchema)]
#[schema(as = ConversationRequest)]
#[expect(dead_code, reason = "its two halves are read one after the other")]
pub struct ConversationBody<'a> {
    #[serde(flatten)]
    place: PlaceFields<'a>,
    #[serde(flatten)]
    rest: PlaceBody<'a>,
}

/// What a request opens, or changes of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceRequest {
    /// Its title.
    pub title: Option<String>,
    /// The kind of screen.
    pub context_type: Option<String>,
    /// The rest of its place.
    pub place: PlaceUpdate,
    /// Whether lists have it first.
    pub pinned: Option<bool>,
    /// Whether only the list of archived ones has it.
    pub archived: Option<bool>,
}

impl PlaceRequest {
    /// The request of a body.
    ///
    /// # Errors
    /// The body's mistakes, in words for its sender.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let text = json::object(body)?;
        let fields: PlaceBody<'_> = parse(text).map_err(|error| DecodeError::NotJson(error.to_string()))?;
        let mut errors = Vec::new();
        let place = update(text, &mut errors)?;
        let title = fields.title.and_then(|raw| title(raw, &mut errors));
        let context_type: Option<String> = json::optional(fields.context_type, "context_type", "a string", &mut errors);
        let pinned: Option<bool> = json::optional(fields.pinned, "pinned", "true or false", &mut errors);
        let archived: Option<bool> = json::optional(fields.archived, "archived", "true or false", &mut errors);
        match errors.is_empty() {
            true => Ok(Self { title, context_type, place, pinned, archived }),
            false => Err(DecodeError::Fields(errors)),
        }
    }
}

/// What the request in `text` changes of its conversation's place; mistakes go to `errors`.
///
/// # Errors
/// When it is no such object.
pub(super) fn update(text: &str, errors: &mut Vec<FieldError>) -> Result<PlaceUpdate, DecodeError> {
    let fields: PlaceFields<'_> = parse(text).map_err(|error| DecodeError::NotJson(error.to_string()))?;
    Ok(PlaceUpdate {
        entity: changed(fields.entity_id, |raw| entity(raw, errors)),
        focus: changed(fields.focus, |raw| focus(raw, errors)),
    })
}

/// What a field does. One that is wrong changes nothing.
fn changed<'a, T>(raw: Option<&'a RawValue>, read: impl FnOnce(&'a RawValue) -> Option<T>) -> Update<T> {
    match (raw, json::given(raw)) {
        (None, _) => Update::Keep,
        (Some(_), None) => Update::Clear,
        (Some(_), Some(given)) => read(given).map_or(Update::Keep, Update::Set),
    }
}

fn entity(raw: &RawValue, errors: &mut Vec<FieldError>) -> Option<String> {
    let id: String = json::optional(Some(raw), "entity_id", "a string", errors)?;
    line(id, ("entity_id", ENTITY_CHARS), errors)
}

fn title(raw: &RawValue, errors: &mut Vec<FieldError>) -> Option<String> {
    match parse::<String>(raw.get()) {
        Ok(title) => line(title, ("title", TITLE_CHARS), errors),
        Err(_) => {
            errors.push(FieldError { field: "title", reason: "must be a string".to_owned() });
            None
        }
    }
}

/// A text of one line.
fn line(text: String, (field, most): (&'static str, usize), errors: &mut Vec<FieldError>) -> Option<String> {
    let fits = !text.trim().is_empty() && text.chars().count() <= most && !text.chars().any(char::is_control);
    if !fits {
        let reason = format!("must have 1 to {most} characters, none of them a control character");
        errors.push(FieldError { field, reason });
    }
    fits.then_some(text)
}

fn focus(raw: &RawValue, errors: &mut Vec<FieldError>) -> Option<ScreenState> {
    if raw.get().len() > FOCUS_BYTES {
        errors.push(FieldError { field: "focus", reason: format!("must have at most {FOCUS_BYTES} bytes") });
        return None;
    }
    json::screen(Some(raw), "focus", errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_stays_and_null_clears() {
        let set = |id: &str| Update::Set(id.to_owned());
        let focus = |text: &str| Update::Set(ScreenState::parse(text).unwrap());
        let update = |entity, focus| PlaceUpdate { entity, focus };
        let rows = [
            ("{}", update(Update::Keep, Update::Keep), "nothing"),
            (r#"{"entity_id":null,"focus":null}"#, update(Update::Clear, Update::Clear), "null"),
            (r#"{"entity_id":""}"#, update(Update::Clear, Update::Keep), "an empty id is none"),
            (r#"{"entity_id":"p 1","focus":{"a":1}}"#, update(set("p 1"), focus(r#"{"a":1}"#)), "both"),
        ];
        for (body, place, reason) in rows {
            let expected = PlaceRequest { title: None, context_type: None, place, pinned: None, archived: None };
            assert_eq!(PlaceRequest::decode(body.as_bytes()).unwrap(), expected, "{reason}");
        }
    }

    #[test]
    fn every_mistake_is_named() {
        let long = format!(r#"{{"focus":{{"a":"{}"}}}}"#, "x".repeat(5000));
        let rows = [
            (r#"{"entity_id":7,"focus":[],"title":"","context_type":{}}"#, "entity_id focus title context_type"),
            (r#"{"entity_id":"a\nb"}"#, "entity_id"),
            (r#"{"title":null}"#, ""),
            (r#"{"title":7}"#, "title"),
            (r#"{"pinned":1,"archived":"yes"}"#, "pinned archived"),
            (&long, "focus"),
        ];
        for (body, expected) in rows {
            let found = match PlaceRequest::decode(body.as_bytes()) {
                Ok(_) => String::new(),
                Err(DecodeError::Fields(errors)) => {
                    errors.iter().map(|error| error.field).collect::<Vec<_>>().join(" ")
                }
                Err(error) => panic!("{error:?}"),
            };
            assert_eq!(found, expected, "{body}");
        }
    }
}
