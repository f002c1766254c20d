//! Tokens and money of a run, summed by the models that answered.

use serde::Serialize;

use crate::chat::cost::Cost;
use crate::chat::message::ModelOrigin;
use crate::chat::stream::Usage;

/// The usage of one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelUsage {
    provider: String,
    model: String,
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: u64,
    reasoning_tokens: u64,
    cached_input_tokens: u64,
}

/// The usage of all of them, in the order in which they first answered.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) models: Vec<ModelUsage>,
    pub(super) cost: Option<Cost>,
}

impl Tally {
    /// Adds a turn.
    pub(super) fn add(&mut self, model: &ModelOrigin, usage: Usage, cost: Option<Cost>) {
        if let Some(cost) = cost {
            *self.cost.get_or_insert_default() += cost;
        }
        let Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } = usage;
        let total_tokens = input_tokens.saturating_add(output_tokens);
        let same = |known: &&mut ModelUsage| known.provider == model.provider && known.model == model.model;
        match self.models.iter_mut().find(same) {
            Some(known) => {
                known.input_tokens = known.input_tokens.saturating_add(input_tokens);
                known.output_tokens = known.output_tokens.saturating_add(output_tokens);
                known.total_tokens = known.total_tokens.saturating_add(total_tokens);
                known.reasoning_tokens = known.reasoning_tokens.saturating_add(reasoning_tokens);
                known.cached_input_tokens = known.cached_input_tokens.saturating_add(cached_input_tokens);
            }
            None => self.models.push(ModelUsage {
                provider: model.provider.clone(),
                model: model.model.clone(),
                input_tokens,
                output_tokens,
                total_tokens,
                reasoning_tokens,
                cached_input_tokens,
            }),
        }
    }
}
