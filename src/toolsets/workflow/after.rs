//! The `after` shorthand: actions that name their predecessor become edges (protocol section 5, contract section 6).
//!
//! Edges are made only where none are given: explicit edges win. `after` never reaches the backend.

use serde_json::{Map, Value, json};

use super::action_types::{ActionTypes, port_name};
use crate::tools::names::{listed, near};

/// Why a shorthand cannot be read; each says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AfterError {
    /// Edges refer to actions by name.
    #[error("action {0} has no name; every action needs one")]
    Unnamed(usize),
    /// A number, an array, …
    #[error("`after` of action {0:?} must be text: \"Action Name\" or \"Action Name:port\"")]
    NotText(String),
    /// Blank, or a port alone.
    #[error(
        "`after` of action {0:?} names no action; write \"Action Name\" or \"Action Name:port\", or leave it out to start"
    )]
    NoSource(String),
    /// No action of that name.
    #[error(
        "`after` of action {action:?} refers to {source_name:?}, which is not an action of this workflow; its actions: {known}"
    )]
    UnknownSource {
        /// The action with the `after`.
        action: String,
        /// The name that was not found.
        source_name: String,
        /// The names there are.
        known: String,
    },
    /// Several actions of that name.
    #[error("`after` of action {action:?} refers to {source_name:?}, but several actions have that name; rename them")]
    AmbiguousSource {
        /// The action with the `after`.
        action: String,
        /// The name found twice.
        source_name: String,
    },
    /// The default port depends on the type.
    #[error("action {0:?} has no action_type, so its default port is unknown")]
    Untyped(String),
    /// A workflow has one entry.
    #[error("only one start action is allowed: {first:?} and {second:?} both have no `after`")]
    SecondStart {
        /// The first without `after`.
        first: String,
        /// The next one.
        second: String,
    },
    /// Everything comes after something.
    #[error("no start action found: one action must have no `after`")]
    NoStart,
}

