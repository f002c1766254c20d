//! A workflow's graph and its steps in words: what `get_workflow_rule` and `explain_workflow_node` return, told to a person.

use serde_json::Value;

use super::one_shot::trigger_words;
use super::words;

/// How many lines of a flow are told.
const MAX_LINES: usize = 40;

/// A rule and its flow.
pub(super) fn rule(found: &Value) -> String {
    let rule = found.get("rule").unwrap_or(found);
    let name = words::bold(words::str_at(rule, &["name"]).unwrap_or("This workflow"));
    let trigger = words::str_at(rule, &["trigger_type_name", "trigger_type"]).unwrap_or("");
    let table = words::str_at(rule, &["entity_name", "entity"]).unwrap_or("an entity");
    let entity = match words::str_at(rule, &["entity_schema_name", "entity_schema"]) {
        Some(schema) if !table.contains('.') => format!("{schema}.{table}"),
        Some(_) | None => table.to_owned(),
    };
    let mut text = format!("{name} runs {}.", trigger_words(trigger, &entity));
    if let Some(description) = words::str_at(rule, &["description"]) {
        text.push_str(&format!(" {}", words::sentence(description)));
    }
    if rule.get("is_active").and_then(Value::as_bool) == Some(false) {
        text.push_str(" It is switched off at the moment.");
    }
    let Some(summary) = found.get("summary") else { return text };
    let number = |key: &str| summary.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    if let Some(steps) = number("node_count") {
        let branches =
            number("branch_count").filter(|n| *n > 0).map(|n| format!(" and {}", words::count(n, "branch point")));
        text.push_str(&format!(" It has {}{}.", words::count(steps, "step"), branches.unwrap_or_default()));
    }
    let flow = flow(summary.get("flow_outline").unwrap_or(&Value::Null));
    if !flow.is_empty() {
        text.push_str(&format!("\n\n{flow}"));
    }
    text
}

