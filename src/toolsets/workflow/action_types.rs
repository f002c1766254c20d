//! What is known of action types: their ports, from the backend's list where it can be had, else as shipped here.

use serde_json::Value;

use crate::tools::keys::{field, text};

/// The action types that a rule can be saved with, each with its ports, the default first (contract section 12).
pub const SAVEABLE: [(&str, &[&str]); 17] = [
    ("allocate_inventory", &["success", "partial", "insufficient_stock", "failure"]),
    ("check_inventory", &["sufficient", "insufficient"]),
    ("check_reorder_point", &["ok", "needs_reorder"]),
    ("commit_allocation", &["success", "failure"]),
    ("create_alert", &["success", "failure"]),
    ("create_entity", &["success", "failure"]),
    ("delay", &["success"]),
    ("evaluate_condition", &["true", "false"]),
    ("log_audit_entry", &["success", "failure"]),
    ("lookup_entity", &["found", "not_found", "failure"]),
    ("release_reservation", &["success", "failure"]),
    ("reserve_inventory", &["success", "partial", "insufficient_stock", "failure"]),
    ("seek_approval", &["approved", "rejected", "timed_out"]),
    ("send_email", &["success", "failure"]),
    ("send_notification", &["success", "failure"]),
    ("transition_status", &["success", "invalid_transition", "failure"]),
    ("update_field", &["success", "failure"]),
];

/// Whether a rule can be saved with actions of this type; backends also list types that run elsewhere.
pub fn is_saveable(name: &str) -> bool {
    SAVEABLE.iter().any(|(saveable, _)| *saveable == name)
}

/// The known action types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionTypes(Vec<ActionType>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ActionType {
    name: String,
    ports: Vec<String>,
    default_port: Option<String>,
}

impl ActionTypes {
    /// The types of the backend's list; `None` when it is not such a list or names no type that can be saved.
    pub fn parse(answer: &Value) -> Option<Self> {
        let types: Vec<ActionType> = answer
            .as_array()?
            .iter()
            .filter_map(|entry| {
                let name = text(entry, "type").filter(|name| is_saveable(name))?;
                let ports =
                    field(entry, "output_ports").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let is_default = |port: &&Value| field(port, "is_default").and_then(Value::as_bool) == Some(true);
                Some(ActionType {
                    name: name.to_owned(),
                    ports: ports.iter().filter_map(|port| text(port, "name")).map(str::to_owned).collect(),
                    default_port: ports.iter().find(is_default).and_then(|port| text(port, "name")).map(str::to_owned),
                })
            })
            .collect();
        if types.is_empty() { None } else { Some(Self(types)) }
    }

    /// The types as shipped.
    pub fn shipped() -> Self {
        let owned = |ports: &[&str]| ports.iter().map(|port| (*port).to_owned()).collect::<Vec<_>>();
        let shipped = SAVEABLE.iter().map(|(name, ports)| ActionType {
            name: (*name).to_owned(),
            ports: owned(ports),
            default_port: ports.first().map(|port| (*port).to_owned()),
        });
        Self(shipped.collect())
    }

    /// The types' names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|known| known.name.as_str())
    }

    /// The type's ports; `None` for an unknown type or one whose ports are unknown.
    pub fn ports(&self, name: &str) -> Option<&[String]> {
        let known = self.0.iter().find(|known| known.name == name)?;
        if known.ports.is_empty() { None } else { Some(&known.ports) }
    }

    /// The port that an edge leaves from when none is named.
    pub fn default_port(&self, name: &str) -> &str {
        let known = self.0.iter().find(|known| known.name == name);
        known.and_then(|known| known.default_port.as_deref()).unwrap_or("success")
    }

    /// How many names this holds, as a cache's weight.
    pub fn weight(&self) -> usize {
        self.0.iter().map(|known| 1 + known.ports.len()).sum()
    }
}

/// `port` as the backend names it: `output-true` and `output-false` of older clients are a condition's `true` and `false`.
pub fn port_name<'a>(action_type: &str, port: &'a str) -> &'a str {
    if action_type != "evaluate_condition" {
        return port;
    }
    match port.to_ascii_lowercase().replace('_', "-").as_str() {
        "output-true" | "true" => "true",
        "output-false" | "false" => "false",
        _ => port,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_backends_list_is_read_in_both_key_styles_and_without_types_that_cannot_be_saved() {
        let types = ActionTypes::parse(&json!([
            {"type": "seek_approval", "output_ports": [
                {"name": "approved", "is_default": false}, {"name": "rejected", "is_default": true}]},
            {"type": "delay", "outputPorts": [{"name": "done", "isDefault": true}]},
            {"type": "send_email"},
            {"type": "call_webhook", "output_ports": [{"name": "success", "is_default": true}]},
        ]))
        .unwrap();
        assert_eq!(types.names().collect::<Vec<_>>(), ["seek_approval", "delay", "send_email"]);
        let rows = [
            ("seek_approval", "rejected", "the first default, not the first"),
            ("delay", "done", "camel case"),
            ("send_email", "success", "no ports known"),
            ("unheard_of", "success", "unknown type"),
        ];
        for (name, port, reason) in rows {
            assert_eq!(types.default_port(name), port, "{reason}");
        }
        assert_eq!(types.ports("send_email"), None);
        assert_eq!(types.ports("call_webhook"), None);
    }

    #[test]
    fn an_answer_that_is_no_list_of_action_types_is_none() {
        for answer in [json!({}), json!([]), json!([{"type": "call_webhook"}]), json!([1]), json!(null)] {
            assert_eq!(ActionTypes::parse(&answer), None, "{answer}");
        }
    }

    #[test]
    fn only_a_conditions_ports_are_renamed() {
        let rows = [
            ("evaluate_condition", "output-true", "true"),
            ("evaluate_condition", "output_false", "false"),
            ("evaluate_condition", "True", "true"),
            ("evaluate_condition", "maybe", "maybe"),
            ("create_alert", "output-true", "output-true"),
        ];
        for (action_type, port, expected) in rows {
            assert_eq!(port_name(action_type, port), expected);
        }
    }
}
