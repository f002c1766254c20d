//! What the model gets to read of large answers: the few fields it needs, from either key style (protocol section 5).

use serde_json::{Map, Value, json};

use super::action_types::is_saveable;
use crate::bounded::json;
use crate::tools::keys::{field, first_field, text};
use crate::tools::pages::{Page, Rows};

/// 120 characters of a description that has no first sentence.
const DESCRIPTION_CHARS: usize = 120;

/// The action types that a rule can be saved with, without their schemas; `None` when the answer is not such a list.
pub fn action_types(answer: &Value) -> Option<Value> {
    let all: Vec<&Value> = answer.as_array()?.iter().collect();
    if all.iter().any(|entry| text(entry, "type").is_none()) {
        return None;
    }
    let saveable: Vec<&Value> =
        all.iter().copied().filter(|entry| text(entry, "type").is_some_and(is_saveable)).collect();
    let listed = if saveable.is_empty() { all } else { saveable };
    Some(listed.into_iter().map(action_type).collect())
}

fn action_type(entry: &Value) -> Value {
    let mut brief = Map::new();
    brief.insert("type".to_owned(), json!(text(entry, "type")));
    brief.insert("description".to_owned(), json!(first_sentence(text(entry, "description").unwrap_or_default())));
    let ports = field(entry, "output_ports").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let ports = ports.iter().filter_map(|port| {
        let is_default = field(port, "is_default").and_then(Value::as_bool) == Some(true);
        let name = port.as_str().or_else(|| text(port, "name"))?;
        Some(if is_default { format!("{name} (default)") } else { name.to_owned() })
    });
    brief.insert("output_ports".to_owned(), ports.collect());

    // Some backends keep the schema as text.
    let parsed: Value;
    let schema = match field(entry, "config_schema") {
        Some(Value::String(text)) => {
            parsed = json::value(text).unwrap_or_default();
            &parsed
        }
        Some(schema) => schema,
        None => &Value::Null,
    };
    if let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|map| !map.is_empty()) {
        brief.insert("config_fields".to_owned(), properties.keys().map(String::as_str).collect());
    }
    if let Some(required) = schema.get("required").and_then(Value::as_array).filter(|list| !list.is_empty()) {
        brief.insert("required_fields".to_owned(), required.iter().filter(|name| name.is_string()).cloned().collect());
    }
    Value::Object(brief)
}

