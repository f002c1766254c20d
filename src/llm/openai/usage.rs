//! Token counts, in the shapes that servers have for them.

use serde::Deserialize;

use crate::chat::stream;

/// Counters of one chunk; they are cumulative.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// `DeepSeek`'s name for cached tokens.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Takes what `newer` says; what it leaves out stays.
    pub(super) fn merge(&mut self, newer: Self) {
        self.prompt_tokens = newer.prompt_tokens.or(self.prompt_tokens);
        self.completion_tokens = newer.completion_tokens.or(self.completion_tokens);
        self.total_tokens = newer.total_tokens.or(self.total_tokens);
        self.prompt_tokens_details = newer.prompt_tokens_details.or(self.prompt_tokens_details.take());
        self.completion_tokens_details = newer.completion_tokens_details.or(self.completion_tokens_details.take());
        self.prompt_cache_hit_tokens = newer.prompt_cache_hit_tokens.or(self.prompt_cache_hit_tokens);
    }

    /// The counts; `None` when the server said nothing.
    pub(super) fn counts(&self) -> Option<stream::Usage> {
        if self.prompt_tokens.is_none() && self.completion_tokens.is_none() {
            return None;
        }
        let prompt = self.prompt_tokens.unwrap_or(0);
        let completion = self.completion_tokens.unwrap_or(0);
        let cached = self.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        let reasoning = self.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
        let reasoning = reasoning.unwrap_or(0);
        // xAI counts reasoning in the total, but not in the completion as everybody else does.
        let is_apart = self.total_tokens.is_some_and(|total| prompt.saturating_add(completion) < total);
        Some(stream::Usage {
            input_tokens: prompt,
            output_tokens: if is_apart { completion.saturating_add(reasoning) } else { completion },
            cached_input_tokens: cached.or(self.prompt_cache_hit_tokens).unwrap_or(0),
            reasoning_tokens: reasoning,
        })
    }
}
