//! What an update keeps by itself: the parts of a saved rule that the model has not seen or need not repeat.
//!
//! A key that is absent keeps what is saved; an explicit `null` clears it.

use serde_json::{Map, Value};

use crate::tools::keys::{field, text};

/// The keys of a rule that an update keeps. No tool shows the canvas.
const OF_RULE: [&str; 3] = ["description", "trigger_conditions", "canvas_layout"];

/// The keys of a body, but for its two lists.
const BODY_KEYS: [&str; 7] =
    ["name", "description", "is_active", "entity_id", "trigger_type_id", "trigger_conditions", "canvas_layout"];

/// The keys of a body's actions.
const ACTION_KEYS: [&str; 6] = ["id", "name", "description", "action_type", "action_config", "is_active"];

/// The keys of a body's edges.
const EDGE_KEYS: [&str; 5] = ["source_action_id", "target_action_id", "edge_type", "source_output", "edge_order"];

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

/// The rule `saved`, with its actions, and its `edges` in the shape of a body, so that the two can be compared: only what a body
/// may have, under a body's keys, without nulls.
pub fn as_body(saved: &Value, edges: &Value) -> Value {
    let mut body = only(saved, &BODY_KEYS);
    let part = |list: Option<&Value>, keys: &[&str]| {
        let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Value::Array(items.iter().map(|item| Value::Object(only(item, keys))).collect())
    };
    body.insert("actions".to_owned(), part(saved.get("actions"), &ACTION_KEYS));
    body.insert("edges".to_owned(), part(Some(edges), &EDGE_KEYS));
    Value::Object(body)
}

fn only(value: &Value, keys: &[&str]) -> Map<String, Value> {
    let kept = |key: &&str| Some(((*key).to_owned(), field(value, key).filter(|value| !value.is_null())?.clone()));
    keys.iter().filter_map(kept).collect()
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
    fn a_saved_rule_is_compared_in_the_shape_of_a_body() {
        let saved = json!({"id": "r", "name": "W", "description": null, "entityId": "e", "entity_name": "orders", "is_active": true,
            "actions": [{"id": "a", "name": "A", "action_type": "delay", "actionConfig": {"duration": "1h"}, "rule_id": "r"}, 7]});
        let edges = json!([{"id": "x", "source_action_id": null, "target_action_id": "a", "edge_type": "start", "edge_order": 0}]);
        let expected = json!({"name": "W", "is_active": true, "entity_id": "e",
            "actions": [{"id": "a", "name": "A", "action_type": "delay", "action_config": {"duration": "1h"}}, {}],
            "edges": [{"target_action_id": "a", "edge_type": "start", "edge_order": 0}]});
        assert_eq!(as_body(&saved, &edges), expected);
        let nothing = json!({"actions": [], "edges": []});
        assert_eq!(as_body(&json!({"actions": null}), &Value::Null), nothing, "lists that are none");
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
