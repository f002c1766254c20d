//! What an update keeps without being told: the parts of a saved rule that the model was not shown or need not repeat.
//!
//! A key that is absent keeps what is saved; an explicit `null` clears it.

use serde_json::{Map, Value};

use crate::tools::keys::{field, text};

/// The keys of a rule that an update keeps. No tool shows the canvas.
const OF_RULE: [&str; 3] = ["description", "trigger_conditions", "canvas_layout"];

/// The workflow `written` as a body to save: as a new rule, or over `saved`, the rule or an earlier body, with its actions.
pub fn body_over(written: &Map<String, Value>, saved: Option<&Value>) -> Value {
    let mut body = written.clone();
    if let Some(saved) = saved {
        for key in OF_RULE {
            keep(&mut body, saved, key);
        }
    }
    let saved_actions = saved.and_then(|saved| saved.get("actions")).and_then(Value::as_array);
    let saved_actions = saved_actions.map(Vec::as_slice).unwrap_or_default();
    let actions = body.get_mut("actions").and_then(Value::as_array_mut);
    for action in actions.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(saved) = same_action(action, saved_actions) {
            keep(action, saved, "description");
            // A configuration of another type would not fit.
            if action.get("action_type").and_then(Value::as_str) == text(saved, "action_type") {
                keep(action, saved, "action_config");
            }
        }
        // The backend reads nulls as absent, and absent as cleared.
        action.retain(|_, value| !value.is_null());
    }
    body.retain(|_, value| !value.is_null());
    Value::Object(body)
}

fn same_action<'a>(action: &Map<String, Value>, saved: &'a [Value]) -> Option<&'a Value> {
    let id = action.get("id").and_then(Value::as_str)?;
    saved.iter().find(|saved| text(saved, "id").is_some_and(|known| known.eq_ignore_ascii_case(id)))
}

fn keep(written: &mut Map<String, Value>, saved: &Value, key: &str) {
    if let (false, Some(value)) = (written.contains_key(key), field(saved, key)) {
        written.insert(key.to_owned(), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn over(written: Value, saved: Option<Value>) -> Value {
        body_over(written.as_object().unwrap(), saved.as_ref())
    }

    #[test]
    fn what_is_absent_stays_and_null_clears() {
        let saved = json!({"name": "Old", "description": "why", "triggerConditions": {"field_conditions": [1]},
                           "canvas_layout": {"zoom": 2}, "created_by": "x", "actions": []});
        let rows = [
            (
                json!({"name": "W"}),
                json!({"name": "W", "description": "why", "trigger_conditions": {"field_conditions": [1]}, "canvas_layout": {"zoom": 2}}),
                "all kept",
            ),
            (
                json!({"name": "W", "description": null, "trigger_conditions": null, "canvas_layout": null}),
                json!({"name": "W"}),
                "all cleared",
            ),
            (
                json!({"name": "W", "description": "", "trigger_conditions": {}, "canvas_layout": {"zoom": 1}}),
                json!({"name": "W", "description": "", "trigger_conditions": {}, "canvas_layout": {"zoom": 1}}),
                "all given",
            ),
        ];
        for (written, expected, reason) in rows {
            assert_eq!(over(written, Some(saved.clone())), expected, "{reason}");
        }
        assert_eq!(over(json!({"name": "W", "description": null}), None), json!({"name": "W"}), "a new rule");
    }

    #[test]
    fn an_action_is_matched_by_its_id() {
        let saved = json!({"actions": [
            {"id": "a", "name": "A", "description": "first", "action_type": "delay", "action_config": {"duration": "1h"}},
            {"id": "b", "name": "B", "description": "second", "action_type": "delay", "action_config": {"duration": "2h"}}]});
        let rows = [
            (
                json!({"id": "B", "action_type": "delay"}),
                json!({"id": "B", "action_type": "delay", "description": "second", "action_config": {"duration": "2h"}}),
                "both kept",
            ),
            (
                json!({"id": "a", "action_type": "create_alert", "description": null}),
                json!({"id": "a", "action_type": "create_alert"}),
                "another type, a cleared description",
            ),
            (json!({"name": "A", "action_type": "delay"}), json!({"name": "A", "action_type": "delay"}), "a new one"),
            (json!({"id": "c"}), json!({"id": "c"}), "an id that this rule does not have"),
        ];
        for (written, expected, reason) in rows {
            let body = over(json!({"actions": [written]}), Some(saved.clone()));
            assert_eq!(body, json!({"actions": [expected]}), "{reason}");
        }
    }
}
