//! Any tool: where no intent of the table fits, the offered tool whose words the message has is called with arguments from the
//! message, and its result is put into words. So whoever declares a tool in a file can try it at once.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::say;
use super::scene::{Pause, Planned, Scene, Script, failed};
use super::words::{Clause, words};
use crate::chat::message::Author;
use crate::chat::tool::ToolDef;

/// The marker of a query that the user can take over, where the screen knows it.
const QUERY_MARKER: &str = "QUERY_SUGGESTION:";

/// Words that say nothing about what is wanted.
const STOP: &[&str] = &[
    "and", "any", "are", "as", "at", "be", "by", "can", "do", "for", "from", "has", "have", "in", "is", "it", "its",
    "me", "my", "of", "on", "or", "please", "tell", "that", "the", "there", "this", "to", "use", "user", "what",
    "when", "which", "with",
];

/// One turn of it.
pub(super) fn run(scene: &Scene<'_>) -> Script {
    if !scene.done.is_empty() {
        let all = scene.done.iter().map(|done| match done.is_error || done.value.get("error").is_some() {
            true => failed(&done.call.name, &done.value),
            false => in_words(&done.value),
        });
        return Ok(all.collect::<Vec<_>>().join("\n\n"));
    }
    let text = scene.message.text.as_str();
    if scene.message.author == Author::Decision {
        return Ok("All right, it was not done.".to_owned());
    }
    let all = words(text);
    let clause = Clause(&all);
    let system = &scene.request.system;
    let is_known = system.instructions.contains(QUERY_MARKER) || system.context.contains(QUERY_MARKER);
    if is_known && clause.has(&["query"]) && clause.has(&["suggest", "write"]) {
        return Ok(query(&topic(clause).unwrap_or_default()));
    }
    let tool = chosen(text, scene).ok_or(Pause::Other)?;
    match arguments(text, clause, tool) {
        Ok(input) => Err(Pause::Call(Planned { tool: tool.name.clone().into(), input })),
        Err(missing) => Ok(format!("To use {} I need {}.", say::code(&tool.name), say::code(missing))),
    }
}

/// The query that a user can take over, behind its marker.
fn query(topic: &str) -> String {
    let terms: Vec<&str> = topic.split_whitespace().collect();
    let query = json!({
        "query_expression": terms.join(" AND "),
        "natural_language": format!("Articles that have all of: {}", terms.join(", ")),
        "suggestions": [terms.join(" OR ")],
    });
    format!("Here is a query for {}.\n\n{QUERY_MARKER} {query}", say::bold(topic))
}

/// The tool that `text` names, else the one whose name shares most words with it.
fn chosen<'a>(text: &str, scene: &Scene<'a>) -> Option<&'a ToolDef> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let tools = || scene.request.tools.iter().filter_map(|tool| scene.tool(&tool.name));
    let named = tools().find(|tool| text.split(|c| !is_name(c)).any(|word| word == tool.name));
    let wanted = stems(text);
    let shared = |tool: &&ToolDef| wanted.intersection(&stems(&tool.name)).count();
    // The first of equals: `max_by_key` takes the last.
    named.or_else(|| tools().rev().filter(|tool| shared(tool) > 0).max_by_key(shared))
}

/// The words of `text` that mean something, without the endings of plurals.
fn stems(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    let words = words.filter(|word| word.len() > 1 && !STOP.contains(&word.as_str()));
    words.map(|word| word.trim_end_matches('s').trim_end_matches('e').to_owned()).collect()
}

/// The values that the clause has of properties with a list of values; `_` in a value stands for a blank.
pub(super) fn choices(clause: Clause<'_>, tool: &ToolDef) -> Map<String, Value> {
    let clause_text = format!(" {} ", clause.0.iter().map(|word| word.low.as_str()).collect::<Vec<_>>().join(" "));
    let is_named = |value: &&Value| {
        value
            .as_str()
            .is_some_and(|value| clause_text.contains(&format!(" {} ", value.to_lowercase().replace('_', " "))))
    };
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    let chosen = |(name, schema): (&String, &Value)| {
        Some((name.clone(), say::list_at(schema, "/enum").iter().find(is_named)?.clone()))
    };
    properties.into_iter().flatten().filter_map(chosen).collect()
}

/// The arguments of `tool` in a message: a JSON object, or its numbers, names and topic for the properties of the schema.
///
/// # Errors
/// The name of a property that is missing.
fn arguments<'a>(text: &str, clause: Clause<'_>, tool: &'a ToolDef) -> Result<Map<String, Value>, &'a str> {
    let json = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to));
    if let Some(given) = json.and_then(|json| serde_json::from_str(json).ok()) {
        return Ok(given);
    }
    let mut input = choices(clause, tool);
    let mut numbers = clause.0.iter().filter_map(|word| word.low.parse::<u64>().ok());
    let required: Vec<&str> = say::list_at(&tool.input_schema, "/required").iter().filter_map(Value::as_str).collect();
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let kinds = schema.get("type").unwrap_or(&Value::Null);
        let takes = |kind: &str| kinds == kind || say::items(kinds).iter().any(|own| own == kind);
        let number = if takes("integer") || takes("number") { numbers.next().map(Value::from) } else { None };
        let is_named = takes("string") && required.contains(&name.as_str()) && !input.contains_key(name);
        let value = number.or_else(|| topic(clause).filter(|_| is_named).map(Value::String));
        input.extend(value.map(|value| (name.clone(), value)));
    }
    match required.into_iter().find(|name| !input.contains_key(*name)) {
        Some(missing) => Err(missing),
        None => Ok(input),
    }
}

/// What a message is about: a name in quotes, else what stands behind "about", "for" and the like, else behind the verb.
fn topic(clause: Clause<'_>) -> Option<String> {
    let is_lead = |low: &str| ["about", "called", "for", "named", "of", "on", "stream"].contains(&low);
    let start = clause.0.iter().rposition(|word| is_lead(&word.low)).unwrap_or(0) + 1;
    let rest: Vec<&str> = clause.0.get(start..)?.iter().map(|word| word.text.as_str()).collect();
    clause.quoted().map(str::to_owned).or_else(|| Some(rest.join(" ")).filter(|topic| !topic.is_empty()))
}

/// A result in words, whatever its shape: its own, where it has some.
fn in_words(value: &Value) -> String {
    if let Some(text) = say::text(value, &["human_readable"]) {
        return say::sentence(text);
    }
    match value {
        Value::Null => "It is done.".to_owned(),
        Value::Array(_) | Value::Object(_) if !say::items(value).is_empty() => {
            say::bullets(say::items(value).iter().map(about), 0)
        }
        Value::Array(_) => "There is nothing.".to_owned(),
        Value::Object(_) => about(value),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => say::brief(value),
    }
}

/// A thing: its name, then its other fields.
fn about(item: &Value) -> String {
    let Some(fields) = item.as_object() else { return say::brief(item) };
    let name = say::text(item, &["title", "name"]).map(say::bold);
    let rest = fields.iter().filter(|(key, value)| !matches!(key.as_str(), "title" | "name") && !value.is_null());
    let rest = rest.map(|(key, value)| format!("{}: {}", say::spaced(key), say::brief(value)));
    name.into_iter().chain(rest).collect::<Vec<_>>().join(" ")
}
