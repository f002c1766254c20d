//! Scripts that answer questions about workflows, alerts and what workflows are made from.

use serde_json::{Map, Value, json};

use super::graph_words;
use super::intents::{AlertFilter, Catalogue};
use super::scene::{Pause, Scene, Script};
use super::words;

/// The names of the steps that the screen shows.
pub(super) fn screen_steps(scene: &Scene<'_>) -> Vec<String> {
    let nodes = scene.screen.get("nodes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let name = |node: &Value| {
        let own = words::str_at(node, &["name", "label"]);
        let inside = || node.get("data").and_then(|data| words::str_at(data, &["name", "label"]));
        own.or_else(inside).map(|name| name.trim().to_owned())
    };
    // Very short names would be found inside other words.
    nodes.iter().filter_map(name).filter(|name| name.chars().count() >= 4).collect()
}

/// The id or name a tool gets for `name`, else for the workflow on the screen.
fn rule_ref(scene: &Scene<'_>, name: Option<&str>) -> Script<Value> {
    let named = name.or_else(|| scene.screen_str("workflow_id"));
    named.map(Value::from).ok_or_else(|| {
        Pause::Say(
            "No workflow is open on your screen. Open one or tell me its name, for example *explain the workflow \"Low Stock \
             Alert\"*. I can also *list the workflows*."
                .to_owned(),
        )
    })
}

/// What a workflow does.
pub(super) fn explain_rule(scene: &Scene<'_>, name: Option<&str>) -> Script {
    let rule = scene.ask("get_workflow_rule", json!({ "workflow_id": rule_ref(scene, name)? }))?;
    match name.filter(|name| words::str_at(rule, &["note"]).is_some() && has_step(rule, name)) {
        Some(step) => explain_step(scene, step),
        None => Ok(words::noted(rule, &graph_words::rule(rule))),
    }
}

/// Whether `name`, which names no rule, names a step of the rule that the tool took instead.
fn has_step(found: &Value, name: &str) -> bool {
    let steps = found.pointer("/rule/actions").map_or(&[][..], |actions| words::items(actions, &[]));
    steps.iter().filter_map(|step| words::str_at(step, &["name"])).any(|own| words::same_name(own, name))
}

/// What one step does. Without an open workflow the tool says what it needs.
pub(super) fn explain_step(scene: &Scene<'_>, name: &str) -> Script {
    let mut input = Map::new();
    if let Some(id) = scene.screen_str("workflow_id") {
        input.insert("workflow_id".to_owned(), Value::from(id));
    }
    input.insert("node_name".to_owned(), Value::from(name));
    let found = scene.ask("explain_workflow_node", Value::Object(input))?;
    let several = words::items(found, &["explanations"]);
    if several.is_empty() {
        return Ok(words::noted(found, &graph_words::step(found)));
    }
    let parts: Vec<String> = several.iter().take(8).map(graph_words::step).collect();
    Ok(format!("{} match:\n\n{}", words::count(several.len(), "step"), parts.join("\n\n")))
}

/// Which workflows there are.
pub(super) fn rules(scene: &Scene<'_>) -> Script {
    let found = scene.ask("list_workflow_rules", json!({}))?;
    let listed = words::items(found, &["rules"]);
    if listed.is_empty() {
        return Ok("There are no workflows yet. Try *create a workflow that alerts when stock is low*.".to_owned());
    }
    let lines = listed.iter().map(|rule| {
        let name = words::bold(words::str_at(rule, &["name"]).unwrap_or("(unnamed)"));
        let entity =
            words::str_at(rule, &["entity_name", "entity"]).map(|entity| format!(" on {}", words::code(entity)));
        let trigger =
            words::str_at(rule, &["trigger_type", "trigger_type_name"]).map(|t| format!(", {}", words::code(t)));
        let is_inactive = rule.get("is_active").and_then(Value::as_bool) == Some(false);
        let state = if is_inactive { " (inactive)" } else { "" };
        format!("{name}{}{}{state}", entity.unwrap_or_default(), trigger.unwrap_or_default())
    });
    let total = total(found);
    let n = total.and_then(|n| usize::try_from(n).ok()).unwrap_or(0).max(listed.len());
    let are = if n == 1 { "There is" } else { "There are" };
    Ok(format!("{are} {}:\n\n{}", words::count(n, "workflow"), words::bullets(lines, total)))
}

/// The user's alerts.
pub(super) fn alerts(scene: &Scene<'_>, filter: &AlertFilter) -> Script {
    let found = scene.ask("list_my_alerts", Value::Object(filter_input(filter, true)))?;
    Ok(alert_list(found, &filter_words(filter, true), "for you"))
}

/// The alerts a workflow has raised.
pub(super) fn alerts_of_rule(scene: &Scene<'_>, rule: Option<&str>, filter: &AlertFilter) -> Script {
    let mut input = Map::new();
    input.insert("workflow_id".to_owned(), rule_ref(scene, rule)?);
    input.extend(filter_input(filter, false));
    let found = scene.ask("list_alerts_for_rule", Value::Object(input))?;
    let whose =
        rule.map_or_else(|| "raised by this workflow".to_owned(), |rule| format!("raised by {}", words::bold(rule)));
    Ok(alert_list(found, &filter_words(filter, false), &whose))
}

fn filter_input(filter: &AlertFilter, with_severity: bool) -> Map<String, Value> {
    let severity = filter.severity.filter(|_| with_severity).map(|severity| ("severity", severity));
    let given = filter.status.map(|status| ("status", status)).into_iter().chain(severity);
    given.map(|(key, value)| (key.to_owned(), Value::from(value))).collect()
}

fn filter_words(filter: &AlertFilter, with_severity: bool) -> String {
    let parts = [filter.status, filter.severity.filter(|_| with_severity)];
    parts.into_iter().flatten().map(|word| format!("{word} ")).collect()
}

