//! From the workflow a model wrote to the body the backend takes: names become ids, `after` becomes edges, what every body
//! needs and models forget is filled in.

use serde_json::{Map, Value};

use super::{Kit, after, args, kept, recipients};
use crate::chat::caller::Caller;
use crate::tools::ToolError;

/// 200 actions: more than a user draws, few enough to look at.
const MAX_ACTIONS: usize = 200;

/// A workflow in the backend's terms.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// Its name.
    pub name: String,
    /// The body of `POST …/rules/full`, still with the nulls that clear something.
    written: Map<String, Value>,
}

impl Prepared {
    /// A workflow that is in the backend's terms already.
    #[cfg(test)]
    pub fn from_text(written: &Value) -> Self {
        Self { name: String::new(), written: written.as_object().cloned().unwrap_or_default() }
    }

    /// The body that saves this as a new rule.
    pub fn body(&self) -> Value {
        kept::body_over(&self.written, None)
    }

    /// The body that saves this over `saved`: what it does not mention stays.
    pub fn body_over(&self, saved: &Value) -> Value {
        kept::body_over(&self.written, Some(saved))
    }
}

/// `workflow` in the backend's terms.
///
/// # Errors
/// [`ToolError::BadParams`] when something required is missing; [`ToolError::Refused`] when a name or an `after` leads nowhere.
pub async fn prepare(kit: &Kit, caller: &Caller, workflow: Value) -> Result<Prepared, ToolError> {
    let mut body = args::object("workflow", workflow)?;
    let name = tidy(&mut body)?;

    let entity = reference(&mut body, "entity", "entity_id", "\"schema.table\"")?;
    let trigger = reference(&mut body, "trigger_type", "trigger_type_id", "\"on_create\", …")?;
    let resolver = &kit.resolver;
    let (entity, trigger, types) = futures::join!(
        resolver.entity(caller, &entity),
        resolver.trigger_type(caller, &trigger),
        resolver.action_types(caller)
    );
    body.insert("entity_id".to_owned(), Value::from(entity?));
    body.insert("trigger_type_id".to_owned(), Value::from(trigger?));

    after::expand(&mut body, &types).map_err(|error| ToolError::Refused(error.to_string()))?;
    Ok(Prepared { name, written: body })
}

/// Checks and fills in what needs no backend, and returns the name.
fn tidy(body: &mut Map<String, Value>) -> Result<String, ToolError> {
    drop_null(body, "is_active");
    let name = body.get("name").and_then(Value::as_str).map(str::trim).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| ToolError::BadParams("workflow.name is required".to_owned()))?.to_owned();
    args::check_name("workflow.name", &name)?;
    body.entry("is_active").or_insert(Value::Bool(true));

    let actions = body.get_mut("actions").and_then(Value::as_array_mut);
    let actions =
        actions.ok_or_else(|| ToolError::BadParams("workflow.actions must be a list of actions".to_owned()))?;
    if actions.len() > MAX_ACTIONS {
        return Err(ToolError::BadParams(format!("workflow.actions has more than {MAX_ACTIONS} actions")));
    }
    for (index, action) in actions.iter_mut().enumerate() {
        let path = format!("workflow.actions[{index}]");
        let mut fields = args::object(&path, action.take())?;
        for key in ["id", "is_active", "action_config"] {
            drop_null(&mut fields, key);
        }
        if let Some(name) = fields.get("name").and_then(Value::as_str) {
            args::check_name(&format!("{path}.name"), name.trim())?;
        }
        // New actions have no id yet; a model that numbers them means no more than their order.
        if fields.get("id").and_then(Value::as_str).is_some_and(|id| id.is_empty() || id.starts_with("temp:")) {
            fields.shift_remove("id");
        }
        if let Some(config) = fields.get_mut("action_config") {
            let mut settings = args::object(&format!("{path}.action_config"), config.take())?;
            recipients::back_to_ids(&mut settings);
            *config = Value::Object(settings);
        }
        fields.entry("is_active").or_insert(Value::Bool(true));
        *action = Value::Object(fields);
    }
    Ok(name)
}