/// Turns `after` of a workflow's actions into `edges`, and drops it. Given edges keep standing; in both, a condition's ports
/// get the backend's names, and a `sequence` without a port leaves from the default one. A lone action needs no `after` to be the start.
///
/// # Errors
/// See [`AfterError`]. Self references, cycles, unknown ports and unreachable actions are the backend's to find.
pub fn expand(workflow: &mut Map<String, Value>, types: &ActionTypes) -> Result<(), AfterError> {
    let actions = workflow.get("actions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let has_edges = workflow.get("edges").and_then(Value::as_array).is_some_and(|edges| !edges.is_empty());
    let has_after = actions.iter().any(|action| action.get("after").is_some_and(|after| !after.is_null()));

    let edges = if has_edges {
        let mut edges = workflow.get("edges").and_then(Value::as_array).cloned().unwrap_or_default();
        for edge in &mut edges {
            settle_port(edge, actions, types);
        }
        edges
    } else if has_after || actions.len() == 1 {
        edges_of(actions, types)?
    } else {
        Vec::new()
    };

    if let Some(Value::Array(actions)) = workflow.get_mut("actions") {
        for action in actions.iter_mut().filter_map(Value::as_object_mut) {
            action.shift_remove("after");
        }
    }
    workflow.insert("edges".to_owned(), Value::Array(edges));
    Ok(())
}

/// The name and the port in an `after`. A text that is an action's whole name is that name; else the last colon splits.
pub fn split(after: &str, is_action: impl Fn(&str) -> bool) -> (&str, Option<&str>) {
    let after = after.trim();
    if is_action(after) {
        return (after, None);
    }
    match after.rsplit_once(':') {
        Some((name, port)) => (name.trim(), Some(port.trim()).filter(|port| !port.is_empty())),
        None => (after, None),
    }
}

fn edges_of(actions: &[Value], types: &ActionTypes) -> Result<Vec<Value>, AfterError> {
    let mut names = Vec::new();
    for (index, action) in actions.iter().enumerate() {
        let name = action.get("name").and_then(Value::as_str).map(str::trim).filter(|name| !name.is_empty());
        names.push(name.ok_or(AfterError::Unnamed(index))?);
    }

    let mut edges = Vec::new();
    let mut start = None;
    for (index, action) in actions.iter().enumerate() {
        let name = names[index];
        let target = format!("temp:{index}");
        let order = edges.len();
        let after = match action.get("after") {
            None | Some(Value::Null) => "",
            Some(Value::String(after)) => after,
            Some(_) => return Err(AfterError::NotText(name.to_owned())),
        };
        if after.is_empty() {
            if let Some(first) = start.replace(name) {
                return Err(AfterError::SecondStart { first: first.to_owned(), second: name.to_owned() });
            }
            edges.push(json!({"target_action_id": target, "edge_type": "start", "edge_order": order}));
            continue;
        }

        let (source_name, port) = split(after, |text| names.contains(&text));
        if source_name.is_empty() {
            return Err(AfterError::NoSource(name.to_owned()));
        }
        let source = source_index(&names, name, source_name)?;
        let source_type = actions[source].get("action_type").and_then(Value::as_str).filter(|text| !text.is_empty());
        let port = match (port, source_type) {
            (Some(port), source_type) => port_name(source_type.unwrap_or_default(), port),
            (None, Some(source_type)) => types.default_port(source_type),
            (None, None) => return Err(AfterError::Untyped(source_name.to_owned())),
        };
        edges.push(json!({
            "source_action_id": format!("temp:{source}"),
            "target_action_id": target,
            "edge_type": "sequence",
            "source_output": port,
            "edge_order": order,
        }));
    }
    if start.is_none() {
        return Err(AfterError::NoStart);
    }
    Ok(edges)
}

/// The index of the one action that is called `source`; `action` is the one that follows it.
///
/// # Errors
/// [`AfterError::UnknownSource`], [`AfterError::AmbiguousSource`].
pub fn source_index(names: &[&str], action: &str, source: &str) -> Result<usize, AfterError> {
    let mut matches = names.iter().enumerate().filter(|(_, name)| **name == source).map(|(index, _)| index);
    match (matches.next(), matches.next()) {
        (Some(index), None) => Ok(index),
        (Some(_), Some(_)) => {
            Err(AfterError::AmbiguousSource { action: action.to_owned(), source_name: source.to_owned() })
        }
        (None, _) => Err(AfterError::UnknownSource {
            action: action.to_owned(),
            source_name: source.to_owned(),
            known: listed(near(names.iter().copied(), source)),
        }),
    }
}

/// Gives a port its backend's name where an edge leaves a condition, and a `sequence` without one the default port: the
/// backend itself would take `success`, which not every type has.
fn settle_port(edge: &mut Value, actions: &[Value], types: &ActionTypes) {
    let Some(source) = edge.get("source_action_id").and_then(Value::as_str) else { return };
    let action = match source.strip_prefix("temp:") {
        Some(index) => index.parse::<usize>().ok().and_then(|index| actions.get(index)),
        None => actions.iter().find(|action| action.get("id").and_then(Value::as_str) == Some(source)),
    };
    let Some(action_type) = action.and_then(|action| action.get("action_type")).and_then(Value::as_str) else { return };
    let is_sequence = edge.get("edge_type").and_then(Value::as_str) == Some("sequence");
    let port = match edge.get("source_output") {
        Some(Value::String(port)) if !port.trim().is_empty() => port_name(action_type, port),
        None | Some(Value::Null | Value::String(_)) if is_sequence => types.default_port(action_type),
        // The backend refuses what is no text.
        _ => return,
    };
    let port = Value::from(port);
    edge["source_output"] = port;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(workflow: Value) -> Result<Value, AfterError> {
        let Value::Object(mut workflow) = workflow else { panic!("a test workflow is an object") };
        expand(&mut workflow, &ActionTypes::shipped())?;
        Ok(Value::Object(workflow))
    }

    fn start(target: &str) -> Value {
        json!({"target_action_id": target, "edge_type": "start", "edge_order": 0})
    }

    fn sequence(source: &str, target: &str, port: &str, order: usize) -> Value {
        json!({"source_action_id": source, "target_action_id": target, "edge_type": "sequence",
               "source_output": port, "edge_order": order})
    }

    #[test]
    fn after_becomes_edges_and_disappears() {
        let workflow = json!({"name": "W", "actions": [
            {"name": "Check", "action_type": "evaluate_condition"},
            {"name": "High", "action_type": "create_alert", "after": "Check:output-true"},
            {"name": "Low", "action_type": "create_alert", "after": " Check : false "},
            {"name": "Mail", "action_type": "send_email", "after": "High"},
            {"name": "Log", "action_type": "log_audit_entry", "after": "Mail:"},
        ]});
        let expected = json!({"name": "W", "actions": [
            {"name": "Check", "action_type": "evaluate_condition"},
            {"name": "High", "action_type": "create_alert"},
            {"name": "Low", "action_type": "create_alert"},
            {"name": "Mail", "action_type": "send_email"},
            {"name": "Log", "action_type": "log_audit_entry"},
        ], "edges": [
            start("temp:0"),
            sequence("temp:0", "temp:1", "true", 1),
            sequence("temp:0", "temp:2", "false", 2),
            sequence("temp:1", "temp:3", "success", 3),
            sequence("temp:3", "temp:4", "success", 4),
        ]});
        assert_eq!(expanded(workflow), Ok(expected));
    }

    #[test]
    fn edges_are_made_only_where_none_are_given() {
        let one = |action: Value, edges: Value| json!({"actions": [action], "edges": edges});
        let rows = [
            (one(json!({"name": "A", "after": ""}), json!([])), json!([start("temp:0")]), "empty after, empty edges"),
            (one(json!({"name": "A"}), json!(null)), json!([start("temp:0")]), "a lone action is the start"),
            (
                one(json!({"name": "A", "after": "nobody"}), json!([start("temp:0")])),
                json!([start("temp:0")]),
                "explicit edges win over a wrong after",
            ),
            (json!({"actions": [{"name": "A"}, {"name": "B"}]}), json!([]), "nothing given, nothing made"),
            (json!({"actions": []}), json!([]), "no actions"),
            (
                json!({"actions": [{"name": "A", "id": "id-a", "action_type": "evaluate_condition"}, {"name": "B"}],
                       "edges": [start("temp:0"), sequence("id-a", "temp:1", "output-false", 1)]}),
                json!([start("temp:0"), sequence("id-a", "temp:1", "false", 1)]),
                "a condition's port in explicit edges gets the backend's name",
            ),
            (
                json!({"actions": [{"name": "A", "action_type": "check_inventory"}, {"name": "B", "id": "id-b", "action_type": "delay"},
                                   {"name": "C"}, {"name": "D"}],
                       "edges": [start("temp:0"),
                                 {"source_action_id": "temp:0", "target_action_id": "id-b", "edge_type": "sequence"},
                                 {"source_action_id": "id-b", "target_action_id": "temp:2", "edge_type": "sequence", "source_output": null},
                                 {"source_action_id": "temp:0", "target_action_id": "temp:3", "edge_type": "always"},
                                 {"source_action_id": "temp:2", "target_action_id": "temp:3", "edge_type": "sequence"}]}),
                json!([start("temp:0"),
                       {"source_action_id": "temp:0", "target_action_id": "id-b", "edge_type": "sequence", "source_output": "sufficient"},
                       {"source_action_id": "id-b", "target_action_id": "temp:2", "edge_type": "sequence", "source_output": "success"},
                       {"source_action_id": "temp:0", "target_action_id": "temp:3", "edge_type": "always"},
                       {"source_action_id": "temp:2", "target_action_id": "temp:3", "edge_type": "sequence"}]),
                "a sequence without a port gets the default one where the type is known",
            ),
        ];
        for (workflow, edges, reason) in rows {
            assert_eq!(expanded(workflow).unwrap()["edges"], edges, "{reason}");
        }
    }

    #[test]
    fn a_name_with_a_colon_is_recognised_whole() {
        let workflow = json!({"actions": [
            {"name": "Step: one", "action_type": "check_inventory"},
            {"name": "B", "after": "Step: one"},
            {"name": "C", "after": "Step: one:insufficient"},
        ]});
        let edges = json!([
            start("temp:0"),
            sequence("temp:0", "temp:1", "sufficient", 1),
            sequence("temp:0", "temp:2", "insufficient", 2)
        ]);
        assert_eq!(expanded(workflow).unwrap()["edges"], edges);
    }

    #[test]
    fn a_shorthand_that_cannot_be_read_says_why() {
        let b_after = |after: Value| json!([{"name": "A", "action_type": "delay"}, {"name": "B", "after": after}]);
        let rows = [
            (json!([{"after": "A"}]), AfterError::Unnamed(0)),
            (b_after(json!(7)), AfterError::NotText("B".into())),
            (b_after(json!("  ")), AfterError::NoSource("B".into())),
            (b_after(json!(":success")), AfterError::NoSource("B".into())),
            (
                b_after(json!("C:success")),
                AfterError::UnknownSource { action: "B".into(), source_name: "C".into(), known: "\"A\", \"B\"".into() },
            ),
            (
                json!([{"name": "A"}, {"name": "A", "after": "A:x"}]),
                AfterError::AmbiguousSource { action: "A".into(), source_name: "A".into() },
            ),
            (json!([{"name": "A"}, {"name": "B", "after": "A"}]), AfterError::Untyped("A".into())),
            (
                json!([{"name": "A"}, {"name": "B"}, {"name": "C", "after": "A:x"}]),
                AfterError::SecondStart { first: "A".into(), second: "B".into() },
            ),
            (json!([{"name": "A", "after": "B:x"}, {"name": "B", "after": "A:x"}]), AfterError::NoStart),
        ];
        for (actions, expected) in rows {
            assert_eq!(expanded(json!({ "actions": actions })), Err(expected));
        }
    }
}
