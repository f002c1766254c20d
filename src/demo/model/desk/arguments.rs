//! Arguments for a tool, taken from a message: a JSON object, or numbers, quoted words and the topic for the properties of
//! its schema.

use serde_json::{Map, Value};

use crate::chat::tool::ToolDef;

/// The arguments of `tool` in `text`, its topic in the message before where it says "it".
///
/// # Errors
/// What is missing, in words.
pub(super) fn read(text: &str, before: Option<&str>, tool: &ToolDef) -> Result<Map<String, Value>, String> {
    if let Some(given) = object(text) {
        return Ok(given);
    }
    let mut numbers = numbers(text).into_iter();
    let mut input = Map::new();
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let value = match () {
            () if takes(schema, "integer") || takes(schema, "number") => {
                numbers.next().map(Value::from).or_else(|| {
                    let is_name = takes(schema, "string") && is_required(tool, name);
                    is_name.then(|| topic(text).map(Value::String)).flatten()
                })
            }
            () if schema.get("enum").is_some() => one_of(text, schema),
            () if takes(schema, "string") => {
                let words = quoted(text).or_else(|| topic(text)).or_else(|| before.and_then(topic));
                words.filter(|_| is_required(tool, name)).map(Value::String)
            }
            () => None,
        };
        if let Some(value) = value {
            input.insert(name.clone(), value);
        }
    }
    match required(tool).find(|name| !input.contains_key(*name)) {
        Some(name) => Err(described(tool, name)),
        None => Ok(input),
    }
}

fn required(tool: &ToolDef) -> impl Iterator<Item = &str> {
    tool.input_schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn is_required(tool: &ToolDef, name: &str) -> bool {
    required(tool).any(|required| required == name)
}

fn described(tool: &ToolDef, name: &str) -> String {
    let description = tool.input_schema.get("properties").and_then(|all| all.get(name)?.get("description")?.as_str());
    match description {
        Some(description) => format!("{}: {}", super::words::code(name), super::words::plain(description)),
        None => super::words::code(name),
    }
}

fn takes(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        Some(_) | None => false,
    }
}

fn one_of(text: &str, schema: &Value) -> Option<Value> {
    let lower = text.to_lowercase();
    let choices = schema.get("enum")?.as_array()?;
    choices.iter().find(|choice| choice.as_str().is_some_and(|choice| lower.contains(&choice.to_lowercase()))).cloned()
}

/// The JSON object in `text`.
fn object(text: &str) -> Option<Map<String, Value>> {
    let (from, to) = (text.find('{')?, text.rfind('}')?);
    serde_json::from_str(text.get(from..=to)?).ok()
}

fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_alphanumeric()).filter_map(|word| word.parse().ok()).collect()
}

fn quoted(text: &str) -> Option<String> {
    let mut parts = text.split(['"', '“', '”']);
    parts.nth(1).map(str::trim).filter(|words| !words.is_empty()).map(str::to_owned)
}

/// What the message is about: the words after the last "about", "on", "for" …, else what follows the verb.
pub(super) fn topic(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_lead =
        |word: &&str| ["about", "on", "for", "of", "stream", "called", "named"].contains(&word.to_lowercase().as_str());
    let rest = match words.iter().rposition(is_lead) {
        Some(at) => words.get(at + 1..)?,
        None => words.get(1..)?,
    };
    let topic = rest.join(" ").trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    (!topic.is_empty()).then_some(topic)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn as_value(input: Result<Map<String, Value>, String>) -> Value {
        input.map_or_else(|missing| json!({ "missing": missing }), Value::Object)
    }

    #[test]
    fn arguments_are_taken_from_the_words_of_a_message() {
        let schema = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": "integer"},
                "kind": {"enum": ["review", "trial"]},
                "note": {"type": "string"},
            },
            "required": ["query"],
        });
        let search = ToolDef { name: "search".to_owned(), description: String::new(), input_schema: schema };
        let id =
            json!({"properties": {"id": {"type": ["integer", "string"], "description": "The id"}}, "required": ["id"]});
        let get = ToolDef { name: "get".to_owned(), description: String::new(), input_schema: id };
        let rows = [
            (&search, "search for silica dust", json!({"query": "silica dust"}), "what follows the preposition"),
            (
                &search,
                "find 3 trials on \"lung cancer\"",
                json!({"query": "lung cancer", "limit": 3, "kind": "trial"}),
                "all kinds",
            ),
            (
                &search,
                "search {\"query\": \"a b\", \"x\": 1}",
                json!({"query": "a b", "x": 1}),
                "an object is taken as it is",
            ),
            (&search, "search", json!({"missing": "`query`"}), "nothing to look for"),
            (&get, "get 41", json!({"id": 41}), "a number"),
            (&get, "get the stream Gene editing", json!({"id": "Gene editing"}), "or a name"),
            (&get, "get", json!({"missing": "`id`: The id"}), "with its description"),
        ];
        for (tool, text, expected, reason) in rows {
            assert_eq!(as_value(read(text, None, tool)), expected, "{reason}");
        }
    }
}
