//! Events as JSON lines, for a log outside this process. Whoever reads them may be another version of this program: a line
//! that it does not understand is an error, never a wrong event.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::artifact::Artifact;
use crate::chat::event::{AgentEvent, Failure};
use crate::chat::stream::Usage;

/// One event per line, without a last line break.
pub fn write<'a>(events: impl IntoIterator<Item = &'a AgentEvent>) -> Result<String, serde_json::Error> {
    let mut lines = Vec::new();
    for event in events {
        if !lines.is_empty() {
            lines.push(b'\n');
        }
        serde_json::to_writer(&mut lines, &Line::from(event))?;
    }
    String::from_utf8(lines).map_err(serde::ser::Error::custom)
}

/// The events of such lines.
///
/// # Errors
/// When a line is no event.
pub fn read(lines: &str) -> Result<Vec<AgentEvent>, serde_json::Error> {
    lines.split('\n').map(|line| serde_json::from_str::<Line<'_>>(line).map(AgentEvent::from)).collect()
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line<'a> {
    Turn(u32),
    #[serde(borrow)]
    Text(Cow<'a, str>),
    #[serde(borrow)]
    Thinking(Cow<'a, str>),
    Call {
        #[serde(borrow)]
        id: Cow<'a, str>,
        #[serde(borrow)]
        name: Cow<'a, str>,
    },
    Result {
        #[serde(borrow)]
        id: Cow<'a, str>,
        #[serde(borrow)]
        name: Cow<'a, str>,
        is_error: bool,
    },
    Artifact {
        #[serde(borrow)]
        kind: Cow<'a, str>,
        payload: Cow<'a, Value>,
    },
    Finished {
        input_tokens: u64,
        output_tokens: u64,
        cached_input_tokens: u64,
        reasoning_tokens: u64,
    },
    Failed {
        #[serde(borrow)]
        code: Cow<'a, str>,
        #[serde(borrow)]
        message: Cow<'a, str>,
        retryable: bool,
    },
    Cancelled,
    Interrupted,
}

impl<'a> From<&'a AgentEvent> for Line<'a> {
    fn from(event: &'a AgentEvent) -> Self {
        match event {
            AgentEvent::TurnStarted { turn } => Self::Turn(*turn),
            AgentEvent::TextDelta { text } => Self::Text(text.into()),
            AgentEvent::ThinkingDelta { text } => Self::Thinking(text.into()),
            AgentEvent::ToolCallStarted { id, name } => Self::Call { id: id.into(), name: name.into() },
            AgentEvent::ToolCallFinished { id, name, is_error } => {
                Self::Result { id: id.into(), name: name.into(), is_error: *is_error }
            }
            AgentEvent::Artifact(Artifact { kind, payload }) => {
                Self::Artifact { kind: Cow::Borrowed(kind), payload: Cow::Borrowed(payload) }
            }
            AgentEvent::Finished { usage } => {
                let Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } = *usage;
                Self::Finished { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens }
            }
            AgentEvent::Failed(Failure { code, message, retryable }) => {
                Self::Failed { code: Cow::Borrowed(code), message: message.into(), retryable: *retryable }
            }
            AgentEvent::Cancelled => Self::Cancelled,
            AgentEvent::Interrupted => Self::Interrupted,
        }
    }
}

impl From<Line<'_>> for AgentEvent {
    fn from(line: Line<'_>) -> Self {
        match line {
            Line::Turn(turn) => Self::TurnStarted { turn },
            Line::Text(text) => Self::TextDelta { text: text.into_owned() },
            Line::Thinking(text) => Self::ThinkingDelta { text: text.into_owned() },
            Line::Call { id, name } => Self::ToolCallStarted { id: id.into_owned(), name: name.into_owned() },
            Line::Result { id, name, is_error } => {
                Self::ToolCallFinished { id: id.into_owned(), name: name.into_owned(), is_error }
            }
            Line::Artifact { kind, payload } => {
                Self::Artifact(Artifact { kind: kind.into_owned().into(), payload: payload.into_owned() })
            }
            Line::Finished { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } => {
                Self::Finished { usage: Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } }
            }
            Line::Failed { code, message, retryable } => {
                Self::Failed(Failure { code: code.into_owned().into(), message: message.into_owned(), retryable })
            }
            Line::Cancelled => Self::Cancelled,
            Line::Interrupted => Self::Interrupted,
        }
    }
}
