//! What a model on Bedrock can do beside text, which its name tells: `us.anthropic.claude-haiku-4-5-20251001-v1:0`, or the end
//! of an ARN. A name that tells nothing, as of a profile of one's own, is asked for nothing that it may refuse.
//! <https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-supported-models-features.html>,
//! caches: <https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html>.

use serde::Serialize;

use crate::chat::model::Effort;
use crate::llm::anthropic::{Generation, Holds, Thinking, most_tokens};

/// The makers whose models differ in what a request may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Model {
    /// Anthropic's.
    Anthropic { generation: Generation, forces_calls: bool },
    /// Amazon's own.
    Nova,
    /// OpenAI's open ones.
    OpenWeights,
    /// All others.
    Other,
}

/// The fields that only its maker's models have: `additionalModelRequestFields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum OwnFields {
    Thinking {
        thinking: Thinking,
        #[serde(skip_serializing_if = "Option::is_none")]
        output_config: Option<OutputConfig>,
    },
    Reasoning {
        reasoning_effort: &'static str,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct OutputConfig {
    effort: &'static str,
}

impl Model {
    /// The model called `name`.
    pub(super) fn named(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        if name.contains("anthropic.claude") {
            let (generation, holds) = (Generation::from_model(&name), Holds::from_model(&name));
            Self::Anthropic { generation, forces_calls: holds.calls }
        } else if name.contains("amazon.nova") {
            Self::Nova
        } else if name.contains("openai.gpt-oss") {
            Self::OpenWeights
        } else {
            Self::Other
        }
    }

    /// Whether the instructions and messages may end with a cache point, and then the tools too.
    pub(super) fn caches(self) -> (bool, bool) {
        match self {
            // Those that think have caches.
            Self::Anthropic { generation, .. } => {
                let has_caches = generation != Generation::Unthinking;
                (has_caches, has_caches)
            }
            Self::Nova => (true, false),
            Self::OpenWeights | Self::Other => (false, false),
        }
    }

    /// Whether it can be told that a tool has to be called.
    pub(super) fn forces_calls(self) -> bool {
        match self {
            Self::Anthropic { forces_calls, .. } => forces_calls,
            Self::Nova => true,
            Self::OpenWeights | Self::Other => false,
        }
    }

    /// Whether the result of a tool may have pictures and documents.
    pub(super) fn sees_results(self) -> bool {
        match self {
            Self::Anthropic { .. } | Self::Nova => true,
            Self::OpenWeights | Self::Other => false,
        }
    }

    /// Whether a message may have other things beside results of tools, or beside calls. The others refuse that.
    pub(super) fn mixes(self) -> bool {
        match self {
            Self::Anthropic { .. } | Self::Nova => true,
            Self::OpenWeights | Self::Other => false,
        }
    }

    /// Whether it takes a temperature while it does not think.
    pub(super) fn takes_temperature(self) -> bool {
        match self {
            Self::Anthropic { generation, .. } => generation.takes_temperature(),
            Self::Nova | Self::OpenWeights | Self::Other => true,
        }
    }

    /// The fields for `effort` before an answer of `max_tokens`; `None` leaves it to the model.
    pub(super) fn thinking(self, effort: Option<Effort>, max_tokens: u32) -> Option<OwnFields> {
        match self {
            Self::Anthropic { generation, .. } => {
                let thinking = generation.thinking(effort, max_tokens)?;
                let output_config = thinking.effort_word(effort).map(|effort| OutputConfig { effort });
                Some(OwnFields::Thinking { thinking, output_config })
            }
            Self::OpenWeights => Some(OwnFields::Reasoning {
                reasoning_effort: match effort? {
                    Effort::None => return None,
                    Effort::Low => "low",
                    Effort::Medium => "medium",
                    Effort::High | Effort::Max => "high",
                },
            }),
            Self::Nova | Self::Other => None,
        }
    }

