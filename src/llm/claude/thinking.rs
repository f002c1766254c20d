//! How much a Claude thinks, and whether it takes a temperature: both depend on the model's version, which its name tells.
//! <https://platform.claude.com/docs/en/build-with-claude/thinking>,
//! effort: <https://platform.claude.com/docs/en/build-with-claude/effort>.

use serde::Serialize;

use crate::chat::model::Effort;

/// `thinking`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    /// The model decides; `output_config.effort` guides it. The newer models do not show what they think unless they
    /// are asked to, and are silent for minutes.
    Adaptive { display: Display },
    /// As many tokens at most, counted into `max_tokens`.
    Enabled { budget_tokens: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Display {
    Summarized,
}

/// What a model can do, by its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// Before 3.7: does not think.
    Unthinking,
    /// 3.7 to 4.5: thinks within a budget.
    Budgeted,
    /// 4.6: decides itself how much it thinks, and still takes a temperature.
    Adaptive,
    /// Since 4.7, and whatever has no version in its name: also refuses a temperature.
    Newest,
    /// Not a Claude by its name, behind a gateway: as the newest, but a temperature is its own affair.
    Foreign,
}

impl Generation {
    /// Of the model called `model`: the version stands before or behind the family, as in `claude-3-7-sonnet-20250219`
    /// and `anthropic/claude-sonnet-4-5@20250929`.
    pub(super) fn of(model: &str) -> Self {
        let model = model.to_ascii_lowercase();
        let Some((_, name)) = model.split_once("claude") else { return Self::Foreign };
        let words = name.split(|c: char| !c.is_ascii_alphanumeric());
        // Not a date and not the `v2` of a cloud's name.
        let mut numbers = words
            .skip_while(|word| !is_version(word))
            .take_while(|word| is_version(word))
            .map(|word| word.parse::<u32>());
        let Some(Ok(major)) = numbers.next() else { return Self::Newest };
        let minor = numbers.next().and_then(Result::ok).unwrap_or(0);
        match (major, minor) {
            (0..=2, _) | (3, 0..=6) => Self::Unthinking,
            (3, _) | (4, 0..=5) => Self::Budgeted,
            (4, 6) => Self::Adaptive,
            _ => Self::Newest,
        }
    }

    /// Whether the model takes a temperature while it does not think.
    pub(super) fn takes_temperature(self) -> bool {
        match self {
            Self::Unthinking | Self::Budgeted | Self::Adaptive | Self::Foreign => true,
            Self::Newest => false,
        }
    }

    /// How the model is told to think with `effort`; `None` leaves it to its own way.
    pub(super) fn thinking(self, effort: Option<Effort>) -> Option<Thinking> {
        let budget_tokens = match effort? {
            Effort::None => return None,
            Effort::Low => 2048,
            Effort::Medium => 8192,
            Effort::High => 16_384,
            // With a usual answer on top still within the 32 000 tokens that the smallest of these models can write.
            Effort::Max => 24_576,
        };
        match self {
            Self::Unthinking => None,
            Self::Budgeted => Some(Thinking::Enabled { budget_tokens }),
            Self::Adaptive | Self::Newest | Self::Foreign => Some(Thinking::Adaptive { display: Display::Summarized }),
        }
    }
}

fn is_version(word: &str) -> bool {
    (1..=2).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_tells_what_it_can_do() {
        for (model, generation, reason) in [
            ("claude-2.1", Generation::Unthinking, "before thinking"),
            ("claude-3-opus-20240229", Generation::Unthinking, "a date is no minor version"),
            ("claude-3-5-haiku-latest", Generation::Unthinking, "3.5"),
            ("claude-3-7-sonnet-20250219", Generation::Budgeted, "the first that thinks"),
            ("claude-opus-4-20250514", Generation::Budgeted, "4.0"),
            ("anthropic/claude-sonnet-4.5", Generation::Budgeted, "a router's name"),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", Generation::Budgeted, "a cloud's name"),
            ("claude-opus-4-5@20251101", Generation::Budgeted, "another cloud's name"),
            ("claude-sonnet-4-6", Generation::Adaptive, "the first that decides itself"),
            ("claude-opus-4-7", Generation::Newest, "the first without a temperature"),
            ("claude-sonnet-5-5", Generation::Newest, "the default"),
            ("claude-opus-10", Generation::Newest, "one to come"),
            ("claude-mythos-preview", Generation::Newest, "no version"),
            ("glm-4.6", Generation::Foreign, "another model behind the same wire"),
        ] {
            assert_eq!(Generation::of(model), generation, "{model}: {reason}");
        }
    }

    #[test]
    fn effort_is_a_budget_or_a_word() {
        let adaptive = Some(Thinking::Adaptive { display: Display::Summarized });
        assert_eq!(Generation::Newest.thinking(Some(Effort::Low)), adaptive);
        let budgets = Effort::ALL.map(|effort| Generation::Budgeted.thinking(Some(effort)));
        let budget = |budget_tokens| Some(Thinking::Enabled { budget_tokens });
        assert_eq!(budgets, [None, budget(2048), budget(8192), budget(16_384), budget(24_576)]);
        for generation in [Generation::Budgeted, Generation::Newest, Generation::Foreign] {
            assert_eq!(generation.thinking(None), None);
            assert_eq!(generation.thinking(Some(Effort::None)), None);
        }
        assert_eq!(Generation::Unthinking.thinking(Some(Effort::Max)), None);
    }
}
