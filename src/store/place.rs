//! The place of a conversation, and what its runs leave of its state, as a row has them: JSON text.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::record_error::RecordError;
use crate::chat::place::{Entity, Place, PlaceUpdate, Update};
use crate::chat::screen::ScreenState;

#[derive(Serialize, Deserialize)]
struct PlaceRow<'a> {
    context_type: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entity_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entity_name: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    focus: Option<&'a RawValue>,
}

/// The text of `place`.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn encode_place(place: &Place) -> Result<String, RecordError> {
    let Place { context_type, entity, focus } = place;
    let row = PlaceRow {
        context_type: context_type.into(),
        entity_id: entity.as_ref().map(|entity| Cow::Borrowed(entity.id.as_str())),
        entity_name: entity.as_ref().and_then(|entity| entity.name.as_deref()).map(Cow::Borrowed),
        focus: focus.as_ref().map(ScreenState::raw),
    };
    serde_json::to_string(&row).map_err(RecordError::json("place"))
}

/// The place in `text`.
///
/// # Errors
/// When it is not what [`encode_place`] wrote.
pub(super) fn decode_place(text: &str) -> Result<Place, RecordError> {
    let row: PlaceRow<'_> = serde_json::from_str(text).map_err(RecordError::json("place"))?;
    let PlaceRow { context_type, entity_id, entity_name, focus } = row;
    let focus = focus.map(|raw| ScreenState::parse(raw.get()).ok_or(RecordError::Context)).transpose()?;
    let entity = entity_id.map(|id| Entity { id: id.into_owned(), name: entity_name.map(Cow::into_owned) });
    Ok(Place { context_type: context_type.into_owned(), entity, focus })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UpdateRow<T> {
    Keep,
    Clear,
    Set(T),
}

#[derive(Serialize, Deserialize)]
struct PlaceUpdateRow<'a> {
    #[serde(borrow)]
    entity: UpdateRow<Cow<'a, str>>,
    #[serde(borrow)]
    focus: UpdateRow<&'a RawValue>,
}

/// The text of what a request changes of a place.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn encode_update(update: &PlaceUpdate) -> Result<String, RecordError> {
    let entity = match &update.entity {
        Update::Keep => UpdateRow::Keep,
        Update::Clear => UpdateRow::Clear,
        Update::Set(id) => UpdateRow::Set(id.into()),
    };
    let focus = match &update.focus {
        Update::Keep => UpdateRow::Keep,
        Update::Clear => UpdateRow::Clear,
        Update::Set(focus) => UpdateRow::Set(focus.raw()),
    };
    serde_json::to_string(&PlaceUpdateRow { entity, focus }).map_err(RecordError::json("place"))
}

/// The same in `text`.
///
/// # Errors
/// When it is not what [`encode_update`] wrote.
pub(super) fn decode_update(text: &str) -> Result<PlaceUpdate, RecordError> {
    let row: PlaceUpdateRow<'_> = serde_json::from_str(text).map_err(RecordError::json("place"))?;
    Ok(PlaceUpdate {
        entity: match row.entity {
            UpdateRow::Keep => Update::Keep,
            UpdateRow::Clear => Update::Clear,
            UpdateRow::Set(id) => Update::Set(id.into_owned()),
        },
        focus: match row.focus {
            UpdateRow::Keep => Update::Keep,
            UpdateRow::Clear => Update::Clear,
            UpdateRow::Set(raw) => Update::Set(ScreenState::parse(raw.get()).ok_or(RecordError::Context)?),
        },
    })
}

/// The text of what a run leaves of the state.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn encode_state<T: Serialize>(state: Option<&T>) -> Result<Option<String>, RecordError> {
    state.map(serde_json::to_string).transpose().map_err(RecordError::json("state"))
}

/// The same in `text`.
///
/// # Errors
/// When it is not what [`encode_state`] wrote.
pub(super) fn decode_state<T: DeserializeOwned>(text: Option<&str>) -> Result<Option<T>, RecordError> {
    text.map(serde_json::from_str).transpose().map_err(RecordError::json("state"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_its_row() {
        let entity = |name: Option<&str>| Entity { id: "p\"1\0".to_owned(), name: name.map(str::to_owned) };
        let rows = [
            Place { context_type: "global".to_owned(), entity: None, focus: None },
            Place { context_type: "p".to_owned(), entity: Some(entity(None)), focus: None },
            Place {
                context_type: "p".to_owned(),
                entity: Some(entity(Some("Größe\n"))),
                focus: ScreenState::parse(r#"{"type": "task", "id":null}"#),
            },
        ];
        for place in rows {
            assert_eq!(decode_place(&encode_place(&place).unwrap()).unwrap(), place);
        }
        assert!(decode_place("{}").is_err());
        let focus = || ScreenState::parse(r#"{"type":"task"}"#).unwrap();
        let updates = [
            PlaceUpdate::NONE,
            PlaceUpdate { entity: Update::Clear, focus: Update::Set(focus()) },
            PlaceUpdate { entity: Update::Set("p\"1\0".to_owned()), focus: Update::Clear },
        ];
        for update in updates {
            assert_eq!(decode_update(&encode_update(&update).unwrap()).unwrap(), update);
        }
        assert!(decode_update("{}").is_err());
    }
}