/// Takes a null at `key` away: there it means "not given".
fn drop_null(fields: &mut Map<String, Value>, key: &str) {
    if fields.get(key).is_some_and(Value::is_null) {
        fields.shift_remove(key);
    }
}

/// Takes the reference that is given under either key out of the body: a name at `name_key` before an id at `id_key`.
fn reference(body: &mut Map<String, Value>, name_key: &str, id_key: &str, example: &str) -> Result<String, ToolError> {
    let given = [body.shift_remove(name_key), body.shift_remove(id_key)];
    let mut texts = given.iter().flatten().filter_map(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let first = texts.next().map(str::to_owned);
    first.ok_or_else(|| {
        ToolError::BadParams(format!("workflow.{name_key} is required ({example}), or workflow.{id_key}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tidied(workflow: Value) -> Result<Value, String> {
        let mut body = workflow.as_object().cloned().unwrap_or_default();
        tidy(&mut body).map_err(|error| error.to_string())?;
        Ok(Value::Object(body))
    }

    #[test]
    fn what_models_forget_is_filled_in() {
        let written = json!({"name": "W", "description": null, "is_active": null, "actions": [
            {"id": "temp:0", "name": "A", "action_config": "{\"title\":\"T\"}", "after": null},
            {"id": "550e8400-e29b-41d4-a716-446655440000", "name": "B", "action_config": {}, "is_active": false},
        ]});
        let expected = json!({"name": "W", "description": null, "is_active": true, "actions": [
            {"name": "A", "action_config": {"title": "T"}, "is_active": true, "after": null},
            {"id": "550e8400-e29b-41d4-a716-446655440000", "name": "B", "action_config": {}, "is_active": false},
        ]});
        assert_eq!(tidied(written), Ok(expected));
    }

    #[test]
    fn what_cannot_be_filled_in_is_named() {
        let rows = [
            (json!({"actions": []}), "bad params: workflow.name is required"),
            (json!({"name": " ", "actions": []}), "bad params: workflow.name is required"),
            (json!({"name": "W"}), "bad params: workflow.actions must be a list of actions"),
            (json!({"name": "W", "actions": {}}), "bad params: workflow.actions must be a list of actions"),
            (json!({"name": "W", "actions": ["A"]}), "bad params: workflow.actions[0] must be a JSON object"),
            (
                json!({"name": "W", "actions": [{"action_config": 1}]}),
                "bad params: workflow.actions[0].action_config must be a JSON object",
            ),
            (
                json!({"name": "ü".repeat(101), "actions": []}),
                "bad params: workflow.name is longer than 100 characters; shorten it",
            ),
            (
                json!({"name": "ü".repeat(100), "actions": [{"name": "ü".repeat(100)}, {"name": "ü".repeat(101)}]}),
                "bad params: workflow.actions[1].name is longer than 100 characters; shorten it",
            ),
        ];
        for (workflow, message) in rows {
            assert_eq!(tidied(workflow), Err(message.to_owned()));
        }
    }

    #[test]
    fn a_reference_is_taken_from_either_key() {
        let rows = [
            (json!({"entity": "sales.orders", "entity_id": "x"}), Some("sales.orders"), "the name wins"),
            (json!({"entity": "", "entity_id": "x"}), Some("x"), "a blank name does not"),
            (json!({"entity_id": "sales.orders"}), Some("sales.orders"), "a name as the id"),
            (json!({"entity": 1}), None, "a number"),
            (json!({}), None, "nothing"),
        ];
        for (body, expected, reason) in rows {
            let mut body = body.as_object().cloned().unwrap_or_default();
            assert_eq!(reference(&mut body, "entity", "entity_id", "x").ok().as_deref(), expected, "{reason}");
            assert!(body.is_empty(), "{reason}: both keys are taken");
        }
    }
}
