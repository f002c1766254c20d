//! OpenAI's Responses API, <https://platform.openai.com/docs/api-reference/responses>, and the servers that speak it too: Azure,
//! OpenRouter, vLLM, Ollama, LM Studio. Only here a model reasons on from turn to turn.

mod event;
mod fold;
mod items;
mod reasoning;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;

use self::fold::Fold;
use self::reasoning::{Asks, Refused};
use super::habits::Habits;
use crate::agent::ports::llm::{ChatRequest, EventStream, LlmProvider, ProviderError};
use crate::chat::message::ModelOrigin;
use crate::llm::answer;
use crate::llm::http::Endpoint;
use crate::llm::sse::Sse;

/// A model that is asked for responses.
pub(super) struct Responses {
    origin: Arc<ModelOrigin>,
    endpoint: Endpoint,
    habits: Habits,
    /// What the model may be asked besides its answer.
    asks: Asks,
    refused: Refused,
}

impl Responses {
    /// The model of `origin` behind `endpoint`.
    pub(super) fn new(origin: Arc<ModelOrigin>, endpoint: Endpoint, habits: Habits) -> Self {
        let asks = Asks::of_model(&origin.model);
        Self { origin, endpoint, habits, asks, refused: Refused::default() }
    }
}

#[async_trait]
impl LlmProvider for Responses {
    async fn stream_chat(&self, request: ChatRequest<'_>) -> Result<EventStream, ProviderError> {
        let mut asks = self.refused.less(Asks { effort: request.model.effort, ..self.asks });
        // Each time less is asked, so this ends.
        loop {
            let body = wire::Request::new(&request, &self.origin, &self.habits, asks);
            if body.lacks_temperature(&request) {
                tracing::debug!(gen_ai.request.model = self.origin.model, "the model takes no temperature: left out");
            }
            let error = match self.endpoint.post(&body).await {
                Ok(opened) => return Ok(answer::stream(&self.origin, opened, reader())),
                Err(error) => error,
            };
            let Some(less) = asks.without_refused(&error) else { return Err(error) };
            tracing::info!(gen_ai.request.model = self.origin.model, error = %error.detail, "asked again without what the model refuses");
            self.refused.remember(asks, less);
            asks = less;
        }
    }
}

/// What reads the bytes of an answer.
pub(super) fn reader() -> (Sse, impl answer::Fold) {
    (Sse::default(), Fold::default())
}
