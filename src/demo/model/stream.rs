//! An answer as a stream: text in small chunks, calls with their arguments in two pieces, one terminal event.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::Value;

use super::scene::{Answer, Planned};
use crate::agent::ports::llm::{ChatRequest, ProviderError};
use crate::chat::ids::ToolCallId;
use crate::chat::message::Message;
use crate::chat::stream::{CallSlot, FinishReason, StreamEvent, Usage};

/// How many words a chunk of text has.
const WORDS_PER_CHUNK: usize = 4;

/// The pause behind a piece of text: a reader sees it being written, and does not wait long.
const PACE: Duration = Duration::from_millis(15);

/// The events of `answer`, the terminal one last.
pub(super) fn events(answer: Answer, usage: Usage) -> Vec<StreamEvent> {
    let words: Vec<&str> = answer.text.split_inclusive(' ').collect();
    let mut events: Vec<StreamEvent> =
        words.chunks(WORDS_PER_CHUNK).map(|chunk| StreamEvent::Text(chunk.concat())).collect();
    for (slot, Planned { tool, input }) in (0..).map(CallSlot).zip(answer.calls) {
        // A minted id is unique; the prefix says in logs and transcripts whose call it is.
        let id = ToolCallId::mint().as_str().replace("call_", "toolu_demo_");
        events.push(StreamEvent::ToolCallStarted { slot, id: Some(id), name: tool.into_owned() });
        let json = Value::Object(input).to_string();
        let (head, tail) = json.split_at(json.floor_char_boundary(json.len() / 2));
        events.push(StreamEvent::ToolCallInput { slot, json: head.to_owned() });
        events.push(StreamEvent::ToolCallInput { slot, json: tail.to_owned() });
    }
    events.push(StreamEvent::Finished { reason: FinishReason::Stop, usage: Some(usage) });
    events
}

/// `events` as a stream that waits after each piece of text. Dropping it stops it.
pub(super) fn paced(events: Vec<StreamEvent>) -> BoxStream<'static, Result<StreamEvent, ProviderError>> {
    let timed = events.into_iter().scan(false, |waits, event| {
        let waited = std::mem::replace(waits, matches!(event, StreamEvent::Text(_)));
        Some((waited, event))
    });
    let timed = stream::iter(timed).then(async |(waits, event)| {
        if waits {
            tokio::time::sleep(PACE).await;
        }
        Ok(event)
    });
    timed.boxed()
}

/// Token counts by the usual rule of thumb, four bytes to a token, of the messages' texts.
pub(super) fn estimated_usage(request: &ChatRequest<'_>, answer: &Answer) -> Usage {
    let messages = request.messages.iter().map(|message| match message {
        Message::User(user) => user.model_text().len(),
        Message::Assistant(turn) => turn.text().len(),
        Message::ToolResults(results) => results.iter().map(|result| result.content.len()).sum(),
    });
    let system = request.system.bytes();
    let calls = answer.calls.iter().map(|call| call.tool.len() + Value::Object(call.input.clone()).to_string().len());
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX);
    Usage {
        input_tokens: tokens(system + messages.sum::<usize>()),
        output_tokens: tokens(answer.text.len() + calls.sum::<usize>()),
        ..Usage::default()
    }
}
