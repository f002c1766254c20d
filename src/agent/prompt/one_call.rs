//! One model call beside runs: instructions, a request, and an answer of bounded length and time.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::time::{Instant, timeout_at};

use crate::agent::ports::llm::{ChatRequest, LlmProvider, MustCall, ProviderError, SentFiles, SystemPrompt};
use crate::agent::spend::tally::Tally;
use crate::chat::message::{Message, ModelOrigin, UserMessage};
use crate::chat::model::{Effort, ModelChoice};
use crate::chat::stream::{FinishReason, StreamEvent, Usage};

/// 60 seconds: nobody waits for it.
const TIME: Duration = Duration::from_secs(60);

/// 2048 tokens: 700 words, in languages whose words are many tokens too.
const MAX_TOKENS: u32 = 2048;

/// 16 KiB of an answer are read: more than the tokens come to, whatever the model counts as one.
const MAX_BYTES: usize = 16 << 10;

/// A call without an answer.
#[derive(Debug, thiserror::Error)]
pub enum OneCallError {
    /// The model failed.
    #[error("the model failed")]
    Model(#[from] ProviderError),
    /// It took too long.
    #[error("the model took too long")]
    TimedOut,
    /// The answer is none.
    #[error("the model's answer cannot be used: {0}")]
    Unusable(&'static str),
}

/// A call that is made. It outlives its stream, so that dropping that loses nothing of what was used.
#[derive(Debug)]
pub struct OneCall {
    system: SystemPrompt,
    messages: [Message; 1],
    model: ModelChoice,
    /// Counts the call, from its beginning on; `None` where no model has answered it.
    tally: Option<Tally>,
    answered_by: Option<Arc<ModelOrigin>>,
}

impl OneCall {
    /// A call of `model`, with options of this module.
    pub fn new(model: &ModelChoice, instructions: &'static str, request: String) -> Self {
        let system =
            SystemPrompt { instructions: Arc::from(instructions), client: String::new(), context: String::new() };
        let models = model.models.clone();
        Self::of(ModelChoice { max_tokens: None, temperature: None, effort: None, models }, system, request)
    }

    /// A call of `model`, with its own options as far as it has some.
    pub fn of(model: ModelChoice, system: SystemPrompt, request: String) -> Self {
        Self {
            system,
            messages: [Message::User(UserMessage::new(request))],
            model: ModelChoice {
                max_tokens: model.max_tokens.or(Some(MAX_TOKENS)),
                effort: model.effort.or(Some(Effort::None)),
                ..model
            },
            tally: None,
            answered_by: None,
        }
    }

    /// The answer, at most 16 KiB. The call is made once.
    ///
    /// # Errors
    /// When the model fails, answers nothing, or takes longer than a minute.
    pub async fn make(&mut self, llm: &dyn LlmProvider) -> Result<String, OneCallError> {
        let deadline = Instant::now() + TIME;
        let answer = timeout_at(deadline, self.answer(llm, deadline)).await.map_err(|_| OneCallError::TimedOut)??;
        match answer.trim() {
            "" => Err(OneCallError::Unusable("it is empty")),
            text => Ok(text.to_owned()),
        }
    }

    /// The model that was called, and its usage until now; `None` where nothing was used.
    pub fn used(&self) -> Option<(Arc<ModelOrigin>, Usage)> {
        let counted = self.tally.as_ref()?.count(&self.messages);
        let first = || self.model.models.first().cloned().map(Arc::new);
        Some((self.answered_by.clone().or_else(first)?, counted.usage))
    }

    async fn answer(&mut self, llm: &dyn LlmProvider, deadline: Instant) -> Result<String, OneCallError> {
        let request = ChatRequest {
            system: &self.system,
            messages: &self.messages,
            files: SentFiles::default(),
            tools: &[],
            may_call: false,
            must_call: MustCall::No,
            format: None,
            model: &self.model,
            deadline: Some(deadline),
        };
        let tally = self.tally.insert(Tally::new(&self.system, &[]));
        let mut stream = match llm.stream_chat(request).await {
            Ok(stream) => stream,
            Err(error) => {
                // Whoever does not answer charges nothing.
                self.tally = None;
                return Err(error.into());
            }
        };
        self.answered_by = Some(stream.origin.clone());
        let mut answer = String::new();
        while let Some(event) = stream.events.next().await {
            let event = event?;
            tally.push(&event);
            match event {
                StreamEvent::Text(text) => answer.push_str(&text),
                StreamEvent::Finished { reason: FinishReason::Stop | FinishReason::Length, .. } => return Ok(answer),
                StreamEvent::Finished { reason: FinishReason::ContentFilter | FinishReason::Refusal, .. } => {
                    return Err(OneCallError::Unusable("it was refused"));
                }
                StreamEvent::Thinking(_)
                | StreamEvent::ToolCallStarted { .. }
                | StreamEvent::ToolCallInput { .. }
                | StreamEvent::Used(_)
                | StreamEvent::Replay { .. } => {}
            }
            if answer.len() > MAX_BYTES {
                return Err(OneCallError::Unusable("it is too long"));
            }
        }
        Err(OneCallError::Unusable("it broke off"))
    }
}
