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
    /// Moonshot's place of them.
    cached_tokens: Option<u64>,
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
        let cached_tokens = newer.cached().or(self.cached());
        self.prompt_tokens_details = Some(PromptDetails { cached_tokens });
        let reasoning_tokens = newer.reasoning().or(self.reasoning());
        self.completion_tokens_details = Some(CompletionDetails { reasoning_tokens });
        self.prompt_cache_hit_tokens = newer.prompt_cache_hit_tokens.or(self.prompt_cache_hit_tokens);
        self.cached_tokens = newer.cached_tokens.or(self.cached_tokens);
    }

    /// The counts; `None` when the server sent none.
    pub(super) fn counts(&self) -> Option<stream::Usage> {
        if self.prompt_tokens.is_none() && self.completion_tokens.is_none() {
            return None;
        }
        let prompt = self.prompt_tokens.unwrap_or(0);
        let completion = self.completion_tokens.unwrap_or(0);
        // xAI counts reasoning in the total, but not in the completion as all others do.
        let beside_prompt = self.total_tokens.zip(self.prompt_tokens).map_or(0, |(total, p)| total.saturating_sub(p));
        Some(stream::Usage {
            input_tokens: prompt,
            output_tokens: completion.max(beside_prompt),
            cached_input_tokens: self.cached().or(self.prompt_cache_hit_tokens).or(self.cached_tokens).unwrap_or(0),
            reasoning_tokens: self.reasoning().unwrap_or(0),
        })
    }

    fn cached(&self) -> Option<u64> {
        self.prompt_tokens_details.as_ref()?.cached_tokens
    }

    fn reasoning(&self) -> Option<u64> {
        self.completion_tokens_details.as_ref()?.reasoning_tokens
    }
}
