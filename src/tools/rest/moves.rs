//! Where a call that succeeded moves its conversation.

use serde_json::Value;

use crate::chat::place::{Entity, Move};
use crate::chat::screen::ScreenState;
use crate::chat::template::{TemplateError, ValueTemplate, Values};

/// What a file says of that.
#[derive(Debug, Clone)]
pub struct Moves {
    /// The kind of screen.
    pub to: String,
    /// The id of what it is about there. An answer that has none moves nothing.
    pub entity: Option<ValueTemplate>,
    /// The name of that.
    pub name: Option<ValueTemplate>,
    /// What of that the user looks at then, an object; nothing where there is none.
    pub focus: Option<ValueTemplate>,
}

impl Moves {
    /// The names that its templates take values from.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [&self.entity, &self.name, &self.focus].into_iter().flatten().flat_map(ValueTemplate::names)
    }

    /// The move after a call with `values`, its answer among them as `result`.
    ///
    /// # Errors
    /// When a template cannot be filled.
    pub fn after(&self, values: &Values<'_>) -> Result<Option<Move>, TemplateError> {
        let context_type = self.to.clone();
        let focus = self.focus.as_ref().map(|focus| focus.fill(values)).transpose()?.flatten();
        let focus = focus.and_then(|focus| ScreenState::parse(&focus.to_string()));
        let Some(id) = &self.entity else { return Ok(Some(Move { context_type, entity: None, focus })) };
        let Some(id) = text(id, values)? else { return Ok(None) };
        let name = self.name.as_ref().map(|name| text(name, values)).transpose()?.flatten();
        Ok(Some(Move { context_type, entity: Some(Entity { id, name }), focus }))
    }
}

/// A template's value as a text; `None` where it has none.
fn text(template: &ValueTemplate, values: &Values<'_>) -> Result<Option<String>, TemplateError> {
    Ok(match template.fill(values)? {
        Some(Value::String(text)) => Some(text).filter(|text| !text.trim().is_empty()),
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_move_needs_the_id_that_its_file_speaks_of() {
        let template = |text: &str| Some(ValueTemplate::parse(&json!(text)).unwrap());
        let moves = |entity, name| Moves { to: "project".to_owned(), entity, name, focus: None };
        let looking = |focus: &Value| Moves { focus: ValueTemplate::parse(focus).ok(), ..moves(None, None) };
        let moved = |entity, focus: Option<&str>| {
            let focus = focus.map(|text| ScreenState::parse(text).unwrap());
            Some(Move { context_type: "project".to_owned(), entity, focus })
        };
        let entity = |id: &str, name: Option<&str>| {
            moved(Some(Entity { id: id.to_owned(), name: name.map(str::to_owned) }), None)
        };
        let rows = [
            (moves(template("{{ result.id }}"), template("{{ args.name }}")), entity("7", Some("Garden")), "both"),
            (moves(template("{{ result.id }}"), template("{{ result.no }}")), entity("7", None), "no name"),
            (moves(template("{{ result.no }}"), template("{{ args.name }}")), None, "no id"),
            (moves(template("{{ result.list }}"), None), None, "an id is no list"),
            (moves(None, None), moved(None, None), "only elsewhere"),
            (
                looking(&json!({"on": "{{ result.id }}", "name": "{{ result.no }}"})),
                moved(None, Some(r#"{"on":7}"#)),
                "what the user looks at",
            ),
            (looking(&json!("{{ {'on': none} }}")), moved(None, Some(r#"{"on":null}"#)), "as one expression"),
            (looking(&json!("{{ result.list }}")), moved(None, None), "what is looked at is no list"),
        ];
        let mut values = Values::default();
        values.insert("args", json!({"name": "Garden"}));
        values.insert("result", json!({"id": 7, "list": [7]}));
        for (moves, expected, reason) in rows {
            assert_eq!(moves.after(&values).unwrap(), expected, "{reason}");
        }
    }
}