fn alert_list(found: &Value, filter: &str, whose: &str) -> String {
    let listed = words::items(found, &["alerts"]);
    if listed.is_empty() {
        return format!("There are no {filter}alerts {whose}.");
    }
    let total = total(found);
    let n = total.and_then(|n| usize::try_from(n).ok()).unwrap_or(0).max(listed.len());
    let are = if n == 1 { "There is" } else { "There are" };
    let lines = listed.iter().map(alert_line);
    format!("{are} {} {whose}:\n\n{}", words::count(n, &format!("{filter}alert")), words::bullets(lines, total))
}

fn alert_line(alert: &Value) -> String {
    let title = words::bold(words::str_at(alert, &["title", "alert_type", "alertType"]).unwrap_or("(untitled)"));
    let tags: Vec<&str> = ["severity", "status"].iter().filter_map(|key| words::str_at(alert, &[key])).collect();
    let mut line = title;
    if !tags.is_empty() {
        line.push_str(&format!(" ({})", words::plain(&tags.join(", "))));
    }
    if let Some(message) = words::str_at(alert, &["message"]) {
        line.push_str(&format!(": {}", words::plain(message).trim_end_matches('.')));
    }
    let recipients = recipients(alert);
    if !recipients.is_empty() {
        line.push_str(&format!("; to {}", words::joined(&recipients)));
    }
    if let Some(day) = words::str_at(alert, &["created_at", "createdDate"]).and_then(|time| time.get(..10)) {
        line.push_str(&format!("; {}", words::plain(day)));
    }
    line
}

/// The recipients' names; ids are no help to anybody.
fn recipients(alert: &Value) -> Vec<String> {
    let listed = words::items(alert, &["recipients"]);
    listed
        .iter()
        .take(10)
        .filter_map(|recipient| match recipient {
            Value::String(name) => Some(name.as_str()),
            other => words::str_at(other, &["name", "email"]),
        })
        .map(|name| {
            name.strip_prefix("role:")
                .map_or_else(|| words::plain(name), |role| format!("everyone with the role {}", words::plain(role)))
        })
        .collect()
}

/// One alert in full.
pub(super) fn alert(scene: &Scene<'_>, id: &str) -> Script {
    let alert = scene.ask("get_alert_detail", json!({ "alert_id": id }))?;
    if !alert.is_object() {
        return Ok(format!("The alert {} has no details I can read.", words::code(id)));
    }
    let mut facts: Vec<String> = Vec::new();
    let mut fact = |label: &str, keys: &[&str]| {
        if let Some(text) = words::str_at(alert, keys) {
            facts.push(format!("{label}: {}", words::plain(text)));
        }
    };
    fact("Severity", &["severity"]);
    fact("Status", &["status"]);
    fact("Raised by the workflow", &["sourceRuleName", "source_rule_name"]);
    fact("About", &["sourceEntityName", "source_entity_name"]);
    fact("Created", &["createdDate", "created_at", "created_date"]);
    let recipients = recipients(alert);
    if !recipients.is_empty() {
        facts.push(format!("Recipients: {}", words::joined(&recipients)));
    }
    let title = words::bold(words::str_at(alert, &["title", "alertType", "alert_type"]).unwrap_or("This alert"));
    let message =
        words::str_at(alert, &["message"]).map(|text| format!(": {}", words::plain(text))).unwrap_or_default();
    Ok(format!("{title}{message}\n\n{}", words::bullets(facts, None)))
}

/// What workflows can be made from.
pub(super) fn catalogue(scene: &Scene<'_>, which: Catalogue) -> Script {
    let (tool, noun, key) = match which {
        Catalogue::ActionTypes => ("discover_action_types", "action type", "action_types"),
        Catalogue::TriggerTypes => ("discover_trigger_types", "trigger type", "trigger_types"),
        Catalogue::Entities => ("discover_entities", "entity", "entities"),
    };
    let found = scene.ask(tool, json!({}))?;
    let listed = words::items(found, &[key]);
    if listed.is_empty() {
        return Ok(format!("The backend lists no {noun}."));
    }
    let lines = listed.iter().map(|entry| match which {
        Catalogue::ActionTypes => action_type(entry),
        Catalogue::TriggerTypes => described(entry),
        Catalogue::Entities => {
            let name = words::str_at(entry, &["name", "entity_name"]).unwrap_or("(unnamed)");
            words::code(
                &words::str_at(entry, &["schema_name", "schema"])
                    .map_or(name.to_owned(), |schema| format!("{schema}.{name}")),
            )
        }
    });
    let are = if listed.len() == 1 { "There is" } else { "There are" };
    Ok(format!("{are} {}:\n\n{}", words::count(listed.len(), noun), words::bullets(lines, None)))
}

fn action_type(entry: &Value) -> String {
    let mut line = described(entry);
    let ports: Vec<String> = words::items(entry, &["output_ports"])
        .iter()
        .filter_map(|port| port.as_str().or_else(|| words::str_at(port, &["name"])))
        .map(|port| words::plain(port.trim_end_matches(" (default)")))
        .collect();
    if ports.len() > 1 {
        line.push_str(&format!(" (goes on by {})", words::joined(&ports)));
    }
    line
}

fn described(entry: &Value) -> String {
    let name = entry.as_str().or_else(|| words::str_at(entry, &["type", "name"])).unwrap_or("(unnamed)");
    match words::str_at(entry, &["description"]) {
        Some(text) => format!("{}: {}", words::code(name), words::plain(text).trim_end_matches('.')),
        None => words::code(name),
    }
}

fn total(found: &Value) -> Option<u64> {
    found.get("total").and_then(Value::as_u64)
}
