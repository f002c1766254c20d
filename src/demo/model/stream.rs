//! An answer as a stream: text in small chunks, calls with their arguments in two pieces, one terminal event.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::Value;

use super::scene::Answer;
use crate::agent::ports::llm::{ChatRequest, ProviderError};
use crate::chat::ids::ToolCallId;
use crate::chat::message::{AssistantPart, Message};
use crate::chat::stream::{CallSlot, FinishReason, StreamEvent, Usage};
use crate::chat::tool::ToolInput;

/// How many words a chunk of text has.
const WORDS_PER_CHUNK: usize = 4;

/// The events of `answer`, the terminal one last.
pub(super) fn events(answer: Answer, usage: Usage) -> Vec<StreamEvent> {
    let mut events: Vec<StreamEvent> = chunks(&answer.text).map(|chunk| StreamEvent::Text(chunk.to_owned())).collect();
    for (slot, call) in (0..).map(CallSlot).zip(answer.calls) {
        // A minted id is unique; the prefix says in logs and transcripts whose call it is.
        let id = ToolCallId::mint().as_str().replace("call_", "toolu_demo_");
        let super::scene::Planned { tool, input } = call;
        events.push(StreamEvent::ToolCallStarted { slot, id: Some(id), name: tool.into_owned() });
        let json = Value::Object(input).to_string();
        let (head, tail) = json.split_at(json.floor_char_boundary(json.len() / 2));
        events.push(StreamEvent::ToolCallInput { slot, json: head.to_owned() });
        events.push(StreamEvent::ToolCallInput { slot, json: tail.to_owned() });
    }
    events.push(StreamEvent::Finished { reason: FinishReason::Stop, usage: Some(usage) });
    events
}

/// `events` as a stream that waits for `pace` after each piece of text. Dropping it stops it.
pub(super) fn paced(
    events: Vec<StreamEvent>,
    pace: Duration,
) -> BoxStream<'static, Result<StreamEvent, ProviderError>> {
    let mut wait = false;
    let timed = events.into_iter().map(move |event| {
        let waited = std::mem::replace(&mut wait, matches!(event, StreamEvent::Text(_)) && !pace.is_zero());
        (waited, event)
    });
    stream::iter(timed)
        .then(move |(wait, event)| async move {
            if wait {
                tokio::time::sleep(pace).await;
            }
            Ok(event)
        })
        .boxed()
}

/// Token counts by the usual rule of thumb, four bytes to a token.
pub(super) fn estimated_usage(request: &ChatRequest<'_>, answer: &Answer) -> Usage {
    let tools =
        request.tools.iter().map(|tool| tool.name.len() + tool.description.len() + json_bytes(&tool.input_schema));
    let messages = request.messages.iter().map(message_bytes);
    let system = request.system.instructions.len() + request.system.context.len();
    let calls = answer.calls.iter().map(|call| call.tool.len() + Value::Object(call.input.clone()).to_string().len());
    Usage {
        input_tokens: tokens(system + tools.sum::<usize>() + messages.sum::<usize>()),
        output_tokens: tokens(answer.text.len() + calls.sum::<usize>()),
        ..Usage::default()
    }
}

fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

/// A rough size of `value` as JSON, without writing it out.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(list) => list.iter().map(|item| json_bytes(item) + 1).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + 4 + json_bytes(value)).sum(),
    }
}

fn message_bytes(message: &Message) -> usize {
    match message {
        Message::User(user) => user.model_text().len(),
        Message::Assistant(said) => said
            .parts
            .iter()
            .map(|part| match part {
                AssistantPart::Text { text, .. } | AssistantPart::Thinking { text, .. } => text.len(),
                AssistantPart::ToolCall { call, .. } => match &call.input {
                    ToolInput::Object(map) => map.iter().map(|(key, value)| key.len() + json_bytes(value)).sum(),
                    ToolInput::Invalid(text) => text.len(),
                },
                AssistantPart::Opaque(replay) => replay.raw().get().len(),
            })
            .sum(),
        Message::ToolResults(results) => results.iter().map(|result| result.content.len()).sum(),
    }
}

/// `text` in pieces of a few words, each with the space that follows it; joined they are `text` again.
fn chunks(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut words = 0;
        let mut in_space = false;
        let end = rest.char_indices().find_map(|(at, c)| {
            if in_space && !c.is_whitespace() {
                words += 1;
            }
            in_space = c.is_whitespace();
            (words == WORDS_PER_CHUNK).then_some(at)
        });
        let (chunk, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_a_few_words_and_lose_nothing() {
        let cases: &[(&str, &[&str])] = &[
            ("one two three four five six", &["one two three four ", "five six"]),
            ("  naïve – text\n\n- of **many** kinds ", &["  naïve – text\n\n", "- of **many** kinds "]),
            ("one", &["one"]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            let found: Vec<&str> = chunks(text).collect();
            assert_eq!(&found, expected);
        }
    }
}
