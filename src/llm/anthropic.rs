//! How much a Claude thinks, whether it takes a temperature, and what holds it to a form, over whichever wire it is asked: all
//! depends on the model's version, which its name tells.
//! <https://platform.claude.com/docs/en/build-with-claude/thinking>,
//! effort: <https://platform.claude.com/docs/en/build-with-claude/effort>.

use serde::Serialize;

use super::failure;
use super::http::{Endpoint, Opened};
use crate::agent::ports::llm::ProviderError;
use crate::chat::model::Effort;

/// 1024 tokens: a smaller budget is refused.
const MIN_BUDGET: u32 = 1024;

/// `thinking`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    /// The model decides; `output_config.effort` guides it. The newer models send their thoughts only when `display`
    /// says so, and are silent for minutes otherwise.
    Adaptive { display: Display },
    /// As many tokens at most, counted into `max_tokens`.
    Enabled { budget_tokens: u32 },
    /// Not at all, where it would think by itself.
    Disabled,
}

impl Thinking {
    /// The word for `effort` that goes with it. Who cannot stop thinking is asked for little where none is wanted.
    pub(super) fn effort_word(self, effort: Option<Effort>) -> Option<&'static str> {
        match (self, effort?) {
            (Self::Enabled { .. } | Self::Disabled, _) => None,
            (Self::Adaptive { .. }, Effort::None | Effort::Low) => Some("low"),
            (Self::Adaptive { .. }, Effort::Medium) => Some("medium"),
            (Self::Adaptive { .. }, Effort::High) => Some("high"),
            (Self::Adaptive { .. }, Effort::Max) => Some("max"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Display {
    /// A summary of them.
    Summarized,
}

/// What a model can do, by its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// Before 3.7: does not think.
    Unthinking,
    /// 3.7 to 4.5: thinks within a budget.
    Budgeted {
        /// What the model can write, thoughts included.
        most_tokens: u32,
    },
    /// 4.6: decides itself how much it thinks, and still takes a temperature.
    Adaptive,
    /// 4.7 to 4.9, and whatever has no version in its name: also refuses a temperature.
    Newest,
    /// Since 5.0: thinks also where nothing is said of it, and what it says between calls is a part of its thoughts.
    Thinker {
        /// Whether it can be told not to.
        can_stop: bool,
    },
    /// Not a Claude by its name, behind a gateway: as the newest, but a temperature is its own affair.
    Foreign,
}

impl Generation {
    /// Of the model called `model`: the version stands before or behind the family, as in `claude-3-7-sonnet-20250219`
    /// and `anthropic/claude-sonnet-4-5@20250929`.
    pub(super) fn from_model(model: &str) -> Self {
        let model = model.to_ascii_lowercase();
        let Some((_, name)) = model.split_once("claude") else { return Self::Foreign };
        let Some(version) = version(name) else { return Self::Newest };
        match version {
            (0..=2, _) | (3, 0..=6) => Self::Unthinking,
            (4, 0..=1) if name.contains("opus") => Self::Budgeted { most_tokens: 32_000 },
            (3, _) | (4, 0..=5) => Self::Budgeted { most_tokens: 64_000 },
            (4, 6) => Self::Adaptive,
            (4, _) => Self::Newest,
            // Of the families that were there before.
            (5, 0) => {
                Self::Thinker { can_stop: ["opus", "sonnet", "haiku"].iter().any(|family| name.contains(family)) }
            }
            (_, minor) => Self::Thinker { can_stop: minor == 5 && name.contains("haiku") },
        }
    }

    /// Whether the model takes a temperature while it does not think.
    pub(super) fn takes_temperature(self) -> bool {
        match self {
            Self::Unthinking | Self::Budgeted { .. } | Self::Adaptive | Self::Foreign => true,
            Self::Newest | Self::Thinker { .. } => false,
        }
    }

    /// The `thinking` for `effort` before an answer of `max_tokens`; `None` leaves it to the model.
    pub(super) fn thinking(self, effort: Option<Effort>, max_tokens: u32) -> Option<Thinking> {
        let adaptive = Thinking::Adaptive { display: Display::Summarized };
        if let Self::Thinker { can_stop } = self {
            let stops = can_stop && effort == Some(Effort::None);
            return Some(if stops { Thinking::Disabled } else { adaptive });
        }
        let budget_tokens = match effort? {
            Effort::None => return None,
            Effort::Low => 2048,
            Effort::Medium => 8192,
            Effort::High => 16_384,
            Effort::Max => 24_576,
        };
        match self {
            Self::Unthinking => None,
            Self::Budgeted { most_tokens } => {
                let budget_tokens = budget_tokens.min(most_tokens.saturating_sub(max_tokens));
                (budget_tokens >= MIN_BUDGET).then_some(Thinking::Enabled { budget_tokens })
            }
            Self::Adaptive | Self::Newest | Self::Thinker { .. } | Self::Foreign => Some(adaptive),
        }
    }
}

/// The answer to what `body` makes of a turn; asked once more without the thoughts of its turns so far (`true`), where these do not fit
/// what stands before them any more: a tool, a file or the key has changed.
///
/// # Errors
/// As [`Endpoint::post`].
pub(super) async fn post<B: Serialize + Sync>(
    endpoint: &Endpoint,
    model: &str,
    body: impl Fn(bool) -> B,
) -> Result<Opened, ProviderError> {
    match endpoint.post(&body(false)).await {
        Err(error) if failure::is_about(&error, failure::BOUND_THOUGHT) => {
            tracing::info!(gen_ai.request.model = model, error = %error.detail, "asked again without its thoughts");
            endpoint.post(&body(true)).await
        }
        answered => answered,
    }
}

/// What the model called `model` can write in one answer, thoughts included, as its maker documents it: sent where no
/// limit is set. The newest write more than this, and it is counted against the context window.
pub(super) fn most_tokens(model: &str) -> u32 {
    match Generation::from_model(model) {
        // As 3.5 does; those before it are known by their names.
        Generation::Unthinking if model.contains("3-5") || model.contains("3.5") => 8192,
        Generation::Unthinking => 4096,
        Generation::Budgeted { most_tokens } => most_tokens,
        Generation::Adaptive | Generation::Newest | Generation::Thinker { .. } => 64_000,
        // Unknown, and more than a model can write is refused.
        Generation::Foreign => 8192,
    }
}

/// What holds a model to a form, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holds {
    /// Whether it takes a schema for its answer.
    pub(super) schema: bool,
    /// Whether it can be told that a tool has to be called. Not while it thinks, but for those that think by themselves.
    pub(super) calls: bool,
}

impl Holds {
    /// Of the model called `model`: schemas since 4.5, and Opus 4.1; forced calls since 3.0 and before 5.1, and by Haikus. What is no
    /// Claude by its name is behind a gateway, which turns a forced call into its own kind.
    pub(super) fn from_model(model: &str) -> Self {
        let model = model.to_ascii_lowercase();
        let Some((_, name)) = model.split_once("claude") else { return Self { schema: false, calls: true } };
        let Some(version) = version(name) else { return Self { schema: false, calls: false } };
        Self {
            schema: version >= (4, 5) || (version == (4, 1) && name.contains("opus")),
            calls: version >= (3, 0) && (version < (5, 1) || name.contains("haiku")),
        }
    }
}

/// The version in what stands behind `claude` in a model's name. Not a date, and not the number that clouds put behind it:
/// `-v1:0`.
fn version(name: &str) -> Option<(u32, u32)> {
    let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let family = match name.rsplit_once("-v").filter(|(_, number)| is_number(number)) {
        // `claude-v2:1`, before there were families.
        Some(("", number)) if matches!(number.split(|c: char| !c.is_ascii_digit()).next(), Some("1" | "2")) => {
            return Some((2, 0));
        }
        Some(("", _)) | None => name,
        Some((family, _)) => family,
    };
    if family.contains("instant") {
        return Some((1, 0));
    }
    let words = family.split(|c: char| !c.is_ascii_alphanumeric()).map(|word| word.strip_prefix('v').unwrap_or(word));
    let mut numbers =
        words.skip_while(|word| !is_version(word)).take_while(|word| is_version(word)).map(str::parse::<u32>);
    let major = numbers.next()?.ok()?;
    Some((major, numbers.next().and_then(Result::ok).unwrap_or(0)))
}

fn is_version(word: &str) -> bool {
    (1..=2).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Generation = Generation::Budgeted { most_tokens: 32_000 };
    const LARGE: Generation = Generation::Budgeted { most_tokens: 64_000 };
    const STOPS: Generation = Generation::Thinker { can_stop: true };
    const THINKS: Generation = Generation::Thinker { can_stop: false };

    #[test]
    fn a_models_name_tells_what_it_can_do() {
        for (model, generation, reason) in [
            ("claude-2.1", Generation::Unthinking, "before thinking"),
            ("claude-3-opus-20240229", Generation::Unthinking, "a date is no minor version"),
            ("claude-3-5-haiku-latest", Generation::Unthinking, "3.5"),
            ("claude-3-7-sonnet-20250219", LARGE, "the first that thinks"),
            ("claude-opus-4-20250514", SMALL, "4.0"),
            ("anthropic/claude-sonnet-4.5", LARGE, "a router's name"),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", LARGE, "a cloud's name"),
            ("claude-opus-4-1", SMALL, "4.1"),
            ("claude-sonnet-4-20250514", LARGE, "writes more"),
            ("claude-opus-4-5@20251101", LARGE, "another cloud's name"),
            ("claude-sonnet-4-6", Generation::Adaptive, "the first that decides itself"),
            ("claude-opus-4-7", Generation::Newest, "the first without a temperature"),
            ("claude-opus-5", STOPS, "the first that thinks by itself"),
            ("claude-fable-5", THINKS, "one that cannot do without"),
            ("claude-sonnet-5-5", THINKS, "the default"),
            ("claude-haiku-5-5", STOPS, "the small one of those"),
            ("claude-opus-10", THINKS, "one to come"),
            ("anthropic.claude-v2:1", Generation::Unthinking, "before families: a cloud's number is its version"),
            ("claude-v1.3", Generation::Unthinking, "one before it"),
            ("anthropic.claude-instant-v1", Generation::Unthinking, "the small one of those"),
            ("claude-v4.5-sonnet", LARGE, "an alias with its version before the family"),
            ("claude-v10", THINKS, "no old one, whatever it begins with"),
            ("claude", Generation::Newest, "an alias without a version"),
            ("my-claude", Generation::Newest, "the same"),
            ("anthropic.claude-3-opus-20240229-v1:0", Generation::Unthinking, "a date and a cloud's number"),
            ("anthropic.claude-3-7-sonnet-20250219-v1:0", LARGE, "the same"),
            ("anthropic.claude-opus-4-20250514-v1:0", SMALL, "the same"),
            ("claude-3-5-sonnet-v2@20241022", Generation::Unthinking, "a number before a date"),
            ("eu.anthropic.claude-opus-4-6-v1", Generation::Adaptive, "a cloud's number without its second part"),
            ("anthropic.claude-mythos-preview-v1:0", Generation::Newest, "a cloud's number alone is no version"),
            ("claude-mythos-preview", Generation::Newest, "no version"),
            ("glm-4.6", Generation::Foreign, "another model behind the same wire"),
        ] {
            assert_eq!(Generation::from_model(model), generation, "{model}: {reason}");
        }
    }

    #[test]
    fn a_models_name_tells_what_it_is_held_to() {
        for (model, schema, calls, reason) in [
            ("anthropic.claude-v2:1", false, false, "before calls"),
            ("claude-3-opus-20240229", false, true, "before schemas"),
            ("claude-opus-4-1", true, true, "the first with schemas"),
            ("claude-sonnet-4-20250514", false, true, "4.0"),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", true, true, "a cloud's name"),
            ("claude-opus-5", true, true, "5.0"),
            ("claude-sonnet-5-5", true, false, "the default: no call is forced"),
            ("claude-haiku-5-5", true, true, "the small one of those"),
            ("claude-mythos-preview", false, false, "no version: neither"),
            ("glm-4.6", false, true, "another model behind the same wire"),
        ] {
            assert_eq!(Holds::from_model(model), Holds { schema, calls }, "{model}: {reason}");
        }
    }

    #[test]
    fn an_answer_may_be_as_long_as_the_model_can_write() {
        for (model, most) in [
            ("claude-3-opus-20240229", 4096),
            ("claude-3-5-haiku-latest", 8192),
            ("claude-3-7-sonnet-20250219", 64_000),
            ("claude-opus-4-1", 32_000),
            ("claude-sonnet-4-5", 64_000),
            ("claude-opus-4-6", 64_000),
            ("claude-sonnet-5-5", 64_000),
            ("glm-4.6", 8192),
        ] {
            assert_eq!(most_tokens(model), most, "{model}");
        }
    }

    #[test]
    fn effort_is_a_budget_or_a_word() {
        let adaptive = Some(Thinking::Adaptive { display: Display::Summarized });
        assert_eq!(Generation::Newest.thinking(Some(Effort::Low), 1000), adaptive);
        let budgets = Effort::ALL.map(|effort| LARGE.thinking(Some(effort), 1000));
        let budget = |budget_tokens| Some(Thinking::Enabled { budget_tokens });
        assert_eq!(budgets, [None, budget(2048), budget(8192), budget(16_384), budget(24_576)]);
        for generation in [LARGE, Generation::Newest, Generation::Foreign] {
            assert_eq!(generation.thinking(None, 1000), None);
            assert_eq!(generation.thinking(Some(Effort::None), 1000), None);
        }
        assert_eq!(Generation::Unthinking.thinking(Some(Effort::Max), 1000), None);
        for (generation, effort, thinking, word) in [
            (STOPS, None, adaptive, None),
            (STOPS, Some(Effort::None), Some(Thinking::Disabled), None),
            (STOPS, Some(Effort::Max), adaptive, Some("max")),
            (THINKS, None, adaptive, None),
            (THINKS, Some(Effort::None), adaptive, Some("low")),
        ] {
            let of_it = generation.thinking(effort, 1000);
            assert_eq!(
                (of_it, of_it.and_then(|it| it.effort_word(effort))),
                (thinking, word),
                "{generation:?}, {effort:?}"
            );
        }
    }

    #[test]
    fn a_budget_leaves_space_for_the_answer() {
        for (generation, max_tokens, expected, reason) in [
            (LARGE, 16_384, Some(24_576), "both fit"),
            (SMALL, 16_384, Some(15_616), "the budget shrinks"),
            (SMALL, 30_976, Some(1024), "to the smallest there is"),
            (SMALL, 30_977, None, "and no further"),
            (SMALL, 40_000, None, "nothing is left"),
        ] {
            let expected = expected.map(|budget_tokens| Thinking::Enabled { budget_tokens });
            assert_eq!(generation.thinking(Some(Effort::Max), max_tokens), expected, "{reason}");
        }
    }
}
