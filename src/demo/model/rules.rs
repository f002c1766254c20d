//! Scripts that look at workflows: what one does, what a step of it does, and which rules, alerts and parts there are.

use serde_json::{Value, json};

use super::any_tool;
use super::say;
use super::scene::{Pause, Scene, Script};
use super::words::Clause;

/// What a workflow does: the one that the clause names, else the one on the screen.
pub(super) fn explain(scene: &Scene<'_>, clause: Clause<'_>) -> Script {
    let name = clause.proper_name();
    if name.is_none() && !clause.has(&["workflow", "rule", "automation", "this", "it"]) {
        return Err(Pause::Other);
    }
    let Some(wanted) = name.as_deref().or_else(|| scene.screen_text("workflow_id")) else {
        let text =
            "No workflow is open on your screen. Open one or tell me its name, for example *explain Low Stock Alert*.";
        return Err(Pause::Say(text.to_owned()));
    };
    let found = scene.ask("get_workflow_rule", json!({ "workflow_id": wanted }))?;
    // A name that no rule has may be that of a step: then the tool took the rule on the screen.
    let rule = found.get("rule").unwrap_or(found);
    let has_name = |value: &Value| name.as_deref().is_some_and(|name| is_called(value, name));
    match say::list_at(rule, "/actions").iter().any(has_name) && !has_name(rule) {
        true => step_called(scene, wanted),
        false => Ok(noted(found, &about(rule, found.get("summary").unwrap_or(&Value::Null)))),
    }
}

fn is_called(value: &Value, name: &str) -> bool {
    say::text(value, &["name"]).is_some_and(|own| say::same_name(own, name))
}

/// `text` behind the note that a tool has put beside its result.
fn noted(found: &Value, text: &str) -> String {
    match say::text(found, &["note"]) {
        Some(note) => format!("Please note: {}\n\n{text}", say::sentence(note)),
        None => text.to_owned(),
    }
}

fn about(rule: &Value, summary: &Value) -> String {
    let name = say::bold(say::text(rule, &["name"]).unwrap_or("This workflow"));
    let runs = runs(say::text(rule, &["trigger_type_name", "trigger_type"]).unwrap_or_default(), &entity(rule));
    let mut text = format!("{name} runs {runs}.");
    if let Some(description) = say::text(rule, &["description"]) {
        text.push_str(&format!(" {}", say::sentence(description)));
    }
    let number = |key: &str| summary.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    if let Some(steps) = number("node_count") {
        let branches =
            number("branch_count").filter(|n| *n > 0).map(|n| format!(" and {}", say::count(n, "branch point")));
        text.push_str(&format!(" It has {}{}.", say::count(steps, "step"), branches.unwrap_or_default()));
    }
    let lines: Vec<String> = outline(rule, summary).iter().map(Line::text).collect();
    if !lines.is_empty() {
        text.push_str(&format!("\n\n{}", lines.join("\n")));
    }
    text
}

/// What a rule watches, `schema.table`.
pub(super) fn entity(rule: &Value) -> String {
    let table = say::text(rule, &["entity_name", "entity"]).unwrap_or("an entity");
    match say::text(rule, &["entity_schema_name"]) {
        Some(schema) if !table.contains('.') => format!("{schema}.{table}"),
        Some(_) | None => table.to_owned(),
    }
}

/// When a workflow runs, as the end of a sentence.
pub(super) fn runs(trigger: &str, entity: &str) -> String {
    let entity = say::code(entity);
    match trigger {
        "on_create" => format!("when a record of {entity} is created"),
        "on_update" => format!("when a record of {entity} is updated"),
        "on_delete" => format!("when a record of {entity} is deleted"),
        other => format!("on {} of {entity}", say::code(other)),
    }
}

/// A step as the outline of its workflow has it: `  [port] Name (type)`, and more of it.
pub(super) struct Line<'a> {
    /// How deep it stands.
    pub depth: usize,
    /// The port that leads to it.
    pub port: Option<&'a str>,
    /// Its action: name and type.
    pub action: &'a Value,
    more: &'a str,
}

