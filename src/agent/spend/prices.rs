//! Prices of models, as the operator sets them: a turn's tokens become an amount of money.

use std::collections::HashMap;

use crate::chat::cost::Cost;
use crate::chat::message::ModelOrigin;
use crate::chat::stream::Usage;

/// The prices of a model, in US dollars for a million tokens; none is negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Of the prompt.
    pub input: f64,
    /// Of the answer, reasoning included.
    pub output: f64,
    /// Of the part of the prompt that was read from a cache; `None`: as the rest of it.
    pub cached_input: Option<f64>,
}

/// The prices of models.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    /// By `provider:model`, or by the model's name alone, which counts where the first is not there.
    by_name: HashMap<String, Price>,
}

impl Prices {
    /// These prices, by `provider:model` or by the model's name alone.
    pub fn new(prices: impl IntoIterator<Item = (String, Price)>) -> Self {
        Self { by_name: prices.into_iter().collect() }
    }

    /// The cost of a turn of `origin`; `None` where it has no price, or its tokens were not counted.
    pub fn cost(&self, origin: &ModelOrigin, usage: Option<Usage>) -> Option<Cost> {
        if self.by_name.is_empty() {
            return None;
        }
        let of_provider = self.by_name.get(&format!("{}:{}", origin.provider, origin.model));
        Some(of_provider.or_else(|| self.by_name.get(&origin.model))?.cost(usage?))
    }
}

impl Price {
    fn cost(self, usage: Usage) -> Cost {
        // A vendor may count what it read from its cache beside the rest.
        let cached = usage.cached_input_tokens.min(usage.input_tokens);
        let fresh = usage.input_tokens - cached;
        let of = |tokens: u64, price: f64| tokens as f64 * price;
        let micro_usd = of(fresh, self.input)
            + of(cached, self.cached_input.unwrap_or(self.input))
            + of(usage.output_tokens, self.output);
        // A cast of what is too large ends at the largest.
        Cost { nano_usd: (micro_usd * 1000.0).round() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_costs_what_its_tokens_cost() {
        let price = |input, output, cached_input| Price { input, output, cached_input };
        let prices = Prices::new([
            ("claude:big".to_owned(), price(3.0, 15.0, Some(0.3))),
            ("big".to_owned(), price(1.0, 2.0, None)),
            ("free".to_owned(), price(0.0, 0.0, None)),
            ("odd".to_owned(), price(0.0000004, 0.1234567, None)),
            ("dear".to_owned(), price(f64::MAX, 1.0, None)),
        ]);
        let usage = |input_tokens, output_tokens, cached_input_tokens| {
            Some(Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens: output_tokens })
        };
        let rows = [
            ("claude:big", usage(1000, 100, 0), Some(4_500_000), "input and output; reasoning is in the output"),
            ("claude:big", usage(1000, 100, 400), Some(3_420_000), "what was cached costs less"),
            ("claude:big", usage(100, 0, 400), Some(30_000), "never more cached than there is"),
            ("openai:big", usage(1000, 100, 400), Some(1_200_000), "the model's own name, with no price of its cache"),
            ("x:free", usage(1000, 100, 0), Some(0), "a price of nothing is one"),
            ("x:odd", usage(1, 1, 0), Some(123), "rounded to a billionth"),
            ("x:dear", usage(u64::MAX, 1, 0), Some(u64::MAX), "more than can be counted"),
            ("x:big:big", usage(1, 1, 0), None, "another model"),
            ("claude:big", None, None, "not counted"),
        ];
        for (name, usage, expected, reason) in rows {
            let (provider, model) = name.split_once(':').unwrap();
            let origin = ModelOrigin { provider: provider.to_owned(), model: model.to_owned() };
            assert_eq!(prices.cost(&origin, usage), expected.map(|nano_usd| Cost { nano_usd }), "{reason}");
        }
    }
}