/// `text` up to its first ". ", else its first 120 characters.
fn first_sentence(text: &str) -> String {
    if let Some(end) = text.find(". ").filter(|end| *end > 0) {
        return text.get(..=end).unwrap_or(text).to_owned();
    }
    match text.char_indices().nth(DESCRIPTION_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// The rules' list: `{total, showing, has_more, results}`. The counts come first, so that a list cut for length still has them.
pub fn rules(rows: &Rows) -> Value {
    let results: Vec<Value> = rows.items.iter().map(rule).collect();
    json!({
        "total": rows.total,
        "showing": results.len(),
        "has_more": results.len() < rows.total,
        "results": results,
    })
}

fn rule(row: &Value) -> Value {
    json!({
        "id": field(row, "id"),
        "name": field(row, "name"),
        "entity_name": first_field(row, &["entity_name", "entity"]),
        "trigger_type": first_field(row, &["trigger_type_name", "trigger_type"]),
        "is_active": field(row, "is_active"),
    })
}

/// A page of alerts: `{total, showing, has_more, results}`.
pub fn alerts(page: &Page) -> Value {
    let results: Vec<Value> = page.items.iter().map(alert).collect();
    json!({
        "total": page.total.unwrap_or(results.len()),
        "showing": results.len(),
        "has_more": page.has_more(),
        "results": results,
    })
}

fn alert(row: &Value) -> Value {
    let mut brief = Map::new();
    for key in ["id", "severity", "status"] {
        brief.insert(key.to_owned(), json!(field(row, key)));
    }
    for (key, names) in
        [("title", ["title"].as_slice()), ("message", &["message"]), ("created_at", &["created_at", "created_date"])]
    {
        if let Some(value) = first_field(row, names) {
            brief.insert(key.to_owned(), value.clone());
        }
    }
    let recipients = field(row, "recipients").map(recipients).unwrap_or_default();
    if !recipients.is_empty() {
        brief.insert("recipients".to_owned(), json!(recipients));
    }
    Value::Object(brief)
}

/// The recipients of an alert, by name, roles as `role:name`; from a list of recipients or from `{users, roles}`.
fn recipients(recipients: &Value) -> Vec<String> {
    let named = |recipient: &Value, is_role: bool| {
        let name = person(recipient)
            .or_else(|| text(recipient, "recipient_id").map(str::to_owned))
            .or_else(|| recipient.as_str().map(str::to_owned))?;
        Some(if is_role { format!("role:{name}") } else { name })
    };
    if let Some(list) = recipients.as_array() {
        let is_role = |recipient: &Value| text(recipient, "recipient_type") == Some("role");
        return list.iter().filter_map(|recipient| named(recipient, is_role(recipient))).collect();
    }
    [("users", false), ("roles", true)]
        .into_iter()
        .flat_map(|(key, is_role)| {
            let list = recipients.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            list.iter().filter_map(move |recipient| named(recipient, is_role))
        })
        .collect()
}

/// What to call a user or a role: first and last name, else the name, the e-mail address, the user name or the id.
pub fn person(object: &Value) -> Option<String> {
    let full: Vec<&str> =
        ["first_name", "last_name"].iter().filter_map(|key| text(object, key)).map(str::trim).collect();
    if !full.is_empty() {
        return Some(full.join(" "));
    }
    ["name", "email", "username", "id"].iter().find_map(|key| text(object, key)).map(str::to_owned)
}

/// The rule's own fields with its actions as `{id, name, action_type, is_active}`; configurations and the canvas are left out.
pub fn rule_without_bulk(rule: Value, actions: &Value) -> Value {
    let Value::Object(mut rule) = rule else { return rule };
    for key in ["actions", "edges", "canvas_layout", "canvasLayout"] {
        rule.shift_remove(key);
    }
    let actions = actions.as_array().map(Vec::as_slice).unwrap_or_default();
    let brief = |action: &Value| {
        json!({
            "id": field(action, "id"),
            "name": field(action, "name"),
            "action_type": field(action, "action_type"),
            "is_active": field(action, "is_active"),
        })
    };
    rule.insert("actions".to_owned(), actions.iter().map(brief).collect());
    Value::Object(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn action_types_keep_their_ports_and_field_names() {
        let answer = json!([
            {"type": "create_alert", "name": "Create Alert", "description": "Raises an alert. Users and roles can get it.",
             "config_schema": {"properties": {"title": {"type": "string"}, "context": {"type": "object"}}, "required": ["title"]},
             "output_ports": [{"name": "success", "is_default": true}, {"name": "failure", "is_default": false}]},
            {"type": "delay", "configSchema": "{\"properties\":{\"duration\":{}}}", "outputPorts": [{"name": "success", "isDefault": true}]},
            {"type": "call_webhook", "description": "cannot be saved"},
        ]);
        let expected = json!([
            {"type": "create_alert", "description": "Raises an alert.", "output_ports": ["success (default)", "failure"],
             "config_fields": ["title", "context"], "required_fields": ["title"]},
            {"type": "delay", "description": "", "output_ports": ["success (default)"], "config_fields": ["duration"]},
        ]);
        assert_eq!(action_types(&answer), Some(expected));
        for other in [json!({"items": []}), json!([{"name": "no type"}]), json!("x")] {
            assert_eq!(action_types(&other), None, "{other} passes unsummarised");
        }
    }

    #[test]
    fn a_description_is_cut_at_its_first_sentence_or_between_characters() {
        let long = "ü".repeat(130);
        let rows = [
            ("One. Two. Three", "One.".to_owned()),
            (". odd", ". odd".to_owned()),
            ("Version 2.5 of it", "Version 2.5 of it".to_owned()),
            (long.as_str(), format!("{}…", "ü".repeat(120))),
        ];
        for (text, expected) in rows {
            assert_eq!(first_sentence(text), expected);
        }
    }

    #[test]
    fn rules_are_brief_in_either_key_style() {
        let rows = Rows {
            items: vec![
                json!({"id": "1", "name": "A", "entity_name": "orders", "trigger_type_name": "on_create", "is_active": true, "actions": []}),
                json!({"id": "2", "name": "B", "entityName": "products", "triggerType": "on_update", "isActive": false}),
            ],
            total: 3,
        };
        let expected = json!({"total": 3, "showing": 2, "has_more": true, "results": [
            {"id": "1", "name": "A", "entity_name": "orders", "trigger_type": "on_create", "is_active": true},
            {"id": "2", "name": "B", "entity_name": "products", "trigger_type": "on_update", "is_active": false},
        ]});
        assert_eq!(rules(&rows), expected);
    }

    #[test]
    fn alerts_name_their_recipients_whatever_their_shape() {
        let page = Page {
            items: vec![
                json!({"id": "1", "severity": "high", "status": "active", "title": "T", "message": "M", "alertType": "x",
                       "createdDate": "2026-01-01", "recipients": [
                           {"recipientType": "user", "recipientId": "u1", "name": "Ada Byron", "email": "ada@example.com"},
                           {"recipientType": "role", "recipientId": "r1", "name": "Managers"},
                           {"recipientType": "user", "recipientId": "u2"}]}),
                json!({"id": "2", "severity": "low", "status": "resolved", "created_at": "2026-01-02",
                       "recipients": {"users": [{"first_name": "Ada", "last_name": "Byron"}, "u3"], "roles": [{"name": "Ops"}]}}),
                json!({"id": "3", "severity": "low", "status": "active", "recipients": []}),
            ],
            total: Some(7),
            number: 1,
            rows: Some(3),
        };
        let expected = json!({"total": 7, "showing": 3, "has_more": true, "results": [
            {"id": "1", "severity": "high", "status": "active", "title": "T", "message": "M", "created_at": "2026-01-01",
             "recipients": ["Ada Byron", "role:Managers", "u2"]},
            {"id": "2", "severity": "low", "status": "resolved", "created_at": "2026-01-02",
             "recipients": ["Ada Byron", "u3", "role:Ops"]},
            {"id": "3", "severity": "low", "status": "active"},
        ]});
        assert_eq!(alerts(&page), expected);
    }

    #[test]
    fn a_person_is_called_by_the_best_name_there_is() {
        let rows = [
            (json!({"first_name": "Ada", "last_name": "Byron", "username": "ada"}), Some("Ada Byron")),
            (json!({"firstName": "Ada", "lastName": ""}), Some("Ada")),
            (json!({"first_name": " ", "last_name": " ", "email": "ada@example.com"}), Some("ada@example.com")),
            (json!({"name": "Managers", "id": "r1"}), Some("Managers")),
            (json!({"id": "u1"}), Some("u1")),
            (json!({}), None),
        ];
        for (object, expected) in rows {
            assert_eq!(person(&object).as_deref(), expected, "{object}");
        }
    }

    #[test]
    fn a_rule_loses_its_bulk() {
        let rule =
            json!({"id": "1", "name": "A", "canvas_layout": {"x": 1}, "actions": [{"action_config": {"big": true}}]});
        let actions = json!([{"id": "a", "name": "Alert", "action_type": "create_alert", "action_config": {}, "is_active": true}]);
        let expected = json!({"id": "1", "name": "A", "actions": [
            {"id": "a", "name": "Alert", "action_type": "create_alert", "is_active": true}]});
        assert_eq!(rule_without_bulk(rule, &actions), expected);
    }
}
