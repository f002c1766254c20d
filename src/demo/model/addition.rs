//! Steps that are added to a saved workflow: look at it, then send a preview of the whole with the new steps in it.

use serde_json::{Value, json};

use super::errors;
use super::one_shot::free_name;
use super::scene::{Pause, Scene, Script};
use super::steps::{Kind, Step};
use super::words;

/// Types of steps that go on by more than one port.
const BRANCHING: [&str; 4] = ["evaluate_condition", "check_inventory", "check_reorder_point", "seek_approval"];

/// How steps go on that do not branch, as outlines write it.
const PLAIN_PORTS: [&str; 4] = ["", "success", "output", "default"];

/// A step that is there, and what it follows.
#[derive(Debug, Clone, PartialEq)]
struct Placed<'r> {
    name: &'r str,
    action_type: &'r str,
    /// In the `after` shorthand; `None` for the first one.
    after: Option<String>,
}

/// Previews the workflow that is open on the screen with `steps` added.
pub(super) fn preview(scene: &Scene<'_>, workflow_id: &str, steps: &[&Step]) -> Script {
    let found = scene.ask("get_workflow_rule", json!({ "workflow_id": workflow_id }))?;
    let rule = found.get("rule").unwrap_or(&Value::Null);
    let actions = words::items(rule, &["actions"]);
    let placed = placed(found, actions).ok_or_else(|| {
        Pause::Say(
            "The steps of this workflow meet again behind a branch; adding to that needs a real model.".to_owned(),
        )
    })?;
    let text = |keys: &[&str]| words::str_at(rule, keys).unwrap_or_default();
    let name = text(&["name"]);
    let entity = match (text(&["entity_schema_name"]), text(&["entity_name", "entity"])) {
        ("", entity) => entity.to_owned(),
        (schema, entity) => format!("{schema}.{entity}"),
    };
    let mut all: Vec<Value> = placed.iter().map(|step| kept(step, actions)).collect();
    let mut names: Vec<String> = placed.iter().map(|step| step.name.to_owned()).collect();
    let mut added = Vec::new();
    for step in steps {
        let after = predecessor(step, &placed, &names)?;
        let own = free_name(step, names.iter().map(String::as_str));
        all.push(json!({
            "name": own,
            "action_type": step.kind.action_type(),
            "action_config": step.kind.config(name, Some(&entity)).map_err(Pause::Say)?,
            "is_active": true,
            "after": after,
        }));
        added.push(words::bold(&own));
        names.push(own);
    }
    let workflow = json!({
        "name": name,
        "is_active": rule.get("is_active").and_then(Value::as_bool).unwrap_or(true),
        "entity": entity,
        "trigger_type": text(&["trigger_type_name", "trigger_type"]),
        "actions": all,
    });
    let description = format!("{name} with {} added", words::count(added.len(), "step"));
    let input = json!({ "workflow_id": workflow_id, "workflow": workflow, "description": description });
    let result = scene.ask("preview_workflow", input)?;
    if let Some(text) = errors::refused_preview(result) {
        return Err(Pause::Say(text));
    }
    let mut said = format!(
        "I've sent a preview of {} with {} added; nothing is saved yet. Accept it to save it, or tell me what should be different.",
        words::bold(name),
        words::joined(&added),
    );
    if steps.iter().any(|step| matches!(step.kind, Kind::Alert { .. })) {
        said.push_str(" The alert names no recipients yet.");
    }
    Ok(said)
}

/// A step as it is: what is not said of it stays.
fn kept(step: &Placed<'_>, actions: &[Value]) -> Value {
    let saved = actions.iter().find(|action| words::str_at(action, &["name"]) == Some(step.name));
    let mut action = json!({ "name": step.name, "action_type": step.action_type });
    if let Some(fields) = action.as_object_mut() {
        let known = |key: &str| saved.and_then(|saved| saved.get(key)).cloned();
        fields.extend(["id", "is_active"].into_iter().filter_map(|key| Some((key.to_owned(), known(key)?))));
        fields.extend(step.after.clone().map(|after| ("after".to_owned(), Value::String(after))));
    }
    action
}

