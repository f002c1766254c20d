//! How much a Gemini thinks, whether it takes a temperature, and which form of an answer it is held to: all depend on the model's version, which its name tells.
//! <https://ai.google.dev/gemini-api/docs/thinking>.

use serde::Serialize;

use crate::chat::model::Effort;

/// 65 536 tokens: the most that a model of the 2.5 series writes, thoughts included.
const MAX_OUTPUT_TOKENS: u32 = 65_536;

/// `thinkingConfig`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingConfig {
    include_thoughts: bool,
    #[serde(flatten)]
    amount: Amount,
}

/// Never both: that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Amount {
    /// Tokens, counted into the answer's limit; 0 is none.
    ThinkingBudget(u32),
    ThinkingLevel(Level),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    Minimal,
    Low,
    Medium,
    High,
}

/// What a model is held to. <https://ai.google.dev/gemini-api/docs/structured-output>
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// Nothing.
    Nothing,
    /// That its answer is JSON.
    Object,
    /// That it fits a JSON Schema.
    Schema,
}

/// A model's version and size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Generation {
    /// `None` where the name has none (`gemini-flash-latest`): the newest.
    version: Option<(u32, u32)>,
    size: Size,
    is_gemma: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Pro,
    Flash,
    FlashLite,
}

impl Generation {
    /// Of the model called `model`.
    pub(super) fn from_model(model: &str) -> Self {
        let model = model.to_ascii_lowercase();
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number < 100);
        let version = model.split_once("gemini-").and_then(|(_, name)| {
            let version = name.split('-').next()?;
            let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
            Some((number(major)?, number(minor).unwrap_or(0)))
        });
        let size = match &model {
            lite if lite.contains("flash-lite") => Size::FlashLite,
            flash if flash.contains("flash") => Size::Flash,
            _ => Size::Pro,
        };
        Self { version, size, is_gemma: model.contains("gemma") }
    }

    /// Whether a call without a signature is refused: since Gemini 3.
    pub(super) fn wants_signatures(self) -> bool {
        !self.is_gemma && self.version.is_none_or(|version| version >= (3, 0))
    }

    /// What it can be held to of an answer's form, where tools may be called or not. Gemma has no such mode.
    pub(super) fn held(self, has_tools: bool) -> Held {
        match self.version {
            _ if self.is_gemma || (has_tools && !self.holds_beside_tools()) => Held::Nothing,
            Some(version) if version < (2, 5) => Held::Object,
            Some(_) | None => Held::Schema,
        }
    }

    /// Whether a form is taken beside tools: since Gemini 3.
    pub(super) fn holds_beside_tools(self) -> bool {
        self.version.is_none_or(|version| version >= (3, 0))
    }

    /// Whether a temperature has an effect; the newer models ignore it, or refuse it in some clouds.
    pub(super) fn takes_temperature(self) -> bool {
        let last = if self.size == Size::FlashLite { (3, 4) } else { (3, 5) };
        self.is_gemma || self.version.is_some_and(|version| version <= last)
    }

    /// The `thinkingConfig` for `effort`; `None` leaves it to the model.
    pub(super) fn thinking(self, effort: Option<Effort>) -> Option<ThinkingConfig> {
        let effort = effort?;
        let amount = match self.version {
            _ if self.is_gemma => return None,
            Some(version) if version < (2, 5) => return None,
            Some(version) if version < (3, 0) => Amount::ThinkingBudget(self.budget(effort)),
            Some(_) | None => Amount::ThinkingLevel(self.level(effort)),
        };
        Some(ThinkingConfig { include_thoughts: effort != Effort::None, amount })
    }

    fn budget(self, effort: Effort) -> u32 {
        match (effort, self.size) {
            // Cannot be turned off.
            (Effort::None, Size::Pro) => 128,
            (Effort::None, Size::Flash | Size::FlashLite) => 0,
            (Effort::Low, _) => 1024,
            (Effort::Medium, _) => 8192,
            (Effort::Max, Size::Pro) => 32_768,
            (Effort::High | Effort::Max, _) => 24_576,
        }
    }

    /// A level that the model is known to have; `low` and `high` are those that all have.
    fn level(self, effort: Effort) -> Level {
        match effort {
            Effort::None if self.has_minimal() => Level::Minimal,
            Effort::None | Effort::Low => Level::Low,
            Effort::Medium if self.version == Some((3, 0)) && self.size == Size::Pro => Level::High,
            Effort::Medium => Level::Medium,
            Effort::High | Effort::Max => Level::High,
        }
    }

    fn has_minimal(self) -> bool {
        self.size != Size::Pro && self.version.is_some_and(|version| version <= (3, 6))
    }
}

impl ThinkingConfig {
    /// The limit of an answer of `max_tokens` with these thoughts before it.
    pub(super) fn limit(self, max_tokens: u32) -> u32 {
        match self.amount {
            Amount::ThinkingBudget(budget) => max_tokens.saturating_add(budget).min(MAX_OUTPUT_TOKENS).max(max_tokens),
            // The model's own affair, as where no effort is set.
            Amount::ThinkingLevel(_) => max_tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(model: &str) -> Vec<String> {
        let amount = |effort| match Generation::from_model(model).thinking(Some(effort)).map(|thinking| thinking.amount)
        {
            Some(Amount::ThinkingBudget(tokens)) => tokens.to_string(),
            Some(Amount::ThinkingLevel(level)) => format!("{level:?}"),
            None => "-".to_owned(),
        };
        Effort::ALL.map(amount).to_vec()
    }

    #[test]
    fn effort_is_what_the_model_knows() {
        for (model, expected, reason) in [
            ("gemini-2.0-flash", ["-", "-", "-", "-", "-"], "does not think"),
            ("gemma-4-27b", ["-", "-", "-", "-", "-"], "does not take it"),
            ("gemini-2.5-flash", ["0", "1024", "8192", "24576", "24576"], "may be off"),
            ("gemini-2.5-pro", ["128", "1024", "8192", "24576", "32768"], "is never off"),
            ("gemini-3-pro-preview", ["Low", "Low", "High", "High", "High"], "has two levels"),
            ("gemini-3.1-pro-preview", ["Low", "Low", "Medium", "High", "High"], "has three"),
            ("gemini-3.5-flash", ["Minimal", "Low", "Medium", "High", "High"], "has all"),
            ("gemini-3.7-flash", ["Low", "Low", "Medium", "High", "High"], "has no minimal"),
            ("gemini-flash-latest", ["Low", "Low", "Medium", "High", "High"], "is the newest"),
        ] {
            assert_eq!(amounts(model), expected, "{model} {reason}");
            assert_eq!(Generation::from_model(model).thinking(None), None);
        }
    }

    #[test]
    fn a_models_name_tells_what_it_takes() {
        for (model, wants_signatures, takes_temperature) in [
            ("gemini-1.5-pro", false, true),
            ("gemini-2.5-flash", false, true),
            ("gemma-3-27b-it", false, true),
            ("gemini-3-flash-preview", true, true),
            ("gemini-3.5-flash", true, true),
            ("gemini-3.5-flash-lite", true, false),
            ("gemini-3.6-flash", true, false),
            ("gemini-4-pro", true, false),
            ("gemini-pro-latest", true, false),
            ("of-our-own", true, false),
        ] {
            let generation = Generation::from_model(model);
            let observed = (generation.wants_signatures(), generation.takes_temperature());
            assert_eq!(observed, (wants_signatures, takes_temperature), "{model}");
        }
    }
}
