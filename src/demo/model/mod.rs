//! The built-in demo model: a rule-based stand-in for a language model that needs no key and no network, so that a
//! newcomer can walk through the product at once. A message is read into intents (`intents`), each intent is a script
//! over the tools (`workflow`, `drafts`, `tables`; on other screens `desk`), and what a script wants next is streamed like a real model's turn
//! (`stream`).
//!
//! A script is plain code from its first tool call to its last word. Every turn it runs again from its beginning: calls
//! that this run has already made give their results back at once, and the first one that has not been made yet ends
//! the turn.
//!
//! **Invariant:** `answer::answer` is a pure function of the request: no state, clock or chance between turns.
//! **Invariant:** only offered tools are called, and no tool result, whatever its shape, can make it fail.

mod addition;
mod answer;
mod clause;
mod columns;
mod comparison;
mod desk;
mod drafts;
mod entities;
mod errors;
mod graph_words;
mod history;
mod intents;
mod one_shot;
mod questions;
mod scene;
mod steps;
mod stream;
mod summary;
mod table_intents;
mod table_words;
mod tables;
mod tokens;
mod words;
mod workflow;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::message::ModelOrigin;

/// How long a piece of text keeps the next one waiting: a reader sees it being written, and nobody waits long.
const DEFAULT_PACE: Duration = Duration::from_millis(15);

/// The stand-in model.
#[derive(Debug, Clone)]
pub struct DemoModel {
    origin: Arc<ModelOrigin>,
    pace: Duration,
}

impl DemoModel {
    /// A model that pauses 15 ms after each piece of text.
    pub fn new() -> Self {
        let origin = ModelOrigin { provider: "demo".to_owned(), model: "rules-1".to_owned() };
        Self { origin: Arc::new(origin), pace: DEFAULT_PACE }
    }

    /// What its answers are signed with.
    pub fn origin(&self) -> &ModelOrigin {
        &self.origin
    }

    /// The same model with another pause after each piece of text; zero never waits.
    pub fn with_pace(self, pace: Duration) -> Self {
        Self { pace, ..self }
    }
}

impl Default for DemoModel {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl LlmProvider for DemoModel {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        let answer = summary::answer(&request).unwrap_or_else(|| answer::answer(&request));
        let usage = stream::estimated_usage(&request, &answer);
        let events = stream::paced(stream::events(answer, usage), self.pace);
        Ok(EventStream { origin: Arc::clone(&self.origin), request_id: None, events })
    }
}