/// What a new step follows: what the user named, else the last step of the branch that is meant.
fn predecessor(step: &Step, placed: &[Placed<'_>], names: &[String]) -> Script<String> {
    let port = |name: &str| match step.port {
        Some(port) => format!("{name}:{port}"),
        None => name.to_owned(),
    };
    if let Some(wanted) = &step.after {
        let exact = names.iter().find(|name| words::same_name(name, wanted));
        return exact
            .map(|name| port(name))
            .ok_or_else(|| Pause::Say(format!("This workflow has no step {}.", words::bold(wanted))));
    }
    if step.port.is_some()
        && let Some(branching) = placed.iter().rev().find(|step| BRANCHING.contains(&step.action_type))
    {
        return Ok(port(branching.name));
    }
    // Of what is new, the newest; of what was there, an alert, since more of the same usually belongs beside it.
    let newest = names.get(placed.len()..).and_then(<[String]>::last);
    let alert = || placed.iter().find(|step| step.action_type == "create_alert").or(placed.last());
    let found = newest.cloned().or_else(|| alert().map(|step| step.name.to_owned()));
    found.ok_or_else(|| Pause::Say("This workflow has no steps to add to.".to_owned()))
}

/// The steps in the outline of `found`, each with what it follows; `None` where an outline does not tell that.
fn placed<'r>(found: &'r Value, actions: &'r [Value]) -> Option<Vec<Placed<'r>>> {
    let summary = found.get("summary")?;
    let outline = words::str_at(summary, &["flow_outline"])?;
    let known: Vec<(&str, &str)> = actions
        .iter()
        .filter_map(|action| Some((words::str_at(action, &["name"])?, words::str_at(action, &["action_type"])?)))
        .collect();
    let mut lines: Vec<(usize, Placed<'r>)> = Vec::new();
    for line in outline.lines() {
        let text = line.trim_start();
        let depth = (line.len() - text.len()) / 2;
        let (port, text) = match text.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((port, rest)) => (port, rest),
            None => ("", text),
        };
        let (name, action_type) = *known.iter().find(|(name, of)| {
            text.strip_prefix(name).and_then(|rest| rest.strip_prefix(" (")).is_some_and(|rest| rest.starts_with(of))
        })?;
        if lines.iter().any(|(_, other)| other.name == name) {
            return None;
        }
        let before = match lines.last() {
            None => None,
            Some((last_depth, last)) => {
                let branches = BRANCHING.contains(&last.action_type);
                let is_sibling =
                    depth < *last_depth || (depth == *last_depth && !branches && !PLAIN_PORTS.contains(&port));
                match is_sibling {
                    false => Some(last.name),
                    true => Some(lines.iter().rev().find(|(other, _)| *other + 1 == depth)?.1.name),
                }
            }
        };
        let after = before.map(|before| if port.is_empty() { before.to_owned() } else { format!("{before}:{port}") });
        lines.push((depth, Placed { name, action_type, after }));
    }
    let is_all = lines.len() == actions.len()
        && summary.get("edge_count").and_then(Value::as_u64) == u64::try_from(lines.len()).ok();
    is_all.then(|| lines.into_iter().map(|(_, step)| step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(outline: &str, types: &[(&str, &str)], edges: usize) -> Option<Vec<Option<String>>> {
        let actions: Vec<Value> = types.iter().map(|(name, of)| json!({ "name": name, "action_type": of })).collect();
        let found = json!({ "summary": { "flow_outline": outline, "edge_count": edges } });
        placed(&found, &actions).map(|steps| steps.into_iter().map(|step| step.after).collect())
    }

    #[test]
    fn an_outline_tells_what_each_step_follows() {
        let types = [("A", "evaluate_condition"), ("B", "create_alert"), ("C", "delay"), ("D (x)", "log_audit_entry")];
        let some = |text: &str| Some(text.to_owned());
        let outline = "A (evaluate_condition)\n  [true] B (create_alert) — alerts: Ann\n  C (delay)\n  [false] D (x) (log_audit_entry)";
        assert_eq!(after(outline, &types, 4), Some(vec![None, some("A:true"), some("B"), some("A:false")]));
        let chain = "A (evaluate_condition)\n[true] B (create_alert)\nC (delay)\nD (x) (log_audit_entry)";
        assert_eq!(after(chain, &types, 4), Some(vec![None, some("A:true"), some("B"), some("C")]));
        let named = "A (evaluate_condition)\n  [true] B (create_alert)\n  [success] C (delay)\n  [false] D (x) (log_audit_entry)";
        assert_eq!(after(named, &types, 4), Some(vec![None, some("A:true"), some("B:success"), some("A:false")]));
        let again =
            "A (evaluate_condition)\n  [true] B (create_alert)\n  C (delay)\n  [false] C (delay)  ↻ (continues above)";
        assert_eq!(after(again, &types, 5), None, "branches that meet again");
        assert_eq!(after("A (evaluate_condition)", &types, 4), None, "a step that nothing leads to");
    }
}