    /// What an answer of the model called `name` may be long where no limit is set, thoughts included; `None` leaves it to the
    /// service, which cuts those of Claude at 4096 tokens (litellm#41529).
    pub(super) fn most_tokens(self, name: &str) -> Option<u32> {
        match self {
            // 3.5 is not one model there, and the first one takes no more than that.
            Self::Anthropic { generation: Generation::Unthinking, .. } => None,
            Self::Anthropic { .. } => Some(most_tokens(name)),
            Self::Nova | Self::OpenWeights | Self::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_tells_what_it_can_do() {
        // A cache for instructions and tools, forced calls, pictures in results, a temperature.
        for (name, expected, reason) in [
            ("anthropic.claude-v2:1", "- - - see temperature", "before families"),
            ("anthropic.claude-instant-v1", "- - - see temperature", "the small one of those"),
            ("anthropic.claude-3-haiku-20240307-v1:0", "- - force see temperature", "before caches"),
            (
                "us.anthropic.claude-haiku-4-5-20251001-v1:0",
                "system tools force see temperature",
                "an inference profile",
            ),
            (
                "arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-sonnet-4-6",
                "system tools force see temperature",
                "its ARN",
            ),
            ("anthropic.claude-opus-4-7", "system tools force see -", "the first without a temperature"),
            ("global.anthropic.claude-sonnet-5-5", "system tools - see -", "no call is forced"),
            ("anthropic.claude-mythos", "system tools - see -", "no version"),
            ("anthropic.claude-mythos-preview-v1:0", "system tools - see -", "none but the cloud's"),
            ("eu.amazon.nova-pro-v1:0", "system - force see temperature", "Amazon's own"),
            ("openai.gpt-oss-120b-1:0", "- - - - temperature", "OpenAI's"),
            ("meta.llama3-3-70b-instruct-v1:0", "- - - - temperature", "another"),
            ("arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc", "- - - - temperature", "says nothing"),
        ] {
            let model = Model::named(name);
            let (system, tools) = model.caches();
            let word = |is: bool, word| if is { word } else { "-" };
            let words = [
                word(system, "system"),
                word(tools, "tools"),
                word(model.forces_calls(), "force"),
                word(model.sees_results(), "see"),
                word(model.takes_temperature(), "temperature"),
            ];
            assert_eq!(words.join(" "), expected, "{name}: {reason}");
        }
    }

    #[test]
    fn effort_is_a_budget_or_a_word_or_nothing() {
        let json = |name, effort, max_tokens| {
            serde_json::to_string(&Model::named(name).thinking(Some(effort), max_tokens)).unwrap()
        };
        for (name, effort, max_tokens, expected) in [
            ("anthropic.claude-3-5-sonnet-20241022-v2:0", Effort::Max, 1, "null"),
            (
                "anthropic.claude-sonnet-4-5-20250929-v1:0",
                Effort::Low,
                1000,
                r#"{"thinking":{"type":"enabled","budget_tokens":2048}}"#,
            ),
            (
                "anthropic.claude-opus-4-1-20250805-v1:0",
                Effort::Max,
                16_384,
                r#"{"thinking":{"type":"enabled","budget_tokens":15616}}"#,
            ),
            ("anthropic.claude-opus-4-1-20250805-v1:0", Effort::Max, 31_000, "null"),
            (
                "anthropic.claude-sonnet-5-5",
                Effort::Max,
                1000,
                r#"{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"max"}}"#,
            ),
            (
                "anthropic.claude-sonnet-5-5",
                Effort::None,
                1000,
                r#"{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}}"#,
            ),
            ("anthropic.claude-opus-5", Effort::None, 1000, r#"{"thinking":{"type":"disabled"}}"#),
            ("anthropic.claude-opus-4-7", Effort::None, 1000, "null"),
            ("openai.gpt-oss-20b-1:0", Effort::Max, 1000, r#"{"reasoning_effort":"high"}"#),
            ("amazon.nova-pro-v1:0", Effort::High, 1000, "null"),
        ] {
            assert_eq!(json(name, effort, max_tokens), expected, "{name}");
        }
    }
}
