//! Answers in a form, and calls that have to be made: values made up from their schema, each text the name of what it is for.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::scene::{Answer, Planned};
use crate::agent::ports::llm::{ChatRequest, MustCall};
use crate::chat::answer_format::AnswerFormat;

/// Schemas in each other, references included, that are followed.
const MOST_LEVELS: usize = 16;

/// The call that has to be made; `None` where none has to be.
pub(super) fn call(request: &ChatRequest<'_>) -> Option<Answer> {
    let wanted = |name: &str| match request.must_call {
        MustCall::No => false,
        MustCall::Any => true,
        MustCall::This(this) => this == name,
    };
    // The client's stand behind the profile's.
    let tool = request.tools.iter().filter(|_| request.may_call).rfind(|tool| wanted(&tool.name))?;
    let input = made_up(&tool.input_schema, &tool.input_schema, &tool.name, MOST_LEVELS);
    let input = input.as_object().cloned().unwrap_or_default();
    Some(Answer { text: String::new(), calls: vec![Planned { tool: Cow::Owned(tool.name.clone()), input }] })
}

/// `answer` in the form that is wanted, once it calls nothing more.
pub(super) fn formed(request: &ChatRequest<'_>, answer: Answer) -> Answer {
    let text = match request.format {
        Some(_) if !answer.calls.is_empty() => return answer,
        None => return answer,
        Some(AnswerFormat::Object) => json!({"answer": answer.text}).to_string(),
        Some(AnswerFormat::Schema(wanted)) => {
            made_up(&wanted.schema, &wanted.schema, &wanted.name, MOST_LEVELS).to_string()
        }
    };
    Answer { text, ..answer }
}

fn made_up(root: &Value, schema: &Value, name: &str, levels: usize) -> Value {
    let Some(levels) = levels.checked_sub(1) else { return Value::Null };
    let of = |part: &Value| made_up(root, part, name, levels);
    let reference = schema["$ref"].as_str().and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    let first = |keyword: &str| schema[keyword].as_array().and_then(|parts| parts.first());
    if let Some(part) = reference.or_else(|| first("anyOf")).or_else(|| first("oneOf")).or_else(|| first("allOf")) {
        return of(part);
    }
    if let Some(value) = schema.get("const").or_else(|| first("enum")) {
        return value.clone();
    }
    let kind = first("type").unwrap_or(&schema["type"]);
    match kind.as_str() {
        Some("string") => json!(name),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(false),
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or(0).min(8);
            (0..least).map(|_| of(&schema["items"])).collect()
        }
        Some("null") => Value::Null,
        Some(_) | None => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let property = |name: &str| (name.to_owned(), made_up(root, &schema["properties"][name], name, levels));
            Value::Object(required.map(property).collect::<Map<_, _>>())
        }
    }
}