/// The lines of the outline that tell of the rule's actions, at most 40.
pub(super) fn outline<'a>(rule: &'a Value, summary: &'a Value) -> Vec<Line<'a>> {
    let actions = say::list_at(rule, "/actions");
    let lines = say::text(summary, &["flow_outline"]).unwrap_or_default().lines().take(40);
    let line = |line: &'a str| {
        let text = line.trim_start();
        let depth = (line.len() - text.len()) / 2;
        let (port, text) = match text.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((port, rest)) => (Some(port), rest),
            None => (None, text),
        };
        actions.iter().find_map(|action| {
            let (name, kind) = (say::text(action, &["name"])?, say::text(action, &["action_type"])?);
            let more = text.strip_prefix(name)?.strip_prefix(" (")?.strip_prefix(kind)?.strip_prefix(')')?;
            Some(Line { depth, port, action, more })
        })
    };
    lines.filter_map(line).collect()
}

impl Line<'_> {
    fn text(&self) -> String {
        let label = self.port.map(|port| format!("on {}: ", say::code(port))).unwrap_or_default();
        let more = match self.more.split_once(": ") {
            Some((_, who)) => format!(", for {}", say::plain(who)),
            None if self.more.is_empty() => String::new(),
            None => format!(" ({})", say::plain(self.more)),
        };
        format!("{}- {label}{}{more}", "  ".repeat(self.depth), does(self.action))
    }
}

/// A step and what it does.
fn does(action: &Value) -> String {
    let name = say::bold(say::text(action, &["name"]).unwrap_or("This step"));
    let kind = say::text(action, &["action_type"]).unwrap_or("unknown");
    let does = match kind {
        "create_alert" => "raises an alert",
        "evaluate_condition" => "checks a condition",
        "log_audit_entry" => "writes to the audit log",
        "send_email" => "sends an e-mail",
        other => return format!("{name} is a step of type {}", say::code(other)),
    };
    format!("{name} {does}")
}

/// What the step does that the clause names.
pub(super) fn step(scene: &Scene<'_>, clause: Clause<'_>) -> Script {
    let named = clause.behind(&["node", "step", "action"]).and_then(Clause::name);
    let name = clause.proper_name().or(named).ok_or(Pause::Other)?;
    step_called(scene, &name)
}

/// The recipients of the alerts of the workflow on the screen: from its steps that raise some.
pub(super) fn who_is_alerted(scene: &Scene<'_>, _clause: Clause<'_>) -> Script {
    step_called(scene, "create_alert")
}

/// What the step does that is called so, or has that type.
fn step_called(scene: &Scene<'_>, name: &str) -> Script {
    let mut input = json!({ "node_name": name });
    if let Some(id) = scene.screen_text("workflow_id") {
        input = json!({ "workflow_id": id, "node_name": name });
    }
    let found = scene.ask("explain_workflow_node", input)?;
    let several = say::list_at(found, "/explanations");
    let parts = if several.is_empty() { std::slice::from_ref(found) } else { several };
    let parts: Vec<String> = parts.iter().take(8).map(about_step).collect();
    Ok(noted(found, &parts.join("\n\n")))
}

fn about_step(found: &Value) -> String {
    let action = found.get("action").unwrap_or(found);
    let mut text = format!("{}.", does(action));
    if let Some(description) = say::text(action, &["description"]) {
        text.push_str(&format!(" {}", say::sentence(description)));
    }
    let names = |key: &str| -> Vec<String> {
        let edges = found.get(key).map_or(&[][..], say::items).iter();
        edges.filter_map(|edge| say::text(edge, &["action_name"])).take(12).map(say::bold).collect()
    };
    let comes = match names("incoming_from").as_slice() {
        [] => "Nothing leads to it".to_owned(),
        before => format!("It comes after {}", say::joined(before)),
    };
    let goes = match names("outgoing_to").as_slice() {
        [] => "the flow ends there".to_owned(),
        after => format!("goes on to {}", say::joined(after)),
    };
    text.push_str(&format!(" {comes} and {goes}."));
    let config = action.get("action_config").and_then(Value::as_object);
    let facts: Vec<String> = config.into_iter().flatten().flat_map(|(key, value)| facts(key, value)).collect();
    if !facts.is_empty() {
        text.push_str(&format!("\n\n{}", say::bullets(facts, 0)));
    }
    text
}