/// The outline's lines as a nested list.
fn flow(outline: &Value) -> String {
    let lines: Vec<&str> = match outline {
        Value::String(text) => text.lines().collect(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    let told: Vec<String> =
        lines.iter().filter(|line| !line.trim().is_empty()).take(MAX_LINES).map(|line| outline_line(line)).collect();
    told.join("\n")
}

/// `  [true] Raise Alert (create_alert) — alerts: Ann (a@b.c)` as an entry of a list.
fn outline_line(line: &str) -> String {
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let indent = " ".repeat(indent.min(40));
    let line = line.trim();
    let (label, rest) = match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((label, rest)) => (format!("on {}: ", words::code(label)), rest),
        None => (String::new(), line),
    };
    let (node, alerts) = rest.split_once(" — alerts: ").map_or((rest, None), |(node, who)| (node, Some(who)));
    let (node, again) = node.split_once("  ↻").map_or((node, ""), |(node, _)| (node, ", which continues as above"));
    let mut text = match node.strip_suffix(')').and_then(|node| node.rsplit_once(" (")) {
        Some((name, action_type)) => format!("{} {}{again}", words::bold(name), does(action_type)),
        None => format!("{}{again}", words::plain(node)),
    };
    if let Some(who) = alerts {
        text.push_str(&format!(", for {}", words::plain(who)));
    }
    format!("{indent}- {label}{text}")
}

/// What an action of this type does.
fn does(action_type: &str) -> String {
    let known = match action_type.trim() {
        "allocate_inventory" => "allocates inventory",
        "check_inventory" => "checks whether there is enough stock",
        "check_reorder_point" => "checks the reorder point",
        "commit_allocation" => "commits an allocation",
        "create_alert" => "raises an alert",
        "create_entity" => "creates a record",
        "delay" => "waits",
        "evaluate_condition" => "checks a condition",
        "log_audit_entry" => "writes to the audit log",
        "lookup_entity" => "looks up a record",
        "release_reservation" => "releases a reservation",
        "reserve_inventory" => "reserves inventory",
        "seek_approval" => "asks for approval",
        "send_email" => "sends an e-mail",
        "send_notification" => "sends a notification",
        "transition_status" => "changes a status",
        "update_field" => "updates a field",
        other => return format!("is a step of type {}", words::code(other)),
    };
    known.to_owned()
}

/// One step with its place in the flow and its configuration.
pub(super) fn step(found: &Value) -> String {
    let action = found.get("action").unwrap_or(found);
    let name = words::bold(words::str_at(action, &["name"]).unwrap_or("This step"));
    let action_type = words::str_at(action, &["action_type", "type"]).unwrap_or("unknown");
    let mut text = format!("{name} {}.", does(action_type));
    if let Some(description) = words::str_at(action, &["description"]) {
        text.push_str(&format!(" {}", words::sentence(description)));
    }
    if action.get("is_active").and_then(Value::as_bool) == Some(false) {
        text.push_str(" It is switched off.");
    }
    if let Some(place) = position_name(found) {
        text.push_str(&format!(" {place}"));
    }
    let facts = configuration(action.get("action_config").or_else(|| action.get("config")).unwrap_or(&Value::Null));
    if !facts.is_empty() {
        text.push_str(&format!("\n\n{}", words::bullets(facts, None)));
    }
    text
}

fn position_name(found: &Value) -> Option<String> {
    let edges = |key: &str, direction: &str| -> Vec<String> {
        words::items(found.get(key).unwrap_or(&Value::Null), &[])
            .iter()
            .take(12)
            .filter_map(|edge| {
                let name = words::str_at(edge, &["action_name", "name"])?;
                if name == "(trigger)" {
                    return Some("the trigger".to_owned());
                }
                let port = words::str_at(edge, &["output_port", "source_output"]);
                let port = port.map(|port| format!(" ({direction} {})", words::code(port))).unwrap_or_default();
                Some(format!("{}{port}", words::bold(name)))
            })
            .collect()
    };
    let before = edges("incoming_from", "its branch");
    let after = edges("outgoing_to", "on");
    if found.get("incoming_from").is_none() && found.get("outgoing_to").is_none() {
        return None;
    }
    let comes = if before.is_empty() {
        "Nothing leads to it".to_owned()
    } else {
        format!("It comes after {}", words::joined(&before))
    };
    let goes = if after.is_empty() {
        "the flow ends there".to_owned()
    } else {
        format!("goes on to {}", words::joined(&after))
    };
    Some(format!("{comes} and {goes}."))
}

/// A configuration as facts; conditions and recipients in words, everything else by its key.
fn configuration(config: &Value) -> Vec<String> {
    let Some(fields) = config.as_object() else { return Vec::new() };
    let mut facts = Vec::new();
    for (key, value) in fields {
        let is_empty = value.is_null() || value.as_str() == Some("") || value.as_array().is_some_and(Vec::is_empty);
        if is_empty || key == "action_type" {
            continue;
        }
        match (key.as_str(), value) {
            ("conditions", Value::Array(list)) => facts.extend(list.iter().take(10).map(condition)),
            ("recipients", Value::Object(groups)) => {
                let names: Vec<String> = groups
                    .iter()
                    .flat_map(|(group, members)| {
                        let role = if group == "roles" { "everyone with the role " } else { "" };
                        words::items(members, &[]).iter().take(20).map(move |who| format!("{role}{}", person(who)))
                    })
                    .collect();
                let who = if names.is_empty() { "nobody yet".to_owned() } else { words::joined(&names) };
                facts.push(format!("Recipients: {who}"));
            }
            (key, value) => facts.push(format!("{}: {}", first_upper(&words::spaced(key)), words::brief(value))),
        }
    }
    facts
}

fn condition(condition: &Value) -> String {
    let field = words::str_at(condition, &["field_name", "field"]).unwrap_or("a field");
    let operator = words::spaced(words::str_at(condition, &["operator"]).unwrap_or("matches"));
    let value = condition
        .get("value")
        .filter(|value| !value.is_null())
        .map(|value| format!(" {}", words::code(&words::brief(value))));
    format!("Condition: {} {operator}{}", words::code(field), value.unwrap_or_default())
}

fn person(who: &Value) -> String {
    match who {
        Value::String(id) => words::plain(id),
        other => {
            let name = words::str_at(other, &["name", "email", "id"]).map(words::plain).unwrap_or_default();
            match words::str_at(other, &["email"]).filter(|email| *email != name) {
                Some(email) => format!("{name} ({})", words::plain(email)),
                None => name,
            }
        }
    }
}

fn first_upper(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
