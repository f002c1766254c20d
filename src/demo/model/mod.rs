//! The built-in demo model: a rule-based stand-in for a language model that needs no key and no network, so that a newcomer can
//! walk through the product at once. A message is cut into requests (`words`), each finds its line in the table of intents
//! (`intents`), whose script makes calls and says the results (`rules`, `building`, `tables`); where no line fits, any
//! tool may (`any_tool`). What it wants next is streamed like a real model's turn (`stream`).
//!
//! A script is plain code from its first call to its last word. Every turn it runs again from its beginning: calls that this
//! run has made give their results back at once, and the first one that has not been made yet ends the turn (`scene`).
//!
//! **Invariant:** `answer::answer` is a pure function of the request: no state, clock or chance between turns.
//! **Invariant:** only offered tools are called, and no tool result, whatever its shape, can make it fail.
//! **Invariant:** it reads data (names and schemas of tools, JSON, the typed history) and no sentences but the user's.

mod answer;
mod any_tool;
mod building;
mod form;
mod intents;
mod planning;
mod rules;
mod say;
mod scene;
mod stream;
mod summary;
mod tables;
mod words;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;

use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::message::ModelOrigin;

/// The stand-in model.
#[derive(Debug, Clone)]
pub struct DemoModel {
    origin: Arc<ModelOrigin>,
}

impl DemoModel {
    /// A model that signs its answers with `origin`.
    pub fn new(origin: ModelOrigin) -> Self {
        Self { origin: Arc::new(origin) }
    }
}

#[async_trait]
impl LlmProvider for DemoModel {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        let answer = summary::answer(&request).or_else(|| form::call(&request));
        let answer = form::formed(&request, answer.unwrap_or_else(|| answer::answer(&request)));
        let usage = stream::estimated_usage(&request, &answer);
        let events = stream::paced(stream::events(answer, usage));
        Ok(EventStream { origin: Arc::clone(&self.origin), request_id: None, events })
    }
}