/// A setting of a step: conditions and recipients in words, everything else by its key.
fn facts(key: &str, value: &Value) -> Vec<String> {
    match (key, value) {
        ("conditions", Value::Array(all)) => all.iter().take(10).map(condition).collect(),
        ("recipients", Value::Object(groups)) => {
            let who = groups.iter().flat_map(|(group, members)| {
                let role = if group == "roles" { "everyone with the role " } else { "" };
                say::items(members).iter().take(20).map(move |who| format!("{role}{}", person(who)))
            });
            vec![format!("Recipients: {}", say::joined(&who.collect::<Vec<_>>()))]
        }
        (_, Value::Null) => Vec::new(),
        (key, value) => vec![format!("{}: {}", say::titled(key), say::brief(value))],
    }
}

fn condition(condition: &Value) -> String {
    let field = say::text(condition, &["field_name"]).unwrap_or("a field");
    let operator = say::spaced(say::text(condition, &["operator"]).unwrap_or("matches"));
    let value = condition.get("value").map(|value| format!(" {}", say::code(&say::brief(value))));
    format!("Condition: {} {operator}{}", say::code(field), value.unwrap_or_default())
}

fn person(who: &Value) -> String {
    let name = say::text(who, &["name", "email", "id"]).map_or_else(|| say::brief(who), say::plain);
    match say::text(who, &["email"]).filter(|email| *email != name) {
        Some(email) => format!("{name} ({})", say::plain(email)),
        None => name,
    }
}

/// What the list of `tool` has, counted as `noun`s; the clause may choose by words that the tool's schema knows.
pub(super) fn list(scene: &Scene<'_>, clause: Clause<'_>, tool: &'static str, noun: &str, whose: &str) -> Script {
    let input = scene.tool(tool).map(|tool| any_tool::choices(clause, tool)).unwrap_or_default();
    let chosen: String = input.values().filter_map(Value::as_str).map(|chosen| format!("{chosen} ")).collect();
    let found = scene.ask(tool, Value::Object(input))?;
    let listed = say::items(found);
    let noun = format!("{chosen}{noun}");
    if listed.is_empty() {
        return Ok(format!("There is no {noun}{whose}."));
    }
    let total = found.get("total").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let total = total.unwrap_or(0).max(listed.len());
    Ok(format!("{}{whose}:\n\n{}", say::there_are(total, &noun), say::bullets(listed.iter().map(entry), total)))
}

/// An entry of a list: its name, and the fields that most of them have.
pub(super) fn entry(item: &Value) -> String {
    let name = match (say::text(item, &["schema_name"]), say::text(item, &["name"])) {
        (Some(schema), Some(name)) => say::code(&format!("{schema}.{name}")),
        _ => say::text(item, &["title", "name"])
            .map_or_else(|| say::text(item, &["type"]).map_or_else(|| say::brief(item), say::code), say::bold),
    };
    let mut line = name;
    let tags: Vec<&str> = ["severity", "status"].iter().filter_map(|key| say::text(item, &[key])).collect();
    if !tags.is_empty() {
        line.push_str(&format!(" ({})", say::plain(&tags.join(", "))));
    }
    if let Some(entity) = say::text(item, &["entity_name"]) {
        line.push_str(&format!(" on {}", say::code(entity)));
    }
    if let Some(trigger) = say::text(item, &["trigger_type"]) {
        line.push_str(&format!(", {}", say::code(trigger)));
    }
    if item.get("is_active") == Some(&Value::Bool(false)) {
        line.push_str(" (inactive)");
    }
    if let Some(text) = say::text(item, &["message", "description"]) {
        line.push_str(&format!(": {}", say::plain(text).trim_end_matches('.')));
    }
    line
}

/// What no script does: changes of saved rules, but for steps that are added.
pub(super) fn refuse(_scene: &Scene<'_>, _clause: Clause<'_>) -> Script {
    let text = "I can explain the workflows there are, add steps to them and build new ones, but other changes need a real \
                model.";
    Ok(text.to_owned())
}
