//! Screens that the model has no script for: it picks the offered tool whose words the message has, takes the arguments
//! from the message, and tells what came back. So whoever declares a tool in a file can try it at once.

mod arguments;
mod choice;
mod telling;

use std::borrow::Cow;

use super::history;
use super::history::as_json;
use super::scene::Answer;
use super::scene::Planned;
use super::words;
use crate::agent::ports::llm::ChatRequest;
use crate::chat::fate::CallFate;
use crate::chat::message::{Author, Message};
use crate::chat::tool::ToolDef;

/// The marker of a query that the user can take over, where the screen knows it.
const QUERY_MARKER: &str = "QUERY_SUGGESTION:";

/// The marker of things to say next, where the screen knows it.
const VALUES_MARKER: &str = "SUGGESTED_VALUES:";

/// One turn on such a screen.
pub(super) fn answer(request: &ChatRequest<'_>) -> Answer {
    let is_question = |message: &Message| matches!(message, Message::User(said) if said.author != Author::LastAnswer);
    let Some(at) = request.messages.iter().rposition(is_question) else { return say(help(request)) };
    let (before, run) = request.messages.split_at(at);
    let [Message::User(user), run @ ..] = run else { return say(help(request)) };
    let done: Vec<_> = history::calls_with_results(run).collect();
    // A call that was not made may be made again: a tool that was not loaded is there now.
    let retried =
        done.iter().filter(|(call, _)| done.iter().filter(|(other, _)| other.name == call.name).count() > 1).count();
    if let Some((call, result)) = done.last()
        && result.fate == CallFate::NotRun
        && retried == 0
        && request.may_call
        && let crate::chat::tool::ToolInput::Object(input) = &call.input
    {
        return calls(&call.name, input.clone());
    }
    if !done.is_empty() {
        let told: Vec<String> = done
            .iter()
            .map(|(call, result)| telling::result(&call.name, &as_json(&result.content), result.fate.is_error()))
            .collect();
        let last = done.last().map(|(call, _)| call.name.as_str());
        return say(with_values(request, told.join("\n\n"), last));
    }
    if user.author == Author::Decision {
        return say("All right, it was not done.".to_owned());
    }
    if user.note.is_some() && user.text.trim().is_empty() {
        return say("Noted.".to_owned());
    }
    if let Some(suggestion) = query_suggestion(request, &user.text) {
        return say(suggestion);
    }
    let said_before = history::exchanges(before);
    let Some(tool) = choice::tool(&user.text, request.tools).filter(|_| request.may_call) else {
        return say(with_values(request, small_talk(request, &user.text), None));
    };
    match arguments::read(&user.text, said_before.first().map(|(said, _)| *said), tool) {
        Ok(input) => calls(&tool.name, input),
        Err(missing) => say(format!("To use {} I need {missing}.", words::code(&tool.name))),
    }
}

fn say(text: String) -> Answer {
    Answer { text, calls: Vec::new() }
}

fn calls(tool: &str, input: serde_json::Map<String, serde_json::Value>) -> Answer {
    Answer { text: "Let me look.\n\n".to_owned(), calls: vec![Planned { tool: Cow::Owned(tool.to_owned()), input }] }
}

/// Whether the screen's prompt tells of this marker.
fn knows(request: &ChatRequest<'_>, marker: &str) -> bool {
    request.system.instructions.contains(marker) || request.system.context.contains(marker)
}

/// A query for whoever asks for one, written behind its marker.
fn query_suggestion(request: &ChatRequest<'_>, text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let wants = lower.contains("query") && ["suggest", "write", "help", "make"].iter().any(|word| lower.contains(word));
    if !wants || !knows(request, QUERY_MARKER) {
        return None;
    }
    let topic = arguments::topic(text).unwrap_or_else(|| "the topic".to_owned());
    let terms: Vec<&str> = topic.split_whitespace().collect();
    let payload = serde_json::json!({
        "query_expression": terms.join(" AND "),
        "natural_language": format!("Articles that have all of: {}", terms.join(", ")),
        "suggestions": [terms.join(" OR ")],
    });
    Some(format!("Here is a query for {}.\n\n{QUERY_MARKER} {payload}", words::bold(&topic)))
}

/// The text, with things to say next behind it where the screen knows such.
fn with_values(request: &ChatRequest<'_>, text: String, after: Option<&str>) -> String {
    if !knows(request, VALUES_MARKER) {
        return text;
    }
    let sample =
        |tool: &ToolDef| (Some(tool.name.as_str()) != after && !needs_id(tool)).then(|| tool.name.replace('_', " "));
    let values: Vec<_> = request
        .tools
        .iter()
        .filter_map(|tool| sample(tool))
        .take(3)
        .map(|words| serde_json::json!({"label": words, "value": words}))
        .collect();
    if values.is_empty() {
        return text;
    }
    format!("{text}\n\n{VALUES_MARKER}\n{}", serde_json::Value::Array(values))
}

/// Whether a tool is of no use without an id, which nobody says by pressing a button.
fn needs_id(tool: &ToolDef) -> bool {
    let required = tool.input_schema.get("required").and_then(serde_json::Value::as_array);
    required.into_iter().flatten().filter_map(|name| name.as_str()).any(|name| name.ends_with("id"))
}

fn small_talk(request: &ChatRequest<'_>, text: &str) -> String {
    let first = text.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or("").to_lowercase();
    match first.as_str() {
        "thanks" | "thank" | "thx" => "You're welcome.".to_owned(),
        "bye" | "goodbye" => "Goodbye!".to_owned(),
        _ => help(request),
    }
}

/// Who answers, and what can be done here.
fn help(request: &ChatRequest<'_>) -> String {
    let line = |tool: &ToolDef| {
        let what = tool.description.split_once(". ").map_or(tool.description.as_str(), |(first, _)| first);
        format!("{}: {}", words::code(&tool.name), words::sentence(what))
    };
    let list = words::bullets(request.tools.iter().map(|tool| line(tool)), None);
    let what = match list.is_empty() {
        true => "There is no tool on this screen that I could use.".to_owned(),
        false => {
            format!("On this screen I can use\n\n{list}\n\nSay what you want in their words, or *call NAME {{…}}*.")
        }
    };
    format!(
        "I am the built-in demo model: I follow simple rules. {what}\n\nFor real answers connect a real model: set \
         `SWITCHBOARD__LLM__PROVIDER` to `gemini`, `claude`, `openai` or `ollama`, give its key, and restart the server."
    )
}
